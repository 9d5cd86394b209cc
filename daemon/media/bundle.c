/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "media/bundle.h"

#include "proto/rtcp.h"
#include "proto/rtp_ext.h"

/* The bit of an m-line; 0: it is not of this bundle. */
static uint32_t bit_of(const struct media *m, uint32_t port, uint32_t line)
{
	uint32_t bit = 1;

	for (uint32_t i = 0; i < MEDIA_BUNDLE_MAX && port != MEDIA_NONE; i++, bit <<= 1) {
		if (port == line)
			return bit;
		port = media_bundle_next(m, port);
	}
	return 0;
}

/* --- SSRCs ------------------------------------------------------------------------------------ */

static const struct bundle_ssrc *known(
	const struct media *m, uint32_t port, uint32_t ssrc, bool sent)
{
	const struct media_bundle *b = media_bundle_at(m, port);

	for (uint32_t i = 0; b && i < MEDIA_BUNDLE_SSRCS; i++)
		if (b->of[sent][i].stream && b->of[sent][i].ssrc == ssrc)
			return &b->of[sent][i];
	return NULL;
}

/* The m-line of an SSRC, or MEDIA_NONE. It may have left the bundle since. */
static uint32_t line_of(const struct media *m, uint32_t port, uint32_t ssrc, bool sent)
{
	const struct bundle_ssrc *s = known(m, port, ssrc, sent);

	return s && bit_of(m, port, s->stream - 1) ? s->stream - 1 : MEDIA_NONE;
}

/* NULL: the port has no bundle. */
static struct bundle_ssrc *make(struct media *m, uint32_t port, uint32_t ssrc, bool sent)
{
	struct media_bundle *b = media_bundle_at(m, port);
	struct bundle_ssrc *s = (struct bundle_ssrc *)known(m, port, ssrc, sent);

	if (s || !b)
		return s;
	s = &b->of[sent][b->turn[sent]++ % MEDIA_BUNDLE_SSRCS];
	*s = (struct bundle_ssrc){.ssrc = ssrc};
	return s;
}

void media_bundle_learn(
	struct media *m, uint32_t port, uint32_t line, uint32_t ssrc, uint64_t index)
{
	struct bundle_ssrc *s = make(m, port, ssrc, false);

	if (!s || (s->stream && index <= s->index))
		return;
	s->stream = line + 1;
	s->index = index;
}

void media_bundle_sent(struct media *m, uint32_t port, uint32_t line, uint32_t ssrc)
{
	struct bundle_ssrc *s = make(m, port, ssrc, true);

	if (s)
		s->stream = line + 1;
}

void media_bundle_begin(struct media *m, uint32_t port)
{
	struct media_bundle *b;
	uint32_t at;

	media_bundle_end(m, port);
	at = m->bundle_free ? m->bundle_free - 1 : m->bundle_used++;
	b = &m->bundle[at];
	m->bundle_free = b->free;
	*b = (struct media_bundle){.free = 0};
	m->bundle_at[port] = at + 1;
}

void media_bundle_end(struct media *m, uint32_t port)
{
	struct media_bundle *b = media_bundle_at(m, port);

	if (!b)
		return;
	b->free = m->bundle_free;
	m->bundle_free = m->bundle_at[port];
	m->bundle_at[port] = 0;
}

/* --- Packets ---------------------------------------------------------------------------------- */

static bool has_type(const struct media *m, uint32_t line, uint8_t type)
{
	return m->stream[line].cfg.types[type / 64] >> type % 64 & 1;
}

static uint32_t by_mid(const struct media *m, uint32_t port, const void *name, size_t len)
{
	char mid[RTP_MID_MAX] = {0};

	memcpy(mid, name, len < sizeof(mid) ? len : sizeof(mid));
	/* An m-line without a MID has an empty one. */
	if (!mid[0] || len > sizeof(mid))
		return MEDIA_NONE;
	for (uint32_t i = 0; i < MEDIA_BUNDLE_MAX && port != MEDIA_NONE; i++) {
		if (memcmp(m->stream[port].cfg.mid, mid, sizeof(mid)) == 0)
			return port;
		port = media_bundle_next(m, port);
	}
	return MEDIA_NONE;
}

static uint32_t by_type(const struct media *m, uint32_t port, uint8_t type)
{
	uint32_t found = MEDIA_NONE;

	for (uint32_t i = 0; i < MEDIA_BUNDLE_MAX && port != MEDIA_NONE; i++) {
		if (has_type(m, port, type) && found != MEDIA_NONE)
			return MEDIA_NONE;
		if (has_type(m, port, type))
			found = port;
		port = media_bundle_next(m, port);
	}
	return found;
}

/* The m-line whose SDP names the SSRC. */
static uint32_t by_name(const struct media *m, uint32_t port, uint32_t ssrc)
{
	for (uint32_t i = 0; ssrc && i < MEDIA_BUNDLE_MAX && port != MEDIA_NONE; i++) {
		for (uint32_t k = 0; k < RTP_SSRCS; k++)
			if (m->stream[port].cfg.ssrc[k] == ssrc)
				return port;
		port = media_bundle_next(m, port);
	}
	return MEDIA_NONE;
}

/* The m-line of an SSRC: as learned from packets, or else as in SDP. */
static uint32_t by_ssrc(const struct media *m, uint32_t port, uint32_t ssrc)
{
	uint32_t line = line_of(m, port, ssrc, false);

	return line != MEDIA_NONE ? line : by_name(m, port, ssrc);
}

uint32_t media_bundle_find(
	const struct media *m, uint32_t port, const uint8_t *p, size_t len, bool rtcp)
{
	uint8_t ext = m->stream[port].cfg.mid_ext, type;
	struct rtp_ext e;
	uint32_t line;

	if (len < (rtcp ? RTCP_FIXED_LEN : RTP_FIXED_LEN))
		return port; /* malformed: the next check refuses it */
	if (rtcp) {
		line = by_ssrc(m, port, be32(p + 4));
		return line != MEDIA_NONE ? line : port;
	}
	/* A name that nobody has is discarded. */
	if (ext && rtp_ext_find(&e, p, len, ext))
		return by_mid(m, port, e.at, e.len);
	type = p[1] & 0x7f;
	line = by_ssrc(m, port, be32(p + 8));
	return line != MEDIA_NONE && has_type(m, line, type) ? line : by_type(m, port, type);
}

void media_bundle_describe(struct media *m, uint32_t port, const uint8_t *p, size_t len)
{
	struct rtcp_mid mid[RTCP_MIDS];
	uint32_t n = rtcp_mids_read(mid, p, len), line;

	for (uint32_t i = 0; i < n; i++) {
		line = by_mid(m, port, mid[i].mid.s, mid[i].mid.len);
		if (line != MEDIA_NONE && !known(m, port, mid[i].ssrc, false))
			media_bundle_learn(m, port, line, mid[i].ssrc, 0);
	}
}

/* Returns the m-lines that a decrypted RTCP packet names, a bit each. Marks the SSRCs of ours that
 * it names as reported. */
static uint32_t named_lines(struct media *m, uint32_t port, const uint8_t *p, size_t len)
{
	struct rtcp_names names;
	uint32_t named = 0;

	rtcp_names_read(&names, p, len);
	for (uint32_t i = 0; i < names.n; i++) {
		bool ours = !names.name[i].theirs;
		uint32_t ssrc = names.name[i].ssrc, line = line_of(m, port, ssrc, ours);

		if (line == MEDIA_NONE)
			continue;
		named |= bit_of(m, port, line);
		if (ours)
			make(m, port, ssrc, true)->index = BUNDLE_REPORTED;
	}
	return named;
}

/* --- MIDs that we send ------------------------------------------------------------------------ */

static bool is_mid(const struct rtp_ext *e, const struct media_stream_cfg *c)
{
	return e->len <= sizeof(c->mid) && memcmp(e->at, c->mid, e->len) == 0 &&
		(e->len == sizeof(c->mid) || !c->mid[e->len]);
}

bool media_bundle_wants_mid(
	const struct media *m, const struct note *n, uint32_t ssrc, const uint8_t *p, size_t len)
{
	const struct media_stream_cfg *to = &m->stream[n->to].cfg;
	uint8_t theirs = m->stream[n->stream].cfg.mid_ext; /* ID for the MID on the other side */
	const struct bundle_ssrc *s;
	struct rtp_ext e;

	if (!to->mid_ext || !to->mid[0])
		return false;
	if (theirs && theirs != to->mid_ext && rtp_ext_find(&e, p, len, theirs))
		return true;
	if (rtp_ext_find(&e, p, len, to->mid_ext))
		return !is_mid(&e, to);
	s = known(m, media_bundle_port(m, n->to), ssrc, true);
	return !s || s->index != BUNDLE_REPORTED;
}

int32_t media_bundle_write_mid(const struct media *m, const struct note *n, uint8_t *p, size_t len)
{
	const struct media_stream_cfg *to = &m->stream[n->to].cfg;
	struct rtp_ext_edit e = {.id = to->mid_ext,
		.drop = m->stream[n->stream].cfg.mid_ext,
		.value = {(const uint8_t *)to->mid, (uint8_t)strnlen(to->mid, sizeof(to->mid))}};
	int32_t grown = rtp_ext_write(p, len, &e);

	return grown == INT32_MIN ? 0 : grown;
}

bool media_bundle_is_for(
	struct media *m, const struct arena *a, struct note *n, const struct xc_job *j)
{
	uint32_t port = m->in_stream[n->in], bit;

	if (n->copy_of == MEDIA_NONE)
		n->named = named_lines(m, port, a->out + j->out_off, j->hdr_len + j->body_len);
	bit = bit_of(m, port, n->stream);
	return n->copy_of == MEDIA_NONE ? !n->named || n->named & bit
					: m->note[n->copy_of].named & bit;
}
