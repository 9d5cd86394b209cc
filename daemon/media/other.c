/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Relays packets other than RTP, unchanged. Two kinds:
 *
 * - Datagrams of media other than RTP (T.38, BFCP, DTLS): all packets of a stream with cfg.raw.
 *   They have neither SSRC nor sequence number, so a source below LEARN_EXACT is followed after a
 *   number of packets, as for RTCP.
 * - ZRTP (RFC 6189), DTLS and STUN between two terminals whose media we do not re-encrypt: both
 *   plain or both passed through. The terminals may thus agree on keys of their own. Such a packet
 *   confirms no source. It is relayed only from the followed source and from the signalled address.
 *
 * A party chooses the payload, so the destination must first have sent a datagram that fits the
 * protocol of the m-line. Until then datagrams are relayed only if they can begin that protocol
 * (proto/raw.h), only to a port above 1023, and only MEDIA_BLIND_MAX of them. A call can therefore
 * not make the relay send SIP, DNS or CoAP to a server, or flood a host that takes no part. What
 * remains: such first datagrams reach a service of any other protocol, and their later fields are
 * the party's choice. A service whose replies fit UDPTL, DTLS or BFCP takes part. Of an unknown
 * transport (udp) every reply fits.
 *
 * prepare.c and complete.c call this only for packets that are neither RTP nor RTCP, so it costs
 * RTP nothing. */
#include "media/other.h"
#include "layout.h"
#include "media/again.h"
#include "media/keys.h"
#include "media/rate.h"
#include "media/source.h"
#include "media/state.h"
#include "packet/arena.h"
#include "packet/side.h"
#include "proto/raw.h"

#define JOB_HEADER_LEN 12u /* shortest header for engines, copied like the payload */
#define LOWEST_PORT    1024u
#define ZRTP_TYPE      16u /* offset of the message type (RFC 6189 5) */
#define ZRTP_TYPE_LEN  8u

const char *media_other_name(enum media_other o)
{
	static const char *const name[] = {
#define X(id, name) name,
		MEDIA_OTHERS(X)
#undef X
	};

	return name[o];
}

/* --- First half ------------------------------------------------------------------------------- */

static uint32_t target_of(const struct media_stream *s)
{
	return s->cfg.raw || s->cfg.rtp ? s->cfg.rtp_to : s->cfg.rtcp_to;
}

/* Neither side uses our keys: packets are relayed unchanged. */
static bool is_between(const struct media *m, uint32_t stream, enum pkt_kind kind)
{
	const struct media_stream *s = &m->stream[stream];
	const struct media_way *rx = &m->ctx[s->cfg.ctx].rx, *tx;
	uint32_t to = target_of(s);

	if (to == MEDIA_NONE || to == stream || !m->stream[to].set || s->cfg.listener)
		return false;
	tx = &m->ctx[m->stream[to].cfg.ctx].tx;
	/* This relay is the ZRTP endpoint on that side. */
	if (kind == PKT_ZRTP && m->stream[to].cfg.side & SIDE_BIT(SIDE_ZRTP))
		return false;
	/* With DTLS or ZRTP the terminals would share keys, and nothing could be converted here. */
	if (kind != PKT_STUN && (s->cfg.convert || m->stream[to].cfg.convert))
		return false;
	return rx->set && tx->set && (rx->pass || !rx->srtp) && !tx->srtp && rx->pass == tx->pass;
}

/* Dropped here: the stream's socket would only give STUN and DTLS to this worker once more. */
static uint8_t not_relayed(struct media *m, uint32_t stream, enum pkt_kind kind)
{
	if (kind != PKT_STUN && kind != PKT_DTLS)
		return media_drop(m, stream, PACKET_DROP_MALFORMED);
	media_count(&m->drops[PACKET_DROP_NOT_MEDIA], 1);
	return PACKET_DROP_NOT_MEDIA;
}

/* Chooses the destination: note->to and note->why. */
static void direct(const struct media *m, const struct media_stream *s, struct note *note)
{
	uint32_t to = target_of(s);

	note->to = MEDIA_NONE;
	note->why = PACKET_DROP_INACTIVE;
	if ((s->cfg.gate | s->cfg.gate >> 4) &
		(MEDIA_GATE_MEDIA | MEDIA_GATE_QUIET | MEDIA_GATE_DROP))
		note->why = PACKET_DROP_BLOCKED;
	else if (to != MEDIA_NONE && m->stream[to].set && m->stream[to].cfg.raw == s->cfg.raw)
		note->to = to;
}

uint8_t media_other(struct media *m, const struct packet_in *in, uint32_t stream,
	enum pkt_kind kind, struct note *note, struct xc_job *job)
{
	const struct media_stream *s = &m->stream[stream];
	bool known = kind == PKT_ZRTP || kind == PKT_DTLS || kind == PKT_STUN;
	enum packet_verdict belief;

	if (!in->len || !(s->cfg.raw || (known && is_between(m, stream, kind))))
		return not_relayed(m, stream, kind);
	if (in->t_ns < m->shed_before_ns[s->cfg.emergency])
		return media_drop(m, stream,
			s->cfg.emergency ? PACKET_DROP_OVERLOAD_EMERGENCY : PACKET_DROP_OVERLOAD);
	if (!learn_accepts(&s->learn, &m->trial[stream].learn, &s->cfg, &in->src, false))
		return media_drop(m, stream, PACKET_DROP_SOURCE);
	belief = media_believe(m, s, in);
	if (belief != PACKET_JOB)
		return media_drop(m, stream, belief);
	if (media_rate_refuses(m, stream, in->t_ns))
		return media_drop(m, stream, PACKET_DROP_RATE);
	note->other = true;
	note->kind = (uint8_t)kind;
	note->rx = &m->ctx[s->cfg.ctx];
	direct(m, s, note);
	/* media_prefetch_jobs() prefetches it, as for every job. */
	if (note->to != MEDIA_NONE)
		note->tx = &m->ctx[m->stream[note->to].cfg.ctx];
	*job = (struct xc_job){
		.in_off = in->in_off,
		.out_off = in->slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
		.hdr_len = JOB_HEADER_LEN,
		.body_len = in->len > JOB_HEADER_LEN ? in->len - JOB_HEADER_LEN : 0,
	};
	job->rx_tag_off = job->tx_tag_off = job->hdr_len + job->body_len;
	return PACKET_JOB;
}

/* --- Second half ------------------------------------------------------------------------------ */

static void count(
	struct media *m, const struct note *n, const struct packet_in *in, const uint8_t *p)
{
	struct media_stream_counters *c = &m->counters[n->stream];
	bool raw = m->stream[n->stream].cfg.raw;

	if (raw) {
		media_count(&c->packets, 1);
		media_count(&c->bytes, in->len);
	}
	media_rate_other(m, n->stream, raw, in->t_ns);
	atomic_store_explicit(&c->last_packet_ns, in->t_ns, memory_order_relaxed);
	if (n->kind == PKT_DTLS && (!raw || m->stream[n->stream].cfg.raw == RAW_DTLS))
		media_count(&c->others[MEDIA_OTHER_DTLS], 1);
	if (n->kind == PKT_STUN && !raw)
		media_count(&c->others[MEDIA_OTHER_STUN], 1);
	if (n->kind != PKT_ZRTP || raw)
		return;
	media_count(&c->others[MEDIA_OTHER_ZRTP], 1);
	if (in->len >= ZRTP_TYPE + ZRTP_TYPE_LEN &&
		memcmp(p + ZRTP_TYPE, "Conf2ACK", ZRTP_TYPE_LEN) == 0)
		media_count(&c->others[MEDIA_OTHER_ZRTP_DONE], 1);
}

static bool same(const struct media_stream *s, const struct endpoint *a, const struct endpoint *b)
{
	return a->family && (s->cfg.asymmetric ? endpoint_addr_eq(a, b) : endpoint_eq(a, b));
}

/* The destination has sent a packet that fits the protocol. */
static bool takes_part(const struct media *m, uint32_t stream)
{
	const struct media_stream *s = &m->stream[stream];

	return same(s, &m->trial[stream].answered, &s->learn.remote) ||
		(s->learn.confirmed && same(s, &s->learn.source, &s->learn.remote));
}

static bool may_go(struct media *m, uint32_t to, const struct packet_in *in, const uint8_t *p)
{
	const struct media_stream *t = &m->stream[to];

	if (takes_part(m, to))
		return true;
	if (t->learn.remote.port < LOWEST_PORT || m->trial[to].blind >= MEDIA_BLIND_MAX ||
		!raw_opens(t->cfg.raw, p, in->len))
		return false;
	m->trial[to].blind++;
	return true;
}

uint8_t media_other_done(struct media *m, const struct arena *a, struct note *n,
	const struct packet_in *in, const struct xc_job *j, struct packet_out *out)
{
	const uint8_t *p = a->in + in->in_off;
	const struct media_stream *s = &m->stream[n->stream], *t;
	bool fits = raw_is_of(s->cfg.raw, p, in->len);

	/* Only packets that fit the protocol may confirm a source. */
	if (fits || s->learn.confirmed ? !media_learn_other(m, n->stream, in)
				       : !same(s, &s->learn.remote, &in->src))
		return PACKET_DROP_PROBATION;
	if (s->watched && media_came_again(m, n->stream, p, in->len, in->t_ns))
		return PACKET_DROP_AGAIN;
	n->received = true;
	count(m, n, in, p);
	if (fits && same(s, &s->learn.remote, &in->src))
		m->trial[n->stream].answered = in->src;
	if (n->to == MEDIA_NONE)
		return n->why;
	t = &m->stream[n->to];
	if (t->look && !media_may_leave(m, n->to, in->t_ns) && !takes_part(m, n->to))
		return PACKET_DROP_NO_DESTINATION;
	if (!t->learn.remote.family || !t->learn.remote.port ||
		endpoint_is_unspecified(&t->learn.remote))
		return PACKET_DROP_NO_DESTINATION;
	if (!may_go(m, n->to, in, p))
		return PACKET_DROP_UNANSWERED;
	*out = (struct packet_out){
		.dst = t->learn.remote,
		.local = t->cfg.local,
		.out_off = j->out_off,
		.len = in->len,
		.tos = t->cfg.tos,
		.in = n->in,
	};
	return PACKET_SENT;
}

bool media_end_to_end(const struct media *m, uint32_t stream)
{
	const struct media_stream_counters *c = &m->counters[stream];

	return media_key_load(&c->others[MEDIA_OTHER_ZRTP_DONE]) ||
		media_key_load(&c->others[MEDIA_OTHER_DTLS]);
}
