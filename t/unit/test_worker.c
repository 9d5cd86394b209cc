/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The worker loop with all real parts except the kernel: steering is a pair of queues in memory,
 * and the terminals are libsrtp2. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <cmocka.h>
#include <srtp2/srtp.h>

#include "batch/engine.h"
#include "packet/arena.h"
#include "worker/worker.h"
#include "base/clock.h"
#include "base/secmem.h"
#include "engine_mock.h"
#include "srtp/kdf.h"

enum { BURST = 64, PORT_A = 30000, PORT_B = 30002, NO_PORT = 9, CALLS = 400 };

/* --- Steering in memory ----------------------------------------------------------------------- */

struct wire { /* one datagram */
	struct local_port local;
	struct endpoint far;
	uint32_t len;
	uint8_t bytes[512];
};

struct steer { /* of the test: one instance, two rings */
	struct ring in, out;
	int event_fd;
	struct steer_counters counters;
	_Atomic uint32_t ports, passed, carries;
	_Atomic uint32_t gathers; /* times that the worker let it gather */
	uint32_t waits;           /* successful calls of send_and_wait() */
	_Atomic uint32_t held;    /* packets sent by them */
	uint64_t longest_ns;      /* wait that the worker asked for */
};

static struct steer mem;

static int mem_create(struct steer **out, const struct steer_config *cfg, uint32_t worker,
	char *err, size_t err_len)
{
	(void)cfg, (void)worker, (void)err, (void)err_len;
	*out = &mem;
	return 0;
}

static void mem_destroy(struct steer *s)
{
	(void)s;
}

static int mem_fd(const struct steer *s)
{
	return s->event_fd;
}

static int mem_port_add(struct steer *s, struct local_port local, int fd)
{
	(void)local, (void)fd;
	s->ports++;
	return 0;
}

static void mem_port_del(struct steer *s, struct local_port local)
{
	(void)local;
	s->ports--;
}

static void mem_carries(struct steer *s, struct local_port local, unsigned what)
{
	if (local.port == PORT_A)
		s->carries = what;
}

static uint32_t mem_recv(
	struct steer *s, const struct arena *a, uint32_t first, struct packet_in *in, uint32_t max)
{
	struct wire w;
	uint64_t count;
	uint32_t n = 0;

	(void)!read(s->event_fd, &count, sizeof(count));
	while (n < max && ring_pop(&s->in, &w)) {
		uint32_t slot = first + n;

		in[n] = (struct packet_in){.src = w.far,
			.local = w.local,
			.in_off = slot * ARENA_SLOT_LEN + ARENA_HEADROOM,
			.len = w.len,
			.slot = slot,
			.t_ns = clock_real_ns()};
		memcpy(a->in + in[n].in_off, w.bytes, w.len);
		n++;
	}
	return n;
}

static void mem_send(struct steer *s, const struct arena *a, struct packet_out *out, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct wire w = {.local = out[i].local, .far = out[i].dst, .len = out[i].len};

		memcpy(w.bytes, a->out + out[i].out_off, w.len);
		out[i].failed = ring_push(&s->out, &w, 1) != 0;
	}
}

static void mem_verdict(struct steer *s, const struct packet_in *in, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		s->passed += in[i].verdict == PACKET_PASS;
}

static const struct steer_counters *mem_counters(const struct steer *s)
{
	return &s->counters;
}

static const struct steer_ops steer_mem = {
	.name = "memory",
	.create = mem_create,
	.destroy = mem_destroy,
	.fd = mem_fd,
	.port_add = mem_port_add,
	.port_del = mem_port_del,
	.carries = mem_carries,
	.recv = mem_recv,
	.send = mem_send,
	.verdict = mem_verdict,
	.counters = mem_counters,
};

/* The worker's thread calls this. An assertion that fails there ends the program without a word. */
static void mem_note_wait(struct steer *s, uint64_t wait_ns)
{
	if (wait_ns > s->longest_ns)
		s->longest_ns = wait_ns;
}

/* Signals its descriptor for every packet, so it need not wait for any. */
static enum steer_gather mem_gather(struct steer *s, uint64_t wait_ns)
{
	mem_note_wait(s, wait_ns);
	s->gathers++;
	return ring_empty(&s->in) ? STEER_GATHER_WAIT : STEER_GATHER_NOW;
}

/* Waits for a packet, a millisecond at most. Leaves every fourth time to send() and gather(). */
static bool mem_send_and_wait(struct steer *s, const struct arena *a, struct packet_out *out,
	uint32_t n, struct steer_wait *w)
{
	struct pollfd p = {.fd = s->event_fd, .events = POLLIN};

	mem_note_wait(s, w->wait_ns);
	if (++s->waits % 4 == 0)
		return false;
	mem_send(s, a, out, n);
	s->held += n;
	w->sent_real_ns = clock_real_ns();
	w->sent_ns = clock_mono_ns();
	poll(&p, 1, 1);
	w->polled = true;
	return true;
}

static int mem_wakes(struct steer *s, int epoll)
{
	(void)s, (void)epoll;
	return 0;
}

/* --- A worker with one call: side A speaks 80, side B speaks 32 ------------------------------- */

struct rig {
	struct engine *serial;
	struct batch_device device; /* of two batches in flight */
	struct worker *w;
	struct side_channel side;
	struct srtp_master a_rx, a_tx, b_rx,
		b_tx; /* from the relay's view: rx from the terminal, tx to it */
	int ack_fd;
};

static void wait_for_commands(struct rig *r, uint64_t n)
{
	uint64_t until = clock_mono_ns() + 60 * NS_PER_SEC;

	worker_wake(r->w);
	while (atomic_load(&r->w->commands) < n && clock_mono_ns() < until)
		usleep(100);
	assert_true(atomic_load(&r->w->commands) >= n);
	assert_int_equal(atomic_load(&r->w->command_errors), 0);
}

static void master(struct srtp_master *m, enum srtp_suite_id suite, uint8_t fill)
{
	*m = (struct srtp_master){.suite = suite};
	memset(m->key, fill, 16);
	memset(m->salt, fill ^ 0x5a, 14);
}

static void key_set(struct rig *r, uint32_t slot, const struct srtp_master *m)
{
	struct worker_cmd cmd = {.kind = WORKER_KEY_SET, .id = slot};

	assert_int_equal(srtp_key_fill(&batch_runner_arena(r->w->runner)->key[slot], m), 0);
	assert_int_equal(ring_push(&r->w->cmds, &cmd, 1), 0);
}

static void ctx_set(struct rig *r, uint32_t id, uint32_t rx, enum srtp_suite_id rx_suite,
	uint32_t tx, enum srtp_suite_id tx_suite)
{
	struct worker_cmd cmd = {.kind = WORKER_MEDIA};

	cmd.media = (struct media_cmd){.type = MEDIA_CTX_SET,
		.id = id,
		.ctx = {.rx = {.key = {{.slot = rx}}, .keys = rx != 0, .suite = rx_suite},
			.tx = {.key = {{.slot = tx}}, .keys = tx != 0, .suite = tx_suite},
			.rx_new = true,
			.tx_new = true}};
	assert_int_equal(ring_push(&r->w->cmds, &cmd, 1), 0);
}

static void stream_set(
	struct rig *r, uint32_t id, uint16_t port, uint32_t ctx, uint32_t to, const char *remote)
{
	struct worker_cmd cmd = {.kind = WORKER_MEDIA};

	cmd.media = (struct media_cmd){.type = MEDIA_STREAM_SET,
		.id = id,
		.now_ns = clock_real_ns(),
		.stream = {.local = {.port = port},
			.rtp = true,
			.rtcp = true,
			.ctx = ctx,
			.rtp_to = to,
			.rtcp_to = to,
			.learning = MEDIA_LEARN_OFF}};
	assert_int_equal(endpoint_parse(&cmd.media.stream.remote, str_from(remote)), 0);
	assert_int_equal(ring_push(&r->w->cmds, &cmd, 1), 0);
}

enum by_kernel { NOTHING, GATHERS, WAITS };

static int setup_with(void **state, uint32_t depth, enum by_kernel does)
{
	static struct steer_ops ops;
	struct rig *r = calloc(1, sizeof(*r));
	struct steer_config steer = {.port_min = 30000,
		.port_max = 30009,
		.locals = 1,
		.workers = 1,
		.burst_max = BURST};
	struct media_config media = {.max_ctx = 4,
		.max_stream = 4,
		.port_min = 30000,
		.port_max = 30009,
		.local_addrs = 1,
		.burst_max = BURST};
	struct batch_runner_config batch = {
		.slots = depth * BURST, .key_slots = 16, .batch_max = BURST, .depth = depth};
	struct worker_config cfg = {.steer_ops = &ops,
		.steer = &steer,
		.media = &media,
		.batch = &batch,
		.batch_max = BURST,
		.batch_window_ns = 250000};
	char err[256];

	assert_non_null(r);
	ops = steer_mem;
	ops.gather = does ? mem_gather : NULL;
	ops.wakes = does ? mem_wakes : NULL;
	ops.send_and_wait = does == WAITS ? mem_send_and_wait : NULL;
	assert_int_equal(
		engine_serial.open(&r->serial, &(struct engine_config){0}, err, sizeof(err)), 0);
	batch.serial = r->serial;
	if (depth > 1) {
		r->device = (struct batch_device){.ops = &engine_mock, .weight = 1, .fixed_min = 2};
		assert_int_equal(engine_mock.open(&r->device.engine, &(struct engine_config){0},
					 err, sizeof(err)),
			0);
		mock_control(r->device.engine)->depth = depth;
		mock_control(r->device.engine)->looks = 2;
		batch.device = &r->device;
		batch.devices = 1;
	}
	memset(&mem, 0, sizeof(mem));
	assert_int_equal(ring_init(&mem.in, 4096, sizeof(struct wire)), 0);
	assert_int_equal(ring_init(&mem.out, 4096, sizeof(struct wire)), 0);
	mem.event_fd = eventfd(0, EFD_NONBLOCK);
	cfg.ack_fd = r->ack_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(side_init(&r->side), 0);
	r->side.thread_fd = eventfd(0, EFD_NONBLOCK);
	cfg.side = &r->side;
	assert_int_equal(worker_create(&r->w, &cfg, err, sizeof(err)), 0);
	assert_int_equal(worker_start(r->w), 0);
	master(&r->a_rx, SUITE_AES_CM_128_80, 1);
	master(&r->a_tx, SUITE_AES_CM_128_80, 2);
	master(&r->b_rx, SUITE_AES_CM_128_32, 3);
	master(&r->b_tx, SUITE_AES_CM_128_32, 4);
	key_set(r, 2, &r->a_rx);
	key_set(r, 4, &r->a_tx);
	key_set(r, 6, &r->b_rx);
	key_set(r, 8, &r->b_tx);
	ctx_set(r, 0, 2, SUITE_AES_CM_128_80, 4, SUITE_AES_CM_128_80);
	ctx_set(r, 1, 6, SUITE_AES_CM_128_32, 8, SUITE_AES_CM_128_32);
	stream_set(r, 0, PORT_A, 0, 1, "192.0.2.1:4000");
	stream_set(r, 1, PORT_B, 1, 0, "192.0.2.2:5000");
	wait_for_commands(r, 8);
	*state = r;
	return 0;
}

static int setup(void **state)
{
	return setup_with(state, 1, NOTHING);
}

static int setup_two(void **state)
{
	return setup_with(state, 2, NOTHING);
}

static int setup_gathers(void **state)
{
	return setup_with(state, 1, GATHERS);
}

static int setup_waits(void **state)
{
	return setup_with(state, 1, WAITS);
}

static int setup_two_gathers(void **state)
{
	return setup_with(state, 2, GATHERS);
}

static int teardown(void **state)
{
	struct rig *r = *state;

	worker_destroy(r->w);
	/* Packets that come slowly get the longest window, as on a busy machine. */
	assert_true(mem.longest_ns <= COALESCE_CODEC_NS);
	if (r->device.engine)
		engine_mock.close(r->device.engine);
	engine_serial.close(r->serial);
	ring_fini(&mem.in);
	ring_fini(&mem.out);
	close(mem.event_fd);
	close(r->ack_fd);
	close(r->side.thread_fd);
	side_fini(&r->side);
	free(r);
	return 0;
}

static srtp_t terminal(const struct srtp_master *m, srtp_ssrc_type_t direction)
{
	uint8_t key[30];
	srtp_policy_t policy = {.ssrc = {.type = direction}, .key = key, .window_size = 128};
	srtp_t s;

	memcpy(key, m->key, 16);
	memcpy(key + 16, m->salt, 14);
	srtp_crypto_policy_set_rtcp_default(&policy.rtcp);
	if (m->suite == SUITE_AES_CM_128_80)
		srtp_crypto_policy_set_rtp_default(&policy.rtp);
	else
		srtp_crypto_policy_set_aes_cm_128_hmac_sha1_32(&policy.rtp);
	assert_int_equal(srtp_create(&s, &policy), srtp_err_status_ok);
	return s;
}

static void put(const struct wire *w)
{
	uint64_t one = 1;

	assert_int_equal(ring_push(&mem.in, w, 1), 0);
	assert_int_equal(write(mem.event_fd, &one, sizeof(one)), sizeof(one));
}

static bool get(struct wire *w)
{
	uint64_t until = clock_mono_ns() + 60 * NS_PER_SEC;

	while (clock_mono_ns() < until) {
		if (ring_pop(&mem.out, w))
			return true;
		usleep(50);
	}
	return false;
}

static void rtp(struct wire *w, uint16_t seq)
{
	*w = (struct wire){.local = {.port = PORT_A}, .len = 172};
	w->far.family = AF_INET;
	memcpy(w->far.addr, "\xc0\x00\x02\x01", 4);
	w->far.port = 4000;
	w->bytes[0] = 0x80;
	put_be16(w->bytes + 2, seq);
	put_be32(w->bytes + 4, seq * 160u);
	put_be32(w->bytes + 8, 0xcafe);
	memset(w->bytes + 12, (uint8_t)seq, 160);
}

/* --- Tests ------------------------------------------------------------------------------------ */

static void a_stream_is_re_encrypted_in_order_over_the_wrap(void **state)
{
	struct rig *r = *state;
	srtp_t alice = terminal(&r->a_rx, ssrc_any_outbound),
	       bob = terminal(&r->b_tx, ssrc_any_inbound);

	for (int i = 0; i < CALLS; i++) {
		uint16_t seq = (uint16_t)(65400 + i); /* across the roll-over */
		struct wire w;
		int len;

		rtp(&w, seq);
		len = (int)w.len;
		assert_int_equal(srtp_protect(alice, w.bytes, &len), srtp_err_status_ok);
		w.len = (uint32_t)len;
		put(&w);
	}
	for (int i = 0; i < CALLS; i++) {
		uint16_t seq = (uint16_t)(65400 + i);
		struct wire w, want;
		int len;

		assert_true(get(&w));
		rtp(&want, seq);
		len = (int)w.len;
		assert_int_equal(srtp_unprotect(bob, w.bytes, &len), srtp_err_status_ok);
		assert_int_equal(len, want.len);
		assert_memory_equal(w.bytes, want.bytes, want.len);
		assert_int_equal(w.local.port, PORT_B);
		assert_int_equal(w.far.port, 5000);
	}
	assert_int_equal(atomic_load(&media_stream_counters(r->w->media, 0)->packets), CALLS);
	if (r->device.engine) {
		worker_stop(r->w);
		assert_int_equal(mock_control(r->device.engine)->flying_most, 2);
	}
	srtp_dealloc(alice);
	srtp_dealloc(bob);
}

static void a_forged_packet_is_counted_and_goes_nowhere(void **state)
{
	struct rig *r = *state;
	struct wire w;

	rtp(&w, 1);
	w.len = 182;
	put(&w);
	while (media_drop_count(r->w->media, PACKET_DROP_BAD_TAG) == 0 &&
		atomic_load(&media_stream_counters(r->w->media, 0)->drops[PACKET_DROP_BAD_TAG]) ==
			0)
		usleep(50);
	assert_false(ring_pop(&mem.out, &w));
	assert_int_equal(atomic_load(&media_stream_counters(r->w->media, 0)->packets), 0);
}

static void a_packet_for_nobody_is_passed_on(void **state)
{
	struct wire w;

	(void)state;
	rtp(&w, 1);
	w.local.port = NO_PORT;
	put(&w);
	for (int i = 0; i < 1000000 && mem.passed == 0; i++)
		usleep(50);
	assert_int_equal(mem.passed, 1);
}

static void deletions_are_acknowledged_and_keys_wiped(void **state)
{
	struct rig *r = *state;
	static const enum media_cmd_type types[] = {MEDIA_STREAM_DEL, MEDIA_CTX_DEL, MEDIA_KEY_DEL};
	static const uint32_t ids[] = {0, 0, 2};
	static const struct xc_key zero;
	struct worker_ack ack;

	for (int i = 0; i < 3; i++) {
		struct worker_cmd cmd = {.kind = WORKER_MEDIA};

		cmd.media.type = types[i];
		cmd.media.id = ids[i];
		assert_int_equal(ring_push(&r->w->cmds, &cmd, 1), 0);
	}
	wait_for_commands(r, 11);
	assert_true(ring_pop(&r->w->acks, &ack));
	assert_int_equal(ack.what, ACK_STREAM);
	assert_true(ring_pop(&r->w->acks, &ack));
	assert_int_equal(ack.what, ACK_CTX);
	assert_true(ring_pop(&r->w->acks, &ack));
	assert_int_equal(ack.what, ACK_KEY);
	assert_int_equal(ack.id, 2);
	assert_memory_equal(&batch_runner_arena(r->w->runner)->key[2], &zero, sizeof(zero));
	assert_memory_equal(&batch_runner_arena(r->w->runner)->key[3], &zero, sizeof(zero));
}

/* Receives all waiting packets in bursts that fit a batch. */
static void what_gathers_is_taken_in_batches_of_batch_max(void **state)
{
	struct rig *r = *state;
	uint64_t one = 1;
	struct wire w;

	worker_stop(r->w);
	atomic_store(&r->w->stop, false);
	rtp(&w, 1);
	w.local.port = NO_PORT;
	for (uint32_t i = 0; i < 10 * BURST; i++)
		assert_int_equal(ring_push(&mem.in, &w, 1), 0);
	assert_int_equal(write(mem.event_fd, &one, sizeof(one)), sizeof(one));
	assert_int_equal(worker_start(r->w), 0);
	for (int i = 0; i < 1000000 && atomic_load(&r->w->bursts) < 10; i++)
		usleep(50);
	assert_int_equal(atomic_load(&r->w->bursts), 10);
	assert_int_equal(atomic_load(&r->w->batch.max), BURST);
	assert_int_equal(mem.passed, 10 * BURST);
}

/* Waits until the loop has made that many rounds since its start. False: the time is over. */
static bool has_gone_round(struct rig *r, uint64_t times, uint64_t for_ns)
{
	uint64_t until = clock_mono_ns() + for_ns;

	while (atomic_load(&r->w->rounds) < times && clock_mono_ns() < until)
		usleep(100);
	return atomic_load(&r->w->rounds) >= times;
}

static void only_a_busy_polling_worker_never_sleeps(void **state)
{
	struct rig *r = *state;
	uint64_t so_far = atomic_load(&r->w->rounds), start = clock_mono_ns(), seconds;

	/* The loop wakes up once a second to show that it is alive. */
	(void)has_gone_round(r, so_far + 5, NS_PER_SEC / 5);
	so_far = atomic_load(&r->w->rounds) - so_far;
	seconds = (clock_mono_ns() - start) / NS_PER_SEC;
	assert_true(so_far < 5 + 2 * seconds);
	so_far = atomic_load(&r->w->rounds);
	worker_stop(r->w);
	atomic_store(&r->w->stop, false);
	r->w->cfg.busy_poll = true;
	assert_int_equal(worker_start(r->w), 0);
	assert_true(has_gone_round(r, so_far + 10000, 60 * NS_PER_SEC));
	a_packet_for_nobody_is_passed_on(state);
}

/* A thread has real-time priority from its first instruction, or is not created. */
/* The watchdog counts its rounds, and steering has work to do now and then. */
static void a_worker_without_packets_wakes_every_second(void **state)
{
	struct rig *r = *state;

	assert_true(has_gone_round(r, atomic_load(&r->w->rounds) + 3, 60 * NS_PER_SEC));
}

static void a_worker_has_the_priority_it_is_told(void **state)
{
	struct rig *r = *state;
	struct sched_param param, ours, wanted = {.sched_priority = 7};
	int may, policy, our_policy;

	assert_int_equal(pthread_getschedparam(pthread_self(), &our_policy, &ours), 0);
	may = pthread_setschedparam(pthread_self(), SCHED_RR, &wanted);
	assert_int_equal(pthread_setschedparam(pthread_self(), our_policy, &ours), 0);
	assert_int_equal(pthread_getschedparam(r->w->thread, &policy, &param), 0);
	assert_int_equal(policy, our_policy);
	worker_stop(r->w);
	atomic_store(&r->w->stop, false);
	r->w->cfg.priority = 7;
	assert_int_equal(worker_start(r->w), -may);
	assert_int_equal(r->w->running, may == 0);
	if (may)
		return;
	assert_int_equal(pthread_getschedparam(r->w->thread, &policy, &param), 0);
	assert_int_equal(policy, SCHED_RR);
	assert_int_equal(param.sched_priority, 7);
}

static void side_set(struct rig *r, uint32_t serial)
{
	struct worker_cmd cmd = {.kind = WORKER_MEDIA};

	cmd.media = (struct media_cmd){.type = MEDIA_STREAM_SET,
		.now_ns = clock_real_ns(),
		.stream = {.local = {.port = PORT_A},
			.rtp = true,
			.rtcp = true,
			.rtp_to = 1,
			.rtcp_to = 1,
			.side = serial ? SIDE_ALL : 0,
			.side_serial = serial}};
	assert_int_equal(endpoint_parse(&cmd.media.stream.remote, str_from("192.0.2.1:4000")), 0);
	assert_int_equal(ring_push(&r->w->cmds, &cmd, 1), 0);
	wait_for_commands(r, atomic_load(&r->w->commands) + 1);
}

static void packets_of_the_keying_thread_come_and_go(void **state)
{
	struct rig *r = *state;
	struct wire w = {.local = {.port = PORT_A}, .len = 20, .bytes = {0, 1, 0, 0, 0x21}};
	struct pollfd fd = {.fd = r->side.thread_fd, .events = POLLIN};
	struct side_packet p;

	assert_int_equal(endpoint_parse(&w.far, str_from("198.51.100.9:7000")), 0);
	assert_int_equal(mem.carries, 0);
	side_set(r, 5);
	/* Steering does not filter this port any more. */
	assert_int_equal(mem.carries, STEER_PORT_UNREAD);
	/* The packet reaches a sleeping keying thread and wakes it. */
	assert_true(side_sleep(&r->side));
	put(&w);
	assert_int_equal(poll(&fd, 1, 60000), 1);
	assert_true(side_read(&r->side, &p));
	assert_int_equal(p.kind, SIDE_STUN);
	assert_int_equal(p.serial, 5);
	assert_int_equal(p.len, 20);
	assert_false(p.believed);
	/* Packets return and wake the worker: more than one burst of them. */
	for (uint32_t i = 0; i < 3 * BURST; i++) {
		put_be32(p.bytes + 8, i);
		assert_int_equal(side_give(&r->side, &p), 0);
	}
	side_give_end(&r->side);
	for (uint32_t i = 0; i < 3 * BURST; i++) {
		assert_true(get(&w));
		assert_int_equal(w.local.port, PORT_A);
		assert_int_equal(w.far.port, 7000);
		assert_int_equal(w.len, 20);
		assert_int_equal(be32(w.bytes + 8), i);
	}
	/* The session ends: its packets are not sent for the next session. */
	side_set(r, 6);
	assert_int_equal(side_give(&r->side, &p), 0);
	p.serial = 6;
	assert_int_equal(side_give(&r->side, &p), 0);
	side_give_end(&r->side);
	assert_true(get(&w));
	for (uint32_t i = 0; i < 60000 && atomic_load(&r->side.sent) < 3 * BURST + 1; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&r->side.sent), 3 * BURST + 1);
	assert_int_equal(atomic_load(&r->side.stale), 1);
	assert_int_equal(atomic_load(&r->side.refused), 0);
	assert_int_equal(mem.passed, 0);
	side_set(r, 0);
	assert_int_equal(mem.carries, 0);
}

static void the_worker_waits_for_a_kernel_that_gathers(void **state)
{
	struct rig *r = *state;
	uint64_t rounds = atomic_load(&r->w->rounds), start = clock_mono_ns(), ms;
	struct timespec idle = {.tv_nsec = 50000000};

	for (int i = 0; i < 1200 && (!i || !atomic_load(&mem.gathers)); i++)
		nanosleep(&idle, NULL);
	assert_true(atomic_load(&mem.gathers) > 0);
	rounds = atomic_load(&r->w->rounds) - rounds;
	ms = (clock_mono_ns() - start) / 1000000;
	assert_true(rounds < 20 * ms); /* it sleeps */
}

static void results_leave_with_the_call_that_waits(void **state)
{
	struct rig *r = *state;

	a_stream_is_re_encrypted_in_order_over_the_wrap(state);
	assert_true(atomic_load(&mem.held) > 0);
	worker_stop(r->w);
	assert_false(r->w->held);
	assert_int_equal(r->w->flying, 0);
}

/* --- Turns: a worker without its thread ------------------------------------------------------- */

enum { TURN_COMMANDS = 32, TURN_SIDE = 16 };

static void watch(struct rig *r, uint32_t n, bool group)
{
	struct worker_cmd cmd[2 * TURN_COMMANDS] = {0};

	for (uint32_t i = 0; i < n; i++) {
		cmd[i].kind = WORKER_MEDIA;
		cmd[i].more = group && i + 1 < n;
		cmd[i].media.type = MEDIA_STREAM_WATCH;
	}
	assert_int_equal(ring_push(&r->w->cmds, cmd, n), 0);
}

static void media_come_between_commands(void **state)
{
	struct rig *r = *state;
	uint64_t before = atomic_load(&r->w->commands);
	struct wire w = {.local = {.port = NO_PORT}, .len = 172};

	worker_stop(r->w);
	/* Single commands, then a group that is too long for a turn but must not be split. */
	watch(r, 1, false);
	for (int i = 0; i < TURN_COMMANDS; i++)
		watch(r, 1, false);
	watch(r, TURN_COMMANDS + 8, true);
	watch(r, 1, false);
	put(&w);
	assert_int_equal(worker_round(r->w), 1);
	assert_int_equal(atomic_load(&r->w->commands) - before, TURN_COMMANDS);
	assert_true(r->w->left);
	put(&w);
	assert_int_equal(worker_round(r->w), 1);
	assert_int_equal(atomic_load(&r->w->commands) - before, 2 * TURN_COMMANDS + 9);
	assert_true(r->w->left);
	assert_int_equal(worker_round(r->w), 0);
	assert_int_equal(atomic_load(&r->w->commands) - before, 2 * TURN_COMMANDS + 10);
	assert_false(r->w->left);
	assert_int_equal(atomic_load(&r->w->command_errors), 0);
}

static void media_leave_before_packets_of_the_keying_thread(void **state)
{
	struct rig *r = *state;
	srtp_t alice = terminal(&r->a_rx, ssrc_any_outbound);
	struct side_packet p = {.kind = SIDE_DTLS, .len = 20, .serial = 5};
	struct wire w;
	int len;

	side_set(r, 5);
	worker_stop(r->w);
	assert_int_equal(endpoint_parse(&p.peer, str_from("192.0.2.1:4000")), 0);
	for (int i = 0; i < 2 * TURN_SIDE + 1; i++)
		assert_int_equal(side_give(&r->side, &p), 0);
	rtp(&w, 1);
	len = (int)w.len;
	assert_int_equal(srtp_protect(alice, w.bytes, &len), srtp_err_status_ok);
	w.len = (uint32_t)len;
	put(&w);
	for (uint32_t round = 0; round < 3; round++) {
		uint32_t sent = 0;

		assert_int_equal(worker_round(r->w), round == 0);
		assert_int_equal(r->w->left, round < 2);
		for (; ring_pop(&mem.out, &w); sent++)
			assert_int_equal(w.local.port, round || sent ? PORT_A : PORT_B);
		assert_int_equal(sent, round == 0 ? 1 + TURN_SIDE : round == 1 ? TURN_SIDE : 1);
	}
	assert_int_equal(atomic_load(&r->side.sent), 2 * TURN_SIDE + 1);
	srtp_dealloc(alice);
}

static void acknowledgements_wake_the_control_thread_once(void **state)
{
	static const enum media_cmd_type types[] = {MEDIA_STREAM_DEL, MEDIA_CTX_DEL, MEDIA_KEY_DEL};
	static const uint32_t ids[] = {0, 0, 2};
	struct rig *r = *state;
	eventfd_t n = 0;

	worker_stop(r->w);
	(void)eventfd_read(r->ack_fd, &n);
	for (int i = 0; i < 3; i++) {
		struct worker_cmd cmd = {.kind = WORKER_MEDIA};

		cmd.media.type = types[i];
		cmd.media.id = ids[i];
		assert_int_equal(ring_push(&r->w->cmds, &cmd, 1), 0);
	}
	assert_int_equal(worker_round(r->w), 0);
	assert_int_equal(eventfd_read(r->ack_fd, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(worker_round(r->w), 0);
	assert_int_not_equal(eventfd_read(r->ack_fd, &n), 0);
}

/* Sends a command, and waits until it was executed. Returns the rounds of the loop until then. */
static uint64_t rounds_after_command(struct rig *r)
{
	uint64_t commands = atomic_load(&r->w->commands);

	watch(r, 1, false);
	wait_for_commands(r, commands + 1);
	return atomic_load(&r->w->rounds);
}

/* Packets gather for an hour here. A command or an answer does not end the wait. */
static void commands_do_not_wait_until_packets_have_gathered(void **state)
{
	struct rig *r = *state;
	struct side_packet p = {.kind = SIDE_DTLS, .len = 20, .serial = 5};
	struct wire w = {.local = {.port = NO_PORT}, .len = 172};
	uint64_t rounds = 0;
	bool waits = false;

	side_set(r, 5);
	worker_stop(r->w);
	assert_int_equal(endpoint_parse(&p.peer, str_from("192.0.2.1:4000")), 0);
	r->w->coalesce =
		(struct coalesce){.window_ns = 3600 * NS_PER_SEC, .batch_max = 1u << 31, .rate = 1};
	atomic_store(&r->w->stop, false);
	assert_int_equal(worker_start(r->w), 0);
	/* If the thread is late, the rate is that of the first packets. */
	for (uint32_t i = 0; i < 1000 && !waits; i++) {
		put(&w);
		for (int k = 0; k < 1000000 && mem.passed == i; k++)
			usleep(50);
		assert_int_equal(mem.passed, i + 1);
		/* Else each command takes a round. The last one may not be counted yet. */
		rounds = rounds_after_command(r);
		(void)rounds_after_command(r);
		waits = rounds_after_command(r) == rounds;
	}
	assert_true(waits);
	assert_int_equal(side_give(&r->side, &p), 0);
	side_give_end(&r->side);
	assert_true(get(&w));
	assert_int_equal(w.local.port, PORT_A);
	assert_int_equal(rounds_after_command(r), rounds);
	worker_stop(r->w);
}

static uint64_t woken(struct rig *r)
{
	uint64_t n = 0;

	return read(r->w->wake_fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

/* Nobody makes a system call to wake a worker that looks for commands soon anyway. */
static void a_worker_that_is_awake_is_not_woken(void **state)
{
	struct rig *r = *state;
	struct side_packet p = {.kind = SIDE_DTLS, .len = 20};

	worker_stop(r->w);
	(void)woken(r);
	for (uint8_t awake = 0; awake < 2; awake++) {
		atomic_store(&r->w->awake, awake);
		worker_wake(r->w);
		assert_int_equal(woken(r), !awake);
		assert_int_equal(side_give(&r->side, &p), 0);
		side_give_end(&r->side);
		assert_int_equal(woken(r), !awake);
	}
}

/* Packets that gathered during a nap are sent before commands that came meanwhile. */
static void commands_of_a_nap_wait_for_its_packets(void **state)
{
	struct rig *r = *state;
	struct wire w = {.local = {.port = NO_PORT}, .len = 172};

	for (int napped = 0; napped < 2; napped++) {
		uint64_t commands;
		uint32_t passed = mem.passed;

		worker_stop(r->w);
		commands = atomic_load(&r->w->commands);
		watch(r, 1, false);
		put(&w);
		r->w->napped = napped;
		assert_int_equal(worker_round(r->w), 1);
		assert_int_equal(mem.passed, passed + 1);
		assert_int_equal(atomic_load(&r->w->commands), commands + !napped);
		assert_int_equal(worker_round(r->w), 0);
		assert_int_equal(atomic_load(&r->w->commands), commands + 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_stream_is_re_encrypted_in_order_over_the_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_forged_packet_is_counted_and_goes_nowhere, setup, teardown),
		cmocka_unit_test_setup_teardown(a_packet_for_nobody_is_passed_on, setup, teardown),
		cmocka_unit_test_setup_teardown(
			deletions_are_acknowledged_and_keys_wiped, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_stream_is_re_encrypted_in_order_over_the_wrap, setup_two, teardown),
		cmocka_unit_test_setup_teardown(
			a_forged_packet_is_counted_and_goes_nowhere, setup_two, teardown),
		cmocka_unit_test_setup_teardown(
			a_packet_for_nobody_is_passed_on, setup_two, teardown),
		cmocka_unit_test_setup_teardown(
			deletions_are_acknowledged_and_keys_wiped, setup_two, teardown),
		cmocka_unit_test_setup_teardown(
			a_stream_is_re_encrypted_in_order_over_the_wrap, setup_gathers, teardown),
		cmocka_unit_test_setup_teardown(a_stream_is_re_encrypted_in_order_over_the_wrap,
			setup_two_gathers, teardown),
		cmocka_unit_test_setup_teardown(
			the_worker_waits_for_a_kernel_that_gathers, setup_gathers, teardown),
		cmocka_unit_test_setup_teardown(
			results_leave_with_the_call_that_waits, setup_waits, teardown),
		cmocka_unit_test_setup_teardown(
			a_forged_packet_is_counted_and_goes_nowhere, setup_waits, teardown),
		cmocka_unit_test_setup_teardown(
			deletions_are_acknowledged_and_keys_wiped, setup_waits, teardown),
		cmocka_unit_test_setup_teardown(
			packets_of_the_keying_thread_come_and_go, setup_waits, teardown),
		cmocka_unit_test_setup_teardown(
			what_gathers_is_taken_in_batches_of_batch_max, setup, teardown),
		cmocka_unit_test_setup_teardown(
			only_a_busy_polling_worker_never_sleeps, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_worker_without_packets_wakes_every_second, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_worker_has_the_priority_it_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			packets_of_the_keying_thread_come_and_go, setup, teardown),
		cmocka_unit_test_setup_teardown(
			packets_of_the_keying_thread_come_and_go, setup_two, teardown),
		cmocka_unit_test_setup_teardown(media_come_between_commands, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_worker_that_is_awake_is_not_woken, setup, teardown),
		cmocka_unit_test_setup_teardown(
			commands_of_a_nap_wait_for_its_packets, setup, teardown),
		cmocka_unit_test_setup_teardown(
			media_leave_before_packets_of_the_keying_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(
			acknowledgements_wake_the_control_thread_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			commands_do_not_wait_until_packets_have_gathered, setup, teardown),
	};

	if (srtp_init() != srtp_err_status_ok)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
