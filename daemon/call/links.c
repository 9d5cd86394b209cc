/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The graph of calls that send to each other (call/links.h). Nodes are legs, RTP and RTCP together.
 * Packets that arrive at a leg leave by the leg of its peer, by those of its listeners, and by
 * itself if it echoes. From there an edge leads to the leg that has the destination port. Calls
 * never send to their own ports, so the two directions of a spiral do not form a cycle. */
#include "call/links.h"
#include "call/leg_locals.h"

#include <errno.h>
#include <stdlib.h>

#include "call/call_int.h"
#include "call/unsaved.h"

#define CELLS 32768u /* pairs of ports of an address */

struct link {
	struct link *next, **prev; /* of the cell; prev NULL: it no longer leads to a cell */
	struct link *more;         /* of the same call */
	struct link_cell *cell;
	struct call *call;
	uint8_t side, media;
	bool rtcp;
};

/* --- Cells ------------------------------------------------------------------------------------ */

int links_init(struct links *l, uint32_t locals)
{
	*l = (struct links){.locals = locals};
	l->cell = calloc(locals + 1, sizeof(*l->cell));
	return l->cell ? 0 : -ENOMEM;
}

void links_fini(struct links *l)
{
	for (uint32_t i = 0; l->cell && i < l->locals; i++)
		free(l->cell[i]);
	free(l->cell);
}

/* NULL: out of memory, or no such cell and `make` is false. */
static struct link_cell *cell_at(const struct links *l, uint32_t local, uint16_t port, bool make)
{
	if (local >= l->locals)
		return NULL;
	/* The kernel allocates pages only for cells in use. */
	if (!l->cell[local] && make)
		l->cell[local] = calloc(CELLS, sizeof(**l->cell));
	return l->cell[local] ? &l->cell[local][port / 2] : NULL;
}

static bool is_alias(const struct links *l, const struct endpoint *e)
{
	for (uint32_t i = 0; i < LINKS_ALIASES; i++)
		if (l->alias[i].family && endpoint_addr_eq(&l->alias[i], e))
			return true;
	return false;
}

void links_alias(struct links *l, const struct endpoint *addr)
{
	if (!is_alias(l, addr))
		l->alias[l->aliases++ % LINKS_ALIASES] = *addr;
}

/* The next interface after `after` to which the destination may lead, -1: none. An alias may lead
 * to any. */
static int next_local(const struct calls *c, const struct endpoint *to, int after)
{
	int i;

	if (!to->family || !to->port)
		return -1;
	i = reach_local(c->reach, to, after);
	if (i < 0 && is_alias(&c->links, to) && after + 1 < (int)c->links.locals)
		i = after + 1;
	return i;
}

enum reach_verdict links_check(const struct calls *c, struct str call_id, const struct endpoint *to)
{
	enum reach_verdict v = reach_check(c->reach, to);
	bool ours = reach_local(c->reach, to, -1) >= 0, owned = false;

	if ((v != REACH_OK && v != REACH_OWN) || (v == REACH_OWN && !ours))
		return v;
	for (int i = next_local(c, to, -1); i >= 0; i = next_local(c, to, i)) {
		const struct link_cell *cell = cell_at(&c->links, (uint32_t)i, to->port, false);

		if (!cell || !cell->owner)
			continue;
		if (str_eq(cell->owner->id, call_id))
			return REACH_OWN_CALL;
		owned = true;
	}
	return ours && !owned ? REACH_OWN_FREE : REACH_OK;
}

/* --- Walks ------------------------------------------------------------------------------------ */

struct walk {
	struct calls *c;
	struct call *prev, *next; /* next replaces prev */
	uint64_t number;
	uint32_t visits;
};

static int visit(struct walk *w, struct call *c, uint32_t side, uint32_t media, uint32_t depth);

static int follow(struct walk *w, const struct endpoint *to, uint32_t depth)
{
	int err = 0;

	for (int i = next_local(w->c, to, -1); i >= 0 && !err; i = next_local(w->c, to, i)) {
		const struct link_cell *cell = cell_at(&w->c->links, (uint32_t)i, to->port, false);
		struct call *c = cell ? cell->owner : NULL;

		if (c)
			err = visit(
				w, c == w->prev ? w->next : c, cell->side, cell->media, depth + 1);
	}
	return err;
}

static bool sends(const struct leg *l)
{
	return l && (l->active || l->early) && l->has_port;
}

/* Follows packets that leave by this leg. */
static int leave(struct walk *w, const struct leg *l, uint32_t depth)
{
	int err;

	if (!sends(l))
		return 0;
	err = follow(w, &l->remote, depth);
	return err ? err : follow(w, &l->rtcp_remote, depth);
}

/* Follows packets that arrive at this leg to the legs by which they leave, as stream_cfgs() in
 * apply.c does. */
static int visit(struct walk *w, struct call *c, uint32_t side, uint32_t media, uint32_t depth)
{
	struct leg *l = side < c->sides ? side_leg_get(c->side[side], media) : NULL;
	const struct side *s;
	int err;

	if (!l)
		return 0;
	if (l->walked == w->number)
		return l->walking ? -ELOOP : 0;
	if (depth > LINKS_DEPTH || ++w->visits > LINKS_VISITS)
		return -ELOOP;
	l->walked = w->number;
	l->walking = true;
	s = c->side[side];
	err = leave(w, leg_peer(c, s, media), depth);
	if (!err && s->echo)
		err = leave(w, l, depth);
	if (!err && s->listener && s->rtcp_back && l->hears)
		err = leave(w, side_leg_get(c->side[l->hears_side], l->hears_media), depth);
	for (uint32_t i = 0; i < c->sides && !err; i++)
		for (uint32_t k = 0; c->side[i]->listener && k < c->side[i]->legs && !err; k++) {
			const struct leg *o = c->side[i]->leg[k];

			if (o && o->hears && o->hears_side == side && o->hears_media == media)
				err = leave(w, o, depth);
		}
	l->walking = false;
	return err;
}

/* A new cycle goes through the call that changed. 0 or -ELOOP. */
static int walk(struct calls *c, struct call *prev, struct call *next)
{
	struct walk w = {.c = c, .prev = prev, .next = next, .number = ++c->links.walk};
	int err = 0;

	for (uint32_t s = 0; s < next->sides && !err; s++)
		for (uint32_t i = 0; i < next->side[s]->legs && !err; i++)
			err = visit(&w, next, s, i, 0);
	return err;
}

/* --- Links of a call -------------------------------------------------------------------------- */

void links_drop(struct link *l)
{
	while (l) {
		struct link *more = l->more;

		if (l->prev) {
			*l->prev = l->next;
			if (l->next)
				l->next->prev = l->prev;
		}
		free(l);
		l = more;
	}
}

/* owned: only links to ports that belong to a call. */
static int add(struct calls *c, const struct link *like, const struct endpoint *to, bool owned,
	struct link **out)
{
	for (int i = next_local(c, to, -1); i >= 0; i = next_local(c, to, i)) {
		struct link_cell *cell = cell_at(&c->links, (uint32_t)i, to->port, !owned);
		struct link *l;

		if (owned && (!cell || !cell->owner))
			continue;
		l = cell ? malloc(sizeof(*l)) : NULL;
		if (!l)
			return -ENOMEM;
		*l = *like;
		l->cell = cell;
		l->more = *out;
		*out = l;
	}
	return 0;
}

static const struct endpoint *destination(const struct leg *l, bool rtcp)
{
	return rtcp ? &l->rtcp_remote : &l->remote;
}

/* Whether the leg had this link before; then it was checked. */
static bool had(const struct call *prev, uint32_t side, uint32_t media, const struct endpoint *to)
{
	const struct leg *l =
		prev && side < prev->sides ? side_leg_get(prev->side[side], media) : NULL;

	return l && (l->active || l->early) &&
		(endpoint_eq(&l->remote, to) || endpoint_eq(&l->rtcp_remote, to));
}

/* Collects all links of a call. prev: see had(). checked: new links must lead to existing other
 * calls. */
static int collect(
	struct calls *c, struct call *prev, struct call *next, bool checked, struct link **out)
{
	struct link like = {.call = next};
	int err = 0;

	for (uint32_t s = 0; s < next->sides; s++)
		for (uint32_t i = 0; i < next->side[s]->legs; i++)
			for (int rtcp = 0; rtcp < 2 && !err; rtcp++) {
				const struct leg *l = next->side[s]->leg[i];
				const struct endpoint *to = l ? destination(l, rtcp) : NULL;

				if (!sends(l) || next_local(c, to, -1) < 0)
					continue;
				if (checked && !had(prev, s, i, to) &&
					links_check(c, next->id, to) != REACH_OK)
					err = -EADDRNOTAVAIL;
				like.side = (uint8_t)s;
				like.media = (uint8_t)i;
				like.rtcp = rtcp;
				err = err ? err : add(c, &like, to, checked, out);
			}
	return err;
}

/* Whether another call sends to one of its ports. */
static bool is_named(const struct calls *c, const struct call *call)
{
	for (uint32_t s = 0; call && s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			const struct leg *l = call->side[s]->leg[i];
			const struct relay_port *p;

			for (uint32_t k = 0; l && (p = leg_port_at(l, k)); k++) {
				const struct link_cell *cell =
					cell_at(&c->links, p->rtp.addr, p->rtp.port, false);

				if (cell && cell->named)
					return true;
			}
		}
	return false;
}

int links_plan(struct calls *c, struct call *prev, struct call *next, struct link **out)
{
	int err;

	*out = NULL;
	err = collect(c, prev, next, true, out);
	/* A call without outgoing or without incoming links closes no circle. */
	if (!err && *out && is_named(c, prev))
		err = walk(c, prev, next);
	if (err) {
		links_drop(*out);
		*out = NULL;
	}
	return err;
}

static void attach(struct call *call, struct link *planned)
{
	call->links = planned;
	for (struct link *l = planned; l; l = l->more) {
		l->next = l->cell->named;
		l->prev = &l->cell->named;
		if (l->next)
			l->next->prev = &l->next;
		l->cell->named = l;
	}
}

/* --- Ports that a call no longer has ---------------------------------------------------------- */

/* Removes the destination of the stream, here and at its worker. */
static void cut(struct calls *c, struct link *l)
{
	struct leg *leg = side_leg_get(l->call->side[l->side], l->media);

	l->prev = NULL;
	if (!leg)
		return;
	leg_cut(leg, l->rtcp);
	c->relay->ops->stream_cut(c->relay->arg, l->call->worker,
		l->rtcp ? leg->port.rtcp_stream : leg->port.rtp_stream);
	/* Otherwise the destination would become a link again after a restart, to the port's next
	 * owner. */
	save_changed(&c->saver, l->call, l->call);
}

static void cut_all(struct calls *c, struct link_cell *cell)
{
	struct link *l = cell->named, *next;

	cell->named = NULL;
	for (; l; l = next) {
		next = l->next;
		cut(c, l);
	}
}

static void disown_leg(
	struct calls *c, const struct call *call, const struct leg *l, const struct leg *keeps)
{
	const struct relay_port *p;

	for (uint32_t i = 0; (p = leg_port_at(l, i)); i++) {
		struct link_cell *cell = cell_at(&c->links, p->rtp.addr, p->rtp.port, false);

		if ((keeps && leg_has_stream(keeps, p->rtp_stream)) || !cell || cell->owner != call)
			continue;
		cell->owner = NULL;
		cut_all(c, cell);
	}
}

/* The ports of one version of a call, except those that the other version keeps. */
static void disown(struct calls *c, const struct call *call, const struct call *keeps)
{
	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++)
			if (call->side[s]->leg[i])
				disown_leg(c, call, call->side[s]->leg[i],
					keeps ? side_leg_get(keeps->side[s], i) : NULL);
}

/* keeps: links to the port stay. Otherwise they are the previous owner's, and are removed. */
static void own_port(struct calls *c, const struct relay_port *p, bool keeps,
	const struct call *prev, const struct link_cell *as)
{
	struct link_cell *cell = cell_at(&c->links, p->rtp.addr, p->rtp.port, true);

	if (!cell)
		return;
	if (!keeps && (!prev || cell->owner != prev))
		cut_all(c, cell);
	cell->owner = as->owner;
	cell->side = as->side;
	cell->media = as->media;
}

/* restored: calls with links to its ports were restored earlier. */
static void own(struct calls *c, const struct call *prev, struct call *call, bool restored)
{
	for (uint32_t s = 0; s < call->sides; s++)
		for (uint32_t i = 0; i < call->side[s]->legs; i++) {
			const struct leg *l = call->side[s]->leg[i];
			const struct link_cell as = {
				.owner = call, .side = (uint8_t)s, .media = (uint8_t)i};
			const struct relay_port *p;

			for (uint32_t k = 0; l && (p = leg_port_at(l, k)); k++)
				own_port(c, p, restored, prev, &as);
		}
}

void links_replace(struct calls *c, struct call *prev, struct call *next, struct link *planned)
{
	if (prev) {
		links_drop(prev->links);
		prev->links = NULL;
		disown(c, prev, next);
	}
	own(c, prev, next, false);
	attach(next, planned);
}

void links_adopt(struct calls *c, struct call *call)
{
	struct link *planned = NULL;
	int err;

	if (call->media_address.family && !reach_is_media_address(c->reach, &call->media_address))
		links_alias(&c->links, &call->media_address);
	own(c, NULL, call, true);
	err = collect(c, NULL, call, false, &planned);
	err = err || !planned ? err : walk(c, NULL, call);
	attach(call, planned);
	for (struct link *l = planned; l && err; l = l->more) {
		*l->prev = l->next;
		if (l->next)
			l->next->prev = l->prev;
		cut(c, l);
	}
}

void links_end(struct calls *c, struct call *call)
{
	links_drop(call->links);
	call->links = NULL;
	disown(c, call, NULL);
}
