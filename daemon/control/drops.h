/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reasons to drop an ng message without a reply. Its source may be forged, and a reply would then
 * reach a third party. */
#ifndef CONTROL_DROPS_H
#define CONTROL_DROPS_H

/* X(id, name in statistics and metrics, text in the log) */
/* clang-format off */
#define NG_DROPS(X) \
	X(COOKIE, "cookie", "does not begin with a cookie of printable ASCII") \
	X(OWN_MEDIA, "own-media", "comes from a media port of this relay, not from a client") \
	X(UNSIGNED, "unsigned", "is not signed, but --ng-key-file is set") \
	X(FORGED, "forged", "is not signed by any key in --ng-key-file") \
	X(CLOCK, "clock", "is signed more than 30 s ago or ahead, or this clock was set back: compare both clocks") \
	X(REPLAY, "replay", "is a copy of a request that another address sent") \
	X(LATE, "late", "is a copy of a request whose reply is no longer stored") \
	X(BACKLOG, "backlog", "exceeds the number or size of waiting requests per source") \
	X(OVERRUN, "receive-buffer", "arrived when the receive buffer was full") \
	X(BUSY, "busy", "needs a worker that is overloaded; the client repeats it") \
	X(MEMORY, "memory", "cannot be stored: out of memory")
/* clang-format on */

enum ng_drop {
#define X(id, name, text) NG_DROP_##id,
	NG_DROPS(X)
#undef X
		NG_DROP_COUNT
};

const char *handler_drop_name(enum ng_drop reason);

#endif
