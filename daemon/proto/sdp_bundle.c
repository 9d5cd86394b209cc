/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/sdp_bundle.h"
#include "proto/sdp_dtls.h"
#include "proto/sdp_preauth.h"

#include <errno.h>

/* --- The group -------------------------------------------------------------------------------- */

static bool has(const struct sdp_bundle *b, uint32_t media)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (b->media[i] == media)
			return true;
	return false;
}

/* The m-line with this name. Of several with one name the first counts. */
static uint32_t named(const struct sdp *s, struct str mid)
{
	uint32_t i = 0;

	while (i < s->media_count && !str_eq(s->media[i].mid, mid))
		i++;
	return i;
}

static bool read_group(struct sdp_bundle *out, const struct sdp *s, struct str mids)
{
	bool tagged = false;
	struct str mid;

	*out = (struct sdp_bundle){0};
	while ((mid = str_word(&mids)).len && out->n < SDP_BUNDLE_MAX) {
		uint32_t i = named(s, mid);

		if (i == s->media_count || has(out, i) || !sdp_proto_is_rtp(s->media[i].proto))
			continue;
		if (s->media[i].port && !tagged) {
			tagged = true;
			out->tag = (uint8_t)i;
		}
		out->media[out->n++] = (uint8_t)i;
	}
	return tagged && out->n > 1;
}

bool sdp_bundle_read(struct sdp_bundle *out, const struct sdp *s)
{
	for (const struct sdp_line *l = sdp_attr(s->session, STR("group")); l;
		l = sdp_attr(l->next, STR("group"))) {
		struct str rest = l->arg;

		if (str_eq_nocase(str_word(&rest), STR("BUNDLE")) && read_group(out, s, rest))
			return true;
	}
	*out = (struct sdp_bundle){0};
	return false;
}

/* --- Common transport ------------------------------------------------------------------------- */

/* Attributes of the categories TRANSPORT and IDENTICAL (RFC 8859) that this relay reads. */
static bool is_transport(const struct sdp_line *l)
{
	static const struct str names[] = {{"candidate", 9}, {"remote-candidates", 17},
		{"end-of-candidates", 17}, {"ice-ufrag", 9}, {"ice-pwd", 7}, {"ice-options", 11},
		{"fingerprint", 11}, {"setup", 5}, {"tls-id", 6}, {"connection", 10}, {"crypto", 6},
		{"rtcp", 4}, {"rtcp-mux", 8}, {"rtcp-mux-only", 13},
		{SDP_PREAUTH, sizeof(SDP_PREAUTH) - 1}};

	for (size_t i = 0; l->type == 'a' && i < ARRAY_LEN(names); i++)
		if (str_eq_nocase(l->name, names[i]))
			return true;
	return false;
}

static bool copy_lines(
	struct sdp_line ***end, struct pool *p, const struct sdp_line *from, bool transport)
{
	for (; from; from = from->next) {
		if (is_transport(from) != transport)
			continue;
		**end = pool_alloc(p, sizeof(***end));
		if (!**end)
			return false;
		***end = *from;
		(**end)->next = NULL;
		*end = &(**end)->next;
	}
	return true;
}

/* As written, before hold by address changed it. */
static enum sdp_dir written_dir(const struct sdp *s, const struct sdp_media *m)
{
	const struct sdp_line *from[2] = {m->lines, s->session};

	for (int k = 0; k < 2; k++)
		for (const struct sdp_line *l = from[k]; l; l = l->next)
			for (enum sdp_dir d = SDP_DIR_SENDRECV; d <= SDP_DIR_INACTIVE; d++)
				if (l->type == 'a' && str_eq_nocase(l->name, sdp_dir_name(d)))
					return d;
	return SDP_DIR_SENDRECV;
}

static bool take_transport(
	struct sdp *s, struct sdp_media *m, const struct sdp_media *tag, struct pool *p)
{
	struct sdp_line *lines = NULL, **end = &lines;

	if (!copy_lines(&end, p, m->lines, false) || !copy_lines(&end, p, tag->lines, true))
		return false;
	m->dir = written_dir(s, m);
	if (tag->hold && (m->dir == SDP_DIR_SENDRECV || m->dir == SDP_DIR_RECVONLY))
		m->dir = m->dir == SDP_DIR_SENDRECV ? SDP_DIR_SENDONLY : SDP_DIR_INACTIVE;
	m->lines = lines;
	m->port = tag->port;
	m->port_count = 1;
	m->conn = tag->conn;
	m->hold = tag->hold;
	m->rtcp_mux = tag->rtcp_mux;
	m->rtcp_mux_only = tag->rtcp_mux_only;
	m->ice = tag->ice;
	m->dtls = tag->dtls;
	m->has_rtcp = tag->has_rtcp;
	m->rtcp = tag->rtcp;
	return true;
}

int sdp_bundle_unfold(struct sdp *s, struct pool *p, const struct sdp_bundle *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct sdp_media *m = &s->media[b->media[i]];

		if (!m->port && !take_transport(s, m, &s->media[b->tag], p))
			return -ENOMEM;
	}
	return 0;
}

/* --- Assignment of packets to m-lines --------------------------------------------------------- */

/* Reads an a=extmap with an ID from 1 to 255. False: another line. */
static bool read_ext(const struct sdp_line *l, uint8_t *id, struct str *uri)
{
	struct str rest = l->arg, number = str_word(&rest);
	uint64_t n;

	if (l->type != 'a' || !str_eq_nocase(l->name, STR("extmap")))
		return false;
	number = str_cut(&number, '/'); /* a direction may follow */
	*uri = str_word(&rest);
	*id = str_to_u64(&n, number, SDP_EXT_IDS - 1) == 0 ? (uint8_t)n : 0;
	return *id;
}

/* The next of these lines that is one. */
static const struct sdp_line *next_ext(const struct sdp_line *lines, uint8_t *id, struct str *uri)
{
	const struct sdp_line *l = lines;

	while (l && !read_ext(l, id, uri))
		l = l->next;
	return l;
}

bool sdp_is_mid_ext(const struct sdp_line *l)
{
	struct str uri;
	uint8_t id;

	return read_ext(l, &id, &uri) && str_eq(uri, STR(RTP_MID_URI));
}

bool sdp_is_transport_cc(const struct sdp_line *l)
{
	static const struct str v1 = {
		"http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-", 71};
	static const struct str v2 = {
		"http://www.webrtc.org/experiments/rtp-hdrext/transport-wide-cc-", 63};
	struct str uri, rest = l->arg;
	uint8_t id;

	if (l->type == 'a' && str_eq_nocase(l->name, STR("rtcp-fb"))) {
		(void)str_word(&rest); /* payload type */
		return str_eq_nocase(str_word(&rest), STR("transport-cc"));
	}
	return read_ext(l, &id, &uri) && (str_starts(uri, v1) || str_starts(uri, v2));
}

static uint8_t ext_in(const struct sdp_line *lines)
{
	struct str uri;
	uint8_t id;

	for (const struct sdp_line *l = lines; (l = next_ext(l, &id, &uri)); l = l->next)
		if (str_eq(uri, STR(RTP_MID_URI)))
			return id;
	return 0;
}

uint8_t sdp_mid_ext(const struct sdp *s, const struct sdp_media *m)
{
	uint8_t own = ext_in(m->lines);

	return own ? own : ext_in(s->session);
}

bool sdp_ext_add(struct sdp_ext_ids *ids, const struct sdp *s, const struct sdp_media *m)
{
	const struct sdp_line *from[2] = {s->session, m->lines};
	struct str uri;
	uint8_t id;

	for (int add = 0; add < 2; add++)
		for (int k = 0; k < 2; k++)
			for (const struct sdp_line *l = from[k]; (l = next_ext(l, &id, &uri));
				l = l->next) {
				if (add)
					ids->uri[id] = uri;
				else if (ids->uri[id].len && !str_eq(ids->uri[id], uri))
					return false;
			}
	return true;
}

void sdp_payload_types(uint64_t types[2], const struct sdp_media *m)
{
	struct str rest = m->formats, one;
	uint64_t n;

	while ((one = str_word(&rest)).len)
		if (str_to_u64(&n, one, 127) == 0)
			types[n / 64] |= 1ull << n % 64;
}

void sdp_ssrcs(uint32_t out[RTP_SSRCS], const struct sdp_media *m)
{
	uint32_t n = 0, i;

	memset(out, 0, RTP_SSRCS * sizeof(*out));
	for (const struct sdp_line *l = sdp_attr(m->lines, STR("ssrc")); l && n < RTP_SSRCS;
		l = sdp_attr(l->next, STR("ssrc"))) {
		struct str rest = l->arg;
		uint64_t ssrc;

		if (str_to_u64(&ssrc, str_word(&rest), UINT32_MAX))
			continue;
		for (i = 0; i < n && out[i] != ssrc; i++)
			;
		if (i == n && ssrc)
			out[n++] = (uint32_t)ssrc;
	}
}
