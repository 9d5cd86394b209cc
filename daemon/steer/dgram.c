/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A UDP datagram as an IP packet: RFC 791, RFC 8200, RFC 768, checksum RFC 1071. Pure. Lengths are
 * untrusted. Unusual packets are refused, so that the kernel handles them. */
#include "steer/dgram.h"

#include <endian.h>
#include <errno.h>

#define ETHER_LEN 14u
#define UDP_LEN   8u
#define PROTO     17u
#define HOPS      64u

/* --- Checksum --------------------------------------------------------------------------------- */

/* Adds the 64 bytes at p with their carries. */
static inline uint64_t sum_64(uint64_t sum, const uint8_t *p)
{
#if defined(__x86_64__)
	/* Bytes: the compiler must not think that other types are not read. */
	const uint8_t(*bytes)[64] = (const void *)p;

	/* Compilers do not keep the carry in its flag over eight words. */
	__asm__("addq 0(%1), %0\n\t"
		"adcq 8(%1), %0\n\t"
		"adcq 16(%1), %0\n\t"
		"adcq 24(%1), %0\n\t"
		"adcq 32(%1), %0\n\t"
		"adcq 40(%1), %0\n\t"
		"adcq 48(%1), %0\n\t"
		"adcq 56(%1), %0\n\t"
		"adcq $0, %0"
		: "+&r"(sum)
		: "r"(p), "m"(*bytes)
		: "cc");
#else
	uint64_t word, carry = 0;

	for (int i = 0; i < 8; i++) {
		memcpy(&word, p + 8 * i, 8);
		carry += __builtin_add_overflow(sum, word, &sum);
	}
	carry = __builtin_add_overflow(sum, carry, &sum);
	sum += carry;
#endif
	return sum;
}

/* Adds words in memory order, which works for any byte order (RFC 1071 2 (B)). Adds 64-bit words
 * with their carries, because larger words fold to the same sum (2 (C)). Inline, because most
 * lengths are constants. */
static inline __attribute__((always_inline)) uint64_t sum_add(
	uint64_t sum, const uint8_t *p, size_t len)
{
	uint64_t carry = 0, w[2];
	uint32_t word;
	uint16_t half = 0;

	for (; len >= 64; p += 64, len -= 64)
		sum = sum_64(sum, p);
	for (; len >= 16; p += 16, len -= 16) {
		memcpy(w, p, 16);
		carry += __builtin_add_overflow(sum, w[0], &sum);
		carry += __builtin_add_overflow(sum, w[1], &sum);
	}
	sum = (sum & 0xffffffff) + (sum >> 32) + carry; /* far below 64 bits */
	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&word, p, 4);
		sum += word;
	}
	if (len & 2) {
		memcpy(&half, p, 2);
		sum += half;
		p += 2;
	}
	if (len & 1) {
		half = 0;
		memcpy(&half, p, 1); /* a zero byte follows */
		sum += half;
	}
	return sum;
}

static uint16_t sum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* The pseudo-header of either family: addresses, length, protocol. */
static uint64_t sum_pseudo(const uint8_t *addrs, size_t addrs_len, uint16_t udp_len)
{
	return sum_add((uint64_t)htobe16(PROTO) + htobe16(udp_len), addrs, addrs_len);
}

/* --- Read ------------------------------------------------------------------------------------- */

static int parse_v4(struct dgram *d, const uint8_t *p, size_t have, size_t *end)
{
	size_t hdr = 4u * (p[0] & 0x0f);

	if (have < 20 || hdr < 20 || have < hdr + UDP_LEN)
		return -EBADMSG;
	*end = be16(p + 2);
	/* More fragments, or not the first fragment. */
	if ((be16(p + 6) & 0x3fff) || p[9] != PROTO)
		return -EBADMSG;
	d->hdr_len = (uint8_t)hdr;
	d->src.family = d->dst.family = AF_INET;
	memcpy(d->src.addr, p + 12, 4);
	memcpy(d->dst.addr, p + 16, 4);
	return 0;
}

static int parse_v6(struct dgram *d, const uint8_t *p, size_t have, size_t *end)
{
	if (have < DGRAM_HDR_V6 || p[6] != PROTO)
		return -EBADMSG;
	*end = 40u + be16(p + 4);
	d->hdr_len = 40;
	d->src.family = d->dst.family = AF_INET6;
	memcpy(d->src.addr, p + 8, 16);
	memcpy(d->dst.addr, p + 24, 16);
	return 0;
}

const uint8_t *dgram_in_frame(const uint8_t *frame, uint32_t len, uint32_t *ip_len)
{
	uint32_t at = ETHER_LEN;

	for (int tags = 0; tags < 2 && len >= at + 4; tags++) {
		uint16_t proto = be16(frame + at - 2);

		if (proto != 0x8100 && proto != 0x88a8)
			break;
		at += 4;
	}
	if (len <= at)
		return NULL;
	*ip_len = len - at;
	return frame + at;
}

int dgram_parse(struct dgram *out, const uint8_t *p, size_t have, size_t whole)
{
	struct dgram d = {0};
	size_t end, udp_len;
	int err;

	if (have == 0 || have > whole)
		return -EBADMSG;
	if (p[0] >> 4 == 4)
		err = parse_v4(&d, p, have, &end);
	else
		err = p[0] >> 4 == 6 ? parse_v6(&d, p, have, &end) : -EBADMSG;
	if (err)
		return err;
	udp_len = be16(p + d.hdr_len + 4);
	if (end > whole || udp_len < UDP_LEN || d.hdr_len + udp_len > end)
		return -EBADMSG;
	d.src.port = be16(p + d.hdr_len);
	d.dst.port = be16(p + d.hdr_len + 2);
	d.off = d.hdr_len + UDP_LEN;
	d.len = (uint32_t)(udp_len - UDP_LEN);
	*out = d;
	return 0;
}

bool dgram_checksum_ok(const struct dgram *d, const uint8_t *p)
{
	const uint8_t *udp = p + d->hdr_len;
	bool v4 = d->src.family == AF_INET;
	uint64_t sum;

	if (be16(udp + 6) == 0)
		return v4;
	sum = sum_pseudo(v4 ? p + 12 : p + 8, v4 ? 8 : 32, (uint16_t)(d->len + UDP_LEN));
	return sum_fold(sum_add(sum, udp, d->len + UDP_LEN)) == 0;
}

bool dgram_checksum_partial(const struct dgram *d, const uint8_t *p)
{
	const uint8_t *udp = p + d->hdr_len;
	bool v4 = d->src.family == AF_INET;
	uint16_t have,
		sum = sum_fold(
			sum_pseudo(v4 ? p + 12 : p + 8, v4 ? 8 : 32, (uint16_t)(d->len + UDP_LEN)));

	memcpy(&have, udp + 6, sizeof(have));
	return (have ^ sum) == 0xffff;
}

bool dgram_v4_header_ok(const uint8_t *ip)
{
	return sum_fold(sum_add(0, ip, 20)) == 0;
}

/* --- Write ------------------------------------------------------------------------------------ */

static void write_v4(const struct endpoint *src, const struct endpoint *dst, uint8_t tos,
	uint8_t *ip, size_t udp_len)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[1] = tos;
	put_be16(ip + 2, (uint16_t)(20 + udp_len));
	/* The kernel fills in identification and header checksum. Fragmentation is allowed: a raw
	 * socket does not learn the path MTU, and a router would drop a larger packet. */
	ip[8] = HOPS;
	ip[9] = PROTO;
	memcpy(ip + 12, src->addr, 4);
	memcpy(ip + 16, dst->addr, 4);
}

static void write_v6(const struct endpoint *src, const struct endpoint *dst, uint8_t tos,
	uint8_t *ip, size_t udp_len)
{
	put_be32(ip, 6u << 28 | (uint32_t)tos << 20);
	put_be16(ip + 4, (uint16_t)udp_len);
	ip[6] = PROTO;
	ip[7] = HOPS;
	memcpy(ip + 8, src->addr, 16);
	memcpy(ip + 24, dst->addr, 16);
}

int dgram_write(const struct endpoint *src, const struct endpoint *dst, uint8_t tos,
	uint8_t *payload, size_t len)
{
	bool v4 = dst->family == AF_INET;
	size_t hdr = v4 ? DGRAM_HDR_V4 : DGRAM_HDR_V6, udp_len = len + UDP_LEN;
	uint8_t *udp = payload - UDP_LEN, *ip = payload - hdr;
	uint16_t sum;

	if (len > 65535 - DGRAM_HDR_MAX)
		return -EMSGSIZE;
	if (v4)
		write_v4(src, dst, tos, ip, udp_len);
	else
		write_v6(src, dst, tos, ip, udp_len);
	put_be16(udp, src->port);
	put_be16(udp + 2, dst->port);
	put_be16(udp + 4, (uint16_t)udp_len);
	put_be16(udp + 6, 0);
	sum = sum_fold(sum_add(
		sum_pseudo(v4 ? ip + 12 : ip + 8, v4 ? 8 : 32, (uint16_t)udp_len), udp, udp_len));
	/* Zero means "no checksum" (RFC 768). */
	if (sum == 0)
		sum = 0xffff;
	memcpy(udp + 6, &sum, sizeof(sum));
	return (int)hdr;
}

void dgram_v4_finish(uint8_t *ip, uint16_t id)
{
	uint16_t sum;

	put_be16(ip + 4, id);
	put_be16(ip + 10, 0);
	sum = sum_fold(sum_add(0, ip, 20));
	memcpy(ip + 10, &sum, sizeof(sum));
}
