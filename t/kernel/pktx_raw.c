/* SPDX-License-Identifier: GPL-2.0-or-later */
/* pktx raw: malformed packets through a packet socket, so that the sending kernel corrects nothing.
 * Each kind is a valid packet with one thing changed; "fuzz" changes random bytes, and sometimes
 * the length. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "pktx.h"

enum { BODY = 172, ROOM = 1500 };

struct pkt {
	uint8_t p[ROOM];
	size_t len, ip_len; /* lengths: the packet; the IP header with all bytes before UDP */
	bool v6;
};

static uint32_t sum(uint32_t s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		s += (i & 1) ? p[i] : (uint32_t)p[i] << 8;
	return s;
}

static uint16_t fold(uint32_t s)
{
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)~s;
}

static void ip_checksum(struct pkt *k)
{
	if (k->v6)
		return;
	put_be16(k->p + 10, 0);
	put_be16(k->p + 10, fold(sum(0, k->p, (size_t)(k->p[0] & 15) * 4)));
}

static void udp_checksum(struct pkt *k)
{
	uint8_t *u = k->p + k->ip_len;
	size_t n = k->len - k->ip_len;
	uint32_t s = k->v6 ? sum(0, k->p + 8, 32) : sum(0, k->p + 12, 8);
	uint16_t c;

	put_be16(u + 6, 0);
	c = fold(sum(s + 17 + (uint32_t)n, u, n));
	put_be16(u + 6, c ? c : 0xffff);
}

/* A valid packet. gap: bytes between IP header and UDP (options, extension headers), zero at
 * first. */
static void whole(struct pkt *k, const struct pktx_where *from, const struct pktx_where *to,
	size_t gap, size_t body, uint32_t number)
{
	struct sockaddr_storage a, b;
	uint8_t *u;

	pktx_address(from, &a);
	pktx_address(to, &b);
	memset(k, 0, sizeof(*k));
	k->v6 = b.ss_family == AF_INET6;
	k->ip_len = (k->v6 ? 40 : 20) + gap;
	k->len = k->ip_len + 8 + body;
	if (k->v6) {
		k->p[0] = 0x60;
		put_be16(k->p + 4, (uint16_t)(k->len - 40));
		k->p[6] = IPPROTO_UDP;
		k->p[7] = 64;
		memcpy(k->p + 8, &((struct sockaddr_in6 *)&a)->sin6_addr, 16);
		memcpy(k->p + 24, &((struct sockaddr_in6 *)&b)->sin6_addr, 16);
	} else {
		k->p[0] = (uint8_t)(0x45 + gap / 4);
		put_be16(k->p + 2, (uint16_t)k->len);
		put_be16(k->p + 4, (uint16_t)number);
		k->p[8] = 64;
		k->p[9] = IPPROTO_UDP;
		memcpy(k->p + 12, &((struct sockaddr_in *)&a)->sin_addr, 4);
		memcpy(k->p + 16, &((struct sockaddr_in *)&b)->sin_addr, 4);
		memset(k->p + 20, 1, gap); /* no operation */
	}
	u = k->p + k->ip_len;
	put_be16(u, from->port);
	put_be16(u + 2, to->port);
	put_be16(u + 4, (uint16_t)(8 + body));
	if (body >= 12) {
		u[8] = 0x80;
		put_be16(u + 10, (uint16_t)number);
		put_be32(u + 16, 0x1234);
	}
	udp_checksum(k);
	ip_checksum(k);
}

static bool v4_only(struct pkt *k, const char *kind)
{
	if (strcmp(kind, "frag-first") == 0)
		put_be16(k->p + 6, 0x2000);
	else if (strcmp(kind, "frag-rest") == 0)
		put_be16(k->p + 6, 100);
	else if (strcmp(kind, "ihl-4") == 0)
		k->p[0] = 0x44;
	else if (strcmp(kind, "ihl-15") == 0)
		k->p[0] = 0x4f;
	else if (strcmp(kind, "total-long") == 0)
		put_be16(k->p + 2, 1400);
	else if (strcmp(kind, "total-short") == 0)
		put_be16(k->p + 2, 24);
	else if (strcmp(kind, "no-checksum") == 0)
		put_be16(k->p + k->ip_len + 6, 0);
	else
		return false;
	ip_checksum(k);
	return true;
}

/* An extension header of 8 bytes before UDP. */
static void extension(struct pkt *k, uint8_t type, uint8_t len8, uint16_t word)
{
	k->p[6] = type;
	k->p[40] = IPPROTO_UDP;
	k->p[41] = len8;
	put_be16(k->p + 42, word);
	if (type == IPPROTO_HOPOPTS || type == IPPROTO_DSTOPTS) {
		k->p[42] = 1; /* PadN */
		k->p[43] = 4;
	}
}

static bool v6_only(struct pkt *k, const char *kind)
{
	if (strcmp(kind, "hop") == 0)
		extension(k, IPPROTO_HOPOPTS, 0, 0);
	else if (strcmp(kind, "dest") == 0)
		extension(k, IPPROTO_DSTOPTS, 0, 0);
	else if (strcmp(kind, "frag-first") == 0)
		extension(k, IPPROTO_FRAGMENT, 0, 1);
	else if (strcmp(kind, "frag-rest") == 0)
		extension(k, IPPROTO_FRAGMENT, 0, 800);
	else if (strcmp(kind, "ext-ah") == 0) /* authentication header, which nobody verified */
		extension(k, IPPROTO_AH, 0, 0);
	else if (strcmp(kind, "ext-long") == 0)
		extension(k, IPPROTO_HOPOPTS, 200, 0);
	else if (strcmp(kind, "no-checksum") == 0)
		put_be16(k->p + k->ip_len + 6, 0);
	else
		return false;
	return true;
}

static bool make(struct pkt *k, const struct pktx_where *from, const struct pktx_where *to,
	const char *kind, uint32_t number)
{
	bool v6 = strchr(to->addr, ':') != NULL;
	bool gap = strcmp(kind, "options") == 0 ||
		(v6 &&
			(strncmp(kind, "frag", 4) == 0 || strncmp(kind, "ext", 3) == 0 ||
				strcmp(kind, "hop") == 0 || strcmp(kind, "dest") == 0));
	size_t body = strcmp(kind, "empty") == 0 ? 0 : strcmp(kind, "byte") == 0 ? 1 : BODY;
	uint8_t *u;

	whole(k, from, to, gap ? 8 : 0, body, number);
	u = k->p + k->ip_len;
	if (strcmp(kind, "good") == 0 || strcmp(kind, "options") == 0 || body < BODY)
		return true;
	if (strcmp(kind, "bad-checksum") == 0)
		u[6] ^= 0x55;
	else if (strcmp(kind, "udp-long") == 0)
		put_be16(u + 4, 1000);
	else if (strcmp(kind, "udp-short") == 0)
		put_be16(u + 4, 7);
	else if (strcmp(kind, "udp-zero") == 0)
		put_be16(u + 4, 0);
	else if (strcmp(kind, "udp-less") == 0)
		put_be16(u + 4, 8 + 20);
	else if (strcmp(kind, "cut") == 0)
		k->len = k->ip_len + 5;
	else if (strcmp(kind, "cut-ip") == 0)
		k->len = 12;
	else if (strcmp(kind, "cut-all") == 0)
		k->len = k->ip_len;
	else if (strcmp(kind, "ttl-1") == 0)
		k->p[v6 ? 7 : 8] = 1;
	else
		return v6 ? v6_only(k, kind) : v4_only(k, kind);
	ip_checksum(k);
	return true;
}

static const char *const ANY[] = {"good", "options", "empty", "byte", "udp-long", "udp-short",
	"udp-less", "cut", "frag-first", "frag-rest", "no-checksum", "bad-checksum", "ttl-1"};

/* A random kind with random damage. Half of them have correct checksums, to pass more checks. */
static void fuzz(
	struct pkt *k, const struct pktx_where *from, const struct pktx_where *to, uint32_t number)
{
	bool v6 = strchr(to->addr, ':') != NULL;
	int n = rand() % 4;

	make(k, from, to, ANY[(size_t)rand() % ARRAY_LEN(ANY)], number);
	while (n-- > 0)
		k->p[(size_t)rand() % 60] = (uint8_t)rand();
	if (rand() % 4 == 0)
		k->len = (size_t)rand() % (k->len + 1);
	/* Mostly keeps the port, or the module would ignore the packet. */
	if (rand() % 8) {
		struct pkt good;

		whole(&good, from, to, 0, BODY, number);
		k->p[0] = (uint8_t)((good.p[0] & 0xf0) | (k->p[0] & 0x0f));
		memcpy(k->p + (v6 ? 8 : 12), good.p + (v6 ? 8 : 12), v6 ? 32 : 8);
		k->p[v6 ? 6 : 9] = rand() % 4 ? IPPROTO_UDP : k->p[v6 ? 6 : 9];
	}
	if ((k->p[0] & 15) >= 5 && rand() % 8)
		ip_checksum(k);
	if (k->len > k->ip_len + 8 && rand() % 2)
		udp_checksum(k);
}

int pktx_raw(const char *dev, const struct pktx_where *from, const struct pktx_where *to,
	const struct pktx_what *what)
{
	bool v6 = strchr(to->addr, ':') != NULL;
	struct sockaddr_ll ll = {.sll_family = AF_PACKET,
		.sll_protocol = htons(v6 ? ETH_P_IPV6 : ETH_P_IP),
		.sll_halen = 6};
	char ns[32], name[32];
	unsigned mac[6];
	uint32_t sent = 0, refused = 0;
	struct timespec t;
	uint64_t end;
	int fd;

	if (sscanf(dev, "%31[^,],%31[^,],%x:%x:%x:%x:%x:%x", ns, name, &mac[0], &mac[1], &mac[2],
		    &mac[3], &mac[4], &mac[5]) != 8)
		return 2;
	pktx_enter(ns);
	for (int i = 0; i < 6; i++)
		ll.sll_addr[i] = (uint8_t)mac[i];
	ll.sll_ifindex = (int)if_nametoindex(name);
	fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || !ll.sll_ifindex)
		return 2;
	srand(what->seed);
	clock_gettime(CLOCK_MONOTONIC, &t);
	end = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 + what->ms;
	for (;;) {
		struct pkt k;

		clock_gettime(CLOCK_MONOTONIC, &t);
		if (what->ms ? (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 >= end
			     : sent >= what->count)
			break;
		if (strcmp(what->kind, "fuzz") == 0)
			fuzz(&k, from, to, sent);
		else if (!make(&k, from, to, what->kind, sent))
			return 2;
		refused += sendto(fd, k.p, k.len, 0, (struct sockaddr *)&ll, sizeof(ll)) < 0;
		sent++;
	}
	printf("sent=%u refused=%u\n", sent, refused);
	return 0;
}
