/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forged SRTP for benchmarks, from the address and port of a leg of srtpload, with its SSRC, while
 * the leg sends true packets.
 *
 *   forge IP PORT GATEWAY-IP GATEWAY-PORT RATE SECONDS SEQUENCE CALL-RATE FIRST
 *
 * RATE in packets per second; 0: as fast as it can. SEQUENCE: "any": any sequence number and
 * timestamp; "next": those that the leg uses now (FIRST, then CALL-RATE more each second), so only
 * authentication detects them; "stun", "dtls", "zrtp", "rtcp": packets of these protocols instead;
 * @FILE: the packets of this file by turns, each after its length in two octets.
 * Prints the number of packets sent and the seconds they took. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"

enum { BURST = 32, LEN = 182, FILE_MAX = 1 << 20, PACKETS = 4096 };

/* Of @FILE. */
static uint8_t file[FILE_MAX];
static struct iovec of_file[PACKETS];
static unsigned of_file_n;

static uint64_t seed = 88172645463325252ull;

static uint32_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16);
}

static void die(const char *what)
{
	fprintf(stderr, "forge: %s: %s\n", what, strerror(errno));
	exit(2);
}

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};

	if (inet_pton(AF_INET, ip, &a.sin_addr) != 1)
		die(ip);
	return a;
}

static void read_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t len, at = 0;

	if (!f)
		die(path);
	len = fread(file, 1, sizeof(file), f);
	fclose(f);
	while (at + 2 <= len && of_file_n < PACKETS && at + 2 + be16(file + at) <= len) {
		of_file[of_file_n++] = (struct iovec){file + at + 2, be16(file + at)};
		at += 2u + be16(file + at);
	}
	if (!of_file_n) {
		fprintf(stderr, "forge: %s has no packets\n", path);
		exit(2);
	}
}

static void fill(uint8_t *p, const char *kind, uint32_t ssrc, uint64_t index)
{
	for (uint32_t i = 0; i < LEN; i += 4) {
		uint32_t word = any();

		memcpy(p + i, &word, LEN - i < 4 ? LEN - i : 4);
	}
	if (strcmp(kind, "stun") == 0) { /* a binding request */
		put_be16(p, 1);
		put_be16(p + 2, LEN - 22);
		put_be32(p + 4, 0x2112a442);
		return;
	}
	if (strcmp(kind, "dtls") == 0) { /* a record of a handshake */
		p[0] = 22;
		put_be16(p + 1, 0xfefd);
		put_be16(p + 11, LEN - 13);
		return;
	}
	if (strcmp(kind, "zrtp") == 0) { /* RFC 6189 5; the rest stays random, the CRC, too */
		p[0] = 0x10;
		p[1] = 0;
		put_be32(p + 4, 0x5a525450);
		put_be32(p + 8, ssrc);
		put_be16(p + 12, 0x505a);
		put_be16(p + 14, (LEN - 16) / 4);
		return;
	}
	p[0] = 0x80;
	if (strcmp(kind, "rtcp") == 0) { /* a receiver report */
		p[1] = 201;
		put_be16(p + 2, 1);
		put_be32(p + 4, ssrc);
		return;
	}
	p[1] = 0;
	put_be32(p + 8, ssrc);
	if (strcmp(kind, "next") == 0) {
		/* srtpload's first leg begins at 65,530, with the timestamp 0 */
		put_be16(p + 2, (uint16_t)(65530 + index + any() % 16));
		put_be32(p + 4, (uint32_t)(index * 160));
	}
}

int main(int argc, char **argv)
{
	static uint8_t packet[BURST][LEN + 2];
	struct sockaddr_in from, to;
	struct mmsghdr m[BURST] = {0};
	struct iovec v[BURST];
	uint64_t start, now, sent = 0, due, first;
	double rate, seconds, call_rate;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;

	if (argc != 10) {
		fprintf(stderr,
			"usage: forge IP PORT GATEWAY-IP GATEWAY-PORT RATE SECONDS "
			"any|next|stun|dtls|zrtp|rtcp|@FILE CALL-RATE FIRST\n");
		return 2;
	}
	from = address(argv[1], argv[2]);
	to = address(argv[3], argv[4]);
	rate = atof(argv[5]);
	seconds = atof(argv[6]);
	call_rate = atof(argv[8]);
	first = strtoull(argv[9], NULL, 10);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
		bind(fd, (struct sockaddr *)&from, sizeof(from)) ||
		connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("socket");
	for (int i = 0; i < BURST; i++) {
		v[i] = (struct iovec){packet[i], LEN};
		m[i].msg_hdr = (struct msghdr){.msg_iov = &v[i], .msg_iovlen = 1};
	}
	if (argv[7][0] == '@')
		read_file(argv[7] + 1);
	start = now = clock_mono_ns();
	while ((double)(now - start) < seconds * 1e9) {
		double passed = (double)(now - start) / 1e9;

		due = rate > 0 ? (uint64_t)(passed * rate) : sent + BURST;
		while (sent < due) {
			int n = due - sent < BURST ? (int)(due - sent) : BURST, done;

			for (int i = 0; i < n && of_file_n; i++)
				v[i] = of_file[(sent + (uint64_t)i) % of_file_n];
			for (int i = 0; i < n && !of_file_n; i++)
				fill(packet[i], argv[7], 0x10000000 + (uint32_t)atoi(argv[2]),
					first + (uint64_t)(passed * call_rate));
			done = sendmmsg(fd, m, (unsigned)n, 0);
			if (done < 0 && errno != ENOBUFS && errno != ECONNREFUSED)
				die("send");
			sent += done > 0 ? (uint64_t)done : 0;
			now = clock_mono_ns();
			if ((double)(now - start) >= seconds * 1e9)
				break;
		}
		if (rate > 0)
			usleep(200);
		now = clock_mono_ns();
	}
	printf("%llu %.3f\n", (unsigned long long)sent, (double)(now - start) / 1e9);
	return 0;
}
