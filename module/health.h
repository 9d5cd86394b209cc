/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The process that pings the nodes. */
#ifndef MODULE_HEALTH_H
#define MODULE_HEALTH_H

int health_init(void); /* mod_init */
int health_fork(void); /* main process */
/* Pings all nodes once and waits for replies. Returns how many replied. asked: number of nodes. */
int health_round(int *asked);

#endif
