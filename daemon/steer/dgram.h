/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A UDP datagram as an IP packet: parsing and writing. Pure. */
#ifndef STEER_DGRAM_H
#define STEER_DGRAM_H

#include "base/endpoint.h"

#define DGRAM_HDR_V4  28u
#define DGRAM_HDR_V6  48u
#define DGRAM_HDR_MAX DGRAM_HDR_V6

struct dgram {
	struct endpoint src, dst;
	uint32_t off;    /* of the payload */
	uint32_t len;    /* length of the payload by the headers; may exceed the captured length */
	uint8_t hdr_len; /* IP header */
};

/* Finds the IP packet in an Ethernet frame with up to two VLAN tags, and its length with padding.
 * NULL: the frame is too short. Ignores the frame's type, because the packet has its own version.
 */
const uint8_t *dgram_in_frame(const uint8_t *frame, uint32_t len, uint32_t *ip_len);
/* Parses the packet p[0 .. have) with a total length of whole bytes (have <= whole). 0, or -EBADMSG
 * unless it is one complete, unfragmented UDP datagram without IPv6 extension headers. */
int dgram_parse(struct dgram *out, const uint8_t *p, size_t have, size_t whole);
/* Whether the UDP checksum is correct, or absent where allowed (IPv4). The packet must be captured
 * completely. */
bool dgram_checksum_ok(const struct dgram *d, const uint8_t *p);
/* Whether the UDP checksum covers only the pseudo-header. Packets of this machine (over a veth
 * link, or from a virtual machine) have this form: the kernel expects the card to complete it. */
bool dgram_checksum_partial(const struct dgram *d, const uint8_t *p);
/* For IPv4 headers of 20 bytes: checks the checksum, and fills in the fields that dgram_write()
 * leaves to the kernel. */
bool dgram_v4_header_ok(const uint8_t *ip);
void dgram_v4_finish(uint8_t *ip, uint16_t id);
/* Writes headers before the payload, with the UDP checksum over payload[0 .. len). The payload must
 * have DGRAM_HDR_MAX bytes of room before it. src and dst must be of the same family. Returns the
 * length of the headers, or -EMSGSIZE. */
int dgram_write(const struct endpoint *src, const struct endpoint *dst, uint8_t tos,
	uint8_t *payload, size_t len);

#endif
