/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of a steering, one row each. The rows yield the struct, the keys of ng's "statistics",
 * the metrics and the output of t/tool/steer_probe. */
#ifndef STEER_COUNTERS_H
#define STEER_COUNTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* X(id, key, each, metric, label, help)
 * key: in "statistics", summed over the workers.
 * each: also reported per worker.
 * metric: without the prefix, "" = none; rows of one metric are adjacent and have a label each.
 * help: of the metric. */
#define STEER_GUARD_HELP \
	"Packets dropped before xcipherd: their stream is under attack, and they are not plausible."
/* clang-format off */
#define STEER_COUNTERS(X) \
	X(recv_packets, "packets received", true, \
		"packets_total", "direction=\"in\"", "Packets of media.") \
	X(send_packets, "packets sent", true, \
		"packets_total", "direction=\"out\"", "Packets of media.") \
	X(recv_calls, "receive calls", false, \
		"io_calls_total", "direction=\"in\"", "System calls that received or sent packets.") \
	X(send_calls, "send calls", false, \
		"io_calls_total", "direction=\"out\"", "System calls that received or sent packets.") \
	X(send_errors, "send errors", false, \
		"send_errors_total", "", "Packets that could not be sent.") \
	/* packets lost before we received them: the queue of a socket or a ring was full */ \
	X(overruns, "overruns", true, \
		"overruns_total", "", \
		"Packets lost before xcipherd received them: a socket or ring was full.") \
	/* nfqueue, xdp: dropped; the kernel counts those of ordinary sockets itself */ \
	X(checksum_errors, "checksum errors", true, \
		"checksum_errors_total", "", \
		"Packets dropped for a wrong IP or UDP checksum (nfqueue, kernel, xdp).") \
	/* nfqueue, xdp: media received by an ordinary socket */ \
	X(fallback, "by fallback socket", false, \
		"fallback_packets_total", "", \
		"Media packets received by an ordinary socket instead of the steering.") \
	/* xdp: packets received on another worker's queue, copied from it */ \
	X(handed, "handed over between workers", false, \
		"handed_packets_total", "", "Packets received by another worker's queue.") \
	/* kernel: received by the packet ring */ \
	X(ring, "received by ring", true, \
		"ring_packets_total", "", "Packets received by the ring of nf_xcipher.") \
	X(ring_long, "too long for the ring", false, \
		"ring_too_long_total", "", \
		"Packets dropped by nf_xcipher because they are longer than the ring's slots.") \
	/* kernel: an upper bound, because a killed xcipherd may have sent some of them */ \
	X(ring_lost, "lost in an ended ring", false, \
		"ring_lost_total", "", \
		"Upper bound of packets lost in the ring of an earlier xcipherd when it ended.") \
	/* All but udp: dropped before the daemon by the guard of a stream under attack, by reason */ \
	X(guard_source, "guard: source", false, \
		"guard_drops_total", "reason=\"source\"", STEER_GUARD_HELP) \
	X(guard_kind, "guard: kind", false, "guard_drops_total", "reason=\"kind\"", STEER_GUARD_HELP) \
	X(guard_ssrc, "guard: SSRC", false, "guard_drops_total", "reason=\"ssrc\"", STEER_GUARD_HELP) \
	X(guard_type, "guard: payload type", false, \
		"guard_drops_total", "reason=\"type\"", STEER_GUARD_HELP) \
	X(guard_index, "guard: index", false, \
		"guard_drops_total", "reason=\"index\"", STEER_GUARD_HELP) \
	X(guard_time, "guard: timestamp", false, \
		"guard_drops_total", "reason=\"time\"", STEER_GUARD_HELP) \
	X(guard_tag, "guard: tag", false, "guard_drops_total", "reason=\"tag\"", STEER_GUARD_HELP) \
	/* nfqueue, xdp: reports of guards that found no place in the program's maps */ \
	X(guards_left_out, "guards without a place", false, \
		"guards_left_out_total", "", \
		"Reports of guards that found no place in the XDP program or that of nfqueue: xcipherd checks these streams.") \
	/* all but udp: dropped before the daemon, over the limit per source address */ \
	X(source_limit, "over source rate", false, \
		"source_limit_drops_total", "", \
		"Packets dropped before xcipherd, over the limit per source address.") \
	/* nfqueue: results that left in the packet's verdict */ \
	X(rewritten, "sent by verdict", false, "", "", "")
/* clang-format on */

struct steer_counters { /* relaxed atomics, single writer */
#define X(id, key, each, metric, label, help) _Atomic uint64_t id;
	STEER_COUNTERS(X)
#undef X
};

enum steer_counter {
#define X(id, key, each, metric, label, help) STEER_COUNTER_##id,
	STEER_COUNTERS(X)
#undef X
		STEER_COUNTER_N
};

struct steer_counter_row {
	const char *id, *key;
	bool each;
	const char *metric, *label, *help;
};
extern const struct steer_counter_row steer_counter_row[STEER_COUNTER_N];

/* The current value, from any thread. */
uint64_t steer_counter_load(const struct steer_counters *c, enum steer_counter which);

#endif
