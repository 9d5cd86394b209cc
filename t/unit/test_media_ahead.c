/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Media that arrive before the keys of their handshake. They wait, and are processed under the keys
 * as if they arrived then. A sends to B. */
#include "media_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "media/ahead.h"
#include "media/side.h"
#include "packet/side.h"

#define K80 SUITE_AES_CM_128_80
#define MS  1000000ull

static void set(struct rig *r, struct media_cmd *cmd)
{
	assert_int_equal(media_command(r->m, cmd), 0);
}

/* A's keys: awaited or present. */
static void keys(struct rig *r, bool awaited)
{
	struct media_cmd c = {.type = MEDIA_CTX_SET, .id = 0, .now_ns = 1};

	c.ctx = r->m->ctx_cfg[0];
	c.ctx.rx = c.ctx.tx = (struct media_crypto){.awaited = true};
	if (!awaited) {
		c.ctx.rx = rig_crypto(r, A_TX, K80);
		c.ctx.tx = rig_crypto(r, A_RX, K80);
		c.ctx.rx_new = c.ctx.tx_new = true;
	}
	set(r, &c);
}

static struct rig *awaiting(void)
{
	struct rig *r = rig_new(K80, K80, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	a.stream.side = SIDE_BIT(SIDE_DTLS);
	a.stream.side_serial = 1;
	set(r, &a);
	keys(r, true);
	return r;
}

static void send_at(struct rig *r, uint64_t index, uint64_t ms)
{
	rig_send(r, 0x11, index, A_TX);
	r->in[r->n - 1].t_ns = 1 + ms * MS;
}

/* Moves kept packets into the next burst, as the worker does. Returns their number. */
static uint32_t take(struct rig *r, uint64_t ms)
{
	r->n = media_ahead_take(r->m, &r->a, r->first, r->in, SLOTS, 1 + ms * MS);
	return r->n;
}

static void media_ahead_of_keys_are_not_lost(void **state)
{
	struct rig *r = awaiting();

	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		send_at(r, i, i);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 0);
	assert_true(media_ahead_waits(r->m));
	assert_int_equal(take(r, 5), 0);
	keys(r, false);
	assert_int_equal(take(r, 6), 3);
	assert_false(media_ahead_waits(r->m));
	rig_run(r);
	assert_int_equal(r->outs, 3);
	for (uint32_t k = 0; k < 3; k++)
		rig_got(r, k, 0x11, k + 1, k + 1);
	/* Later packets are processed as usual. */
	send_at(r, 4, 7);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* Kept packets are not authenticated yet: forgeries are dropped once the keys arrive. */
static void forgeries_are_dropped_then(void **state)
{
	struct rig *r = awaiting();

	(void)state;
	rig_send(r, 0x11, 1, A_TX)[40] ^= 1;
	send_at(r, 2, 0);
	rig_run(r);
	keys(r, false);
	assert_int_equal(take(r, 1), 2);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_BAD_TAG), 1);
	rig_free(r);
}

static void few_are_kept_and_not_for_long(void **state)
{
	struct rig *r = awaiting();

	(void)state;
	for (uint64_t i = 1; i <= MEDIA_AHEAD_SHARE + 3; i++) {
		send_at(r, i, 0);
		rig_run(r);
	}
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 3);
	/* Old packets are dropped with the next packet, or at the next take. */
	send_at(r, 90, 2001);
	rig_run(r);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 3 + MEDIA_AHEAD_SHARE);
	assert_int_equal(r->m->ahead->n, 1);
	keys(r, false);
	assert_int_equal(take(r, 4002), 0);
	assert_false(media_ahead_waits(r->m));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 4 + MEDIA_AHEAD_SHARE);
	rig_free(r);
}

/* Fills n places: packet i is of stream i / each, plus first. */
static void fill(struct media_ahead *all, uint32_t n, uint32_t first, uint32_t each)
{
	memset(all, 0, sizeof(*all));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t stream = first + i / each;
		struct ahead_bucket *b = &all->bucket[stream % MEDIA_AHEAD_MAX];
		bool last = i + 1 == n;

		all->in[i].t_ns = 1;
		all->link[i] = (struct ahead_link){.stream = stream,
			.before = (uint16_t)i,
			.after = last ? 0 : (uint16_t)(i + 2),
			.later = (i + 1) % each ? (uint16_t)(i + 2) : 0};
		b->first = b->first ? b->first : (uint16_t)(i + 1);
		b->last = (uint16_t)(i + 1);
		b->n++;
	}
	all->first = 1;
	all->last = all->used = (uint16_t)n;
	all->n = n;
}

/* One's media ahead of keys that never come fill all places; another's find one all the same. */
static void many_streams_of_one_cost_no_other_its_places(void **state)
{
	struct rig *r = awaiting();

	(void)state;
	fill(r->m->ahead, MEDIA_AHEAD_MAX, 1, MEDIA_AHEAD_SHARE);
	for (uint64_t i = 1; i <= 4; i++)
		send_at(r, i, 1);
	rig_run(r);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 0);
	assert_int_equal(r->m->ahead->n, MEDIA_AHEAD_MAX);
	fill(r->m->ahead, MEDIA_AHEAD_MAX, 0, 1);
	send_at(r, 5, 1); /* nobody has more than this stream */
	rig_run(r);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 1);
	rig_free(r);
}

static void a_clock_that_is_set_back_keeps_nothing_for_long(void **state)
{
	struct rig *r = awaiting();

	(void)state;
	send_at(r, 1, 5000);
	rig_run(r);
	assert_true(media_ahead_waits(r->m));
	assert_int_equal(take(r, 4000), 0); /* it is set a little */
	assert_true(media_ahead_waits(r->m));
	assert_int_equal(take(r, 2999), 0);
	assert_false(media_ahead_waits(r->m));
	rig_free(r);
}

static void strangers_are_not_kept(void **state)
{
	struct rig *r = awaiting();

	(void)state;
	send_at(r, 1, 0);
	assert_int_equal(endpoint_parse(&r->in[0].src, STR("203.0.113.9:4000")), 0);
	rig_run(r);
	assert_false(media_ahead_waits(r->m));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 1);
	rig_free(r);
}

/* Every list has the packets that it counts, oldest first. */
static void lists_are_whole(const struct media_ahead *all)
{
	uint32_t n = 0, of_buckets = 0;
	uint16_t last = 0;

	for (uint16_t at = all->first; at; at = all->link[at - 1].after) {
		assert_int_equal(all->link[at - 1].before, last);
		assert_true(!last || all->in[last - 1].t_ns <= all->in[at - 1].t_ns);
		last = at;
		n++;
	}
	assert_int_equal(n, all->n);
	assert_int_equal(all->last, last);
	for (uint32_t i = 0; i < MEDIA_AHEAD_MAX; i++) {
		const struct ahead_bucket *b = &all->bucket[i];
		uint32_t found = 0;

		last = 0;
		for (uint16_t at = b->first; at; at = all->link[at - 1].later) {
			assert_int_equal(all->link[at - 1].stream % MEDIA_AHEAD_MAX, i);
			assert_true(!last || all->in[last - 1].t_ns <= all->in[at - 1].t_ns);
			last = at;
			found++;
		}
		assert_int_equal(found, b->n);
		assert_int_equal(b->last, last);
		of_buckets += found;
	}
	assert_int_equal(of_buckets, n);
	for (uint16_t at = all->free; at; at = all->link[at - 1].after)
		n++;
	assert_int_equal(n, all->used);
}

static bool keep(struct rig *r, uint32_t stream, uint64_t ns)
{
	struct packet_in in = {.src = r->m->stream[stream].cfg.remote,
		.local = r->m->stream[stream].cfg.local,
		.t_ns = ns};

	return media_ahead_keep(r->m, &r->a, &in, stream);
}

/* Packets of A and B arrive by chance, and A's keys come now and then: the last 64 of A's packets
 * that are not too old leave in order, and B's stay. */
static void the_oldest_make_room_and_order_stays(void **state)
{
	static uint64_t model[2][MEDIA_AHEAD_SHARE];
	struct rig *r = awaiting();
	uint32_t n[2] = {0}, seed = 1;
	struct media_cmd b = rig_stream_cmd(B, PORT_B, 1, A, B_RTCP, "192.0.2.2:4000");

	(void)state;
	b.stream.side = SIDE_BIT(SIDE_DTLS);
	b.stream.side_serial = 2;
	set(r, &b);
	r->m->ctx[1].rx.set = r->m->ctx[1].tx.set = false;
	r->m->ctx[1].cfg->rx.awaited = true;
	for (uint64_t now = 1; now < 4000ull * 10 * MS; now += (seed >> 8) % (40 * MS)) {
		uint32_t who = (seed = seed * 1664525 + 1013904223) >> 31;

		for (int i = 0; i < 2; i++) /* too old */
			while (n[i] && now > model[i][0] + MEDIA_AHEAD_NS)
				memmove(model[i], model[i] + 1, --n[i] * sizeof(now));
		if (n[who] == MEDIA_AHEAD_SHARE)
			memmove(model[who], model[who] + 1, --n[who] * sizeof(now));
		model[who][n[who]++] = now;
		assert_true(keep(r, who ? B : A, now));
		assert_int_equal(r->m->ahead->n, n[0] + n[1]);
		lists_are_whole(r->m->ahead);
		if (seed % 101)
			continue;
		keys(r, false);
		for (uint32_t i = 0; i < n[0];) {
			r->n = media_ahead_take(r->m, &r->a, r->first, r->in, SLOTS, now);
			assert_in_range(r->n, 1, n[0] - i);
			for (uint32_t k = 0; k < r->n; k++)
				assert_int_equal(r->in[k].t_ns, model[0][i++]);
		}
		assert_int_equal(media_ahead_take(r->m, &r->a, r->first, r->in, SLOTS, now), 0);
		keys(r, true);
		n[0] = 0;
		lists_are_whole(r->m->ahead);
	}
	r->n = 0;
	rig_free(r);
}

/* Stream 256 has the bucket of A. */
static void two_streams_of_a_bucket_keep_their_shares(void **state)
{
	struct rig *r = awaiting();
	struct media_ahead *all = r->m->ahead;
	uint32_t of_a = 0;

	(void)state;
	fill(all, 32, MEDIA_AHEAD_MAX, MEDIA_AHEAD_SHARE);
	for (uint64_t i = 1; i <= 2 * MEDIA_AHEAD_SHARE; i++) {
		assert_true(keep(r, A, i));
		lists_are_whole(all);
	}
	for (uint16_t at = all->first; at; at = all->link[at - 1].after)
		if (all->link[at - 1].stream == A)
			assert_int_equal(all->in[at - 1].t_ns, MEDIA_AHEAD_SHARE + ++of_a);
	assert_int_equal(of_a, MEDIA_AHEAD_SHARE);
	assert_int_equal(all->n, 32 + MEDIA_AHEAD_SHARE);
	rig_free(r);
}

/* No packets are kept without a handshake, or after the stream was closed. */
static void streams_without_a_session_keep_nothing(void **state)
{
	struct rig *r = awaiting();
	struct media_cmd a = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};

	(void)state;
	send_at(r, 1, 0);
	rig_run(r);
	assert_int_equal(r->m->ahead->n, 1);
	a.stream = r->m->stream[A].cfg;
	a.stream.side = 0;
	set(r, &a);
	send_at(r, 2, 0);
	rig_run(r);
	assert_int_equal(r->m->ahead->n, 1);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_INACTIVE), 1);
	a = (struct media_cmd){.type = MEDIA_STREAM_DEL, .id = A, .now_ns = 2};
	set(r, &a);
	assert_int_equal(take(r, 1), 0);
	assert_false(media_ahead_waits(r->m));
	rig_free(r);
}

/* A is in clear until its exchange of ZRTP ends, B has RTP all the time. */
static struct rig *in_clear(void)
{
	struct rig *r = rig_new(K80, SUITE_PLAIN, 0);
	struct media_cmd a = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");

	a.stream.side = SIDE_BIT(SIDE_ZRTP);
	a.stream.side_serial = 1;
	set(r, &a);
	rig_ctx_plain(r, 0);
	r->suite_a = SUITE_PLAIN; /* of the terminal's packets */
	return r;
}

/* The relay's last packet of the exchange. */
static void end_exchange(struct rig *r, bool gives_keys)
{
	const struct side_packet p = {.kind = SIDE_ZRTP,
		.believed = gives_keys,
		.stream = A,
		.serial = 1,
		.len = 28,
		.peer = r->m->stream[A].cfg.remote};
	struct packet_out out;

	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_SENDS);
}

static void srtp_after_clear_media_waits_for_the_keys(void **state)
{
	struct rig *r = in_clear();

	(void)state;
	send_at(r, 1, 1);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	end_exchange(r, false); /* another packet of ZRTP */
	send_at(r, 2, 2);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	end_exchange(r, true);
	send_at(r, 3, 3); /* in clear: it was on its way */
	r->suite_a = K80;
	for (uint64_t i = 4; i <= 6; i++)
		send_at(r, i, i);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_int_equal(take(r, 7), 0);
	keys(r, false);
	assert_int_equal(take(r, 8), 4);
	rig_run(r);
	assert_int_equal(r->outs, 3);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_BAD_TAG), 1);
	send_at(r, 7, 9);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

static void a_stranger_s_packets_are_dropped_meanwhile(void **state)
{
	struct rig *r = in_clear();

	(void)state;
	send_at(r, 1, 1);
	rig_run(r);
	end_exchange(r, true);
	send_at(r, 2, 2);
	assert_int_equal(endpoint_parse(&r->in[0].src, STR("203.0.113.9:4000")), 0);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	assert_false(media_ahead_waits(r->m));
	rig_free(r);
}

/* The call does not allow their suite: media go on as before. */
static void clear_media_continue_if_no_keys_come(void **state)
{
	struct rig *r = in_clear();

	(void)state;
	end_exchange(r, true);
	send_at(r, 1, 10000); /* much later than the exchange */
	rig_run(r);
	send_at(r, 2, 11999);
	rig_run(r);
	assert_int_equal(r->outs, 0);
	send_at(r, 3, 12001);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

/* They have keys, or are awaited in any case. */
static void other_streams_do_not_wait(void **state)
{
	struct rig *r = awaiting();

	(void)state;
	keys(r, false);
	end_exchange(r, true);
	send_at(r, 1, 1);
	rig_run(r);
	assert_int_equal(r->outs, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(media_ahead_of_keys_are_not_lost),
		cmocka_unit_test(forgeries_are_dropped_then),
		cmocka_unit_test(few_are_kept_and_not_for_long),
		cmocka_unit_test(many_streams_of_one_cost_no_other_its_places),
		cmocka_unit_test(the_oldest_make_room_and_order_stays),
		cmocka_unit_test(two_streams_of_a_bucket_keep_their_shares),
		cmocka_unit_test(a_clock_that_is_set_back_keeps_nothing_for_long),
		cmocka_unit_test(strangers_are_not_kept),
		cmocka_unit_test(streams_without_a_session_keep_nothing),
		cmocka_unit_test(srtp_after_clear_media_waits_for_the_keys),
		cmocka_unit_test(a_stranger_s_packets_are_dropped_meanwhile),
		cmocka_unit_test(clear_media_continue_if_no_keys_come),
		cmocka_unit_test(other_streams_do_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
