/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several bursts prepared before the first is completed, and what each knows of the others. Each
 * index is received once and sent once, RTCP numbers continue, a wrap between two bursts is
 * noticed, keys in use stay. The depth does not change what is sent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "batch/sample.h"
#include "media_rig.h"
#include "srtp/ref.h"

enum { SSRC = 0xcafe, DEPTH_MAX = 4 };

struct flight {
	struct packet_in in[SLOTS];
	uint32_t n, first, jobs;
};

static struct rig *rig_at_depth(enum srtp_suite_id a, enum srtp_suite_id b, uint32_t depth)
{
	struct rig *r = rig_new_bursts(a, b, depth);

	r->first = media_first_slot(r->m);
	return r;
}

/* Prepares the packets sent so far and begins the next burst. */
static void begin(struct rig *r, struct flight *f)
{
	memcpy(f->in, r->in, sizeof(f->in));
	f->n = r->n;
	f->first = r->first;
	f->jobs = media_prepare(r->m, &r->a, f->in, f->n, r->a.job + f->first);
	r->first = media_first_slot(r->m);
	r->n = 0;
}

static void end(struct rig *r, struct flight *f)
{
	struct xc_job *job = r->a.job + f->first;
	uint32_t *status = r->a.status + f->first;

	for (uint32_t i = 0; i < f->jobs; i++)
		status[i] = srtp_ref_job(&job[i], r->a.key, r->a.in, r->a.out);
	r->outs = media_complete(r->m, &r->a, f->in,
		&(struct batch){.job = job, .status = status, .n = f->jobs}, r->out);
	media_sent(r->m, f->in, r->out, r->outs);
}

static void a_packet_in_two_bursts_is_received_once_and_sent_once(void **state)
{
	static const struct {
		enum srtp_suite_id from;
		enum packet_verdict why;
	} T[] = {{SUITE_AES_CM_128_80, PACKET_DROP_REPLAY}, {SUITE_PLAIN, PACKET_DROP_NONCE}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct rig *r = rig_at_depth(T[i].from, SUITE_AES_CM_128_32, 2);
		struct flight one, two;

		rig_send(r, SSRC, 5, A_TX);
		begin(r, &one);
		rig_send(r, SSRC, 5, A_TX);
		rig_send(r, SSRC, 6, A_TX);
		begin(r, &two);
		assert_int_equal(two.jobs, 2); /* otherwise the test proves nothing */
		end(r, &one);
		assert_int_equal(r->outs, 1);
		rig_got(r, 0, SSRC, 5, 5);
		end(r, &two);
		assert_int_equal(r->outs, 1);
		rig_got(r, 0, SSRC, 6, 6);
		assert_int_equal(rig_dropped(r, A, T[i].why), 1);
		rig_free(r);
	}
}

static void rtcp_is_numbered_on_over_what_is_in_flight(void **state)
{
	struct rig *r = rig_at_depth(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, DEPTH_MAX);
	struct flight f[DEPTH_MAX];
	uint8_t plain[64], want[28];
	uint32_t sent = 0;

	(void)state;
	for (uint32_t i = 0; i < 40 + DEPTH_MAX; i++) {
		uint32_t at = i % DEPTH_MAX;

		if (i >= DEPTH_MAX) {
			end(r, &f[at]);
			assert_int_equal(r->outs, 2);
			for (uint32_t k = 0; k < 2; k++, sent++) {
				assert_int_equal(rig_open(r, k, plain, B_RX, sent, true), 28);
				rig_plain_rtcp(want, SSRC, sent + 1);
				assert_memory_equal(plain, want, 28);
			}
		}
		if (i >= 40)
			continue;
		rig_send_rtcp(r, SSRC, 2 * i + 1);
		rig_send_rtcp(r, SSRC, 2 * i + 2);
		begin(r, &f[at]);
	}
	rig_free(r);
}

/* Forged RTCP takes indexes while it is in flight, up to a bound, even if it never completes. */
static void forged_rtcp_uses_no_indexes_up(void **state)
{
	struct rig *r = rig_at_depth(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 2);
	struct flight f[2];
	uint64_t most = 0;

	(void)state;
	for (uint32_t i = 0; i < 200; i++) {
		if (i >= 2)
			end(r, &f[i % 2]);
		for (uint32_t k = 0; k < 3; k++)
			rig_send_rtcp(r, SSRC, 1 + i)[10] ^= 1;
		begin(r, &f[i % 2]);
		for (uint32_t k = 0; k < f[i % 2].jobs; k++) {
			uint64_t index = r->a.job[f[i % 2].first + k].tx_index;

			most = index > most ? index : most;
		}
	}
	assert_in_range(most, 5, SLOTS);
	rig_free(r);
}

static void a_first_wrap_between_two_bursts_loses_nothing(void **state)
{
	struct rig *r = rig_at_depth(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, DEPTH_MAX);
	struct flight f[DEPTH_MAX];
	uint64_t index = 65530;

	(void)state;
	for (uint32_t i = 0; i < DEPTH_MAX; i++) {
		for (uint32_t k = 0; k < 4; k++)
			rig_send(r, SSRC, index++, A_TX);
		begin(r, &f[i]);
	}
	index = 65530;
	for (uint32_t i = 0; i < DEPTH_MAX; i++) {
		end(r, &f[i]);
		assert_int_equal(r->outs, 4);
		for (uint32_t k = 0; k < 4; k++, index++)
			rig_got(r, k, SSRC, index, index);
	}
	rig_free(r);
}

static void session_keys_in_flight_stay(void **state)
{
	struct rig *r = rig_at_depth(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 2);
	struct flight one, two;
	struct xc_key before[KEYS];

	(void)state;
	rig_key_new(r, A_TX, 4, 0);
	for (uint64_t i = 0; i < 4; i++)
		rig_send(r, SSRC, 1 + 16 * i,
			A_TX); /* three epochs of session keys, and the first */
	begin(r, &one);
	assert_int_equal(one.jobs, 4);
	memcpy(before, r->a.key, sizeof(before));
	for (uint64_t i = 0; i < 12; i++)
		rig_send(r, SSRC, 1 + 16 * (40 + i), A_TX); /* more than fit */
	begin(r, &two);
	assert_int_equal(two.jobs, MEDIA_EPOCHS - 1 - 3);
	for (uint32_t i = 0; i < one.jobs; i++) {
		uint32_t slot = r->a.job[one.first + i].rx_key;

		assert_memory_equal(&r->a.key[slot], &before[slot], sizeof(before[slot]));
	}
	memcpy(before, r->a.key, sizeof(before));
	end(r, &one);
	assert_int_equal(r->outs, 4);
	for (uint32_t i = 0; i < two.jobs; i++) {
		uint32_t slot = r->a.job[two.first + i].rx_key;

		assert_memory_equal(&r->a.key[slot], &before[slot], sizeof(before[slot]));
	}
	end(r, &two);
	assert_int_equal(r->outs, two.jobs);
	rig_free(r);
}

static void a_command_makes_all_in_flight_stale(void **state)
{
	struct rig *r = rig_at_depth(SUITE_AES_CM_128_80, SUITE_AES_CM_128_32, 2);
	struct flight one, two;

	(void)state;
	rig_send(r, SSRC, 1, A_TX);
	begin(r, &one);
	rig_send(r, SSRC, 2, A_TX);
	begin(r, &two);
	rig_stream(r, rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000"));
	end(r, &one);
	end(r, &two);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_STALE), 2);
	rig_send(r, SSRC, 3, A_TX);
	begin(r, &one);
	end(r, &one);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* --- At any depth the same leaves ------------------------------------------------------------- */

struct play {
	struct rig *r;
	uint64_t random, index[3];
	uint32_t rtcp;
	uint64_t hash, sent;
};

static uint32_t below(struct play *p, uint32_t n)
{
	return (uint32_t)(sample_random(&p->random) % n);
}

/* Packets of several SSRCs over the wrap: lost, late, repeated and forged. */
static void some_packets(struct play *p)
{
	uint32_t n = below(p, SLOTS / DEPTH_MAX + 1);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t s = below(p, 3), what = below(p, 10);

		if (what == 0) {
			rig_send_rtcp(p->r, SSRC, ++p->rtcp);
			continue;
		}
		/* Without authentication only small gaps are accepted (media/jump.c). */
		p->index[s] +=
			what == 1 ? 1 + below(p, p->r->suite_a == SUITE_PLAIN ? 6 : 300) : what < 7;
		what = below(p, 8);
		rig_send(p->r, SSRC + s, p->index[s] - (what == 0 ? below(p, 200) : 0),
			A_TX)[what == 1 ? 20 : 0] ^= what == 1;
	}
}

static void heard(struct play *p)
{
	for (uint32_t i = 0; i < p->r->outs; i++) {
		const struct packet_out *o = &p->r->out[i];

		for (uint32_t k = 0; k < o->len; k++) /* FNV-1a */
			p->hash = (p->hash ^ p->r->a.out[o->out_off + k]) * 0x100000001b3ull;
		p->hash = (p->hash ^ o->local.port) * 0x100000001b3ull;
	}
	p->sent += p->r->outs;
}

static struct play play(enum srtp_suite_id from, uint32_t depth, uint64_t seed)
{
	struct play p = {.r = rig_at_depth(from, SUITE_AES_CM_128_32, depth),
		.random = seed,
		.index = {65500, 300, 65535},
		.hash = 0xcbf29ce484222325ull};
	struct flight f[DEPTH_MAX];
	uint32_t begun, ended;
	/* The order of completion uses a generator of its own, so that the packets stay the
	 * same. */
	uint64_t when = seed;

	/* An unknown SSRC is estimated from a few packets, so make all SSRCs known first. */
	for (uint32_t i = 0; i < ARRAY_LEN(p.index); i++)
		rig_send(p.r, SSRC + i, p.index[i], A_TX);
	begin(p.r, &f[0]);
	end(p.r, &f[0]);
	begun = ended = depth;
	while (begun < 80 + depth || ended < begun) {
		bool full = begun - ended == depth || begun >= 80 + depth;

		if (full || (ended < begun && sample_random(&when) % 3 == 0)) {
			end(p.r, &f[ended++ % depth]);
			heard(&p);
			continue;
		}
		some_packets(&p);
		begin(p.r, &f[begun++ % depth]);
	}
	rig_free(p.r);
	return p;
}

static void at_any_depth_the_same_leaves(void **state)
{
	static const enum srtp_suite_id from[] = {SUITE_AES_CM_128_80, SUITE_PLAIN};

	(void)state;
	for (uint64_t seed = 0; seed < 6; seed++) {
		struct play one = play(from[seed % 2], 1, seed);

		assert_true(one.sent > 100);
		for (uint32_t depth = 2; depth <= DEPTH_MAX; depth *= 2) {
			struct play more = play(from[seed % 2], depth, seed);

			assert_int_equal(more.sent, one.sent);
			assert_true(more.hash == one.hash);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_packet_in_two_bursts_is_received_once_and_sent_once),
		cmocka_unit_test(rtcp_is_numbered_on_over_what_is_in_flight),
		cmocka_unit_test(forged_rtcp_uses_no_indexes_up),
		cmocka_unit_test(a_first_wrap_between_two_bursts_loses_nothing),
		cmocka_unit_test(session_keys_in_flight_stay),
		cmocka_unit_test(a_command_makes_all_in_flight_stale),
		cmocka_unit_test(at_any_depth_the_same_leaves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
