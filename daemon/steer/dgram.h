/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A UDP datagram as an IP packet, read and written. Pure. */
#ifndef STEER_DGRAM_H
#define STEER_DGRAM_H

#include "base/endpoint.h"

#define DGRAM_HDR_V4  28u
#define DGRAM_HDR_V6  48u
#define DGRAM_HDR_MAX DGRAM_HDR_V6

struct dgram {
	struct endpoint src, dst;
	uint32_t off;    /* of the payload */
	uint32_t len;    /* of the payload, as the headers say: may be more than was captured */
	uint8_t hdr_len; /* IP header */
};

/* The IP packet in an Ethernet frame with up to two VLAN tags, and its length with what fills the frame up; NULL: the frame ends before
 * there is one. What it is tells itself: the frame's type is not looked at. */
const uint8_t *dgram_in_frame(const uint8_t *frame, uint32_t len, uint32_t *ip_len);
/* The packet p[0 .. have) of which whole bytes exist (have <= whole). 0, or -EBADMSG for whatever is not one whole,
 * unfragmented UDP datagram without IPv6 extension headers, as far as the headers tell. */
int dgram_parse(struct dgram *out, const uint8_t *p, size_t have, size_t whole);
/* Whether the UDP checksum is right, or absent where it may be (IPv4). The packet must be captured up to its end. */
bool dgram_checksum_ok(const struct dgram *d, const uint8_t *p);
/* Whether the UDP checksum is the pseudo-header's sum alone: what a kernel leaves in a packet of this machine (over a veth
 * link, or from a virtual machine) that it expects a card to finish. */
bool dgram_checksum_partial(const struct dgram *d, const uint8_t *p);
/* An IPv4 header of 20 bytes: whether its checksum is right, and filling in what dgram_write() leaves to the kernel. */
bool dgram_v4_header_ok(const uint8_t *ip);
void dgram_v4_finish(uint8_t *ip, uint16_t id);
/* Headers in front of the payload, which must have DGRAM_HDR_MAX bytes before it, with the UDP checksum over payload[0 ..
 * len). src and dst are of one family. Returns the headers' length, or -EMSGSIZE. */
int dgram_write(const struct endpoint *src, const struct endpoint *dst, uint8_t tos,
	uint8_t *payload, size_t len);

#endif
