/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What calls need of whoever records, as an interface: app/ implements it by a thread that writes
 * files. Control thread only; never blocks. */
#ifndef CALL_RECORDER_H
#define CALL_RECORDER_H

#include "base/bytes.h"

#define RECORD_PATH_MAX  512
#define RECORD_PARTS_MAX 9999u

struct record_start {
	struct str call_id, metadata;
	struct str file;    /* the name that was asked for, or empty: made from the Call-ID */
	uint32_t parts;     /* files of that name before this one: this one's has its number */
	struct str pattern; /* or how to make one: %c Call-ID, %r random, %t time; empty: %c-%r */
	struct str about;   /* what the call is at this time, lines for the metadata file */
	uint64_t now_ns;
};

struct recorder_ops {
	/* Opens a recording: *tap marks the packets that belong to it (never 0), path gets the name
	 * of the file that will be written. The strings are the caller's. 0; -EINVAL: not a usable
	 * file name; -EEXIST, -ENOSPC: too many recordings; -EAGAIN: the thread does not keep up;
	 * -ENOMEM. */
	int (*start)(
		void *arg, const struct record_start *s, uint32_t *tap, char path[RECORD_PATH_MAX]);
	/* A line more for the metadata file. */
	void (*note)(void *arg, uint32_t tap, struct str line);
	/* No more packets: the file is complete, or goes, and with it those before it. */
	void (*stop)(void *arg, uint32_t tap, bool discard);
};

struct recorder {
	const struct recorder_ops *ops;
	void *arg;
};

#endif
