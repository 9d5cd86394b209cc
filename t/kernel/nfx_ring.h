/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of nfx that work with a packet ring. */
#ifndef T_KERNEL_NFX_RING_H
#define T_KERNEL_NFX_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nf_xcipher_ring.h"

struct nfx_worker {
	uint32_t slots, sends, number, taken;
	uint8_t *memory;
	size_t memory_len, control_len;
	struct nfx_ring_control *control;
	struct nfx_recv *recv;
	struct nfx_send *send;
	int wake, bell, epoll;
};

uint32_t nfx_published(const struct nfx_worker *w);
/* 0 or -errno. */
int nfx_ring_bell(struct nfx_worker *w, const struct nfx_bell *b);
/* Source and destination from "ADDR,PORT,ADDR,PORT"; all else is 0. */
bool nfx_ring_ends(struct nfx_send *s, const char *text);

/* A child writes to its copy of all areas. 0 or -ECHILD. */
int nfx_ring_fork(struct nfx_worker *w);
/* rest: "MS SEED ADDR,PORT,ADDR,PORT". Random shared memory and bells for so long. 0 or -EINVAL. */
int nfx_ring_hostile(struct nfx_worker *w, char *rest);
/* Begins to read the file through /proc/self/mem. The process's memory lock is held until the
 * file's server answers. 0 or -errno. */
int nfx_ring_stall(const char *path);
/* After that: another thread waits for the lock as a writer. 0 or -errno. */
int nfx_ring_map(void);

#endif
