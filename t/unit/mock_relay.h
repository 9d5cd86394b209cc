/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet side in memory. It hands out handles, checks every use of them and remembers the state
 * of a worker. On request, the n-th call fails. */
#ifndef MOCK_RELAY_H
#define MOCK_RELAY_H

#include "call/relay.h"

#define MOCK_MAX 4096u

struct mock_relay {
	struct relay relay;
	struct relay_local local[4];
	uint32_t locals;

	uint32_t fail_at; /* fail the n-th call that can fail; 0 = none */
	int fail_with;
	uint32_t calls; /* calls that can fail, so far */

	bool port[MOCK_MAX], ctx[MOCK_MAX], key[MOCK_MAX]; /* in use; port i: streams 2i, 2i + 1 */
	uint32_t ports, ctxs, keys, ports_limit, ports_reserve;
	bool emergency;                      /* the reserve may be used */
	uint16_t gone;                       /* this port cannot be taken again */
	bool plenty;                         /* legs get further ports */
	struct srtp_master master[MOCK_MAX]; /* per key */
	uint8_t preauth[MOCK_MAX];           /* per key of SRTP+: its scheme */
	struct media_ctx_cfg ctx_cfg[MOCK_MAX];
	struct media_stream_cfg stream_cfg[2 * MOCK_MAX];
	bool ctx_set[MOCK_MAX], stream_set[2 * MOCK_MAX];
	uint32_t commits, commands;       /* of the last commit */
	uint32_t rx_new, tx_new, relearn; /* counts in the last commit */
	uint64_t last_packet_ns;
	struct media_key_usage usage[MOCK_MAX]; /* per key; the lifetime comes from the master */
	struct relay_marks *marks[MOCK_MAX];    /* per context, set by the test; NULL = none */
	struct endpoint remote[2 * MOCK_MAX];   /* per stream: learned */
	bool confirmed[2 * MOCK_MAX];
	struct media_handover handover[2 * MOCK_MAX];
	uint32_t roc[2 * MOCK_MAX]; /* per stream: of received packets */
	uint32_t asked;             /* contexts queried so far */
	/* resumed keys of all commits */
	struct media_cmd resumed[64];
	bool in_kernel;                /* all streams */
	uint32_t cuts, watches;        /* of MEDIA_STREAM_CUT and MEDIA_STREAM_WATCH */
	uint32_t pierced[64], pierces; /* streams that empty packets were sent from */
	uint64_t more_packets;         /* added to the packet counts of the statistics */
	const struct relay_stats *stats[2 * MOCK_MAX]; /* set by the test */
	uint32_t resumes;
};

void mock_relay_init(struct mock_relay *m);
/* Asserts that nothing is held. */
bool mock_relay_empty(const struct mock_relay *m);
/* Asserts that configurations refer only to handles that are held. */
void mock_relay_check(const struct mock_relay *m);
/* The stream of a local port as signalled in SDP, or NULL. */
const struct media_stream_cfg *mock_stream(const struct mock_relay *m, uint16_t port);
const struct media_ctx_cfg *mock_ctx(const struct mock_relay *m, uint16_t port);
/* The master of a key slot. */
const struct srtp_master *mock_master(const struct mock_relay *m, uint32_t slot);

#endif
