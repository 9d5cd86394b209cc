/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See sight.h. */
#include "call/sight.h"

#include "base/clock.h"

const char *sight_state_name(enum sight_state s)
{
	static const char *const names[SIGHT_STATE_COUNT] = {
#define X(id, name) name,
		SIGHT_STATES(X)
#undef X
	};

	return names[s];
}

const char *sight_trouble_name(enum sight_trouble t)
{
	static const char *const names[SIGHT_TROUBLE_COUNT] = {
#define X(id, name, text) name,
		SIGHT_TROUBLES(X)
#undef X
	};

	return names[t];
}

const char *sight_trouble_text(enum sight_trouble t)
{
	static const char *const texts[SIGHT_TROUBLE_COUNT] = {
#define X(id, name, text) text,
		SIGHT_TROUBLES(X)
#undef X
	};

	return texts[t];
}

static bool sends(const struct leg *l)
{
	return l->active && (l->dir == SDP_DIR_SENDRECV || l->dir == SDP_DIR_SENDONLY);
}

static bool receives(const struct leg *l)
{
	return l->active && (l->dir == SDP_DIR_SENDRECV || l->dir == SDP_DIR_RECVONLY);
}

/* The peer's leg of this media, NULL if none is active. */
static const struct leg *peer_leg(const struct call *c, const struct side *s, uint32_t media)
{
	const struct leg *l = s->peer < c->sides && !c->side[s->peer]->gone
		? side_leg_get(c->side[s->peer], media)
		: NULL;

	return l && l->has_port && l->active ? l : NULL;
}

/* Start of silence: the terminal's last packet, or the last change of the call. */
static uint64_t heard_ns(const struct relay *relay, const struct call *c, const struct leg *l)
{
	return leg_heard_ns(relay, c, l, false);
}

static bool silent(const struct relay *relay, const struct call *c, const struct side *s,
	uint32_t media, uint64_t last_ns, uint64_t now_ns)
{
	const struct leg *l = s->leg[media], *o = peer_leg(c, s, media);
	uint64_t since_ns = c->signal_ns > c->resumed_ns ? c->signal_ns : c->resumed_ns, other_ns;

	if (!call_is_answered(c) || s->listener || s->publisher || !o || !sends(l) || !receives(o))
		return false;
	if (since_ns + SIGHT_SILENT_NS > now_ns || last_ns + SIGHT_SILENT_NS > now_ns)
		return false;
	other_ns = heard_ns(relay, c, o);
	return other_ns >= since_ns && other_ns + SIGHT_SILENT_NS > now_ns;
}

/* Both send and receive on some media, or one is a publisher: not on hold. */
static bool talks(const struct call *c, const struct side *s, const struct leg *l, uint32_t media)
{
	const struct leg *o = peer_leg(c, s, media);

	if (s->publisher)
		return l->active && l->dir != SDP_DIR_INACTIVE;
	return o && l->active && l->dir == SDP_DIR_SENDRECV && o->dir == SDP_DIR_SENDRECV;
}

static void add_quality(struct sight *out, const struct media_quality *q)
{
	const uint32_t *m = q->mean;

	if (!q->samples)
		return;
	out->mos = out->measured && out->mos < m[QUALITY_MOS] ? out->mos : m[QUALITY_MOS];
	out->loss = m[QUALITY_LOSS] > out->loss ? m[QUALITY_LOSS] : out->loss;
	out->rtt = m[QUALITY_RTT] > out->rtt ? m[QUALITY_RTT] : out->rtt;
	out->jitter = m[QUALITY_JITTER] > out->jitter ? m[QUALITY_JITTER] : out->jitter;
	out->measured = true;
}

static bool is_many(uint64_t bad, uint64_t packets)
{
	return bad >= SIGHT_BAD_TAGS && bad * 10 >= packets;
}

static void add_leg(struct sight *out, const struct relay *relay, const struct call *c,
	uint32_t side, uint32_t media, uint64_t now_ns)
{
	const struct side *s = c->side[side];
	const struct leg *l = s->leg[media];
	struct relay_stats rtp = {0}, rtcp = {0};
	uint64_t tags;

	leg_stats(relay, c, l, false, &rtp);
	leg_stats(relay, c, l, true, &rtcp);
	add_quality(out, sight_quality(&rtp, &rtcp));
	tags = rtp.drops[PACKET_DROP_BAD_TAG] + rtcp.drops[PACKET_DROP_BAD_TAG];
	out->packets += rtp.packets;
	out->errors += rtp.errors + rtcp.errors;
	out->bad_tags += tags;
	out->last_ns = rtp.last_packet_ns > out->last_ns ? rtp.last_packet_ns : out->last_ns;
	out->plain |= leg_is_plain(relay, c, s, l);
	if (silent(relay, c, s, media, rtp.last_packet_ns, now_ns)) {
		out->troubles |= 1u << SIGHT_TROUBLE_ONE_WAY;
		out->silent_side = (uint8_t)side;
		out->silent_media = (uint8_t)media;
	}
	if (is_many(tags, rtp.packets + rtcp.packets))
		out->troubles |= 1u << SIGHT_TROUBLE_BAD_TAGS;
	else if (is_many(rtp.drops[PACKET_DROP_SOURCE], rtp.packets))
		out->troubles |= 1u << SIGHT_TROUBLE_WRONG_SOURCE;
	else
		return;
	out->bad_side = (uint8_t)side;
	out->bad_media = (uint8_t)media;
}

void sight_take(struct sight *out, const struct relay *relay, const struct call *c, uint64_t now_ns)
{
	bool talking = false;

	*out = (struct sight){0};
	for (uint32_t i = 0; i < c->sides; i++)
		for (uint32_t m = 0; m < c->side[i]->legs && !c->side[i]->gone; m++) {
			const struct leg *l = c->side[i]->leg[m];

			if (!l || !l->has_port)
				continue;
			add_leg(out, relay, c, i, m, now_ns);
			talking |= talks(c, c->side[i], l, m);
		}
	if (out->measured && out->mos < SIGHT_LOW_MOS)
		out->troubles |= 1u << SIGHT_TROUBLE_LOW_MOS;
	out->state = c->delete_ns      ? SIGHT_ENDING
		: !call_is_answered(c) ? SIGHT_EARLY
		: talking              ? SIGHT_UP
				       : SIGHT_HOLD;
}

/* --- Causes ----------------------------------------------------------------------------------- */

/* "key mismatch in 480 packets (the terminal uses another key or suite)". */
static struct str count_of(struct pool *p, const char *what, uint64_t n, const char *detail)
{
	return pool_printf(p, "%s in %llu packet%s%s%s%s", what, (unsigned long long)n,
		n == 1 ? "" : "s", detail[0] ? " (" : "", detail, detail[0] ? ")" : "");
}

struct str sight_short_tag(struct pool *p, const struct relay_stats *rtcp)
{
	uint64_t n = rtcp->drops[PACKET_DROP_SHORT_TAG];

	return n ? count_of(p, "32-bit SRTCP tag", n,
			   "RFC 4568 requires 80 bits; --srtcp-tag-32=yes accepts 32")
		 : STR_NONE;
}

struct str sight_cause(struct pool *p, const struct leg *l, const struct relay_stats *st)
{
	const uint64_t *d = st->drops;
	uint64_t arrived = st->packets + st->errors;

	if (is_many(d[PACKET_DROP_BAD_TAG], st->packets) ||
		(d[PACKET_DROP_BAD_TAG] && !st->packets))
		return count_of(p, "key mismatch", d[PACKET_DROP_BAD_TAG],
			st->packets ? "since a re-keying, or from a second sender"
				    : "the terminal uses another key or suite, or sends plain RTP");
	if (d[PACKET_DROP_WRONG_MKI])
		return count_of(p, "key mismatch", d[PACKET_DROP_WRONG_MKI],
			"MKI does not belong to a signalled key");
	if (d[PACKET_DROP_SOURCE])
		return count_of(p, "source changed", d[PACKET_DROP_SOURCE],
			"not from the confirmed address, see strict-source");
	if (d[PACKET_DROP_MARTIAN])
		return count_of(p, "source address impossible at that interface",
			d[PACKET_DROP_MARTIAN], "");
	if (d[PACKET_DROP_MALFORMED])
		return !l->rx.keys
			? count_of(p, "neither RTP nor RTCP", d[PACKET_DROP_MALFORMED], "")
			: count_of(p, "too short for SRTP", d[PACKET_DROP_MALFORMED],
				  "the terminal may send plain RTP");
	if (d[PACKET_DROP_REPLAY])
		return count_of(p, "replay", d[PACKET_DROP_REPLAY],
			"the terminal restarted its packet index");
	if (!arrived)
		return STR("no packet arrived at all (NAT, a firewall, or a muted terminal)");
	if (!st->packets)
		return pool_printf(
			p, "all %llu packets were dropped", (unsigned long long)st->errors);
	return STR("the terminal stopped sending (muted, moved, or its path broke)");
}
