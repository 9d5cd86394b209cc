/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of an audio session, from its beginning. */
#ifndef AUDIO_STATS_H
#define AUDIO_STATS_H

#include <stdint.h>

/* X(id, text) */
#define AUDIO_COUNTS(X)                                                                          \
	X(decoded, "packets decoded")                                                            \
	X(encoded, "packets encoded")                                                            \
	X(passed, "packets whose payload was relayed, or converted without PCM")                 \
	X(lost, "packets that did not arrive")                                                   \
	X(concealed, "lost packets replaced, by concealment or redundancy")                      \
	X(recovered, "lost packets replaced by redundancy in the next packet; a part of these")  \
	X(late, "packets that arrived after they were counted as lost")                          \
	X(early, "packets dropped: audio two seconds ahead of real time")                        \
	X(reordered, "packets that arrived before earlier ones, and were held")                  \
	X(doubled, "packets that arrived again")                                                 \
	X(unknown, "packets of payload types that were not agreed on")                           \
	X(broken, "packets that their codec refused")                                            \
	X(sent, "RTP packets sent to the terminal")                                              \
	X(skipped, "sequence numbers left out for packets of the other terminal that were lost") \
	X(unsent, "packets dropped: no room in the ring to the worker, or too many per second")  \
	X(cpu_ns, "estimated nanoseconds of CPU time in decoder and encoder")                    \
	X(events, "telephone events relayed")                                                    \
	X(digits, "digits heard")

struct audio_stats {
#define X(id, text) uint64_t id;
	AUDIO_COUNTS(X)
#undef X
};

#endif
