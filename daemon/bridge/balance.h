/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Chooses the worker of a new call. Pure.
 *
 * The cost of a packet falls with the number of packets per wake-up. Two workers that share the
 * load each receive half as many per batch window: 40,000 packets per second are ten in 250 us for
 * one worker, and five for each of two. So calls share a worker as long as it can serve them well,
 * and are spread evenly above that (daemon/steer/NOTES.md has the figures). */
#ifndef BRIDGE_BALANCE_H
#define BRIDGE_BALANCE_H

#include <stdbool.h>
#include <stdint.h>

/* Pairs of ports, one for each terminal's media. At 50 packets per second each, these are about
 * 50,000: twelve per window, and half of a processor. More gain little, and wait longer for each
 * other. */
#define PLACE_TOGETHER 1024u
/* Above this load, in percent, a worker gets no calls while another has less: its calls are heavier
 * than their number. */
#define PLACE_BUSY 50u

struct balance {        /* a worker */
	uint32_t ports; /* pairs in use */
	uint32_t room;  /* maximum of pairs */
	uint32_t busy;  /* recent load, percent of a processor */
	bool behind;    /* commands are queued for it, so it may not be running */
};

/* A worker that is behind gets no call while another worker is not behind. spread: distribute
 * evenly, for workers that never sleep and so gain nothing from larger bursts. n > 0. */
uint32_t balance_call(const struct balance *w, uint32_t n, bool spread);

#endif
