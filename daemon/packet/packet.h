/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by steering and media: a received packet, and a packet to send. Both are descriptors of
 * arena memory, so neither side includes the other. */
#ifndef PACKET_PACKET_H
#define PACKET_PACKET_H

#include "base/endpoint.h"

/* Verdicts of packets. One table yields the enum, texts, counters and metrics. */
#define PACKET_DROPS(X)                                                                  \
	X(UNKNOWN_PORT, "unknown-port", "no stream on this local port")                  \
	X(TOO_LONG, "too-long", "longer than the largest packet")                        \
	X(MALFORMED, "malformed", "neither RTP nor RTCP nor another known protocol")     \
	X(NOT_MEDIA, "not-media", "STUN or DTLS that is not relayed")                    \
	X(INACTIVE, "inactive", "stream has no other side yet")                          \
	X(NO_DESTINATION, "no-destination", "other side's address is not known yet")     \
	X(UNANSWERED, "unanswered", "not RTP, and its destination has sent nothing")     \
	X(SOURCE, "wrong-source", "not from the confirmed source")                       \
	X(PROBATION, "probation", "source has not sent enough consistent packets yet")   \
	X(MARTIAN, "martian", "source address is impossible at that interface")          \
	X(UNCHECKED, "unchecked-source", "too many new sources to check them all")       \
	X(GUARD, "guard", "the stream is under attack, and the packet is not plausible") \
	X(BAD_TAG, "bad-tag", "authentication failed")                                   \
	X(FORGED, "forged-tag", "SRTP+ tag is wrong (dropped before authentication)")    \
	X(SHORT_TAG, "srtcp-tag-32", "SRTCP tag has 32 bits instead of 80 (RFC 4568)")   \
	X(REPLAY, "replay", "index was received before, or is older than the window")    \
	X(NONCE, "nonce", "index was already sent under this key")                       \
	X(SSRC_LIMIT, "ssrc-limit", "more SSRCs than a stream keeps state for")          \
	X(INDEX_END, "index-end", "packet index is used up: a new key is needed")        \
	X(LIFETIME, "lifetime", "master key's lifetime is used up")                      \
	X(RTCP_RATE, "rtcp-rate", "more SRTCP than indexes are reserved for")            \
	X(KEY_EPOCH, "key-epoch", "no session keys are derived for its index")           \
	X(UNPROVED, "unproved", "without authentication: index too far ahead")           \
	X(WRONG_MKI, "wrong-mki", "MKI does not belong to a negotiated key")             \
	X(OVERLOAD, "overload", "waited too long in an overloaded worker")               \
	X(OVERLOAD_EMERGENCY, "overload-emergency", "the same in an emergency call")     \
	X(BLOCKED, "blocked", "blocked by command")                                      \
	X(RATE, "media-rate", "more packets per second than --media-rate allows")        \
	X(FEEDBACK, "feedback", "RTCP feedback that the other side does not support")    \
	X(AGAIN, "came-again", "packet was received before: media circulate")            \
	X(COPY_ROOM, "copy-room", "no room in the burst for a listener's copy")          \
	X(BUNDLE, "bundle", "no m-line of the BUNDLE group takes it")                    \
	X(SIDE_FULL, "side-full", "the keying thread has too many packets already")      \
	X(AUDIO_FULL, "audio-full", "the codec thread has too many packets already")     \
	X(STALE, "stale", "stream was removed while its packet was processed")           \
	X(SEND, "send", "the kernel refused to send the packet")

enum packet_verdict {
	PACKET_JOB,   /* goes into the batch */
	PACKET_SENT,  /* after complete: given to steering to send */
	PACKET_SIDE,  /* kept by the keying thread (packet/side.h), or until keys arrive */
	PACKET_AUDIO, /* authentic, given to a codec thread (packet/audio.h) */
	PACKET_PASS,  /* no stream has this port: passed on to the ordinary socket */
#define X(id, name, text) PACKET_DROP_##id,
	PACKET_DROPS(X)
#undef X
		PACKET_VERDICTS
};

/* A local port as steering sees it: index of the local address in the configuration, and port. */
struct local_port {
	uint16_t port;
	uint8_t addr; /* index */
	uint8_t pad;
};

struct packet_in { /* written by steering, read by media */
	struct endpoint src;
	struct local_port local;
	uint32_t in_off; /* first byte of the UDP payload in arena.in */
	uint32_t len;    /* bytes of UDP payload */
	uint32_t slot;   /* arena slot it lies in; its result goes to the same slot of arena.out */
	uint32_t token;  /* steering's own (a packet id of NFQUEUE, or a socket) */
	uint64_t t_ns;   /* CLOCK_REALTIME when the kernel received it, or else when it was read */
	uint32_t dev;    /* interface index; 0: the host's stack has checked the source */
	uint8_t verdict; /* enum packet_verdict, written by media, read by steering */
};
_Static_assert(sizeof(struct packet_in) == 56, "less than a cache line");

/* packet_in.dev: no interface of this host takes the frame. */
#define PACKET_DEV_NOWHERE UINT32_MAX

struct packet_out { /* written by media, read by steering */
	struct endpoint dst;
	struct local_port local; /* source port it leaves from */
	uint32_t out_off;        /* first byte in arena.out; ARENA_HEADROOM free bytes before it */
	uint32_t len;
	uint8_t tos;
	uint8_t failed; /* written by steering: the kernel refused it */
	uint32_t in;    /* index of its packet_in, for latency and accounting */
};

const char *packet_drop_name(enum packet_verdict v);

#endif
