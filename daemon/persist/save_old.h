/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A leg as versions 1 and 2 of the format have it. */
#ifndef PERSIST_SAVE_OLD_H
#define PERSIST_SAVE_OLD_H

#include "persist/save_tables.h"

struct old_key {
	struct sdes s;
	bool used;
};

struct old_leg { /* holds keys: wipe it */
	struct sdes rx, tx;
	struct srtp_master rx_more[SDES_MAX_KEYS - 1];
	bool pass_rx, pass_tx;
	struct old_key ours[SUITE_COUNT];
	uint32_t ours_n;
	struct old_said {
		struct sdes line[SDES_MAX_LINES];
		uint32_t lines;
		struct sdes_bag bag;
	} said;
	struct old_asked {
		uint8_t suite[SUITE_COUNT];
		uint32_t suites;
		bool pass;
	} asked;
};

extern const struct record save_old_leg;

/* 0, or -EBADMSG. */
int save_old_convert(struct leg *to, const struct old_leg *from);

#endif
