/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of nfx, which sends nf_xcipher's netlink messages in tests. */
#ifndef T_KERNEL_NFX_H
#define T_KERNEL_NFX_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stdint.h>

#include "nf_xcipher.h"

struct nfx_worker;

struct nfx {
	int fd, events;
	uint16_t family;
	uint32_t group, seq;
	struct nfx_worker *ring; /* NULL: none is open */
	uint32_t ring_number;    /* from the last reply */
	_Alignas(8) char out[16384], in[65536];
};

/* 0, or -errno if the family does not exist. */
int nfx_open(struct nfx *x);
int nfx_subscribe(struct nfx *x);
struct nlmsghdr *nfx_request(struct nfx *x, uint8_t cmd, uint16_t flags);
/* Sends the message and reads the reply. Returns its error; text: the kernel's explanation. */
int nfx_ask(struct nfx *x, const struct nlmsghdr *h, bool print, const char **text);
/* Sends random and mutated messages and discards the replies. Returns 0. */
int nfx_fuzz(struct nfx *x, uint32_t ms, unsigned seed);

/* A command of a ring's worker, see nfx_ring.c. text is changed. 0 or -errno; said: the kernel's
 * explanation. */
int nfx_ring(struct nfx *x, char *text, const char **said);

#endif
