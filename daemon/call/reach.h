/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where media may go. All decisions are made here: on addresses in SDP, sources that a stream is
 * about to learn, callbacks and restored calls. SIP users write their own SDP. Without this check
 * they could make the relay send to ng, to loopback, or to a whole subnet.
 *
 * Pure: callbacks look up the host's addresses, and must be lock-free. Any thread. A struct reach
 * is constant while in use. */
#ifndef CALL_REACH_H
#define CALL_REACH_H

#include "call/relay.h"

#define CALL_NETS_MAX 16u
struct call_nets {
	struct endpoint net[CALL_NETS_MAX];
	uint8_t bits[CALL_NETS_MAX];
	uint32_t n;
};

struct reach {
	struct call_nets allow;          /* --media-allow: exceptions from the rules below */
	struct call_nets deny;           /* --media-deny: overrides all else */
	const struct relay_local *local; /* media interfaces, with their advertised addresses */
	uint32_t locals;
	uint16_t port_min, port_max; /* media ports */
	/* Whether the host has this address, or it is the broadcast address of a local subnet.
	 * Ports are ignored. NULL: unknown. */
	bool (*own)(void *arg, const struct endpoint *e);
	bool (*broadcast)(void *arg, const struct endpoint *e);
	void *arg;
	/* Whether a call has this media port now. Other programs of the host may have bound the
	 * other ports of the range. NULL: every port of the range counts
	 * as taken. */
	bool (*taken)(void *arg, struct local_port port);
	void *taken_arg;
};

/* X(id, text after an address). NOWHERE is not an error: 0.0.0.0 means hold (RFC 2543 B.5, RFC 3264
 * 8.4), port 0 a refused media. */
#define REACH_VERDICTS(X)                                          \
	X(OK, "is allowed")                                        \
	X(NOWHERE, "names no destination")                         \
	X(DENIED, "is in --media-deny")                            \
	X(LOOPBACK, "is a loopback address (RFC 1122, RFC 4291)")  \
	X(THIS_NET, "is in 0.0.0.0/8 (RFC 1122)")                  \
	X(MULTICAST, "is a multicast address")                     \
	X(RESERVED, "is in 240.0.0.0/4 (RFC 1112), or broadcast")  \
	X(BROADCAST, "is the broadcast address of a local subnet") \
	X(LINK_LOCAL, "is link-local, and no media interface is")  \
	X(OWN, "is an address of this host")                       \
	X(OWN_CALL, "is a media port of this call")                \
	X(OWN_FREE, "is a media port of this relay that no call uses")

enum reach_verdict {
#define X(id, text) REACH_##id,
	REACH_VERDICTS(X)
#undef X
		REACH_VERDICT_COUNT
};
const char *reach_text(enum reach_verdict v);
/* The error-reason of a request that names a forbidden address; the line and the text follow it. */
#define REACH_ERROR NGE_MEDIA_ADDRESS

/* Checks address and port. OK, NOWHERE, or a reason; never OWN_CALL and later ones, which calls
 * find (call/links.h). OWN includes our media ports. IPv4 addresses inside IPv6 ones are checked as
 * IPv4: mapped, compatible and translated (RFC 4291 2.5.5, RFC 2765 2.1), 64:ff9b::/96 (RFC 6052),
 * 64:ff9b:1::/48 (RFC 8215), 2002::/16 (RFC 3056), Teredo (RFC 4380) and ISATAP (RFC 5214). */
enum reach_verdict reach_check(const struct reach *r, const struct endpoint *e);

/* The index of the next media interface after `after` (-1: the first) that has this address, or
 * advertises it, if the port is a media port; -1: none. Several interfaces may share one advertised
 * address. */
int reach_local(const struct reach *r, const struct endpoint *e, int after);

/* Whether a media interface has or advertises this address. The port is ignored. */
bool reach_is_media_address(const struct reach *r, const struct endpoint *e);

/* Whether a stream may learn src as its destination. Allowed are, in addition to reach_check(): the
 * signalled address, which was checked before, and the same media port of this relay by its other
 * address. */
bool reach_may_learn(
	const struct reach *r, const struct endpoint *signalled, const struct endpoint *src);

/* Whether ICE checks and responses may be sent to e: media destinations, and media ports of this
 * relay that a call has, because a call may pass it twice. The receiving agent does not forward a
 * check, so no circle arises. Call links_check() before media follow. */
bool reach_may_check(const struct reach *r, const struct endpoint *e);

/* Whether a network in the list contains e. "any" (prefix length 0) does not count. */
bool reach_is_named(const struct call_nets *nets, const struct endpoint *e);

#endif
