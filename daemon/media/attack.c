/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "media/attack.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "media/bundle.h"
#include "media/fast_path.h"
#include "media/tags.h"
#include "packet/arena.h"

static uint64_t count_of(const _Atomic uint64_t *c)
{
	return atomic_load_explicit(c, memory_order_relaxed);
}

static struct attack *attack_of(const struct media *m, uint32_t stream)
{
	return &m->attacks->of[m->trial[stream].attack.place];
}

/* Media of a port of its own, authenticated, from a confirmed source. */
static bool can_guard(const struct media *m, uint32_t stream)
{
	const struct media_stream *s = &m->stream[stream];

	return s->set && s->cfg.rtp && !s->cfg.raw && !s->cfg.via && !s->cfg.bundle &&
		s->learn.confirmed && media_proves(&m->ctx[s->cfg.ctx].rx, false);
}

static void start_period(const struct media *m, struct attack *t, uint64_t now_ns)
{
	const struct media_stream_counters *c = &m->counters[t->stream];

	t->since_ns = now_ns;
	t->forged = t->ssrcs = 0;
	t->sampled = 0;
	t->trues = count_of(&c->packets);
	t->refused = count_of(&c->drops[PACKET_DROP_GUARD]);
}

/* Steering gets a report after so many authentic packets, or when the newest index is so far ahead
 * of the last report. With chain steering knows the tags of the next packets only: three quarters
 * of these remain for lost packets and for bursts. */
static uint32_t tell_after(const struct media *m, uint32_t stream)
{
	const struct media_ctx *c = &m->ctx[m->stream[stream].cfg.ctx];
	enum preauth_scheme s = media_tag_scheme(&c->cfg->rx);
	uint32_t most =
		c->rx.tagged && preauth_is_chain(s) ? preauth_chain_of(s).next / 4u : ATTACK_TELL;

	return most < ATTACK_TELL ? most : ATTACK_TELL;
}

static void tell(struct media *m, struct attack *t)
{
	m->attacks->waiting += !t->tell;
	t->tell = true;
	t->untold = 0;
}

static void describe(struct attack *t, const struct media_stream *s)
{
	struct guard_window *w = &t->window;

	memcpy(w->addr, s->learn.source.addr, sizeof(w->addr));
	w->port = s->learn.source.port;
	w->flags = (uint8_t)((s->learn.source.family == AF_INET6 ? GUARD_IS_V6 : 0) |
		(w->flags & GUARD_TIMES) | (s->cfg.side ? GUARD_OTHER : 0) |
		(s->cfg.rtcp ? GUARD_RTCP : 0));
	for (int i = 0; i < 2; i++)
		w->types[i] = s->cfg.types[0] | s->cfg.types[1] ? s->cfg.types[i] | t->types[i] : 0;
}

static void suspected_set(struct media *m, uint32_t stream, bool suspected)
{
	struct media_stream *s = &m->stream[stream];
	struct attacks *all = m->attacks;
	uint32_t i = 0;

	if (s->suspected == suspected || !s->set ||
		(suspected && all->suspected == ATTACK_SUSPECTS))
		return;
	s->suspected = suspected;
	media_fast_set(s);
	if (suspected) {
		all->suspect[all->suspected++] = stream;
		return;
	}
	while (all->suspect[i] != stream)
		i++;
	all->suspect[i] = all->suspect[--all->suspected];
}

/* In a bundle, also the stream of the port: prepare.c orders packets by it. */
static void suspect(struct media *m, uint32_t stream, uint64_t now_ns)
{
	uint32_t port = media_bundle_port(m, stream);

	m->trial[stream].attack.suspected_ns = m->trial[port].attack.suspected_ns = now_ns;
	suspected_set(m, stream, true);
	suspected_set(m, port, true);
}

bool media_attack_suspects(struct media *m, uint64_t now_ns)
{
	struct attacks *all = m->attacks;

	if (all->suspected && clock_since(all->looked_ns, now_ns) >= ATTACK_SECOND_NS / 8) {
		all->looked_ns = now_ns;
		for (uint32_t i = all->suspected; i-- > 0;) {
			uint32_t stream = all->suspect[i];
			uint64_t then_ns = m->trial[stream].attack.suspected_ns;

			if (clock_since(then_ns, now_ns) > ATTACK_PERIOD_NS)
				suspected_set(m, stream, false);
		}
	}
	return media_attacked(m) || all->suspected;
}

/* The place becomes free when steering has received the end of the guard. */
void media_attack_end(struct media *m, uint32_t stream)
{
	struct media_stream *s = &m->stream[stream];
	struct attack *t = attack_of(m, stream);

	suspected_set(m, stream, false);
	if (!s->guarded)
		return;
	s->guarded = false;
	media_fast_set(s);
	atomic_fetch_sub_explicit(&m->attacks->n, 1, memory_order_relaxed);
	t->over = true;
	tell(m, t);
}

/* In other periods, steering drops most forged packets unseen. */
static void count_guarded(struct attack *t, uint64_t now_ns)
{
	bool quiet = now_ns - t->window.at_ns > GUARD_QUIET_NS;

	t->forged++;
	if (guard_open(&t->window, now_ns))
		t->sampled += quiet ? GUARD_PERIODS_QUIET : GUARD_PERIODS;
}

/* Falls by half at most: open periods are few, and so are the packets sampled in them. */
static void rate(struct attack *t, uint64_t seen, uint64_t now_ns)
{
	uint64_t most = seen > t->sampled ? seen : t->sampled;
	uint64_t now = most * 1000 / ((now_ns - t->since_ns) / 1000000);
	uint32_t half = t->rate == UINT32_MAX ? 0 : t->rate / 2;
	uint32_t least = half > t->unseen ? half : t->unseen;

	t->rate = now > least ? (uint32_t)(now < UINT32_MAX ? now : UINT32_MAX - 1) : least;
}

/* Ends a period, and perhaps the attack. */
static void judge(struct media *m, struct attack *t, uint64_t now_ns)
{
	const struct media_stream_counters *c = &m->counters[t->stream];
	uint64_t forged = t->forged + count_of(&c->drops[PACKET_DROP_GUARD]) - t->refused;

	if (clock_since(t->since_ns, now_ns) < ATTACK_PERIOD_NS)
		return;
	if (forged * ATTACK_FEW <= count_of(&c->packets) - t->trues)
		t->calm++;
	else
		t->calm = 0;
	rate(t, forged, now_ns);
	start_period(m, t, now_ns);
	if (t->calm == ATTACK_CALM || !can_guard(m, t->stream))
		media_attack_end(m, t->stream);
}

/* The weakest flood yields its place to one more than twice as strong. True: a place becomes free
 * when steering has received the end of its guard. */
static bool make_room(struct media *m, uint32_t stream, uint64_t now_ns)
{
	struct attack *least = m->attacks->of;

	for (struct attack *t = least; t < m->attacks->of + ATTACK_STREAMS; t++) {
		if (!t->over)
			judge(m, t, now_ns); /* a silent stream has no packets that would */
		if (t->over)
			return true;
		if (t->rate < least->rate)
			least = t;
	}
	if (m->trial[stream].attack.rate / 2 <= least->rate)
		return false;
	media_attack_end(m, least->stream);
	suspect(m, least->stream, now_ns);
	return true;
}

/* Nothing is known of the last authentic packet but its SSRC and index. */
static void begin(struct media *m, uint32_t stream, uint64_t now_ns)
{
	const struct media_stream_counters *c = &m->counters[stream];
	const struct attack_count *before = &m->trial[stream].attack;
	bool tagged = m->ctx[m->stream[stream].cfg.ctx].rx.tagged;
	struct attacks *all = m->attacks;
	uint32_t i = 0;

	while (i < ATTACK_STREAMS && all->of[i].stream != MEDIA_NONE)
		i++;
	if (i == ATTACK_STREAMS && make_room(m, stream, now_ns))
		return;
	if (i == ATTACK_STREAMS) {
		/* So a flood does not search for a place with each packet. */
		m->trial[stream].attack.not_before_ns = now_ns + ATTACK_SECOND_NS;
		atomic_fetch_add_explicit(&all->left_out, 1, memory_order_relaxed);
		return;
	}
	all->of[i] = (struct attack){.stream = stream,
		.rate = UINT32_MAX,
		.unseen = !tagged                       ? 0
			: before->rate > before->forged ? before->rate
							: before->forged,
		.local = m->stream[stream].cfg.local,
		.window = {.ssrc = atomic_load_explicit(&c->ssrc, memory_order_relaxed),
			.seq = (uint16_t)count_of(&c->index),
			.at_ns = count_of(&c->last_packet_ns),
			.epoch_ns = now_ns -
				((1 + (m->cfg.again_key[0] + stream) % (GUARD_PERIODS - 1))
					<< GUARD_PERIOD_SHIFT)}};
	describe(&all->of[i], &m->stream[stream]);
	start_period(m, &all->of[i], now_ns);
	m->trial[stream].attack.place = i;
	m->stream[stream].guarded = true;
	suspected_set(m, stream, false);
	media_fast_set(&m->stream[stream]);
	atomic_fetch_add_explicit(&all->n, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&all->begun, 1, memory_order_relaxed);
	tell(m, &all->of[i]);
	/* The first authentic packet gives timestamps and SRTP+ tags, which steering lacks now. */
	all->of[i].untold = ATTACK_TELL - 1;
}

/* A time that is farther away was written before the clock was set back. */
static bool is_barred(const struct attack_count *c, uint64_t now_ns)
{
	return now_ns < c->not_before_ns && c->not_before_ns - now_ns <= ATTACK_NONE_NS;
}

void media_attack_forged(struct media *m, uint32_t stream, const struct packet_in *in)
{
	struct attack_count *c = &m->trial[stream].attack;
	uint64_t trues = count_of(&m->counters[stream].packets), gone = in->t_ns - c->since_ns;

	if (m->stream[stream].guarded) {
		count_guarded(attack_of(m, stream), in->t_ns);
		judge(m, attack_of(m, stream), in->t_ns);
		return;
	}
	/* If the clock was set back, the difference wraps, and a new second starts. */
	if (gone > ATTACK_SECOND_NS) {
		c->rate = (uint32_t)(c->forged * 1000ull / (gone / 1000000));
		c->since_ns = in->t_ns;
		c->forged = 0;
		c->trues = (uint32_t)trues;
	}
	c->forged++;
	if (c->forged < ATTACK_FORGED || c->forged <= (uint32_t)trues - c->trues)
		return;
	if (!is_barred(c, in->t_ns) && can_guard(m, stream))
		begin(m, stream, in->t_ns);
	if (!m->stream[stream].guarded)
		suspect(m, stream, in->t_ns);
}

/* An index that is not the newest of its SSRC moves nothing. */
static void move(struct media *m, const struct arena *a, struct attack *t,
	const struct packet_in *in, const struct xc_job *j)
{
	struct guard_window *w = &t->window;
	uint32_t time = be32(a->in + in->in_off + 4);

	if (w->ssrc == j->ssrc &&
		(uint16_t)j->rx_index != (uint16_t)count_of(&m->counters[t->stream].index))
		return;
	t->ssrcs += w->ssrc != j->ssrc;
	w->ssrc = j->ssrc;
	t->types[a->in[in->in_off + 1] >> 6 & 1] |= 1ull << (a->in[in->in_off + 1] & 63);
	w->seq = (uint16_t)j->rx_index;
	if (w->flags & GUARD_TIMES && !guard_time_ok(w, time, in->t_ns))
		t->wild++;
	w->time = time;
	if (t->wild >= ATTACK_WILD)
		w->flags &= (uint8_t)~GUARD_TIMES;
	else
		w->flags |= GUARD_TIMES;
	w->at_ns = in->t_ns;
}

void media_attack_true(struct media *m, const struct arena *a, const struct note *n,
	const struct packet_in *in, const struct xc_job *j)
{
	struct attack *t = attack_of(m, n->stream);
	uint32_t ssrc = t->window.ssrc, most = tell_after(m, n->stream);

	if (!(j->flags & XC_JOB_RTCP))
		move(m, a, t, in, j);
	describe(t, &m->stream[n->stream]);
	if (++t->untold >= most || ssrc != t->window.ssrc ||
		(uint16_t)(t->window.seq - t->told_seq) >= most)
		tell(m, t);
	if (t->ssrcs >= ATTACK_SSRCS) {
		m->trial[n->stream].attack.not_before_ns = in->t_ns + ATTACK_NONE_NS;
		media_attack_end(m, n->stream);
		return;
	}
	judge(m, t, in->t_ns);
}

bool media_attack_refuses(const struct media *m, const struct arena *a, uint32_t stream,
	const struct packet_in *in, const uint8_t *p, uint32_t len)
{
	const struct media_ctx *c = &m->ctx[m->stream[stream].cfg.ctx];
	const struct guard_window *w = &attack_of(m, stream)->window;
	struct guard_packet g = {.port = in->src.port, .v6 = in->src.family == AF_INET6};
	enum guard_result r;

	if (len < RTP_FIXED_LEN)
		return false;
	memcpy(g.addr, in->src.addr, sizeof(g.addr));
	g.first = p[0];
	g.second = p[1];
	g.seq = be16(p + 2);
	g.time = be32(p + 4);
	g.ssrc = be32(p + 8);
	r = guard_window_check(w, &g, in->t_ns);
	/* A correct tag outweighs an implausible index or timestamp. Not with a header scheme:
	 * there, a header seen on the wire keeps its tag for ever. */
	if ((r == GUARD_INDEX || r == GUARD_TIME) && c->rx.tagged &&
		!preauth_is_header(media_tag_scheme(&c->cfg->rx)) &&
		media_tag_check(m, a, c, p, len) == PREAUTH_TRUE)
		return false;
	return r != GUARD_PASS && !guard_open(w, in->t_ns);
}

void media_attack_new_keys(struct media *m, uint32_t ctx)
{
	struct attacks *all = m->attacks;

	if (!atomic_load_explicit(&all->n, memory_order_relaxed))
		return;
	for (uint32_t i = 0; i < ATTACK_STREAMS; i++)
		if (all->of[i].stream != MEDIA_NONE && m->stream[all->of[i].stream].guarded &&
			m->stream[all->of[i].stream].cfg.ctx == ctx)
			media_attack_end(m, all->of[i].stream);
}

struct attacks *media_attacks_alloc(void)
{
	struct attacks *all = calloc(1, sizeof(*all));

	for (uint32_t i = 0; all && i < ATTACK_STREAMS; i++)
		all->of[i].stream = MEDIA_NONE;
	return all;
}

bool media_guards_wait(const struct media *m)
{
	return m->attacks->waiting;
}

/* SRTP+: the tags of the next packets, or the key of header-siphash, so that steering can compare
 * tags. */
static void add_tags(const struct media *m, uint32_t stream, struct guard *g)
{
	const struct media_ctx *c = &m->ctx[m->stream[stream].cfg.ctx];
	uint64_t key[2];

	g->window.flags &= (uint8_t) ~(GUARD_TAGS | GUARD_MACS);
	g->window.tag_len = media_preauth_window(&g->tags, m, c, g->window.ssrc);
	if (g->window.tag_len) {
		g->window.flags |= GUARD_TAGS;
		return;
	}
	g->window.tag_len = media_preauth_sip(key, m, c);
	if (!g->window.tag_len)
		return;
	g->window.flags |= GUARD_MACS;
	g->sip[0] = key[0];
	g->sip[1] = key[1];
	secmem_wipe(key, sizeof(key));
}

bool media_guard_next(struct media *m, struct media_guard *out)
{
	struct attacks *all = m->attacks;
	uint32_t i = all->next;

	if (!all->waiting)
		return false;
	while (!all->of[i].tell)
		i = (i + 1) % ATTACK_STREAMS;
	all->next = (i + 1) % ATTACK_STREAMS;
	all->waiting--;
	all->of[i].tell = false;
	out->local = all->of[i].local;
	out->on = !all->of[i].over;
	out->guard.window = all->of[i].window;
	all->of[i].told_seq = all->of[i].window.seq;
	add_tags(m, all->of[i].stream, &out->guard);
	if (all->of[i].over)
		all->of[i].stream = MEDIA_NONE;
	return true;
}

uint64_t media_attacks(const struct media *m)
{
	return count_of(&m->attacks->begun);
}

uint64_t media_attacks_left_out(const struct media *m)
{
	return count_of(&m->attacks->left_out);
}

uint32_t media_attacked(const struct media *m)
{
	return atomic_load_explicit(&m->attacks->n, memory_order_relaxed);
}
