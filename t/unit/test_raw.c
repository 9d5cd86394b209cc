/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The first datagrams of UDPTL, DTLS and BFCP, and datagrams that must not pass for one. */
#include "proto/raw.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define B(text)                          \
	{                                \
		(text), sizeof(text) - 1 \
	}
#define ANY_TEXT "INVITE sip:a@example SIP/2.0\r\n\r\n"

static void only_the_protocols_own_first_datagrams_open(void **state)
{
	static const struct {
		enum raw_kind kind;
		struct {
			const char *p;
			size_t len;
		} d;
		bool opens;
		const char *why;
	} T[] = {
		{RAW_UDPTL, B("\0\0\1\6\0\0"), true, "no-signal, no redundancy"},
		{RAW_UDPTL, B("\0\377\1\6\200\1\3\1\1x"), true, "with FEC"},
		{RAW_UDPTL, B("\0\1\200\3\300\1\0\0\0"), true, "long form of the length"},
		{RAW_UDPTL, B("\0\2\3\300\1\0\0\2\1\6\1\4"), true, "data, two before"},
		{RAW_UDPTL, B("\0\1\200\3abc\0\0"), false, "neither indicator nor data"},
		{RAW_UDPTL, B("\0\1\1\0\0\1\0\0\0\0\0\0\6secret\0\0\1\0\1"), false, "DNS"},
		{RAW_UDPTL, B("\0\1\1\0\0\1\0\0get secret\r\n"), false, "memcached"},
		{RAW_UDPTL, B("\0\1\1\0\0\0get secret\r\n"), false, "text behind"},
		{RAW_BFCP, B("@\4\0\0\267locknow"), false, "CoAP"},
		{RAW_BFCP, B("@\3\0\1\264lock\3770\0\0\0\0\0"), false, "CoAP"},
		{RAW_BFCP, B("@\23\0\0\0\0\0\1\0\1\0\1"), false, "primitive 19"},
		{RAW_BFCP, B("@\13\0\0\0\0\0\0\0\1\0\1"), false, "no conference"},
		{RAW_UDPTL, B("\1\0\1\6\0\0"), false, "high sequence number"},
		{RAW_UDPTL, B("\0\0\1\6"), false, "cut before error recovery"},
		{RAW_UDPTL, B("\0\0\0\0\0"), false, "no IFP packet"},
		{RAW_UDPTL, B("\0\0\1\6\1\0"), false, "unknown error recovery"},
		{RAW_UDPTL, B("\0\0\300\0\0\0"), false, "fragmented length"},
		{RAW_UDPTL, B(ANY_TEXT), false, "SIP"},
		{RAW_UDPTL, B("\0\1\0\0!\22\244B            "), false, "STUN"},
		{RAW_DTLS, B("\26\376\375\0\0\0\0\0\0\0\0\0\2ab"), true, "handshake"},
		{RAW_DTLS, B("\26\376\375\0\0\0\0\0\0\0\0\0\3ab"), false, "cut"},
		{RAW_DTLS, B("\27\376\375\0\0\0\0\0\0\0\0\0\2ab"), false, "application data"},
		{RAW_DTLS, B("\26\3\1\0\0\0\0\0\0\0\0\0\2ab"), false, "TLS"},
		{RAW_DTLS, B("\0\1\0\0!\22\244B            "), false, "STUN"},
		{RAW_BFCP, B("@\13\0\0\0\0\0\1\0\1\0\1"), true, "Hello"},
		{RAW_BFCP, B(" \13\0\1\0\0\0\1\0\1\0\1abcd"), true, "version 1, payload"},
		{RAW_BFCP, B("@\13\0\1\0\0\0\1\0\1\0\1"), false, "payload missing"},
		{RAW_BFCP, B("@\0\0\0\0\0\0\1\0\1\0\1"), false, "primitive 0"},
		{RAW_BFCP, B("@host sip:x"), false, "text"},
		{RAW_ANY, B("\0\0\1\6\0\0"), false, "nothing is known of it"},
		{RAW_NONE, B("\0\0\1\6\0\0"), false, "RTP's port"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(T) / sizeof(*T); i++) {
		if (raw_opens(T[i].kind, (const uint8_t *)T[i].d.p, T[i].d.len) != T[i].opens)
			fail_msg("row %zu: %s", i, T[i].why);
		for (size_t len = 0; len < 5; len++) /* too short for any of them */
			assert_false(raw_opens(T[i].kind, (const uint8_t *)T[i].d.p, len));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_protocols_own_first_datagrams_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
