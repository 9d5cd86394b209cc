/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Interface to the recorder: app/ implements it by a thread that writes files. Control thread only;
 * never blocks. */
#ifndef CALL_RECORDER_H
#define CALL_RECORDER_H

#include "audio/config.h"
#include "base/bytes.h"
#include "packet/packet.h"

#define RECORD_PATH_MAX  512
#define RECORD_PARTS_MAX 9999u

struct record_start {
	struct str call_id, metadata;
	struct str file;    /* requested name; empty: made from the pattern */
	uint32_t parts;     /* earlier files of that name: the number of this one */
	struct str pattern; /* pattern for names: %c Call-ID, %r random, %t time; empty: %c-%r */
	struct str about;   /* description of the call, lines for the metadata file */
	uint64_t now_ns;
};

/* Codecs of the recorded audio. */
#define RECORD_STREAMS 32u
struct record_stream {
	struct local_port port; /* receives the audio */
	uint8_t side;           /* sends it */
	uint8_t types;
	struct audio_type type[AUDIO_TYPES];
};
struct record_media {
	uint32_t n; /* at most RECORD_STREAMS */
	struct record_stream at[];
};

struct recorder_ops {
	/* Opens a recording: *tap marks the packets that belong to it (never 0), path gets the name
	 * of the file that will be written. The strings are the caller's. 0; -EINVAL: not a usable
	 * file name; -EEXIST, -ENOSPC: too many recordings; -EAGAIN: the thread does not keep up;
	 * -ENOMEM. */
	int (*start)(
		void *arg, const struct record_start *s, uint32_t *tap, char path[RECORD_PATH_MAX]);
	/* Sets the codecs of each recorded port from now on. May be NULL. */
	void (*media)(void *arg, uint32_t tap, const struct record_media *m);
	/* Adds a line to the metadata file. */
	void (*note)(void *arg, uint32_t tap, struct str line);
	/* Ends a recording: completes the file, or removes it and earlier ones. */
	void (*stop)(void *arg, uint32_t tap, bool discard);
};

struct recorder {
	const struct recorder_ops *ops;
	void *arg;
	bool audio; /* it decodes: call media() */
};

#endif
