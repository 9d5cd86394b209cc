/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The tag of header-siphash (preauth.h): the low 32 bits of SipHash-2-4 over the 12 bytes of an RTP
 * header. It is plain C without a library, loops or pointers, so that the daemon, the XDP program
 * and the kernel module share it. eBPF has no siphash() of the kernel's. */
#ifndef SRTP_PREAUTH_HEADER_H
#define SRTP_PREAUTH_HEADER_H

#include <linux/types.h>

#define PREAUTH_HEADER_INLINE static inline __attribute__((__always_inline__))

struct preauth_sip {
	__u64 a, b, c, d;
};

PREAUTH_HEADER_INLINE __u64 preauth_sip_turn(__u64 v, unsigned n)
{
	return v << n | v >> (64 - n);
}

PREAUTH_HEADER_INLINE void preauth_sip_round(struct preauth_sip *s)
{
	s->a += s->b;
	s->b = preauth_sip_turn(s->b, 13) ^ s->a;
	s->a = preauth_sip_turn(s->a, 32);
	s->c += s->d;
	s->d = preauth_sip_turn(s->d, 16) ^ s->c;
	s->a += s->d;
	s->d = preauth_sip_turn(s->d, 21) ^ s->a;
	s->c += s->b;
	s->b = preauth_sip_turn(s->b, 17) ^ s->c;
	s->c = preauth_sip_turn(s->c, 32);
}

PREAUTH_HEADER_INLINE void preauth_sip_absorb(struct preauth_sip *s, __u64 word)
{
	s->d ^= word;
	preauth_sip_round(s);
	preauth_sip_round(s);
	s->a ^= word;
}

/* key0, key1: the 16 bytes of the key as little-endian words. head: the first eight bytes of the
 * header, tail: the other four, little-endian, too. */
PREAUTH_HEADER_INLINE __u32 preauth_sip_tag(__u64 key0, __u64 key1, __u64 head, __u32 tail)
{
	struct preauth_sip s = {
		.a = key0 ^ 0x736f6d6570736575ull,
		.b = key1 ^ 0x646f72616e646f6dull,
		.c = key0 ^ 0x6c7967656e657261ull,
		.d = key1 ^ 0x7465646279746573ull,
	};

	preauth_sip_absorb(&s, head);
	preauth_sip_absorb(&s, tail | 12ull << 56); /* the last byte is the length */
	s.c ^= 0xff;
	preauth_sip_round(&s);
	preauth_sip_round(&s);
	preauth_sip_round(&s);
	preauth_sip_round(&s);
	return (__u32)(s.a ^ s.b ^ s.c ^ s.d);
}

/* The same for the three words of a header in host order. key: little-endian words. */
PREAUTH_HEADER_INLINE __u32 preauth_sip_fields(
	const __u64 key[2], __u32 first_word, __u32 time, __u32 ssrc)
{
	return preauth_sip_tag(key[0], key[1],
		__builtin_bswap32(first_word) | (__u64)__builtin_bswap32(time) << 32,
		__builtin_bswap32(ssrc));
}

#endif
