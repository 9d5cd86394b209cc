/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See zrtp_wire.h. */
#include "keying/zrtp_wire.h"

#include <errno.h>
#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

#define COOKIE 0x5a525450u
#define START  0x505au

static const struct {
	char type[9];
	uint16_t least;
} messages[ZRTP_M_COUNT] = {
#define X(id, type, least) [ZRTP_M_##id] = {type, least},
	ZRTP_MESSAGES(X)
#undef X
};

uint32_t zrtp_crc_plain(const uint8_t *p, size_t len)
{
	static const uint32_t nibble[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1,
		0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6,
		0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
	uint32_t crc = UINT32_MAX;

	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		crc = crc >> 4 ^ nibble[crc & 15];
		crc = crc >> 4 ^ nibble[crc & 15];
	}
	return ~crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc_by_cpu(const uint8_t *p, size_t len)
{
	uint64_t crc = UINT32_MAX, word;

	for (; len >= sizeof(word); p += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		crc = _mm_crc32_u64(crc, word);
	}
	for (; len; p++, len--)
		crc = _mm_crc32_u8((uint32_t)crc, *p);
	return ~(uint32_t)crc;
}
#endif

/* Strangers send packets with any checksum, so it must cost little. */
uint32_t zrtp_crc(const uint8_t *p, size_t len)
{
#if defined(__x86_64__)
	if (__builtin_cpu_supports("sse4.2"))
		return crc_by_cpu(p, len);
#endif
	return zrtp_crc_plain(p, len);
}

/* The checksum's bytes go in the order of SCTP: the lowest first. */
static void put_crc(uint8_t *p, uint32_t crc)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(crc >> 8 * i);
}

int zrtp_parse(enum zrtp_message *type, const uint8_t **msg, uint32_t *msg_len, const uint8_t *p,
	size_t len)
{
	uint8_t crc[ZRTP_CRC];
	uint32_t n;

	if (len < ZRTP_HEADER + ZRTP_PREAMBLE + ZRTP_CRC || len % 4 ||
		len > ZRTP_HEADER + ZRTP_MESSAGE_MAX + ZRTP_CRC)
		return -EBADMSG;
	if (p[0] >> 4 != 1 || be32(p + 4) != COOKIE)
		return -EPROTO;
	put_crc(crc, zrtp_crc(p, len - ZRTP_CRC));
	if (memcmp(crc, p + len - ZRTP_CRC, ZRTP_CRC) != 0)
		return -EILSEQ;
	n = (uint32_t)(len - ZRTP_HEADER - ZRTP_CRC);
	p += ZRTP_HEADER;
	if (be16(p) != START || be16(p + 2) * 4u != n)
		return -ENOMSG;
	for (int i = 0; i < ZRTP_M_COUNT; i++)
		if (memcmp(p + 4, messages[i].type, 8) == 0 && n >= messages[i].least) {
			*type = (enum zrtp_message)i;
			*msg = p;
			*msg_len = n;
			return 0;
		}
	return -ENOMSG;
}

bool zrtp_is_of_type(const uint8_t *p, size_t len, enum zrtp_message type)
{
	return len >= ZRTP_HEADER + ZRTP_PREAMBLE &&
		memcmp(p + ZRTP_HEADER + 4, messages[type].type, 8) == 0;
}

uint32_t zrtp_packet_ssrc(const uint8_t *p)
{
	return be32(p + 8);
}

uint32_t zrtp_wrap(uint8_t *buf, const struct zrtp_msg *m, uint16_t seq, uint32_t ssrc)
{
	uint32_t n = ZRTP_HEADER + m->len;

	put_be16(buf, 0x1000);
	put_be16(buf + 2, seq);
	put_be32(buf + 4, COOKIE);
	put_be32(buf + 8, ssrc);
	memcpy(buf + ZRTP_HEADER, m->b, m->len);
	put_crc(buf + n, zrtp_crc(buf, n));
	return n + ZRTP_CRC;
}

void zrtp_msg_begin(struct zrtp_msg *m, enum zrtp_message type)
{
	put_be16(m->b, START);
	memcpy(m->b + 4, messages[type].type, 8);
	m->len = ZRTP_PREAMBLE;
}

void zrtp_msg_add(struct zrtp_msg *m, const void *p, size_t len)
{
	if (p)
		memcpy(m->b + m->len, p, len);
	else
		memset(m->b + m->len, 0, len);
	m->len = (uint16_t)(m->len + len);
}

void zrtp_msg_add32(struct zrtp_msg *m, uint32_t v)
{
	put_be32(m->b + m->len, v);
	m->len = (uint16_t)(m->len + 4);
}

void zrtp_msg_end(struct zrtp_msg *m, uint32_t more)
{
	put_be16(m->b + 2, (uint16_t)((m->len + more) / 4));
}
