/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See sdp_zrtp.h. */
#include "proto/sdp_zrtp.h"

#include <errno.h>

#define VERSION STR("1.10")

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int sdp_zrtp_parse(struct sdp_zrtp *out, struct str value)
{
	struct str version = str_word(&value), hex = str_word(&value);
	struct sdp_zrtp z = {.given = true};

	if (!version.len || !hex.len || str_trim(value).len)
		return -EBADMSG;
	if (!str_eq(version, VERSION))
		return -ENOTSUP;
	if (hex.len != 2u * SDP_ZRTP_HASH)
		return -EBADMSG;
	for (size_t i = 0; i < SDP_ZRTP_HASH; i++) {
		int high = hex_digit(hex.s[2 * i]), low = hex_digit(hex.s[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		z.hash[i] = (uint8_t)(high << 4 | low);
	}
	*out = z;
	return 0;
}

void sdp_zrtp_write(struct sbuf *b, const struct sdp_zrtp *z)
{
	sbuf_str(b, VERSION);
	sbuf_str(b, STR(" "));
	for (size_t i = 0; i < SDP_ZRTP_HASH; i++)
		sbuf_printf(b, "%02x", z->hash[i]);
}

bool sdp_zrtp_eq(const struct sdp_zrtp *a, const struct sdp_zrtp *b)
{
	return a->given == b->given && (!a->given || !memcmp(a->hash, b->hash, SDP_ZRTP_HASH));
}

static bool read_level(struct sdp_zrtp *out, const struct sdp_line *from)
{
	for (const struct sdp_line *l = sdp_attr(from, STR("zrtp-hash")); l;
		l = sdp_attr(l->next, STR("zrtp-hash")))
		if (sdp_zrtp_parse(out, l->arg) == 0)
			return true;
	return false;
}

void sdp_zrtp_read(struct sdp_zrtp *out, const struct sdp *s, const struct sdp_media *m)
{
	*out = (struct sdp_zrtp){0};
	if (!read_level(out, m->lines) && s)
		(void)read_level(out, s->session);
}
