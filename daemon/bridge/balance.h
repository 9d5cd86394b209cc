/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which worker a new call lives on. Pure.
 *
 * What a packet costs falls with how many are taken at one wake-up, and within a window half as
 * many are there when two workers share them: 40,000 packets per second are ten in 250 us for one
 * worker and five for each of two. So calls are put together as long as one worker can well serve
 * them, and spread evenly beyond that (daemon/steer/NOTES.md has the figures). */
#ifndef BRIDGE_BALANCE_H
#define BRIDGE_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

/* Pairs of ports, which are terminals' media: of 50 packets per second each these are some 50,000,
 * twelve in a window and about half of a processor. More would hardly be cheaper, and wait longer
 * for each other. */
#define PLACE_TOGETHER 1024u
/* A worker that is this busy, in percent, gets no more while another is less so: its calls are
 * heavier than they look. */
#define PLACE_BUSY 50u

struct balance {        /* a worker */
	uint32_t ports; /* pairs in use */
	uint32_t room;  /* pairs that it can have */
	uint32_t busy;  /* percent of a processor, of late */
	bool behind;    /* commands are queued for it: it may not be running */
};

/* A worker that is behind gets no call while another worker is not behind. spread: distribute
 * evenly, for workers that never sleep and so gain nothing from larger bursts. n > 0. */
uint32_t balance_call(const struct balance *w, uint32_t n, bool spread);

#endif
