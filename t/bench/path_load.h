/* SPDX-License-Identifier: GPL-2.0-or-later */
/* For xcipher-bench path: a worker whose steering is memory. Calls have two sides, each with a
 * context and a stream. Every packet of a fill is protected beforehand, in an order that scatters
 * neighbours over the tables. */
#ifndef BENCH_PATH_LOAD_H
#define BENCH_PATH_LOAD_H

#include "worker/worker.h"
#include "srtp/suite.h"

struct path_case {
	const struct srtp_suite *a, *b; /* each side's suite */
	uint32_t calls, batch, payload;
	uint32_t packets; /* of a fill, at least: whole rounds of all streams */
	const char *device;
	bool opencl;
	bool convert;        /* PCMU on side a, PCMA on side b */
	uint32_t device_min; /* 0: calibrated */
	uint8_t preauth;     /* of both sides, as media_crypto.preauth */
};

struct path {
	struct path_case c;
	struct engine *serial;
	struct batch_device device;
	struct worker *w;
	uint8_t *bytes;      /* [fill * stride], each as sent by a terminal */
	struct packet_in *d; /* [fill], without slot and offset */
	uint32_t fill, stride;
	uint32_t at, sent; /* packets received by the worker; sent by it */
	uint32_t index;    /* of each stream's next packet */
	bool check;        /* check outgoing packets */
	uint32_t wrong;    /* outgoing packets that failed the check */
	/* [fill]: the worker's jobs for the last checked fill, and their indexes */
	struct xc_job *job;
	uint32_t job_index;
	int ack_fd;
	char err[256];
};

/* 0, or -errno with a line in p->err. */
int path_create(struct path *p, const struct path_case *c);
void path_destroy(struct path *p);
/* Creates the next packets of all streams, untimed. 0 or -errno. */
int path_fill(struct path *p);
/* Copies a burst into the arena, from slot 0 on, as path's recv does. Returns its size, 0 at the
 * end. */
uint32_t path_feed(struct path *p);
/* Feeds all packets without relaying them: the cost of feeding. */
void path_feed_only(struct path *p);

#endif
