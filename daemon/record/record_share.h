/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much audio the recording thread decodes: for a port, for a recording, and less for each
 * recording while the thread falls behind. Audio above it is not decoded; its packets are recorded.
 * The cost is measured in duration of audio, not in time of a processor, so it does not depend on
 * the machine. Pure. */
#ifndef RECORD_RECORD_SHARE_H
#define RECORD_RECORD_SHARE_H

#include <stdbool.h>
#include <stdint.h>

/* Seconds of audio per second. */
#define RECORD_SHARE_PORT  2u  /* of a port: real time, and as much to catch up after a pause */
#define RECORD_SHARE_MOST  64u /* of a recording: every port in real time, and some more */
#define RECORD_SHARE_LEAST 4u  /* of a recording of a thread that falls behind */

/* Drains at a rate, holds one second of it. All zeroes at first. */
struct record_bucket {
	uint64_t at_ns, used_ns;
};

/* Whether there is room at now_ns. rate: seconds of audio per second. */
bool record_bucket_may(struct record_bucket *b, uint32_t rate, uint64_t now_ns);
/* Adds audio of this duration, also beyond the room. */
void record_bucket_use(struct record_bucket *b, uint64_t audio_ns);

/* Rate of a recording after a look at the thread's queues, from its rate before: half of it while
 * the thread falls behind, and up again slowly. */
uint32_t record_share_next(uint32_t rate, bool behind);

#endif
