/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by pass-through and SDES: both read a=crypto lines, and both may answer with a key of
 * ours. */
#ifndef KEYING_SDES_LINES_H
#define KEYING_SDES_LINES_H

#include "keying/keying.h"

struct sdes_rules {      /* what a line of a terminal must keep to */
	uint32_t suites; /* bit per suite */
	uint32_t params; /* NG_SDES_UN*, see sdes_policy */
	bool end_to_end; /* the other terminal may use its keys, too */
};

struct sdes_refused {    /* the first a=crypto line that was left out */
	uint32_t line;   /* from 1, 0: none was */
	const char *why; /* constant */
};

/* The a=crypto lines of a media that we could accept, in the terminal's order. */
uint32_t sdes_lines(struct sdes out[SDES_MAX_LINES], struct sdes_bag *bag,
	const struct sdp_media *m, const struct sdes_rules *rules, const struct keying_in *in,
	struct sdes_refused *refused);

/* NG_SDES_UN* that it has. */
uint32_t sdes_params_of(const struct sdes *line);

/* Parameters for the packet side, from a terminal's line or a key of ours. */
void sdes_rx(struct srtp_params *out, const struct sdes *line, const struct sdes_bag *bag);
void sdes_tx(struct srtp_params *out, const struct sdes_key *k);

/* These are in force now. NULL: nothing of ours goes to the terminal. */
void sdes_in_force(struct keying_sdes *s, const struct sdes *line, struct sdes_key *k);

#endif
