/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Restores a call after a restart, or on the machine that takes over: the same ports and keys, and
 * no index is sent with two different packets. The record may be old, rolled back to an earlier
 * one, or restored for the second time, and Redis may refuse to store another. So nothing here
 * relies on the record's age or on what Redis acknowledged. An acknowledged ceiling would not be
 * enough: a rollback loses it, and the next process would begin below it.
 *
 * - Received indexes (RFC 3711 3.3.1): the highest saved one, with its ROC, is the base for
 *   estimating the next packet's. The estimate covers half a cycle, 2^15 packets. After longer
 *   outages later ROCs are tried, and an authentic packet proves one (media/roc.c). Without
 *   authentication, the rate and the record's age give the number of lost packets. Nothing up to
 *   the saved index counts as new. Packets received between the record and a crash can be replayed
 *   once.
 * - Times: the record's age is measured by a clock that both nodes read (calls_shared_clock()). The
 *   record's times are converted to this node's clock, so the clocks of two nodes need not agree.
 * - Sent SRTP of terminals: each life sends it under SSRCs of its own (media/rename.c), so indexes
 *   that earlier lives sent do not matter. This includes authenticated terminals: they own their
 *   keys, and can send other content with an index that they used before.
 * - Sent SRTP of an audio session: we choose its SSRC and indexes. No life sends above the SSRC's
 *   ceiling (packet/ceiling.h), and each life begins above the ceiling of that time. So the SSRC
 *   stays within one boot, unless the terminal may have missed half a cycle of sequence numbers.
 * - Sent SRTCP: the index is ours to choose. Each life begins above what any life can have sent
 *   until then, by the clock (media_rtcp_ceiling()), and a margin for clocks that differ. So SRTCP
 *   rests for RTCP_MARGIN after a restart.
 * - Keys of ours that are known to a terminal, but not in force: those that were used are
 *   forgotten, because the record does not have their lifetimes. All are when the record is older
 *   than OFFER_NS. An answer that chooses one is refused.
 * - Learned addresses stay learned; key lifetimes and counters of streams continue.
 * - Recording continues in a new file: the old one may be on another machine, and its last packet
 *   is unknown. */
#include "persist/restore.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "call/apply.h"
#include "call/call_int.h"
#include "call/leg_locals.h"
#include "call/recording.h"
#include "call/table.h"
#include "call/timeout_report.h"
#include "call/unsaved.h"
#include "keying/keying.h"
#include "persist/save_format.h"
#include "persist/save_read.h"
#include "srtp/replay.h"

#define HALF_CYCLE (1ull << 15)
#define OFFER_NS   (300 * NS_PER_SEC)
#define AGE_MAX \
	(86400 * NS_PER_SEC) /* limit whatever the clock shows: the default of
					 * --redis-expires */
/* For errors of the shared clock, and a clock that is set back. */
#define RTCP_MARGIN (2 * NS_PER_SEC)

static const char *why_text(int err)
{
	switch (err) {
	case -ENOMEM:
		return "out of memory";
	case -EPROTONOSUPPORT:
		return "written by another version";
	case -EADDRNOTAVAIL:
		return "its local address is not among --interface";
	case -EADDRINUSE:
		return "its port is taken";
	case -ERANGE:
		return "its port is not between --port-min and --port-max";
	case -EXDEV:
		return "its ports belong to several workers: start with as many as before";
	case -ENOSPC:
		return "ran out of ports, contexts or keys";
	case -EAGAIN:
		return "a worker is overloaded";
	case -EEXIST:
		return "a call with this Call-ID exists already";
	case -EACCES:
		return "media must not be sent to its address: see --media-allow";
	case -EBADMSG:
		return "makes no sense";
	}
	return "it cannot be restored";
}

/* The age of a record, and all its times by this node's clock. */
static uint64_t age_of(const struct calls *calls, const struct call_state *s, uint64_t now_ns)
{
	uint64_t shared_ns = now_ns + (uint64_t)calls->saver.shared_ahead_ns;
	uint64_t age_ns = shared_ns > s->at_ns ? shared_ns - s->at_ns : 0;

	return age_ns < AGE_MAX ? age_ns : AGE_MAX;
}

static void shift(uint64_t *t_ns, uint64_t by_ns)
{
	if (*t_ns) /* 0 means unset; a time before 1970 means long ago */
		*t_ns = (int64_t)(*t_ns + by_ns) > 0 ? *t_ns + by_ns : 1;
}

static void to_our_clock(struct call *c, struct call_state *s, uint64_t now_ns, uint64_t elapsed_ns)
{
	uint64_t by_ns = now_ns - elapsed_ns - (s->real_ns ? s->real_ns : s->at_ns);

	shift(&c->created_ns, by_ns);
	shift(&c->signal_ns, by_ns);
	shift(&c->delete_ns, by_ns);
	for (uint32_t i = 0; i < c->sides; i++) {
		shift(&c->side[i]->created_ns, by_ns);
		shift(&c->side[i]->signal_ns, by_ns);
		shift(&c->side[i]->dtmf.since_ns, by_ns);
	}
	for (uint32_t i = 0; i < s->legs; i++)
		for (int k = 0; k < 2; k++)
			shift(&s->leg[i].counts[k].last_packet_ns, by_ns);
}

/* Estimates how far an SSRC's index advanced since the record, if authentication cannot show it. */
static uint64_t cycles_since(const struct save_mark *m, uint64_t elapsed_ns)
{
	uint64_t ms = elapsed_ns / 1000000, by = ms < UINT32_MAX ? ms * m->per_s / 1000 : 0;

	return by >= HALF_CYCLE ? by - HALF_CYCLE / 2 : 0;
}

static uint64_t resume_from(const struct leg *l, const struct save_mark *m, uint64_t elapsed_ns)
{
	bool proves = !l->rx.pass && !l->rx.key[0].no_rtp_auth && !l->rx.key[0].kdr;
	uint64_t to = m->index, max = SRTP_INDEX_MAX;

	if (m->table == MEDIA_RX_RTP && !m->roc_only && !proves)
		to += cycles_since(m, elapsed_ns);
	return to < max ? to : max;
}

struct resume {
	struct media_cmd *cmd;
	uint32_t n;
	uint64_t now_ns, elapsed_ns;
	const struct reach *reach;
};

static struct media_cmd *resume_cmd(struct resume *r, enum media_cmd_type type, uint32_t id)
{
	struct media_cmd *c = &r->cmd[r->n++];

	memset(c, 0, sizeof(*c));
	c->type = type;
	c->id = id;
	c->now_ns = r->now_ns;
	return c;
}

/* Restores received indexes. Of the sent SSRCs only that of an audio session returns. */
static void resume_marks(struct resume *r, const struct leg *l, const struct leg_state *s)
{
	struct media_cmd *c = NULL;

	for (uint32_t i = 0; i < s->marks; i++) {
		const struct save_mark *m = &s->mark[i];

		if (!l->rx.keys || m->table == MEDIA_TX_RTP)
			continue;
		if (!c || c->ctx_resume.n == MEDIA_RESUMES)
			c = resume_cmd(r, MEDIA_CTX_RESUME, l->ctx);
		c->ctx_resume.mark[c->ctx_resume.n++] = (struct media_mark){.ssrc = m->ssrc,
			.table = (uint8_t)m->table,
			.roc_only = m->roc_only,
			.index = resume_from(l, m, r->elapsed_ns)};
	}
}

static void resume_key(struct resume *r, uint32_t slot, const struct save_key_use *use)
{
	if (slot == 0 || slot == SLOT_UNSET || (!use->rtp && !use->rtcp))
		return;
	resume_cmd(r, MEDIA_KEY_RESUME, slot)->key_resume =
		(struct media_key_resume){.rtp = use->rtp, .rtcp = use->rtcp};
}

static void resume_stream(struct resume *r, uint32_t stream, const struct endpoint *signalled,
	const struct endpoint *remote, bool confirmed)
{
	if (remote->family && reach_may_learn(r->reach, signalled, remote))
		resume_cmd(r, MEDIA_STREAM_RESUME, stream)->stream_resume =
			(struct media_stream_resume){.remote = *remote, .confirmed = confirmed};
}

static const struct leg_state *state_at(const struct call_state *s, uint32_t side, uint32_t media)
{
	for (uint32_t i = 0; i < s->legs; i++)
		if (s->leg[i].side == side && s->leg[i].media == media)
			return &s->leg[i];
	return NULL;
}

static void resume_leg(struct resume *r, struct leg *l, const struct leg_state *s)
{
	resume_marks(r, l, s);
	if (l->audio.ssrc && l->tx.keys) {
		struct media_cmd *c = resume_cmd(r, MEDIA_CTX_RESUME, l->ctx);

		c->ctx_resume.n = 1;
		c->ctx_resume.mark[0] = (struct media_mark){
			.ssrc = l->audio.ssrc, .table = MEDIA_TX_RTP, .index = l->audio.index - 1};
	}
	memcpy(l->before, s->counts, sizeof(l->before));
	for (uint32_t i = 0; i < srtp_params_places(&l->rx); i++)
		resume_key(r, l->rx_slot[i], &s->rx_use[i]);
	resume_key(r, l->tx_slot, &s->tx_use);
	resume_stream(r, l->port.rtp_stream, &l->remote, &s->remote, s->confirmed);
	resume_stream(r, l->port.rtcp_stream, &l->rtcp_remote, &s->rtcp_remote, s->rtcp_confirmed);
}

#define PER_LEG (MEDIA_MARKS_MAX / MEDIA_RESUMES + 2 + SRTP_PARAMS_KEYS + 1 + 2)

typedef void each_leg(void *arg, struct call *c, uint32_t side, uint32_t media, struct leg *l);

static void for_legs(struct call *c, each_leg *fn, void *arg)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++)
			if (c->side[s]->leg[i] && c->side[s]->leg[i]->used)
				fn(arg, c, s, i, c->side[s]->leg[i]);
}

struct taking {
	const struct relay *relay;
	const struct call_state *state;
	struct resume resume;
	uint64_t rtcp_from, mono_ns;
	bool ssrcs_stay;
	int err;
};

/* A leg is restored without ports that it lost, except the port that SDP names and those in use. */
static int take_locals(const struct relay *r, struct call *c, struct leg *l)
{
	const struct leg_locals was = l->locals;
	struct leg_locals *to = &l->locals;
	int err = 0;

	to->n = 0;
	for (uint8_t i = 0; i < was.n && !err; i++) {
		struct local_port at = was.port[i].rtp;

		err = r->ops->port_take_at(r->arg, &to->port[to->n], &c->worker, at.addr, at.port);
		for (int rtcp = 0; rtcp < 2 && !err; rtcp++)
			if (was.at[rtcp] == i)
				to->at[rtcp] = to->n;
		to->n += !err;
		if (i && i != was.at[0] && i != was.at[1])
			err = 0;
	}
	l->has_port = to->n;
	for (int rtcp = 0; rtcp < (l->mux ? 1 : 2) && !err; rtcp++)
		(void)leg_locals_use(l, rtcp, to->at[rtcp]);
	return err;
}

/* --- Audio sessions --------------------------------------------------------------------------- */

/* By how much the clock that all nodes read may have been set, as CLOCK_MONOTONIC shows. */
#define CLOCK_SET_NS ((int64_t)NS_PER_SEC / 4)
/* Packets that a terminal may miss at the change, in addition to those below the ceiling. */
#define MISSED_MAX 1024

/* Whether audio sessions keep their SSRCs. Only processes of one boot read the same CLOCK_MONOTONIC
 * and cannot have the same ports at the same time: two machines that do not reach each other could
 * both send. The ceiling of SRTCP depends on the clock that all nodes read, so that must not have
 * been set either. */
static bool ssrcs_stay(const struct calls *calls, const struct call_state *s, uint64_t now_ns)
{
	uint64_t theirs = s->at_ns - s->mono_ns;
	uint64_t ours = now_ns + (uint64_t)calls->saver.shared_ahead_ns - clock_mono_of(now_ns);
	int64_t by;

	return s->boot && s->boot == calls->saver.boot &&
		!__builtin_sub_overflow((int64_t)ours, (int64_t)theirs, &by) &&
		by <= CLOCK_SET_NS && by >= -CLOCK_SET_NS;
}

/* The highest saved index under this SSRC, at least that before its first packet. */
static uint64_t sent_index(const struct leg *l, const struct leg_state *s)
{
	uint64_t index = l->audio.ceiling.first;

	for (uint32_t i = 0; s && i < s->marks; i++)
		if (s->mark[i].table == MEDIA_TX_RTP && s->mark[i].ssrc == l->audio.ssrc &&
			s->mark[i].index > index)
			index = s->mark[i].index;
	return index;
}

/* The audio session continues under its SSRC if the ceiling is above all saved indexes, but by less
 * than half a cycle of sequence numbers. Otherwise it gets another SSRC. A plain stream has no
 * roll-over counter, so its jump may be longer. */
static void resume_audio(const struct taking *t, struct leg *l, const struct leg_state *s)
{
	struct leg_audio *a = &l->audio;
	uint64_t sent = sent_index(l, s), next;

	if (!a->ssrc)
		return;
	next = ceiling_at(&a->ceiling, t->mono_ns) + 1;
	if (s && t->ssrcs_stay && a->ceiling.unit_ns && next > sent && next <= SRTP_INDEX_MAX &&
		(!l->tx.keys || next - sent < HALF_CYCLE - MISSED_MAX))
		a->index = next;
	else
		a->ssrc = 0;
}

/* Takes the ports first, because they determine the worker. apply takes keys and context. */
static void take_leg(void *arg, struct call *c, uint32_t side, uint32_t media, struct leg *l)
{
	struct taking *t = arg;
	const struct leg_state *s = state_at(t->state, side, media);
	uint64_t next = s && s->tx_rtcp_next > t->rtcp_from ? s->tx_rtcp_next : t->rtcp_from;
	uint16_t port = l->port.rtp.port;

	resume_audio(t, l, s);
	for (uint32_t i = 0; i < srtp_params_places(&l->rx); i++)
		l->rx_slot[i] = SLOT_UNSET;
	l->tx_slot = SLOT_UNSET;
	l->rx_preauth_slot = l->rx.preauth ? SLOT_UNSET : 0;
	l->tx_preauth_slot = l->tx.preauth ? SLOT_UNSET : 0;
	if (l->tx.keys)
		l->tx_rtcp_from = (uint32_t)(next < SRTCP_INDEX_MAX ? next : SRTCP_INDEX_MAX);
	if (t->err)
		return;
	if (l->locals.n) {
		t->err = take_locals(t->relay, c, l);
		return;
	}
	t->err = t->relay->ops->port_take_at(
		t->relay->arg, &l->port, &c->worker, c->side[side]->local, port);
	l->has_port = !t->err;
}

static void resume_one(void *arg, struct call *c, uint32_t side, uint32_t media, struct leg *l)
{
	struct taking *t = arg;
	const struct leg_state *s = state_at(t->state, side, media);

	(void)c;
	if (s)
		resume_leg(&t->resume, l, s);
}

/* --- Keys of the earlier process -------------------------------------------------------------- */

struct staying {
	const struct srtp_master *tx;
	bool young;
};

/* Whether our key stays: keys in force, and keys of a recent offer. */
static bool stays(const void *arg, const struct keying_key *k)
{
	const struct staying *s = arg;

	return srtp_same_key(&k->master, s->tx) || (s->young && !k->used);
}

static void forget_keys(struct call *c, uint64_t elapsed_ns)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			struct leg *l = c->side[s]->leg[i];
			struct staying keys = {.young = elapsed_ns < OFFER_NS};

			if (!l)
				continue;
			keys.tx = &l->tx.key[0];
			keying_keep_ours(&l->keying, stays, &keys);
		}
}

/* The record may be from other addresses and options, or be forged. Calls that it links to may be
 * restored later. */
static bool may_go(const struct reach *r, const struct endpoint *e)
{
	enum reach_verdict v = reach_check(r, e);

	return v == REACH_OK || v == REACH_NOWHERE || reach_local(r, e, -1) >= 0;
}

static bool may_reach(const struct reach *r, const struct call *c)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++) {
			const struct leg *l = c->side[s]->leg[i];

			if (l && l->used &&
				(!may_go(r, &l->remote) || !may_go(r, &l->rtcp_remote) ||
					!may_go(r, &l->ice.pair[0]) ||
					!may_go(r, &l->ice.pair[1]) ||
					!may_go(r, &l->ice.named[0]) ||
					!may_go(r, &l->ice.named[1]) ||
					!may_go(r, &l->said.remote) ||
					!may_go(r, &l->said.rtcp_remote)))
				return false;
		}
	return true;
}

struct restore_time {
	uint64_t now_ns;
	uint64_t elapsed_ns; /* since the call was saved */
};

static int bring_back(struct calls *calls, struct pool *p, struct call *c,
	const struct call_state *state, struct restore_time when, const char **lacks)
{
	const struct relay *relay = calls->relay;
	uint64_t now_ns = when.now_ns;
	struct taking t = {.relay = relay,
		.state = state,
		.mono_ns = clock_mono_of(now_ns),
		.ssrcs_stay = ssrcs_stay(calls, state, now_ns),
		.resume = {.now_ns = now_ns, .reach = calls->reach, .elapsed_ns = when.elapsed_ns}};

	t.rtcp_from = media_rtcp_ceiling(c->created_ns, now_ns + RTCP_MARGIN);
	c->worker = UINT32_MAX;
	for_legs(c, take_leg, &t);
	if (!t.err && c->worker == UINT32_MAX) /* the call has no port */
		c->worker = relay->ops->worker_choose(relay->arg);
	t.resume.cmd = pool_alloc(p, ((size_t)state->legs * PER_LEG + 1) * sizeof(*t.resume.cmd));
	if (!t.resume.cmd && !t.err)
		t.err = -ENOMEM;
	if (t.err) {
		apply_release_all(relay, c);
		return t.err;
	}
	t.err = apply_take(relay, NULL, c);
	if (t.err)
		return t.err;
	if (c->tap)
		*lacks = calls_record_resume(calls, p, c, now_ns);
	for_legs(c, resume_one, &t);
	t.err = apply_commit(relay, p, NULL, c,
		&(struct apply_cmds){.cmd = t.resume.cmd, .n = t.resume.n, .now_ns = now_ns});
	if (t.err && c->tap)
		calls->rec->ops->stop(calls->rec->arg, c->tap, false);
	return t.err;
}

/* Associations with known keys are finished: their state is lost, and not needed. */
static void resume_sessions(struct call *c)
{
	for (uint32_t s = 0; s < c->sides; s++)
		for (uint32_t i = 0; i < c->side[s]->legs; i++)
			if (c->side[s]->leg[i])
				c->side[s]->leg[i]->session_resumed = true;
}

static void remember(void *arg, struct call *c, uint32_t side, uint32_t media, struct leg *l)
{
	(void)c;
	(void)side;
	(void)media;
	keying_restored(&l->keying, arg);
}

int calls_restore(struct calls *calls, struct pool *p, struct str whole, struct str state,
	uint64_t now_ns, const char **why)
{
	struct saver *saver = calls_saver(calls);
	const struct relay *relay = saver->relay;
	struct call_state first, later;
	struct call *c = NULL;
	struct restore_time when = {.now_ns = now_ns};
	struct save_locals locals;
	int err;

	locals.at = relay->ops->locals(relay->arg, &locals.n);
	err = save_read_call(&c, &first, calls_keys(calls), p, whole, locals);
	if (!err)
		for_legs(c, remember, calls->policy.mikey); /* even if c cannot be restored */
	if (!err && call_table_find(saver->table, c->id))
		err = -EEXIST;
	if (!err && !may_reach(calls->reach, c))
		err = -EACCES;
	/* Indexes of another revision belong to other keys. */
	if (!err && state.len && !save_read_state(&later, p, state) &&
		later.created_ns == c->created_ns && later.revision == c->save.revision &&
		later.at_ns >= first.at_ns)
		first = later;
	if (c && c->told.family &&
		!timeout_report_allowed(&calls->policy.told_nets, calls->reach, &c->told))
		c->told = (struct endpoint){0};
	*why = NULL;
	if (!err)
		err = secmem_random(&c->rename, sizeof(c->rename));
	if (!err) {
		c->rename |= 1; /* 0 = none */
		when.elapsed_ns = age_of(calls, &first, now_ns);
		to_our_clock(c, &first, now_ns, when.elapsed_ns);
		forget_keys(c, when.elapsed_ns);
		resume_sessions(c);
	}
	err = err ? err : bring_back(calls, p, c, &first, when, why);
	if (err) {
		*why = why_text(err);
		if (c)
			call_free(calls_keys(calls), c);
		return err;
	}
	c->resumed_ns = now_ns;
	calls_adopt(calls, c);
	return 0;
}
