/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The file with the legs of a load: a line per leg with LOCAL-IP LOCAL-RTP-PORT LOCAL-RTCP-PORT
 * REMOTE-IP REMOTE-RTP-PORT REMOTE-RTCP-PORT TX-SUITE TX-KEY RX-SUITE RX-KEY. Shared by rtpload,
 * srtpload and codecload. Its functions exit on errors. */
#ifndef T_TOOL_SPEC_H
#define T_TOOL_SPEC_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spec_leg {
	char ip[64], to_ip[64];
	unsigned rtp, rtcp, to_rtp, to_rtcp;
	char tx_suite[128], tx_key[256], rx_suite[128], rx_key[256];
};

/* Calls add() for each line, with its number from 0. Two legs make a call: returns their even
 * number. */
static inline uint32_t spec_read(const char *path, void (*add)(uint32_t n, struct spec_leg *l))
{
	FILE *f = fopen(path, "re");
	struct spec_leg l;
	uint32_t n = 0;

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		exit(2);
	}
	while (fscanf(f, "%63s %u %u %63s %u %u %127s %255s %127s %255s", l.ip, &l.rtp, &l.rtcp,
		       l.to_ip, &l.to_rtp, &l.to_rtcp, l.tx_suite, l.tx_key, l.rx_suite,
		       l.rx_key) == 10)
		add(n++, &l);
	fclose(f);
	if (n == 0 || n % 2) {
		fprintf(stderr, "%s has %u legs, two make a call\n", path, n);
		exit(2);
	}
	return n;
}

/* Memory for the n-th leg, from 0, after those in legs. */
static inline void *spec_grow(void *legs, uint32_t n, size_t size)
{
	if (n % 1024 == 0)
		legs = realloc(legs, (n + (size_t)1024) * size);
	if (!legs) {
		fprintf(stderr, "no memory for %u legs\n", n + 1);
		exit(2);
	}
	return legs;
}

/* Reads len bytes in hexadecimal. */
static inline void spec_key(uint8_t *key, int len, const char *hex)
{
	for (int i = 0; i < len; i++) {
		unsigned byte;

		if (sscanf(hex + 2 * i, "%2x", &byte) != 1) {
			fprintf(stderr, "a key is not %d bytes in hexadecimal\n", len);
			exit(2);
		}
		key[i] = (uint8_t)byte;
	}
}

#endif
