/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Packets of a stranger into a ZRTP exchange between two exchanges of ours. Input: pieces of a byte
 * of control, a byte of length in words, and a message. No piece may crash or leave memory behind.
 * Both sides never open with different keys. A stream in mid-call never opens for a stranger. */
#include <stdlib.h>

#include "keying/zrtp.h"
#include "keying/zrtp_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void drain(struct zrtp *from, struct zrtp *to, uint64_t now_ns, bool pass)
{
	uint8_t buf[ZRTP_PACKET_MAX];
	int n;

	while ((n = zrtp_next(from, buf, sizeof(buf))) > 0)
		if (pass)
			(void)zrtp_take(to, buf, (size_t)n, now_ns);
}

/* A stream that another one of z[0]'s peer would begin. */
static struct zrtp *begin_another(const struct zrtp *first, uint64_t now_ns)
{
	struct zrtp_config c = {.seed = {9}, .only_multi = true};
	struct zrtp *z;

	if (zrtp_create(&z, &c) || zrtp_multi(z, first))
		abort();
	zrtp_start(z, now_ns);
	return z;
}

/* control: bit 0 to whom, bit 1 genuine packets before it, bit 2 time passes, bit 3 without its own
 * header and checksum, bit 4 to the stream in mid-call */
static void piece(struct zrtp *z[3], uint8_t control, const uint8_t *p, size_t n, uint64_t now_ns)
{
	uint8_t packet[ZRTP_PACKET_MAX];
	struct zrtp_msg m;
	struct zrtp *to = control & 16 && z[2] ? z[2] : z[control & 1];
	uint8_t *copy;
	size_t len = n;

	if (control & 2) {
		drain(z[0], z[1], now_ns, true);
		drain(z[1], z[0], now_ns, true);
	}
	if (control & 4) {
		zrtp_tick(z[0], now_ns);
		zrtp_tick(z[1], now_ns);
		if (z[2])
			zrtp_tick(z[2], now_ns);
	}
	if (!(control & 8) && n <= ZRTP_MESSAGE_MAX) {
		memcpy(m.b, p, n);
		m.len = (uint16_t)n;
		len = zrtp_wrap(packet, &m, control, 1);
		p = packet;
	}
	copy = malloc(len ? len : 1);
	if (!copy)
		abort();
	memcpy(copy, p, len);
	(void)zrtp_begins_another(z[0], copy, len);
	(void)zrtp_take(to, copy, len, now_ns);
	free(copy);
	if (!z[2] && zrtp_state(z[0]) == ZRTP_OPEN)
		z[2] = begin_another(z[0], now_ns);
	if (z[2])
		drain(z[2], NULL, now_ns, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct srtp_master rx[2], tx[2];
	struct zrtp *z[3] = {NULL};
	uint64_t now_ns = 0;

	for (int i = 0; i < 2; i++) {
		struct zrtp_config c = {.ssrc = (uint32_t)i, .seed = {(uint8_t)i}};

		if (zrtp_create(&z[i], &c))
			abort();
		zrtp_start(z[i], 0);
	}
	for (size_t at = 0; at + 2 <= len;) {
		size_t n = data[at + 1] * 4u;

		n = n < len - at - 2 ? n : len - at - 2;
		now_ns += 100000000;
		piece(z, data[at], data + at + 2, n, now_ns);
		at += 2 + n;
	}
	for (int i = 0; i < 8; i++) {
		drain(z[0], z[1], now_ns, true);
		drain(z[1], z[0], now_ns, true);
	}
	if (zrtp_keys(z[0], &rx[0], &tx[0]) == 0 && zrtp_keys(z[1], &rx[1], &tx[1]) == 0 &&
		(memcmp(&rx[0], &tx[1], sizeof(rx[0])) != 0 ||
			memcmp(&rx[1], &tx[0], sizeof(rx[0])) != 0))
		abort();
	if (z[2] && zrtp_keys(z[2], &rx[0], &tx[0]) == 0)
		abort();
	for (int i = 0; i < 3; i++)
		zrtp_destroy(z[i]);
	return 0;
}
