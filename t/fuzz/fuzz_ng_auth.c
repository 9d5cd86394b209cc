/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Signed cookies and key files. The input is a datagram, a line end, and a key file. A cookie that
 * was not signed with the key is refused. One that is signed here is verified, and refused after a
 * change of any byte. */
#include <errno.h>
#include <stdlib.h>

#include "proto/ng_auth.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define NOW 1700000000ull

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void sign_and_verify(
	const struct ng_keys *keys, struct str cookie, struct str body, uint8_t at)
{
	char text[NG_COOKIE_MAX + 1], mac[NG_MAC_DIGITS + 1];
	struct ng_signed s;
	uint32_t which;
	struct str whole = {text, cookie.len + NG_SIGNATURE};
	bool fits = whole.len <= NG_COOKIE_MAX;

	if (fits)
		memcpy(text, cookie.s, cookie.len);
	must(ng_sign_request(fits ? text + cookie.len : mac, keys, cookie, NOW, body) == fits);
	if (!fits)
		return;
	must(ng_verify_request(keys, whole, body, NOW, &s, &which) == 0 && which == 0);
	must(str_eq(s.cookie, cookie) && s.seconds == NOW);
	must(!ng_verify_reply(keys, whole, whole, body));
	must(ng_sign_reply(mac, keys->key[0], whole, body));
	text[at % (cookie.len + 1)] ^= 1; /* changes the cookie or its signature */
	must(ng_verify_request(keys, whole, body, NOW, &s, &which) != 0);
	text[at % (cookie.len + 1)] ^= 1;
	memcpy(text + whole.len - NG_MAC_DIGITS, mac, NG_MAC_DIGITS);
	must(ng_verify_request(keys, whole, body, NOW, &s, &which) == -EBADMSG);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ng_keys keys = {.n = 1, .key = {{1, 2, 3}}}, file;
	struct str rest = {(const char *)data, len}, datagram = str_cut(&rest, '\n');
	struct ng_signed s;
	struct ng_frame f;
	uint32_t line, which;

	if (ng_keys_parse(&file, rest, &line) == 0)
		must(file.n >= 1 && file.n <= NG_KEYS_MAX);
	if (ng_frame_parse(&f, datagram) == -ENOMSG)
		return 0;
	must(f.cookie.len >= 1 && f.cookie.len <= NG_COOKIE_MAX && (uint8_t)f.cookie.s[0] < 0x80);
	must(ng_verify_request(&keys, f.cookie, f.body, NOW, &s, &which) != 0);
	sign_and_verify(&keys, f.cookie, f.body, data[0]);
	return 0;
}
