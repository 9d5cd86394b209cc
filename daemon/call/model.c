/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of calls, sides and legs: creates, copies, finds and frees them. Knows neither resources
 * nor SDP. Legs hold keys, so they live in pages of their own and are wiped when freed. */
#include "call/model.h"

#include <errno.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "keying/keying.h"

/* --- Texts ------------------------------------------------------------------------------------ */

int str_replace(struct str *to, struct str from)
{
	char *copy = NULL;

	if (from.len) {
		copy = malloc(from.len + 1);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, from.s, from.len);
		copy[from.len] = '\0';
	}
	free((void *)(uintptr_t)to->s);
	*to = (struct str){copy, from.len};
	return 0;
}

static void str_free(struct str *s)
{
	free((void *)(uintptr_t)s->s);
	*s = STR_NONE;
}

/* --- Legs ------------------------------------------------------------------------------------- */

static void leg_audio_free(struct leg_audio *a)
{
	str_free(&a->agreed);
	str_free(&a->theirs);
	str_free(&a->told);
}

static int leg_audio_clone(struct leg_audio *to, const struct leg_audio *from)
{
	to->agreed = to->theirs = to->told = STR_NONE;
	return str_replace(&to->agreed, from->agreed) | str_replace(&to->theirs, from->theirs) |
		str_replace(&to->told, from->told);
}

#define LEGS_PER_CHUNK 32u

struct free_leg {
	struct free_leg *next;
};

struct leg_chunk {
	struct leg_chunk *next;
	struct leg leg[LEGS_PER_CHUNK];
};

static bool add_chunk(struct keystore *k)
{
	struct leg_chunk *c = secmem_alloc(sizeof(*c));

	if (!c)
		return false;
	c->next = k->chunk;
	k->chunk = c;
	for (size_t i = LEGS_PER_CHUNK; i > 0; i--) {
		struct free_leg *f = (struct free_leg *)(void *)&c->leg[i - 1];

		f->next = k->free;
		k->free = f;
	}
	return true;
}

/* Zeroed, or NULL. */
static struct leg *keystore_take(struct keystore *k)
{
	struct free_leg *f;

	if (!k->free && !add_chunk(k))
		return NULL;
	f = k->free;
	k->free = f->next;
	k->live++;
	memset(f, 0, sizeof(struct leg));
	return (struct leg *)(void *)f;
}

/* Wipes. */
static void keystore_put(struct keystore *k, struct leg *leg)
{
	struct free_leg *f = (struct free_leg *)(void *)leg;

	if (!leg)
		return;
	leg_audio_free(&leg->audio);
	secmem_wipe(leg, sizeof(*leg));
	f->next = k->free;
	k->free = f;
	k->live--;
}

void keystore_fini(struct keystore *k)
{
	struct leg_chunk *next;

	for (struct leg_chunk *c = k->chunk; c; c = next) {
		next = c->next;
		secmem_free(c, sizeof(*c));
	}
	*k = (struct keystore){0};
}

/* --- Calls ------------------------------------------------------------------------------------ */

struct call *call_new(struct str id, uint64_t now_ns)
{
	struct call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (str_replace(&c->id, id)) {
		free(c);
		return NULL;
	}
	c->created_ns = c->signal_ns = now_ns;
	return c;
}

static void side_free(struct keystore *k, struct side *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; i < s->legs; i++)
		keystore_put(k, s->leg[i]);
	for (uint32_t i = 0; i < s->aliases; i++)
		str_free(&s->alias[i]);
	str_free(&s->tag);
	str_free(&s->via_branch);
	str_free(&s->label);
	str_free(&s->sdp);
	free(s);
}

void call_free(struct keystore *k, struct call *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->sides; i++)
		side_free(k, c->side[i]);
	history_free(c->history);
	str_free(&c->id);
	str_free(&c->metadata);
	str_free(&c->tap_path);
	free(c);
}

static struct leg *leg_clone(struct keystore *k, const struct leg *from)
{
	struct leg *l = keystore_take(k);

	if (!l)
		return NULL;
	*l = *from;
	if (leg_audio_clone(&l->audio, &from->audio)) {
		keystore_put(k, l);
		return NULL;
	}
	l->rx_new = l->tx_new = l->relearn = l->started = l->session_resumed = false;
	l->ice.candidate = NULL;
	l->ice.candidates = 0;
	l->ice.of_next = false;
	return l;
}

static struct side *side_clone(struct keystore *k, const struct side *from)
{
	struct side *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return NULL;
	*s = *from;
	s->tag = s->via_branch = s->label = s->sdp = STR_NONE;
	memset(s->alias, 0, sizeof(s->alias));
	memset(s->leg, 0, sizeof(s->leg));
	err = str_replace(&s->tag, from->tag);
	err |= str_replace(&s->via_branch, from->via_branch);
	err |= str_replace(&s->label, from->label);
	err |= str_replace(&s->sdp, from->sdp);
	for (uint32_t i = 0; i < from->aliases; i++)
		err |= str_replace(&s->alias[i], from->alias[i]);
	for (uint32_t i = 0; i < from->legs && !err; i++) {
		if (!from->leg[i])
			continue;
		s->leg[i] = leg_clone(k, from->leg[i]);
		err = s->leg[i] ? 0 : -ENOMEM;
	}
	if (err) {
		side_free(k, s);
		return NULL;
	}
	return s;
}

struct call *call_clone(struct keystore *k, const struct call *from)
{
	struct call *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return NULL;
	*c = *from;
	c->id = c->metadata = c->tap_path = STR_NONE;
	c->chain = c->prev = c->next = NULL;
	c->links = NULL;
	c->history = NULL;
	c->save.prev = c->save.next = NULL;
	c->save.listed = false;
	memset(c->side, 0, sizeof(c->side));
	err = str_replace(&c->id, from->id);
	err |= str_replace(&c->metadata, from->metadata);
	err |= str_replace(&c->tap_path, from->tap_path);
	for (uint32_t i = 0; i < from->sides && !err; i++) {
		c->side[i] = side_clone(k, from->side[i]);
		err = c->side[i] ? 0 : -ENOMEM;
	}
	if (err) {
		call_free(k, c);
		return NULL;
	}
	return c;
}

bool side_has_tag(const struct side *s, struct str tag)
{
	if (!tag.len || s->gone)
		return false;
	if (str_eq(s->tag, tag))
		return true;
	for (uint32_t i = 0; i < s->aliases; i++)
		if (str_eq(s->alias[i], tag))
			return true;
	return false;
}

uint8_t call_side_by_tag(const struct call *c, struct str tag)
{
	for (uint32_t i = 0; i < c->sides; i++)
		if (!c->side[i]->gone && tag.len && str_eq(c->side[i]->tag, tag))
			return (uint8_t)i;
	for (uint32_t i = 0; i < c->sides; i++)
		if (side_has_tag(c->side[i], tag))
			return (uint8_t)i;
	return SIDE_NONE;
}

uint8_t call_side_add(struct call *c, struct str tag, struct str via_branch)
{
	struct side *s;

	if (c->sides == CALL_MAX_SIDES)
		return SIDE_NONE;
	s = calloc(1, sizeof(*s));
	if (!s)
		return SIDE_NONE;
	s->peer = SIDE_NONE;
	if (str_replace(&s->tag, tag) || str_replace(&s->via_branch, via_branch)) {
		side_free(NULL, s);
		return SIDE_NONE;
	}
	c->side[c->sides] = s;
	return (uint8_t)c->sides++;
}

struct leg *side_leg(struct keystore *k, struct side *s, uint32_t media)
{
	if (media >= SDP_MAX_MEDIA)
		return NULL;
	if (!s->leg[media])
		s->leg[media] = keystore_take(k);
	if (s->leg[media] && s->legs <= media)
		s->legs = media + 1;
	return s->leg[media];
}

/* The n-th active leg of this kind, from 0. */
static struct leg *leg_of_kind(const struct side *s, const char *kind, uint32_t n)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i] && s->leg[i]->active && strcmp(s->leg[i]->kind, kind) == 0 && !n--)
			return s->leg[i];
	return NULL;
}

struct leg *leg_peer(const struct call *c, const struct side *s, uint32_t media)
{
	const struct side *peer = s->peer < c->sides ? c->side[s->peer] : NULL;
	const struct leg *l = side_leg_get(s, media);
	uint32_t n = 0;

	if (!peer || !s->connected)
		return peer ? side_leg_get(peer, media) : NULL;
	if (!l || !l->active)
		return NULL;
	while (leg_of_kind(s, l->kind, n) != l)
		n++;
	return leg_of_kind(peer, l->kind, n);
}

/* Adds the counters of a port that is not in use now. */
static void add_stats(const struct relay *relay, const struct call *c, const struct relay_port *p,
	bool rtcp, struct relay_stats *out)
{
	struct relay_stats st;

	relay->ops->stats(relay->arg, c->worker, rtcp ? p->rtcp_stream : p->rtp_stream, &st);
	out->packets += st.packets;
	out->bytes += st.bytes;
	out->errors += st.errors;
	out->packets_out += st.packets_out;
	out->bytes_out += st.bytes_out;
	for (size_t i = 0; i < PACKET_VERDICTS; i++)
		out->drops[i] += st.drops[i];
	for (size_t i = 0; i < MEDIA_OTHERS_N; i++)
		out->others[i] += st.others[i];
	if (st.last_packet_ns > out->last_packet_ns)
		out->last_packet_ns = st.last_packet_ns;
}

uint64_t leg_heard_ns(
	const struct relay *relay, const struct call *c, const struct leg *l, bool rtcp)
{
	const struct relay_port *p;
	uint64_t last = 0;

	for (uint32_t i = 0; (p = leg_port_at(l, i)); i++) {
		uint64_t heard = relay->ops->heard(
			relay->arg, c->worker, rtcp ? p->rtcp_stream : p->rtp_stream);

		last = heard > last ? heard : last;
	}
	return last;
}

void leg_stats(const struct relay *relay, const struct call *c, const struct leg *l, bool rtcp,
	struct relay_stats *out)
{
	const struct stream_counts *b = &l->before[rtcp];

	relay->ops->stats(
		relay->arg, c->worker, rtcp ? l->port.rtcp_stream : l->port.rtp_stream, out);
	for (uint32_t i = 0; i < l->locals.n; i++)
		if (i != l->locals.at[rtcp])
			add_stats(relay, c, &l->locals.port[i], rtcp, out);
	out->packets += b->packets;
	out->bytes += b->bytes;
	out->errors += b->errors;
	out->packets_out += b->packets_out;
	out->bytes_out += b->bytes_out;
	for (size_t i = 0; i < MEDIA_OTHERS_N; i++)
		out->others[i] += b->others[i];
	if (b->last_packet_ns > out->last_packet_ns)
		out->last_packet_ns = b->last_packet_ns;
}

/* others: of its RTP stream; theirs: of the other side's. */
static const char *leg_keying(const struct leg *l, const uint64_t others[MEDIA_OTHERS_N],
	const uint64_t theirs[MEDIA_OTHERS_N])
{
	/* A ZRTP exchange may continue while media are in the clear. */
	if (keying_name(&l->keying)[0] && !(srtp_params_are_plain(&l->rx) && !l->rx.pass))
		return keying_name(&l->keying);
	/* One of the two sends the last message of the agreement (RFC 6189 4.6). A party, or a
	 * stranger with its address, can send it alone. */
	if (others[MEDIA_OTHER_ZRTP] && theirs[MEDIA_OTHER_ZRTP] &&
		(others[MEDIA_OTHER_ZRTP_DONE] || theirs[MEDIA_OTHER_ZRTP_DONE]))
		return "ZRTP end-to-end";
	if (others[MEDIA_OTHER_DTLS] && theirs[MEDIA_OTHER_DTLS])
		return "DTLS end-to-end";
	return "";
}

/* Counters of the leg's peer, for its RTP stream; zeroes without a peer. */
static void peer_others(uint64_t out[MEDIA_OTHERS_N], const struct relay *relay,
	const struct call *c, const struct side *s, const struct leg *l)
{
	const struct side *peer = s->peer == SIDE_NONE ? NULL : c->side[s->peer];
	struct relay_stats st = {0};

	for (uint32_t i = 0; peer && i < s->legs && i < peer->legs; i++)
		if (s->leg[i] == l && peer->leg[i] && peer->leg[i]->has_port)
			leg_stats(relay, c, peer->leg[i], false, &st);
	memcpy(out, st.others, sizeof(st.others));
}

const char *leg_keying_now(const struct relay *relay, const struct call *c, const struct side *s,
	const struct leg *l, const uint64_t others[MEDIA_OTHERS_N])
{
	uint64_t theirs[MEDIA_OTHERS_N];

	peer_others(theirs, relay, c, s, l);
	return leg_keying(l, others, theirs);
}

bool leg_is_end_to_end(const struct relay *relay, const struct call *c, const struct side *s,
	const struct leg *l, const uint64_t others[MEDIA_OTHERS_N])
{
	uint64_t theirs[MEDIA_OTHERS_N];
	bool both = false;

	peer_others(theirs, relay, c, s, l);
	for (int i = 0; i < MEDIA_OTHERS_N; i++)
		both |= others[i] && theirs[i];
	return both;
}

const char *leg_suite(const struct leg *l, const struct srtp_params *s, const char *keying)
{
	if (!l->active)
		return NULL;
	if (!sdp_proto_is_rtp(l->proto))
		return sdp_proto_name(l->proto)[0] ? sdp_proto_name(l->proto) : "not RTP";
	if (l->rx.pass || l->tx.pass)
		return "end-to-end";
	if (s->keys)
		return srtp_suite_get(srtp_params_suite(s))->name;
	if (s->awaited)
		return keying_awaited(&l->keying);
	return !l->rx.keys && keying[0] ? keying : "plain";
}

bool leg_is_plain(
	const struct relay *relay, const struct call *c, const struct side *s, const struct leg *l)
{
	struct relay_stats st;

	if (!l->active || !sdp_proto_is_rtp(l->proto) || l->rx.pass ||
		!srtp_params_are_plain(&l->rx))
		return false;
	leg_stats(relay, c, l, false, &st);
	return !leg_keying_now(relay, c, s, l, st.others)[0];
}

uint32_t listener_stream(
	const struct call *c, uint32_t source, uint32_t media, const struct leg *after, bool rtcp)
{
	bool past = !after;

	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; c->side[s]->listener && i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && l == after)
				past = true;
			else if (past && l && l->hears && l->active && l->has_port &&
				l->hears_side == source && l->hears_media == media &&
				(l->dir == SDP_DIR_RECVONLY || l->dir == SDP_DIR_SENDRECV))
				return 1 +
					(rtcp && !l->mux ? l->port.rtcp_stream
							 : l->port.rtp_stream);
		}
	return 0;
}
