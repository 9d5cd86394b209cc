/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The packet side in memory: counts what is held, keeps what was committed, and fails where a test wants it to. */
#ifndef UNIT_MOCK_RELAY_H
#define UNIT_MOCK_RELAY_H

#include "call/relay.h"

#define MOCK_MAX 4096

struct mock_relay {
	struct relay relay;
	uint32_t fail_at; /* the n-th call that can fail does, 0 = none */
	uint32_t calls;
	int fail_with;
	uint32_t ports, ctxs, keys; /* held now */
	uint32_t next;              /* next free handle */
	struct srtp_master key[MOCK_MAX];
	struct media_ctx_cfg ctx[MOCK_MAX];
	struct media_stream_cfg stream[MOCK_MAX]; /* by handle */
	uint32_t commits;
	uint64_t last_packet_ns;
};

void mock_relay_init(struct mock_relay *m);

#endif
