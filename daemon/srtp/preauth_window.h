/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A window with the SRTP+ tags (preauth.h) of the packets that may arrive next, by sequence number.
 * The check only reads: a look-up and a comparison. It is plain C without a library, so that the
 * daemon, an XDP program and the kernel module can share it. preauth_window.c moves the window
 * after SRTP has authenticated a packet. */
#ifndef SRTP_PREAUTH_WINDOW_H
#define SRTP_PREAUTH_WINDOW_H

#include <linux/types.h>

#define PREAUTH_WINDOW 512u /* packets: a power of two, at most 2^15 */
#define PREAUTH_BEHIND 128u /* of these, older than the newest packet: as the replay window */

enum preauth_result {
	PREAUTH_TRUE,    /* right tag: authenticate the packet by SRTP */
	PREAUTH_FORGED,  /* wrong tag */
	PREAUTH_USED,    /* SRTP has already authenticated a packet with this number */
	PREAUTH_OUTSIDE, /* the window has no tag for this sequence number */
};

/* The tag of sequence number n is tag[n % PREAUTH_WINDOW]. used: one bit per tag. */
struct preauth_window {
	__u64 first; /* 48-bit index of the oldest packet */
	__u32 known; /* number of tags present, from the oldest packet on */
	__u32 mask;  /* bits of a tag */
	__u64 used[PREAUTH_WINDOW / 64];
	__u32 tag[PREAUTH_WINDOW];
};

static inline enum preauth_result preauth_window_check(
	const struct preauth_window *w, __u16 seq, __u32 tag)
{
	__u32 n = seq % PREAUTH_WINDOW;

	if ((__u16)(seq - (__u16)w->first) >= w->known)
		return PREAUTH_OUTSIDE;
	if ((w->tag[n] ^ tag) & w->mask)
		return PREAUTH_FORGED;
	return w->used[n / 64] >> (n % 64) & 1 ? PREAUTH_USED : PREAUTH_TRUE;
}

/* Starts an empty window at a 48-bit index; bits: of a tag, 1 to 32. */
void preauth_window_init(struct preauth_window *w, __u64 index, unsigned bits);

/* Returns how many tags the window lacks, and the index of the first. The caller computes them and
 * passes them to preauth_window_add(), in one or several pieces. */
__u32 preauth_window_room(const struct preauth_window *w, __u64 *index);
void preauth_window_add(struct preauth_window *w, const __u32 *tag, __u32 n);

/* SRTP has authenticated the packet of this index. Marks its tag as used, and moves the window so
 * that PREAUTH_BEHIND packets before the newest remain. A jump beyond the window leaves it without
 * tags, until the caller adds those that preauth_window_room() asks for. */
void preauth_window_take(struct preauth_window *w, __u64 index);

/* The same for up to PREAUTH_GROUP packets. Bit i of taken: packet first + i. first: a multiple of
 * PREAUTH_GROUP. */
#define PREAUTH_GROUP 8u
void preauth_window_take_group(struct preauth_window *w, __u64 first, __u32 taken);

/* For a shorter window: drops packets that are further than this behind index, the newest. */
void preauth_window_trim(struct preauth_window *w, __u64 index, __u32 behind);

/* The tags of the group with this first index. NULL: some of them are not known. */
static inline const __u32 *preauth_window_group(const struct preauth_window *w, __u64 first)
{
	return first >= w->first && first + PREAUTH_GROUP <= w->first + w->known
		? &w->tag[first % PREAUTH_WINDOW]
		: (const __u32 *)0;
}

#endif
