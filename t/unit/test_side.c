/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The side channel: packets that are not media go to the keying thread's ring and back, within each
 * stream's share, and never to another call. */
#include "media_rig.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/secmem.h"
#include "packet/side.h"

enum { SERIAL = 77 };

#define STUN "\0\1\0\0\x21\x12\xa4\x42"
#define DTLS "\x16\xfe\xff\0\0\0\0\0\0\0\0\0\0"
#define ZRTP "\x10\0\0\1ZRTP\0\0\0\1\x50\x5a\0\3Hello   \0\0\0\0"

static struct side_channel *channel(void)
{
	struct side_channel *c = malloc(sizeof(*c));

	assert_non_null(c);
	assert_int_equal(side_init(c), 0);
	return c;
}

static void channel_free(struct side_channel *c)
{
	side_fini(c);
	free(c);
}

/* Side A's stream of a call with SRTP sends these kinds to the channel. */
static void use_side(struct rig *r, struct side_channel *c, uint8_t kinds, uint32_t serial)
{
	struct media_cmd cmd = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};

	r->m->cfg.side = c;
	cmd.stream = r->m->stream[A].cfg;
	cmd.stream.side = kinds;
	cmd.stream.side_serial = serial;
	assert_int_equal(media_command(r->m, &cmd), 0);
}

/* One packet to A's port; port 0: from A's terminal, else from a stranger with this port. */
static uint8_t arrive(struct rig *r, const void *p, uint32_t len, uint16_t port)
{
	memcpy(rig_slot(r, A, PORT_A), p, len);
	r->in[r->n - 1].len = len;
	if (port) {
		assert_int_equal(
			endpoint_parse(&r->in[r->n - 1].src, str_from("198.51.100.9:1")), 0);
		r->in[r->n - 1].src.port = port;
	}
	rig_run(r);
	return r->in[0].verdict;
}

static void each_kind_goes_where_its_bit_says(void **state)
{
	static const struct {
		const char *p;
		uint32_t len;
		enum side_kind kind;
	} T[] = {
		{STUN, sizeof(STUN) - 1, SIDE_STUN},
		{DTLS, sizeof(DTLS) - 1, SIDE_DTLS},
		{ZRTP, sizeof(ZRTP) - 1, SIDE_ZRTP},
	};

	(void)state;
	for (uint32_t kinds = 0; kinds <= SIDE_ALL; kinds++) {
		struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
		struct side_channel *c = channel();
		struct side_packet got;

		use_side(r, c, (uint8_t)kinds, SERIAL);
		for (size_t i = 0; i < ARRAY_LEN(T); i++) {
			bool taken = kinds & SIDE_BIT(T[i].kind);
			uint8_t v = arrive(r, T[i].p, T[i].len, 0);

			assert_int_equal(v == PACKET_SIDE, taken);
			assert_int_equal(r->outs, 0);
			assert_int_equal(media_side_count(r->m, T[i].kind), taken);
			assert_int_equal(side_read(c, &got), taken);
			if (!taken)
				continue;
			assert_int_equal(got.kind, T[i].kind);
			assert_int_equal(got.len, T[i].len);
			assert_memory_equal(got.bytes, T[i].p, T[i].len);
			assert_int_equal(got.stream, A);
			assert_int_equal(got.serial, SERIAL);
			assert_int_equal(got.local.port, PORT_A);
			assert_int_equal(got.peer.port, 4000);
			assert_true(got.believed);
		}
		/* RTP still takes the fast path. */
		assert_true(r->m->stream[A].fast);
		rig_send(r, 7, 100, A_TX);
		rig_run(r);
		assert_int_equal(r->in[0].verdict, PACKET_SENT);
		channel_free(c);
		rig_free(r);
	}
}

static void without_a_keying_thread_nothing_changes(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);

	(void)state;
	use_side(r, NULL, SIDE_ALL, SERIAL);
	assert_int_equal(arrive(r, STUN, sizeof(STUN) - 1, 0), PACKET_DROP_NOT_MEDIA);
	assert_int_equal(arrive(r, ZRTP, sizeof(ZRTP) - 1, 0), PACKET_DROP_MALFORMED);
	rig_free(r);
}

static void a_flood_of_strangers_leaves_the_terminals_share(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct side_channel *c = channel();
	struct side_packet got;
	uint32_t taken = 0, believed = 0;

	(void)state;
	use_side(r, c, SIDE_ALL, SERIAL);
	for (uint16_t i = 1; i <= 1000; i++)
		taken += arrive(r, STUN, sizeof(STUN) - 1, i) == PACKET_SIDE;
	assert_int_equal(taken, SIDE_SHARE_STRANGER);
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_SIDE_FULL), 1000 - taken);
	for (uint32_t i = 0; i < 100; i++)
		believed += arrive(r, DTLS, sizeof(DTLS) - 1, 0) == PACKET_SIDE;
	assert_int_equal(believed, SIDE_SHARE_BELIEVED);
	/* The share returns once the last of them was read, not before. */
	for (uint32_t i = 0; i < taken + believed - 1; i++)
		assert_true(side_read(c, &got));
	assert_int_equal(arrive(r, STUN, sizeof(STUN) - 1, 9), PACKET_DROP_SIDE_FULL);
	assert_true(side_read(c, &got));
	assert_int_equal(arrive(r, STUN, sizeof(STUN) - 1, 9), PACKET_SIDE);
	/* The packet confirmed no source and keeps no call alive. */
	assert_int_equal(r->m->counters[A].last_packet_ns, 0);
	assert_false(r->m->stream[A].learn.confirmed);
	channel_free(c);
	rig_free(r);
}

static void too_long_is_dropped(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct side_channel *c = channel();
	uint8_t p[SIDE_PACKET_MAX + 1] = {0x16, 0xfe, 0xff};

	(void)state;
	use_side(r, c, SIDE_ALL, SERIAL);
	assert_int_equal(arrive(r, p, SIDE_PACKET_MAX, 0), PACKET_SIDE);
	assert_int_equal(arrive(r, p, SIDE_PACKET_MAX + 1, 0), PACKET_DROP_TOO_LONG);
	channel_free(c);
	rig_free(r);
}

/* Many streams flood: the ring keeps its last entries for emergency calls. */
static void emergency_calls_have_a_reserve(void **state)
{
	struct side_channel *c = channel();
	struct side_share share[SIDE_ENTRIES] = {0};
	struct side_packet head = {.believed = true};
	uint32_t n = 0, more = 0;

	(void)state;
	for (uint32_t i = 0; i < SIDE_ENTRIES; i++)
		n += side_take(c, &share[i], &head, (const uint8_t *)STUN, 8) == 0;
	assert_int_equal(n, SIDE_ENTRIES - SIDE_RESERVE);
	head.emergency = true;
	for (uint32_t i = 0; i < SIDE_ENTRIES; i++)
		more += side_take(c, &share[i], &head, (const uint8_t *)STUN, 8) == 0;
	assert_int_equal(more, SIDE_RESERVE);
	channel_free(c);
}

/* Strangers flood the ports of many calls: packets of all other terminals still get through. */
static void believed_sources_have_a_reserve(void **state)
{
	struct side_channel *c = channel();
	struct side_share share[SIDE_ENTRIES] = {0};
	struct side_packet head = {.believed = false};
	uint32_t n = 0, more = 0;

	(void)state;
	for (uint32_t i = 0; i < 10 * SIDE_ENTRIES; i++)
		n += side_take(c, &share[i % 100], &head, (const uint8_t *)STUN, 8) == 0;
	assert_int_equal(n, SIDE_ENTRIES - SIDE_RESERVE - SIDE_BELIEVED);
	head.believed = true;
	for (uint32_t i = 100; i < SIDE_ENTRIES; i++)
		more += side_take(c, &share[i], &head, (const uint8_t *)STUN, 8) == 0;
	assert_int_equal(more, SIDE_BELIEVED);
	channel_free(c);
}

/* In any order of taking, reading and returning, no stream holds more of the ring than its
 * share. */
static void a_share_is_never_exceeded(void **state)
{
	struct side_channel *c = channel();
	struct side_share share[8] = {0};
	uint32_t in_ring[8][2] = {{0}}, seed = 1;
	struct side_packet got;

	(void)state;
	for (uint32_t i = 0; i < 200000; i++) {
		struct side_packet head = {0};

		seed = seed * 1664525u + 1013904223u;
		head.stream = (seed >> 8) % 8 % (1 + (seed >> 12) % 8);
		head.believed = seed >> 16 & 1;
		if ((seed >> 24) % 5 < 3) {
			if (side_take(c, &share[head.stream], &head, (const uint8_t *)STUN, 8) == 0)
				in_ring[head.stream][head.believed]++;
		} else if (side_read(c, &got)) {
			in_ring[got.stream][got.believed]--;
		}
		assert_true(in_ring[head.stream][true] <= SIDE_SHARE_BELIEVED);
		assert_true(in_ring[head.stream][false] <= SIDE_SHARE_STRANGER);
	}
	channel_free(c);
}

static bool nowhere(void *arg, const struct endpoint *signalled, const struct endpoint *src)
{
	(void)arg, (void)signalled, (void)src;
	return false;
}

static bool anywhere(void *arg, const struct endpoint *to)
{
	(void)arg, (void)to;
	return true;
}

static void only_the_same_session_is_sent_for(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct side_channel *c = channel();
	struct side_packet p = {.stream = A, .serial = SERIAL, .len = 8, .bytes = STUN};
	struct media_cmd del = {.type = MEDIA_STREAM_DEL, .id = A};
	struct packet_out out;

	(void)state;
	assert_int_equal(endpoint_parse(&p.peer, str_from("198.51.100.9:7000")), 0);
	assert_int_equal(media_side_out(r->m, &r->a, 0, &p, &out), MEDIA_SIDE_STALE);
	use_side(r, c, SIDE_ALL, SERIAL);
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_SENDS);
	assert_int_equal(out.local.port, PORT_A);
	assert_true(endpoint_eq(&out.dst, &p.peer));
	assert_memory_equal(r->a.out + out.out_off, STUN, 8);
	p.peer.port = 0;
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_REFUSED);
	p.peer.port = 7000;
	r->m->cfg.may_learn = nowhere; /* media may not go to this address */
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_REFUSED);
	r->m->cfg.may_check = anywhere; /* of STUN alone */
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_SENDS);
	p.kind = SIDE_DTLS;
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_REFUSED);
	p.kind = SIDE_STUN;
	r->m->cfg.may_learn = NULL;
	r->m->cfg.may_check = NULL;
	p.stream = UINT32_MAX;
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_STALE);
	p.stream = A;
	use_side(r, c, SIDE_ALL, SERIAL + 1); /* the next session of this stream */
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_STALE);
	p.serial++;
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_SENDS);
	assert_int_equal(media_command(r->m, &del), 0);
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_STALE);
	channel_free(c);
	rig_free(r);
}

/* Packets that follow the terminal go where its authentic media come from, and only there. */
static void packets_follow_authentic_media(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct side_channel *c = channel();
	struct side_packet p = {.stream = A, .serial = SERIAL, .kind = SIDE_ZRTP, .len = 8};
	struct endpoint moved;
	struct packet_out out;

	(void)state;
	assert_int_equal(endpoint_parse(&p.peer, str_from("198.51.100.9:7000")), 0);
	assert_int_equal(endpoint_parse(&moved, str_from("198.51.100.7:9000")), 0);
	use_side(r, c, SIDE_ALL, SERIAL);
	for (int forged = 1; forged >= 0; forged--) {
		uint8_t *rtp = rig_send(r, 7, 100, A_TX);

		rtp[20] ^= (uint8_t)forged;
		r->in[r->n - 1].src = moved;
		rig_run(r);
		for (int follows = 0; follows < 2; follows++) {
			p.follows = follows;
			assert_int_equal(
				media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_SENDS);
			assert_true(endpoint_eq(&out.dst, follows && !forged ? &moved : &p.peer));
		}
	}
	r->m->stream[A].learn.proved = false; /* as of a source of media in clear */
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_SENDS);
	assert_true(endpoint_eq(&out.dst, &p.peer));
	r->m->stream[A].learn.proved = true;
	r->m->cfg.may_learn = nowhere;
	assert_int_equal(media_side_out(r->m, &r->a, 3, &p, &out), MEDIA_SIDE_REFUSED);
	channel_free(c);
	rig_free(r);
}

/* --- Two threads ------------------------------------------------------------------------------ */

enum { MANY = 20000 };

/* Returns every packet, and sleeps while the ring is empty. */
static void *echo(void *arg)
{
	struct side_channel *c = arg;
	struct side_packet p;
	uint32_t n = 0;

	while (n < MANY) {
		struct pollfd fd = {.fd = c->thread_fd, .events = POLLIN};
		uint64_t count;

		while (side_read(c, &p)) {
			n++;
			while (side_give(c, &p))
				side_give_end(c);
		}
		side_give_end(c);
		if (n < MANY && side_sleep(c)) {
			assert_int_equal(poll(&fd, 1, 60000), 1); /* otherwise a wake-up was lost */
			(void)!read(c->thread_fd, &count, sizeof(count));
		}
	}
	return NULL;
}

static void no_packet_and_no_wake_up_is_lost_between_threads(void **state)
{
	struct side_channel *c = channel();
	struct side_packet head = {.believed = true}, got;
	struct side_share share = {0};
	uint32_t sent = 0, back = 0;
	pthread_t thread;

	(void)state;
	c->thread_fd = eventfd(0, 0);
	c->worker_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(pthread_create(&thread, NULL, echo, c), 0);
	while (back < MANY) {
		struct pollfd fd = {.fd = c->worker_fd, .events = POLLIN};
		uint64_t count;

		for (uint32_t i = 0; i < 7 && sent < MANY; i++) {
			head.serial = sent;
			sent += side_take(c, &share, &head, (const uint8_t *)STUN, 8) == 0;
		}
		side_flush(c);
		if (!side_waits(c)) {
			assert_int_equal(poll(&fd, 1, 60000), 1);
			(void)!read(c->worker_fd, &count, sizeof(count));
		}
		while (side_next(c, &got))
			assert_int_equal(got.serial, back++);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	close(c->thread_fd);
	close(c->worker_fd);
	channel_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_goes_where_its_bit_says),
		cmocka_unit_test(without_a_keying_thread_nothing_changes),
		cmocka_unit_test(a_flood_of_strangers_leaves_the_terminals_share),
		cmocka_unit_test(too_long_is_dropped),
		cmocka_unit_test(emergency_calls_have_a_reserve),
		cmocka_unit_test(believed_sources_have_a_reserve),
		cmocka_unit_test(a_share_is_never_exceeded),
		cmocka_unit_test(only_the_same_session_is_sent_for),
		cmocka_unit_test(packets_follow_authentic_media),
		cmocka_unit_test(no_packet_and_no_wake_up_is_lost_between_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
