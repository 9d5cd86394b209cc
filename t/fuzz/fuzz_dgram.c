/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames and IP packets from the wire. The first bytes choose where the packet is cut off, and how
 * it begins: as a frame, or as an IP packet. What is found lies in what there is, what is written
 * is read back the same, and a sum that is right is right however it is come by. */
#include <stdlib.h>

#include "steer/dgram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Exactly as many bytes as there are, so that one more is found out. */
static uint8_t *exactly(const uint8_t *p, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	must(copy);
	memcpy(copy, p, len);
	return copy;
}

/* RFC 1071, a word at a time, of the UDP datagram with its pseudo-header. */
static uint16_t plain_sum(const struct dgram *d, const uint8_t *p)
{
	bool v4 = d->src.family == AF_INET;
	uint32_t udp_len = d->len + 8, sum = 17 + udp_len;
	const uint8_t *addrs = p + (v4 ? 12 : 8), *udp = p + d->hdr_len;

	for (uint32_t i = 0; i < (v4 ? 8u : 32u); i += 2)
		sum += be16(addrs + i);
	for (uint32_t i = 0; i < udp_len; i++)
		sum += (uint32_t)udp[i] << (i % 2 ? 0 : 8);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* The same datagram by our own hand: it is read back as it was, with a sum that is right. */
static void write_again(const struct dgram *d, const uint8_t *p, uint8_t tos)
{
	uint8_t *mem = malloc(DGRAM_HDR_MAX + (d->len ? d->len : 1)), *ip;
	struct dgram again;
	int hdr;

	must(mem);
	memcpy(mem + DGRAM_HDR_MAX, p + d->off, d->len);
	hdr = dgram_write(&d->src, &d->dst, tos, mem + DGRAM_HDR_MAX, d->len);
	if (hdr < 0) {
		must(d->len > 65535 - DGRAM_HDR_MAX);
		free(mem);
		return;
	}
	ip = mem + DGRAM_HDR_MAX - hdr;
	must(dgram_parse(&again, ip, (size_t)hdr + d->len, (size_t)hdr + d->len) == 0);
	must(endpoint_eq(&again.src, &d->src) && endpoint_eq(&again.dst, &d->dst));
	must(again.len == d->len && again.off == (uint32_t)hdr);
	must(dgram_checksum_ok(&again, ip) && plain_sum(&again, ip) == 0xffff);
	must(memcmp(ip + again.off, p + d->off, d->len) == 0);
	if (d->src.family == AF_INET) {
		dgram_v4_finish(ip, tos);
		must(dgram_v4_header_ok(ip));
	}
	if (d->len >=
		/* choose the payload so that the sum becomes zero, which means "no checksum" */
		2) {
		uint32_t word = be16(mem + DGRAM_HDR_MAX) + be16(ip + again.hdr_len + 6);

		put_be16(mem + DGRAM_HDR_MAX, (uint16_t)((word & 0xffff) + (word >> 16)));
		must(dgram_write(&d->src, &d->dst, tos, mem + DGRAM_HDR_MAX, d->len) == hdr);
		must(be16(ip + again.hdr_len + 6) == 0xffff && dgram_checksum_ok(&again, ip));
	}
	free(mem);
}

static void packet(const uint8_t *p, size_t have, size_t whole, uint8_t tos)
{
	struct dgram d, all;
	bool v4;

	if (dgram_parse(&d, p, have, whole))
		return;
	v4 = d.src.family == AF_INET;
	must(v4 || d.src.family == AF_INET6);
	must(d.dst.family == d.src.family);
	must(d.off == d.hdr_len + 8u && d.off <= have && d.off + d.len <= whole);
	must(v4 ? d.hdr_len >= 20 && d.hdr_len <= 60 : d.hdr_len == 40);
	must(d.src.port == be16(p + d.hdr_len) && d.dst.port == be16(p + d.hdr_len + 2));
	(void)dgram_checksum_partial(&d, p);
	if (v4)
		(void)dgram_v4_header_ok(p);
	if (d.off + d.len > have)
		return;
	/* Further bytes change nothing. */
	must(dgram_parse(&all, p, have, have) || memcmp(&all, &d, sizeof(d)) == 0);
	must(dgram_checksum_ok(&d, p) ==
		(be16(p + d.hdr_len + 6) ? plain_sum(&d, p) == 0xffff : v4));
	write_again(&d, p, tos);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t have, missing;
	const uint8_t *ip;
	uint32_t ip_len;
	uint8_t *p;

	if (len < 4)
		return 0;
	missing = be16(data + 1);
	have = len - 4;
	p = exactly(data + 4, have);
	if (data[0] & 1) {
		ip = dgram_in_frame(p, (uint32_t)have, &ip_len);
		must(!ip || (ip_len && ip >= p + 14 && ip + ip_len == p + have && ip <= p + 22));
		if (ip)
			packet(ip, ip_len, ip_len, data[3]);
	} else {
		packet(p, have, have + missing, data[3]);
	}
	free(p);
	return 0;
}
