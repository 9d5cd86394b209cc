/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads UDP datagrams from IP packets, and writes them (steer/dgram.h). Unusual packets are left to
 * the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "steer/dgram.h"

static size_t make(uint8_t *packet, bool v6, size_t len, uint8_t **ip)
{
	struct endpoint src, dst;
	int hdr;

	assert_int_equal(
		endpoint_parse(&src, v6 ? STR("[2001:db8::1]:5000") : STR("192.0.2.1:5000")), 0);
	assert_int_equal(
		endpoint_parse(&dst, v6 ? STR("[2001:db8::2]:6001") : STR("192.0.2.2:6001")), 0);
	for (size_t i = 0; i < len; i++)
		packet[DGRAM_HDR_MAX + i] = (uint8_t)(i * 37 + 255);
	hdr = dgram_write(&src, &dst, 0xb8, packet + DGRAM_HDR_MAX, len);
	assert_int_equal(hdr, v6 ? DGRAM_HDR_V6 : DGRAM_HDR_V4);
	*ip = packet + DGRAM_HDR_MAX - hdr;
	return (size_t)hdr + len;
}

static void what_is_written_is_read_back(void **state)
{
	uint8_t packet[DGRAM_HDR_MAX + 1500], *ip;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		for (size_t len = 0; len < 1500; len += len < 70 ? 1 : 131) {
			size_t whole = make(packet, v6, len, &ip);
			struct dgram d;

			assert_int_equal(dgram_parse(&d, ip, whole, whole), 0);
			assert_int_equal(d.src.port, 5000);
			assert_int_equal(d.dst.port, 6001);
			assert_int_equal(d.dst.addr[v6 ? 15 : 3], 2);
			assert_int_equal(d.len, len);
			assert_ptr_equal(ip + d.off, packet + DGRAM_HDR_MAX);
			assert_true(dgram_checksum_ok(&d, ip));
			ip[whole - 1] ^= 0x10;
			assert_false(dgram_checksum_ok(&d, ip));
			ip[whole - 1] ^= 0x10;
			/* Only the headers were captured. */
			assert_int_equal(dgram_parse(&d, ip, d.off, whole), 0);
			assert_int_equal(d.len, len);
			assert_int_equal(dgram_parse(&d, ip, d.off - 1, whole), -EBADMSG);
		}
	}
}

/* Sums word by word, as in RFC 1071 4.1. */
static void the_checksum_is_the_one_of_rfc_1071(void **state)
{
	uint8_t packet[DGRAM_HDR_MAX + 5], *ip;
	uint32_t sum = 17 + 13;

	(void)state;
	make(packet, false, 5, &ip);
	for (int i = 12; i < 20; i += 2)
		sum += be16(ip + i);
	for (int i = 20; i < 32; i += 2)
		sum += i == 26 ? 0 : be16(ip + i);
	sum += (uint32_t)ip[32] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	assert_int_equal(be16(ip + 26), (uint16_t)~sum);
}

/* The same for all lengths, at any alignment, and with the words that carry most. */
static void the_checksum_is_right_for_every_length(void **state)
{
	uint8_t room[DGRAM_HDR_MAX + 300];

	(void)state;
	for (size_t len = 0; len < 280; len++) {
		const struct endpoint src = {
			.family = AF_INET, .addr = {255, 255, 255, 255}, .port = 65535};
		const struct endpoint dst = {
			.family = AF_INET, .addr = {255, 255, 255, 254}, .port = 65535};
		uint8_t *payload = room + DGRAM_HDR_MAX + len % 17, *ip = payload - DGRAM_HDR_V4;
		uint32_t sum = 17 + 8 + (uint32_t)len;

		for (size_t i = 0; i < len; i++)
			payload[i] = len % 2 ? 0xff : (uint8_t)(i * 151 + len);
		assert_int_equal(dgram_write(&src, &dst, 0, payload, len), DGRAM_HDR_V4);
		for (size_t i = 12; i < 28 + len; i++)
			if (i < 26 || i > 27)
				sum += (uint32_t)ip[i] << (i % 2 ? 0 : 8);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		sum = ~sum & 0xffff;
		assert_int_equal(be16(ip + 26), sum ? sum : 0xffff);
	}
}

/* The partial checksum that a kernel leaves in local packets, and the complete one. */
static void checksums_may_be_left_to_others(void **state)
{
	uint8_t packet[DGRAM_HDR_MAX + 100], *ip;

	(void)state;
	for (int v6 = 0; v6 < 2; v6++) {
		size_t whole = make(packet, v6, 99, &ip);
		uint32_t sum = 17 + 8 + 99;
		struct dgram d;

		assert_int_equal(dgram_parse(&d, ip, whole, whole), 0);
		assert_false(dgram_checksum_partial(&d, ip));
		for (int i = v6 ? 8 : 12; i < (v6 ? 40 : 20); i += 2)
			sum += be16(ip + i);
		while (sum >> 16)
			sum = (sum & 0xffff) + (sum >> 16);
		put_be16(ip + d.hdr_len + 6, (uint16_t)sum);
		assert_true(dgram_checksum_partial(&d, ip));
		assert_false(dgram_checksum_ok(&d, ip));
		if (v6)
			continue;
		assert_false(dgram_v4_header_ok(ip));
		dgram_v4_finish(ip, 0xbeef);
		assert_true(dgram_v4_header_ok(ip));
		assert_int_equal(be16(ip + 4), 0xbeef);
		ip[8]--;
		assert_false(dgram_v4_header_ok(ip));
	}
}

static void anything_unusual_is_left_to_the_kernel(void **state)
{
	static const struct {
		bool v6;
		uint8_t at, value;
		const char *why;
	} T[] = {
		{false, 0, 0x55, "no IP version"},
		{false, 0, 0x44, "header shorter than itself"},
		{false, 0, 0x4f, "options that are not there"},
		{false, 3, 33, "IP length shorter than UDP's"},
		{false, 2, 1, "IP length longer than the packet"},
		{false, 6, 0x20, "first fragment"},
		{false, 7, 1, "later fragment"},
		{false, 9, 6, "TCP"},
		{false, 25, 7, "UDP length below its header"},
		{false, 24, 1, "UDP length beyond the packet"},
		{true, 6, 44, "fragment header"},
		{true, 6, 0, "hop-by-hop options"},
		{true, 4, 1, "length beyond the packet"},
		{true, 5, 0, "jumbogram or nothing"},
		{true, 45, 7, "UDP length below its header"},
		{true, 44, 1, "UDP length beyond the packet"},
	};
	uint8_t packet[DGRAM_HDR_MAX + 20], *ip;
	struct dgram d;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		size_t whole = make(packet, T[i].v6, 20, &ip);

		ip[T[i].at] = T[i].value;
		if (dgram_parse(&d, ip, whole, whole) != -EBADMSG)
			fail_msg("taken: %s", T[i].why);
	}
	assert_int_equal(dgram_parse(&d, packet, 0, 0), -EBADMSG);
}

static void options_and_trailing_bytes_are_no_payload(void **state)
{
	uint8_t packet[DGRAM_HDR_MAX + 20], *ip, with[128] = {0};
	size_t whole = make(packet, false, 20, &ip);
	struct dgram d;

	(void)state;
	memcpy(with, ip, 20);
	memset(with + 20, 1, 8); /* no-operation options */
	memcpy(with + 28, ip + 20, whole - 20);
	with[0] = 0x47;
	with[3] = (uint8_t)(whole + 8 + 3);
	assert_int_equal(dgram_parse(&d, with, whole + 8 + 3 + 10, whole + 8 + 3 + 10), 0);
	assert_int_equal(d.off, 36);
	assert_int_equal(d.len, 20);
	assert_true(dgram_checksum_ok(&d, with));
	/* A zero checksum is valid for IPv4, not for IPv6 (RFC 8200 8.1). */
	put_be16(with + 34, 0);
	assert_true(dgram_checksum_ok(&d, with));
	whole = make(packet, true, 20, &ip);
	put_be16(ip + 46, 0);
	assert_int_equal(dgram_parse(&d, ip, whole, whole), 0);
	assert_false(dgram_checksum_ok(&d, ip));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(the_checksum_is_the_one_of_rfc_1071),
		cmocka_unit_test(the_checksum_is_right_for_every_length),
		cmocka_unit_test(checksums_may_be_left_to_others),
		cmocka_unit_test(anything_unusual_is_left_to_the_kernel),
		cmocka_unit_test(options_and_trailing_bytes_are_no_payload),
	};

	return cmocka_run_group_tests_name("dgram", tests, NULL, NULL);
}
