/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of an audio session, from its beginning. */
#ifndef AUDIO_STATS_H
#define AUDIO_STATS_H

#include <stdint.h>

/* X(id, text) */
#define AUDIO_COUNTS(X)                                                              \
	X(decoded, "packets decoded")                                                \
	X(encoded, "packets encoded")                                                \
	X(passed, "packets whose payload was relayed: the same codec on both sides") \
	X(lost, "packets that did not come")                                         \
	X(concealed, "packets' times filled, by the codec or by redundancy")         \
	X(late, "packets that came after they were given up")                        \
	X(early, "packets of audio that was faster than time, by two seconds")       \
	X(reordered, "packets that came ahead of others, and waited")                \
	X(doubled, "packets that came twice")                                        \
	X(unknown, "packets of payload types that were not agreed on")               \
	X(broken, "packets that their codec refused")                                \
	X(sent, "RTP packets sent to the terminal")                                  \
	X(unsent, "packets that found no room on their way to the worker")           \
	X(cpu_ns, "nanoseconds spent in decoder and encoder")                        \
	X(events, "telephone events relayed")                                        \
	X(digits, "digits heard")

struct audio_stats {
#define X(id, text) uint64_t id;
	AUDIO_COUNTS(X)
#undef X
};

#endif
