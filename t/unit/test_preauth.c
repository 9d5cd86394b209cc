/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP+: tags of each scheme as t/preauth/reference.py prints them, and the window against a simple
 * model with loss, reordering, jumps, replays and forged tags. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/hash.h"
#include "base/secmem.h"
#include "hex.h"
#include "srtp/preauth.h"
#include "srtp/preauth_header.h"
#include "srtp/preauth_heads.h"
#include "srtp/preauth_window.h"
#include "srtp/ref.h"
#include "srtp/sha1_block.h"
#include "srtp/sha1_ways.h"
#include "srtp/replay.h"

enum { SSRC = 0xcafebabe };

static struct preauth_key key_of(enum preauth_scheme s)
{
	struct srtp_master m = {.suite = SUITE_AES_CM_128_80};
	struct preauth_key k;

	unhex(m.key, sizeof(m.key), "e1f97a0d3e018be0d64fa32c06de4139");
	unhex(m.salt, sizeof(m.salt), "0ec675ad498afeebb6960b3aabe6");
	assert_int_equal(preauth_key_init(&k, s, &m), 0);
	return k;
}

/* --- Tags ------------------------------------------------------------------------------------- */

static void generator_of_fips_agrees_with_the_reference(void **state)
{
	static const struct {
		uint32_t bytes, tag[7]; /* from the sixth on */
	} T[] = {
		{20,
			{0xd71e50f3, 0xe131d9ae, 0xf966b030, 0x3be92a9e, 0xb736a95b, 0x76caf422,
				0x6470a951}},
		{55,
			{0x1eb2aad9, 0xa8647d3e, 0x52e2772e, 0x267b9794, 0xb653a063, 0xdbf69372,
				0x1b36df4f}},
		{56,
			{0xb5186948, 0xce39107b, 0x9835a371, 0x56704264, 0x98033c2e, 0xb56c9e4e,
				0xed5f259b}},
		{64,
			{0x652cdd71, 0x40f812ee, 0x21da3d11, 0x65a888d5, 0xe9e64a64, 0xad2a3e70,
				0x2f3fc0d9}},
	};
	struct preauth_key k = key_of(PREAUTH_SEQUENCE_FIPS);
	struct preauth_fips g;
	uint32_t tag[12];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		preauth_fips_init(&g, &k, SSRC, 0, T[i].bytes);
		preauth_fips_next(&g, tag, 3); /* in pieces that are no multiple of five */
		preauth_fips_next(&g, tag + 3, 9);
		assert_memory_equal(tag + 5, T[i].tag, sizeof(T[i].tag));
	}
	secmem_wipe(&g, sizeof(g));
	secmem_wipe(&k, sizeof(k));
}

static void runs_of_fips_agree_with_the_reference(void **state)
{
	static const struct {
		uint64_t index;
		uint32_t tag;
	} T[] = {{0, 0xd7b926cc}, {9, 0xb736a95b}, {10, 0x899df6fe}, {1023, 0xb841ad2e},
		{SRTP_INDEX_MAX, 0x01704e95}};
	struct preauth_key k = key_of(PREAUTH_SEQUENCE_FIPS);
	uint32_t all[1030], tag;

	(void)state;
	preauth_sequence(&k, SSRC, 0, all, ARRAY_LEN(all));
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		preauth_sequence(&k, SSRC, T[i].index, &tag, 1);
		assert_int_equal(tag, T[i].tag);
		if (T[i].index < ARRAY_LEN(all))
			assert_int_equal(all[T[i].index], tag);
	}
	preauth_sequence(&k, SSRC, 7, all, 25); /* begins and ends within a run */
	preauth_sequence(&k, SSRC, 31, &tag, 1);
	assert_int_equal(all[24], tag);
	secmem_wipe(&k, sizeof(k));
}

static void generator_of_aes_agrees_with_the_reference(void **state)
{
	static const struct {
		uint64_t index;
		uint32_t tag;
	} T[] = {{0, 0x9b8ba347}, {3, 0x8875df51}, {4, 0x2ce8cb2e}, {1023, 0x8d40c058},
		{SRTP_INDEX_MAX, 0x1d6fdb2c}};
	struct preauth_key k = key_of(PREAUTH_SEQUENCE_AES);
	uint32_t all[1024], tag;

	(void)state;
	preauth_sequence(&k, SSRC, 0, all, ARRAY_LEN(all));
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		preauth_sequence(&k, SSRC, T[i].index, &tag, 1);
		assert_int_equal(tag, T[i].tag);
		if (T[i].index < ARRAY_LEN(all))
			assert_int_equal(all[T[i].index], tag);
	}
	preauth_sequence(&k, SSRC, 7, all, 400); /* begins and ends within a block */
	preauth_sequence(&k, SSRC, 406, &tag, 1);
	assert_int_equal(all[399], tag);
	preauth_sequence(&k, SSRC + 1, 406, &tag, 1);
	assert_int_not_equal(all[399], tag);
	secmem_wipe(&k, sizeof(k));
}

static void macs_of_headers_agree_with_the_reference(void **state)
{
	struct preauth_key hmac = key_of(PREAUTH_HEADER_HMAC), sip = key_of(PREAUTH_HEADER_SIPHASH);
	uint8_t hdr[PREAUTH_HEADER_LEN];
	uint64_t word[2];

	(void)state;
	unhex(hdr, sizeof(hdr), "8000abcd00012345cafebabe");
	assert_int_equal(preauth_header(&hmac, hdr), 0x60c33bc0);
	assert_int_equal(preauth_header(&sip, hdr), 0x63a2a752);
	for (unsigned bit = 0; bit < 8 * PREAUTH_HEADER_LEN; bit++) {
		hdr[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_not_equal(preauth_header(&hmac, hdr), 0x60c33bc0);
		assert_int_not_equal(preauth_header(&sip, hdr), 0x63a2a752);
		assert_int_equal(
			preauth_header(&sip, hdr), (uint32_t)hash_siphash(sip.seed, hdr, 12));
		preauth_sip_words(word, sip.seed);
		assert_int_equal(preauth_header(&sip, hdr),
			preauth_sip_fields((__u64[]){word[0], word[1]}, be32(hdr), be32(hdr + 4),
				be32(hdr + 8)));
		hdr[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	secmem_wipe(&hmac, sizeof(hmac));
	secmem_wipe(&sip, sizeof(sip));
}

static void a_chain_block_holds_the_tags(void **state)
{
	(void)state;
	for (int s = PREAUTH_CHAIN; s < PREAUTH_KINDS; s++) {
		enum preauth_scheme at = (enum preauth_scheme)s;
		struct preauth_chain c = preauth_chain_of(at);
		uint32_t tag[PREAUTH_NEXT_MAX] = {0};
		uint8_t block[PREAUTH_BLOCK_MAX + 1];

		if (!preauth_exists(at))
			continue;
		for (uint32_t i = 0; i < c.next; i++)
			tag[i] = (i * 0x9e3779b1u + 0xc0ffee13) & (uint32_t)((1ull << c.width) - 1);
		memset(block, 0xa5, sizeof(block));
		preauth_chain_pack(c.width, block, tag, c.next);
		assert_int_equal(block[preauth_chain_len(at)], 0xa5);
		assert_int_equal(block[0],
			c.width == 32          ? tag[0] >> 24
				: c.width == 8 ? tag[0]
					       : (tag[0] << 4 | tag[1]));
		for (uint32_t i = 0; i < c.next; i++)
			assert_int_equal(preauth_chain_tag(c.width, block, i), tag[i]);
	}
}

/* Each name has one number, and finds itself. Other parameters are refused. */
static void chains_have_parameters_within_bounds(void **state)
{
	static const struct {
		const char *name;
		bool found;
		uint32_t width, next, window, len;
	} T[] = {
		{"chain", true, 4, 32, 512, 16},
		{"chain/4/32/512", true, 4, 32, 512, 16},
		{"CHAIN/8/64/128", true, 8, 64, 128, 64},
		{"chain/32/16/64", true, 32, 16, 64, 64},
		{"chain/4/8/64", true, 4, 8, 64, 4},
		{"chain/32/32/512", false, 0, 0, 0, 0}, /* the block is too long */
		{"chain/4/64/64", false, 0, 0, 0, 0},   /* no room for late packets */
		{"chain/16/8/64", false, 0, 0, 0, 0},
		{"chain/4/33/512", false, 0, 0, 0, 0},
		{"chain/4/32/1024", false, 0, 0, 0, 0},
		{"chain/4/32", false, 0, 0, 0, 0},
		{"chain/", false, 0, 0, 0, 0},
		{"chain/4/32/512/1", false, 0, 0, 0, 0},
	};
	enum preauth_scheme s;

	(void)state;
	for (size_t i = 0; i < sizeof(T) / sizeof(T[0]); i++) {
		struct preauth_chain c;

		assert_int_equal(preauth_find(&s, str_from(T[i].name)), T[i].found);
		if (!T[i].found)
			continue;
		c = preauth_chain_of(s);
		assert_int_equal(c.width, T[i].width);
		assert_int_equal(c.next, T[i].next);
		assert_int_equal(c.window, T[i].window);
		assert_int_equal(preauth_chain_len(s), T[i].len);
	}
	assert_true(preauth_find(&s, str_from("chain/4/32/512")));
	assert_int_equal(s, PREAUTH_CHAIN);
	for (int k = 0; k < PREAUTH_KINDS; k++)
		if (preauth_exists((enum preauth_scheme)k)) {
			assert_true(
				preauth_find(&s, str_from(preauth_name((enum preauth_scheme)k))));
			assert_int_equal(s, k);
			assert_true(s < PREAUTH_CHAIN || preauth_chain_len(s) <= PREAUTH_BLOCK_MAX);
		}
	assert_false(preauth_exists((enum preauth_scheme)PREAUTH_KINDS));
	assert_false(preauth_exists((enum preauth_scheme)255));
}

static void a_wrong_name_says_what_is_wrong(void **state)
{
	static const struct {
		const char *name, *why;
	} T[] = {{"chain/5/32/512", "WIDTH of chain is 4"},
		{"chain//32/512", "WIDTH of chain is 4"},
		{"chain/4/33/512", "NEXT of chain is 8, 16"},
		{"chain/4/32/1024", "WINDOW of chain is 64"},
		{"chain/4/32/64/1", "WINDOW of chain is 64"},
		{"chain/4/32", "chain/WIDTH/NEXT/WINDOW"},
		{"chain/32/32/512", "NEXT of chain is 8 or 16 with"},
		{"chain/4/64/64", "WINDOW of chain is at least twice NEXT"},
		{"rot13", "schemes are"}, {"", "schemes are"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		assert_non_null(strstr(preauth_why_not(str_from(T[i].name)), T[i].why));
	for (int s = 0; s < PREAUTH_KINDS; s++)
		if (preauth_exists((enum preauth_scheme)s))
			assert_null(
				preauth_why_not(str_from(preauth_name((enum preauth_scheme)s))));
}

static void a_suite_without_encryption_has_no_key(void **state)
{
	struct srtp_master m = {.suite = SUITE_PLAIN};
	struct preauth_key k;

	(void)state;
	assert_int_equal(preauth_key_init(&k, PREAUTH_SEQUENCE_AES, &m), -EINVAL);
}

/* The other tests use the instructions where the processor has them. */
static void sha1_with_and_without_instructions_agree(void **state)
{
	bool fast = srtp_sha1_has_instructions();
	uint32_t a[5] = {1, 2, 3, 4, 5}, b[5] = {1, 2, 3, 4, 5};
	struct preauth_key k = key_of(PREAUTH_HEADER_HMAC), slow = k;
	uint8_t block[64];

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		for (uint32_t at = 0; at < sizeof(block); at++)
			block[at] = (uint8_t)(a[at % 5] >> 8 * (at % 4));
		srtp_sha1_block(a, block, fast);
		srtp_ref_sha1_block(b, block);
		assert_memory_equal(a, b, sizeof(a));
	}
	slow.fast_sha1 = false;
	assert_int_equal(preauth_header(&k, block), preauth_header(&slow, block));
}

/* Many tags at once, in lanes where the processor has them, are those of one at a time. */
static void many_tags_of_fips_agree_with_single_ones(void **state)
{
	struct preauth_key k = key_of(PREAUTH_SEQUENCE_FIPS);
	uint32_t tag[400], one;

	(void)state;
	for (uint64_t index = (1ull << 36) * PREAUTH_FIPS_RUN - 163, end = index + 400; index < end;
		index += 7) {
		uint32_t n = (uint32_t)(end - index);

		preauth_sequence(&k, 0x1234, index, tag, n);
		for (uint32_t i = 0; i < n; i++) {
			preauth_sequence(&k, 0x1234, index + i, &one, 1);
			assert_int_equal(tag[i], one);
		}
	}
}

/* Each known tag is that of its header, whatever the sender does: losses, reordering, jumps, other
 * payload types and markers. In a regular stream, all but the first headers are known. */
static void expected_headers_have_their_tags(void **state)
{
	struct preauth_key k = key_of(PREAUTH_HEADER_HMAC);
	struct preauth_heads h = {0};
	uint32_t tag[PREAUTH_HEADS] = {0}, ssrc = 0, known = 0, late = 0, time = 0xffff0000;
	uint64_t rng = 88172645463325252ull;

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		uint8_t hdr[PREAUTH_HEADER_LEN] = {0x80, 8};
		uint32_t what;
		int at;

		rng ^= rng << 13;
		rng ^= rng >> 7;
		rng ^= rng << 17;
		what = i < 1000 ? 1000 : (uint32_t)(rng >> 33) % 400;
		time += what == 0 ? 48000 : 160;
		put_be16(hdr + 2, (uint16_t)(65000 + i - (what == 1 ? 3 : 0)));
		put_be32(hdr + 4, time - (what == 1 ? 480 : 0));
		put_be32(hdr + 8, 7 + i / 50000);
		if (what == 2)
			hdr[1] |= 0x80;
		if (what == 3)
			hdr[1] = 101;
		if (what == 4)
			hdr[0] |= 0x20;
		if (what == 5)
			continue; /* lost */
		at = preauth_heads_find(&h, ssrc, hdr);
		assert_in_range(at + 1, 0, PREAUTH_HEADS);
		if (at >= 0)
			assert_int_equal(tag[at], preauth_header(&k, hdr));
		known += at >= 0;
		late += i >= 3 && i < 1000 && at < 0;
		preauth_heads_learn(&h, &ssrc, tag, &k, hdr);
	}
	if (sha1_way_in_lanes()) {
		assert_int_equal(late, 0);
		assert_in_range(known, 90000, 100000);
	} else {
		assert_int_equal(known, 0);
	}
}

/* --- Window ----------------------------------------------------------------------------------- */

struct model {
	struct preauth_window w;
	struct preauth_key k;
	uint64_t newest, taken[PREAUTH_WINDOW]; /* index + 1 of the last packet in this place */
	uint64_t rng;
	unsigned count[PREAUTH_OUTSIDE + 1];
};

static uint32_t draw(struct model *m, uint32_t below)
{
	m->rng ^= m->rng << 13;
	m->rng ^= m->rng >> 7;
	m->rng ^= m->rng << 17;
	return (uint32_t)(m->rng >> 33) % below;
}

static void fill(struct model *m)
{
	uint32_t tag[PREAUTH_WINDOW];
	__u64 index;
	uint32_t n = preauth_window_room(&m->w, &index);

	preauth_sequence(&m->k, SSRC, index, tag, n);
	preauth_window_add(&m->w, tag, n / 2); /* in pieces */
	preauth_window_add(&m->w, tag + n / 2, n - n / 2);
	assert_int_equal(preauth_window_room(&m->w, &index), 0);
}

static bool was_taken(const struct model *m, uint64_t index)
{
	return m->taken[index % PREAUTH_WINDOW] == index + 1;
}

/* The model's result for the true packet of this index. */
static enum preauth_result expected(const struct model *m, uint64_t index)
{
	uint64_t first = m->newest < PREAUTH_BEHIND ? 0 : m->newest - PREAUTH_BEHIND;

	if (index < first || index >= first + PREAUTH_WINDOW)
		return PREAUTH_OUTSIDE;
	return was_taken(m, index) ? PREAUTH_USED : PREAUTH_TRUE;
}

static void one_packet(struct model *m, uint64_t index)
{
	enum preauth_result want = expected(m, index), got;
	uint32_t tag;

	preauth_sequence(&m->k, SSRC, index, &tag, 1);
	assert_int_equal(preauth_window_check(&m->w, (uint16_t)index, tag ^ 1u << draw(m, 32)),
		want == PREAUTH_OUTSIDE ? PREAUTH_OUTSIDE : PREAUTH_FORGED);
	got = preauth_window_check(&m->w, (uint16_t)index, tag);
	assert_int_equal(got, want);
	m->count[got]++;
	if (got == PREAUTH_USED || index + PREAUTH_BEHIND < m->newest)
		return;
	preauth_window_take(&m->w, index); /* SRTP has authenticated it */
	m->taken[index % PREAUTH_WINDOW] = index + 1;
	m->newest = index > m->newest ? index : m->newest;
	fill(m);
}

static void the_window_follows_loss_reordering_and_jumps(void **state)
{
	struct model m = {.k = key_of(PREAUTH_SEQUENCE_AES), .rng = 88172645463325252ull};
	uint64_t next = 65000; /* near the end of the first cycle */

	(void)state;
	preauth_window_init(&m.w, 0, preauth_bits(PREAUTH_SEQUENCE_AES));
	fill(&m);
	for (unsigned i = 0; i < 300000; i++) {
		uint32_t what = draw(&m, 1000);

		if (what < 50)
			next++; /* lost */
		else if (what == 50)
			next += draw(&m, 30000); /* a jump, often beyond the window */
		one_packet(&m, what < 150 && next > 200 ? next - draw(&m, 200) : next++);
	}
	/* No class was left out. */
	for (unsigned r = 0; r <= PREAUTH_OUTSIDE; r++)
		assert_true(r == PREAUTH_FORGED || m.count[r] > 100);
	secmem_wipe(&m.k, sizeof(m.k));
}

/* Two windows: one takes packet by packet, the other in groups. */
static void a_group_moves_the_window_as_its_packets_do(void **state)
{
	struct model one = {.k = key_of(PREAUTH_SEQUENCE_AES), .rng = 88172645463325252ull}, all;
	uint64_t next = 65000 / PREAUTH_GROUP * PREAUTH_GROUP;

	(void)state;
	preauth_window_init(&one.w, 64000, preauth_bits(PREAUTH_SEQUENCE_AES));
	fill(&one);
	all = one;
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t taken = draw(&one, 256);
		const uint32_t *tag = preauth_window_group(&all.w, next);
		uint32_t want[PREAUTH_GROUP];

		preauth_sequence(&one.k, SSRC, next, want, PREAUTH_GROUP);
		assert_true(!tag || memcmp(tag, want, sizeof(want)) == 0);
		assert_int_equal(!tag,
			next < all.w.first || next + PREAUTH_GROUP > all.w.first + all.w.known);
		for (uint32_t k = 0; k < PREAUTH_GROUP; k++)
			if (taken >> k & 1)
				preauth_window_take(&one.w, next + k);
		preauth_window_take_group(&all.w, next, taken);
		assert_memory_equal(&one.w, &all.w, sizeof(all.w));
		fill(&one);
		fill(&all);
		next += PREAUTH_GROUP * (uint64_t)(draw(&one, 50) ? 1 : draw(&one, 100));
	}
	secmem_wipe(&one.k, sizeof(one.k));
	secmem_wipe(&all.k, sizeof(all.k));
}

static void forged_tags_pass_as_often_as_their_width_says(void **state)
{
	enum { TRIES = 1 << 20 };
	struct model m = {.k = key_of(PREAUTH_SEQUENCE_AES), .rng = 1234567};
	unsigned passed = 0;

	(void)state;
	preauth_window_init(&m.w, 0, preauth_bits(PREAUTH_CHAIN));
	fill(&m);
	for (unsigned i = 0; i < TRIES; i++)
		passed += preauth_window_check(&m.w, (uint16_t)draw(&m, PREAUTH_WINDOW),
				  draw(&m, 16)) == PREAUTH_TRUE;
	/* 1 of 16, within six standard deviations. */
	assert_in_range(passed, TRIES / 16 - 1500, TRIES / 16 + 1500);
	secmem_wipe(&m.k, sizeof(m.k));
}

static void tags_that_are_not_known_yet_are_outside(void **state)
{
	struct preauth_window w;
	__u64 index;

	(void)state;
	preauth_window_init(&w, 100, 32);
	assert_int_equal(preauth_window_check(&w, 100, 0), PREAUTH_OUTSIDE);
	preauth_window_add(&w, &(uint32_t){7}, 1);
	assert_int_equal(preauth_window_check(&w, 100, 7), PREAUTH_TRUE);
	assert_int_equal(preauth_window_check(&w, 101, 0), PREAUTH_OUTSIDE);
	assert_int_equal(preauth_window_check(&w, 99, 0), PREAUTH_OUTSIDE);
	assert_int_equal(preauth_window_room(&w, &index), PREAUTH_WINDOW - 1);
	assert_int_equal(index, 101);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(generator_of_fips_agrees_with_the_reference),
		cmocka_unit_test(runs_of_fips_agree_with_the_reference),
		cmocka_unit_test(generator_of_aes_agrees_with_the_reference),
		cmocka_unit_test(macs_of_headers_agree_with_the_reference),
		cmocka_unit_test(a_chain_block_holds_the_tags),
		cmocka_unit_test(chains_have_parameters_within_bounds),
		cmocka_unit_test(a_wrong_name_says_what_is_wrong),
		cmocka_unit_test(a_suite_without_encryption_has_no_key),
		cmocka_unit_test(sha1_with_and_without_instructions_agree),
		cmocka_unit_test(many_tags_of_fips_agree_with_single_ones),
		cmocka_unit_test(expected_headers_have_their_tags),
		cmocka_unit_test(the_window_follows_loss_reordering_and_jumps),
		cmocka_unit_test(a_group_moves_the_window_as_its_packets_do),
		cmocka_unit_test(forged_tags_pass_as_often_as_their_width_says),
		cmocka_unit_test(tags_that_are_not_known_yet_are_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
