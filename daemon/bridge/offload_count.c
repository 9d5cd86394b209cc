/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Assigns the kernel's counts to a stream, to its listeners, and to the total. The kernel's
 * counters of a port start when we open it, unless its target was taken over from an earlier
 * instance: hence the base. */
#include "bridge/offload_int.h"

#include "base/clock.h"
#include "srtp/replay.h"

#define FRESH_NS  (50 * 1000000ull) /* counters are not read again before this */
#define READS_MAX 256u              /* single reads of counters between two ticks */

static void take(struct off_stream *s, const struct steer_relayed *r, uint64_t now_ns)
{
	uint64_t index;

	if (s->follows && r->has_seq) {
		index = srtp_index_estimate(s->index, r->seq);
		s->index = index > s->index && index <= SRTP_INDEX_MAX ? index : s->index;
	}
	s->seen = *r;
	s->read_ns = now_ns;
	if (!s->based) {
		s->based = true;
		s->base_packets = r->packets;
		s->base_bytes = r->bytes;
		s->base_strangers = r->strangers;
	}
}

int offload_read(struct offload *o, struct off_stream *s, uint64_t now_ns)
{
	struct steer_relayed r;
	int err = o->cfg.ops->relayed(o->cfg.steer, s->cfg->local, &r);

	if (!err)
		take(s, &r, now_ns);
	return err;
}

static uint64_t above(const struct off_stream *s, uint64_t seen, uint64_t base)
{
	return s->based && seen > base ? seen - base : 0;
}

uint64_t offload_packets(const struct off_stream *s)
{
	return s->before_packets + above(s, s->seen.packets, s->base_packets);
}

static uint64_t bytes_of(const struct off_stream *s)
{
	return s->before_bytes + above(s, s->seen.bytes, s->base_bytes);
}

static uint64_t strangers_of(const struct off_stream *s)
{
	return s->before_strangers + above(s, s->seen.strangers, s->base_strangers);
}

void offload_count_anew(struct off_stream *s)
{
	s->before_packets = offload_packets(s);
	s->before_bytes = bytes_of(s);
	s->before_strangers = strangers_of(s);
	s->seen.packets = s->seen.bytes = s->seen.strangers = 0;
	s->based = s->late = false;
}

static void dumped(void *arg, const struct steer_relayed *r)
{
	struct offload *o = arg;
	struct off_stream *s;

	/* A stream that an earlier instance left has a number of another stream. Count only our
	 * own. */
	if (r->id >= o->cfg.max_stream)
		return;
	s = &o->site[o->worker].stream[r->id];
	if (s->where == OURS || !s->set)
		return;
	s->where = KERNEL;
	s->silent = r->last_ns + OFFLOAD_SILENCE_NS < o->real_ns;
	take(s, r, o->now_ns);
}

void offload_dump(struct offload *o, uint64_t now_ns)
{
	o->now_ns = o->dumped_ns = now_ns;
	o->real_ns = clock_real_ns();
	for (o->worker = 0; o->worker < o->cfg.workers; o->worker++)
		(void)o->cfg.ops->relayed_all(o->cfg.steer, o->worker, dumped, o);
}

/* Subtracts a listener's part from another stream's counters. */
static void unhear(struct off_site *site, uint32_t id)
{
	struct off_stream *l = &site->stream[id], *f;

	if (l->from == MEDIA_NONE)
		return;
	f = &site->stream[l->from];
	l->out_before += offload_packets(f) - l->out_since;
	l->out_before_bytes += bytes_of(f) - l->out_since_bytes;
	l->out_since = l->out_since_bytes = 0;
	l->from = MEDIA_NONE;
}

void offload_hearers_forget(struct off_site *site, struct off_stream *s)
{
	for (uint32_t i = 0; i < s->hearers; i++)
		if (s->hearer[i] != MEDIA_NONE)
			unhear(site, s->hearer[i]);
	s->hearers = 0;
}

void offload_hearers_note(struct off_site *site, uint32_t id, const struct offload_dests *to)
{
	struct off_stream *s = &site->stream[id];

	offload_hearers_forget(site, s);
	for (uint32_t i = 0; i < to->hearers; i++) {
		struct off_stream *l = &site->stream[to->hearer[i]];

		s->hearer[s->hearers++] = to->hearer[i];
		l->from = id;
		l->out_since = offload_packets(s);
		l->out_since_bytes = bytes_of(s);
	}
}

/* Reads current counters, unless too many readers ask. */
static void freshen(struct offload *o, struct off_stream *s, uint64_t now_ns)
{
	if (o->gone || (s->where == OURS && !s->late) || now_ns < s->read_ns + FRESH_NS ||
		o->reads >= READS_MAX)
		return;
	o->reads++;
	(void)offload_read(o, s, now_ns);
}

void offload_stats(struct offload *o, uint32_t worker, uint32_t stream, uint64_t now_ns,
	struct relay_stats *out)
{
	struct off_stream *s, *f;

	if (!o || stream >= o->cfg.max_stream)
		return;
	s = &o->site[worker].stream[stream];
	if (s->touched) {
		freshen(o, s, now_ns);
		out->packets += offload_packets(s);
		out->bytes += bytes_of(s);
		if (s->seen.last_ns > out->last_packet_ns)
			out->last_packet_ns = s->seen.last_ns;
		if (s->what.strict) {
			out->drops[PACKET_DROP_SOURCE] += strangers_of(s);
			out->errors += strangers_of(s);
		}
		if (s->follows && s->index >> 16 > out->roc)
			out->roc = (uint32_t)(s->index >> 16);
	}
	out->packets_out += s->out_before;
	out->bytes_out += s->out_before_bytes;
	if (s->from == MEDIA_NONE)
		return;
	f = &o->site[worker].stream[s->from];
	if (!f->touched)
		return;
	freshen(o, f, now_ns);
	out->packets_out += offload_packets(f) - s->out_since;
	out->bytes_out += bytes_of(f) - s->out_since_bytes;
}

uint64_t offload_arrived(const struct offload *o, uint32_t worker, uint32_t stream, bool *kernel)
{
	const struct off_stream *s;

	*kernel = false;
	if (!o || stream >= o->cfg.max_stream)
		return 0;
	s = &o->site[worker].stream[stream];
	*kernel = s->set && s->where != OURS;
	return s->touched ? offload_packets(s) : 0;
}

uint64_t offload_heard(const struct offload *o, uint32_t worker, uint32_t stream)
{
	const struct off_stream *s;

	if (!o || stream >= o->cfg.max_stream)
		return 0;
	s = &o->site[worker].stream[stream];
	if (s->where == KERNEL && o->told && !s->silent)
		return clock_real_ns();
	return s->touched ? s->seen.last_ns : 0;
}

void offload_usage(struct offload *o, uint64_t now_ns, struct offload_usage *out)
{
	*out = (struct offload_usage){0};
	if (!o)
		return;
	if (o->told && !o->gone && now_ns >= o->dumped_ns + NS_PER_SEC)
		offload_dump(o, now_ns);
	out->packets = o->gone_packets;
	out->moves = o->moves;
	for (uint32_t w = 0; w < o->cfg.workers; w++)
		for (uint32_t i = 0; i < o->site[w].top; i++) {
			const struct off_stream *s = &o->site[w].stream[i];

			out->streams += s->where == KERNEL;
			out->packets += s->touched ? offload_packets(s) : 0;
		}
}
