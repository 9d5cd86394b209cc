/* SPDX-License-Identifier: GPL-2.0-or-later */
/* RTCP of an audio session (RFC 3550 6.4): counts the packets of its terminal, and writes reports
 * about these and about the packets of the session. Times: CLOCK_REALTIME in ns. Pure. */
#ifndef AUDIO_RTCP_H
#define AUDIO_RTCP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AUDIO_RTCP_MAX 128u /* bytes of a compound packet of ours */

/* Counters of packets from the terminal (RFC 3550 A.3, A.8). */
struct audio_rtcp_rx {
	bool heard;
	uint32_t ssrc;
	uint32_t base, highest; /* extended sequence numbers */
	uint32_t received, received_before, expected_before;
	uint32_t transit, jitter16; /* jitter in 1/16 units of the clock */
	uint32_t lsr;               /* of its last sender report; 0: none */
	uint64_t lsr_ns;
};

/* Counters of packets to it. */
struct audio_rtcp_tx {
	uint32_t packets, octets; /* 0 packets: RR in place of SR */
	uint32_t ts, clock;       /* of the last packet */
	uint64_t ns;
};

/* Counts an RTP packet. ts is in units of clock, in Hz. */
void audio_rtcp_heard(struct audio_rtcp_rx *r, uint32_t ssrc, uint16_t seq, uint32_t ts,
	uint32_t clock, uint64_t at_ns);
/* Reads RTCP of the terminal. The bytes may be malformed. */
void audio_rtcp_take(struct audio_rtcp_rx *r, const uint8_t *p, size_t len, uint64_t at_ns);

/* How many percent of our packets the terminal's report says were lost, rounded up; -1: it says
 * nothing about ssrc. The bytes may be malformed. */
int audio_rtcp_loss(const uint8_t *p, size_t len, uint32_t ssrc);

struct audio_rtcp_say {
	uint32_t ssrc;     /* ours */
	const char *cname; /* terminated */
	uint64_t now_ns;
	bool bye;
};
/* Writes SR or RR, SDES and, if asked, BYE to out, which has AUDIO_RTCP_MAX bytes. Returns the
 * length. */
size_t audio_rtcp_write(struct audio_rtcp_rx *r, const struct audio_rtcp_tx *t,
	const struct audio_rtcp_say *say, uint8_t *out);

#endif
