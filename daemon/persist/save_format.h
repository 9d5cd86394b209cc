/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The format of a saved call. Pure. */
#ifndef PERSIST_SAVE_FORMAT_H
#define PERSIST_SAVE_FORMAT_H

#include "call/model.h"

#define SAVE_VERSION 3 /* of a call */
#define SAVE_OLDEST  1 /* oldest version that can be read */
/* From this version on, a leg has SRTP parameters and the state of its keyings (save_old.c). */
#define SAVE_KEYING 3
/* Version of the state record: unchanged since the oldest. */
#define SAVE_STATE_VERSION 1

struct save_key_use {
	uint64_t rtp, rtcp;
};

/* State of a leg that packets changed. */
struct leg_state {
	uint32_t side, media;
	uint64_t tx_rtcp_next;
	uint32_t marks;
	struct save_mark {
		uint32_t ssrc, table, per_s;
		bool roc_only;
		uint64_t index;
	} mark[MEDIA_MARKS_MAX];
	struct endpoint remote, rtcp_remote;
	bool confirmed, rtcp_confirmed;
	struct stream_counts counts[2]; /* RTP, RTCP */
	struct save_key_use rx_use[SRTP_PARAMS_KEYS], tx_use;
};

struct call_state {
	uint64_t created_ns, revision; /* identify the call that it belongs to */
	uint64_t at_ns;                /* by the clock that nodes share, see calls_shared_clock() */
	/* The same by CLOCK_REALTIME of the node that wrote it, as all other times in the record. 0
	 * = at_ns (written before 0.3). */
	uint64_t real_ns;
	uint64_t mono_ns; /* the same time by CLOCK_MONOTONIC, which counts within one boot */
	uint64_t boot;    /* boot_number(); 0 = not known, or written before 0.3 */
	uint32_t legs;
	struct leg_state *leg;
};

#endif
