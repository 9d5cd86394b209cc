/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/sdp_keymgmt.h"

#include <errno.h>

#include "proto/base64.h"

static bool is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_base64(struct str s)
{
	size_t pad = 0;

	while (pad < 2 && s.len > pad && s.s[s.len - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i + pad < s.len; i++)
		if (!is_letter_or_digit(s.s[i]) && s.s[i] != '+' && s.s[i] != '/')
			return false;
	return s.len > pad;
}

/* key-mgmt-att-value = 0*1SP prtcl-id SP keymgmt-data */
int sdp_keymgmt_parse(struct sdp_keymgmt *out, struct str value)
{
	struct str rest = str_trim(value), protocol;

	protocol = str_cut(&rest, ' ');
	if (!protocol.len || protocol.len > SDP_KEYMGMT_ID || !rest.s)
		return -EBADMSG;
	for (size_t i = 0; i < protocol.len; i++)
		if (!is_letter_or_digit(protocol.s[i]))
			return -EBADMSG;
	rest = str_trim(rest);
	if (!is_base64(rest))
		return -EBADMSG;
	*out = (struct sdp_keymgmt){.protocol = protocol, .data = rest};
	return 0;
}

static bool has_own(const struct sdp_media *m)
{
	return sdp_attr(m->lines, STR("key-mgmt")) != NULL;
}

/* SRTP without DTLS: where a message of the session level may have keys for. */
static bool is_covered(const struct sdp_media *m)
{
	return sdp_proto_is_secure(m->proto) && !sdp_proto_is_dtls(m->proto) && !has_own(m);
}

static void count_places(
	struct sdp_keymgmt_lines *out, const struct sdp *s, const struct sdp_media *m)
{
	for (uint32_t i = 0; i < s->media_count; i++) {
		if (!is_covered(&s->media[i]))
			continue;
		if (&s->media[i] == m)
			out->place = out->places;
		out->places++;
	}
}

void sdp_keymgmt_read(struct sdp_keymgmt_lines *out, const struct sdp *s, const struct sdp_media *m)
{
	const struct sdp_line *from = m->lines;

	*out = (struct sdp_keymgmt_lines){.places = 1, .session = !has_own(m)};
	if (out->session) {
		out->places = 0;
		from = s->session;
		count_places(out, s, m);
	}
	for (const struct sdp_line *l = sdp_attr(from, STR("key-mgmt")); l;
		l = sdp_attr(l->next, STR("key-mgmt"))) {
		if (out->n == SDP_KEYMGMT_MAX || sdp_keymgmt_parse(&out->line[out->n], l->arg))
			out->malformed = true;
		else
			out->n++;
	}
}

const struct sdp_keymgmt *sdp_keymgmt_find(
	const struct sdp_keymgmt_lines *lines, struct str protocol)
{
	for (uint32_t i = 0; i < lines->n; i++)
		if (str_eq(lines->line[i].protocol, protocol))
			return &lines->line[i];
	return NULL;
}

struct str sdp_keymgmt_ids(const struct sdp_keymgmt_lines *lines, struct pool *p)
{
	char *out = pool_alloc(p, SDP_KEYMGMT_IDS_MAX);
	size_t len = 0;

	for (uint32_t i = 0; out && i < lines->n; i++) {
		struct str id = lines->line[i].protocol;

		if (i)
			out[len++] = ';';
		memcpy(out + len, id.s, id.len);
		len += id.len;
	}
	return (struct str){out, out ? len : 0};
}

struct str sdp_keymgmt_write(struct pool *p, struct str protocol, struct str message)
{
	static const struct str name = STR("key-mgmt:");
	size_t head = name.len + protocol.len + 1;
	char *out = pool_alloc(p, head + BASE64_LEN(message.len));

	if (!out)
		return STR_NONE;
	memcpy(out, name.s, name.len);
	memcpy(out + name.len, protocol.s, protocol.len);
	out[head - 1] = ' ';
	return (struct str){out,
		head + base64_encode(out + head, (const uint8_t *)message.s, message.len, true)};
}
