/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See ng_auth.h. MACs are compared in constant time. */
#include "proto/ng_auth.h"

#include <errno.h>
#include <stdio.h>

#include "base/hmac.h"
#include "base/secmem.h"

#define REQUEST STR("xcipher ng request 1\n")
#define REPLY   STR("xcipher ng reply 1\n")
#define SECONDS 10u

/* --- Keys ------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

static bool read_hex(uint8_t *out, size_t len, struct str text)
{
	if (text.len != 2 * len)
		return false;
	for (size_t i = 0; i < len; i++) {
		int high = hex_digit(text.s[2 * i]), low = hex_digit(text.s[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

int ng_keys_parse(struct ng_keys *out, struct str text, uint32_t *line)
{
	out->n = 0;
	*line = 0;
	while (text.len) {
		struct str one = str_trim(str_cut(&text, '\n'));

		++*line;
		if (one.len == 0 || one.s[0] == '#')
			continue;
		if (out->n == NG_KEYS_MAX)
			return -E2BIG;
		if (!read_hex(out->key[out->n], NG_KEY_LEN, one))
			return -EINVAL;
		out->n++;
	}
	return out->n ? 0 : -ENODATA;
}

/* --- Cookies ---------------------------------------------------------------------------------- */

static void write_hex(char out[NG_MAC_DIGITS + 1], const uint8_t mac[NG_MAC_LEN])
{
	for (size_t i = 0; i < NG_MAC_LEN; i++) {
		out[2 * i] = "0123456789abcdef"[mac[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[mac[i] & 15];
	}
	out[NG_MAC_DIGITS] = 0;
}

int ng_signed_parse(struct ng_signed *out, struct str cookie)
{
	const char *at;

	if (cookie.len <= NG_SIGNATURE)
		return -ENOMSG;
	at = cookie.s + cookie.len - NG_SIGNATURE;
	out->cookie = (struct str){cookie.s, cookie.len - NG_SIGNATURE};
	if (at[0] != '~' || at[1 + SECONDS] != '~' ||
		str_to_u64(&out->seconds, (struct str){at + 1, SECONDS}, UINT64_MAX) ||
		!read_hex(out->mac, NG_MAC_LEN, (struct str){at + 1 + SECONDS + 1, NG_MAC_DIGITS}))
		return -ENOMSG;
	return 0;
}

static bool mac_of(uint8_t out[NG_MAC_LEN], const uint8_t key[NG_KEY_LEN], struct str label,
	struct str cookie, struct str body)
{
	const struct str part[] = {label, cookie, STR("\n"), body};
	uint8_t mac[HMAC_SHA256_LEN];
	bool ok = hmac_sha256(mac, key, NG_KEY_LEN, part, ARRAY_LEN(part));

	memcpy(out, mac, NG_MAC_LEN);
	return ok;
}

/* --- Requests --------------------------------------------------------------------------------- */

bool ng_sign_request(char out[NG_SIGNATURE + 1], const struct ng_keys *keys, struct str cookie,
	uint64_t seconds, struct str body)
{
	char timed[NG_COOKIE_MAX + 1 + SECONDS + 1];
	uint8_t mac[NG_MAC_LEN];
	int n = snprintf(timed, sizeof(timed), STR_FMT "~%010llu", STR_ARG(cookie),
		(unsigned long long)(seconds % 10000000000ull));

	if (cookie.len + NG_SIGNATURE > NG_COOKIE_MAX ||
		!mac_of(mac, keys->key[0], REQUEST, (struct str){timed, (size_t)n}, body))
		return false;
	memcpy(out, timed + cookie.len, 1 + SECONDS);
	out[1 + SECONDS] = '~';
	write_hex(out + 1 + SECONDS + 1, mac);
	return true;
}

int ng_verify_request(const struct ng_keys *keys, struct str cookie, struct str body,
	uint64_t now_s, struct ng_signed *signed_, uint32_t *which)
{
	uint8_t mac[NG_MAC_LEN];
	bool found = false;

	if (ng_signed_parse(signed_, cookie))
		return -ENOMSG;
	for (uint32_t i = 0; i < keys->n && !found; i++) {
		*which = i;
		found = mac_of(mac, keys->key[i], REQUEST,
				(struct str){cookie.s, signed_->cookie.len + 1 + SECONDS}, body) &&
			secmem_equal(mac, signed_->mac, sizeof(mac));
	}
	if (!found)
		return -EBADMSG;
	return signed_->seconds + NG_AUTH_WINDOW_S < now_s ||
			now_s + NG_AUTH_WINDOW_S < signed_->seconds
		? -ETIME
		: 0;
}

/* --- Replies ---------------------------------------------------------------------------------- */

bool ng_sign_reply(char out[NG_MAC_DIGITS + 1], const uint8_t key[NG_KEY_LEN], struct str request,
	struct str body)
{
	uint8_t mac[NG_MAC_LEN];

	if (!mac_of(mac, key, REPLY, request, body))
		return false;
	write_hex(out, mac);
	return true;
}

bool ng_verify_reply(
	const struct ng_keys *keys, struct str request, struct str cookie, struct str body)
{
	struct ng_signed asked, said;
	uint8_t mac[NG_MAC_LEN];

	if (ng_signed_parse(&asked, request) || ng_signed_parse(&said, cookie) ||
		!str_eq(asked.cookie, said.cookie) || asked.seconds != said.seconds)
		return false;
	for (uint32_t i = 0; i < keys->n; i++)
		if (mac_of(mac, keys->key[i], REPLY, request, body) &&
			secmem_equal(mac, said.mac, sizeof(mac)))
			return true;
	return false;
}
