/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why an ng message gets no reply. Never a reply: its source may be forged, and then the reply would reach somebody else. */
#ifndef CONTROL_DROPS_H
#define CONTROL_DROPS_H

/* X(id, name in statistics and metrics, text in the log) */
/* clang-format off */
#define NG_DROPS(X) \
	X(COOKIE, "cookie", "does not begin with a cookie of printable ASCII") \
	X(OWN_MEDIA, "own-media", "comes from a media port of this relay, which is no client") \
	X(UNSIGNED, "unsigned", "is not signed, and --ng-key-file is set") \
	X(FORGED, "forged", "is signed by none of the keys in --ng-key-file") \
	X(CLOCK, "clock", "is signed by a clock that differs by more than 30 s from ours, or was delayed: compare both clocks") \
	X(REPLAY, "replay", "is a copy of a request that another address sent") \
	X(LATE, "late", "is a copy of a request whose reply is not stored any more") \
	X(BACKLOG, "backlog", "comes while too many requests of its source wait") \
	X(MEMORY, "memory", "finds no memory")
/* clang-format on */

enum ng_drop {
#define X(id, name, text) NG_DROP_##id,
	NG_DROPS(X)
#undef X
		NG_DROP_COUNT
};

#endif
