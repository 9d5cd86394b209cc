/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Key pairs between calls and a worker (call/relay.h key_take, key_release). A key with a key
 * derivation rate wipes and returns the slots it borrowed. A failed request takes nothing. */
#include "bridge/bridge_int.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "batch/engine.h"
#include "batch/sample.h"
#include "base/clock.h"
#include "base/secmem.h"
#include "packet/arena.h"

enum { PAIRS = 31, KDR_PAIRS = 1 + MEDIA_EPOCHS }; /* in addition to the plain pair */

/* A steering that never has packets. */
static int none_create(struct steer **out, const struct steer_config *cfg, uint32_t worker,
	char *err, size_t err_len)
{
	(void)cfg, (void)worker, (void)err, (void)err_len;
	*out = malloc(1);
	return *out ? 0 : -ENOMEM;
}

static void none_destroy(struct steer *s)
{
	free(s);
}

static int event = -1;

static int none_fd(const struct steer *s)
{
	(void)s;
	return event;
}

static uint32_t none_recv(struct steer *s, const struct arena *a, uint32_t first_slot,
	struct packet_in *in, uint32_t max)
{
	(void)s, (void)a, (void)first_slot, (void)in, (void)max;
	return 0;
}

static const struct steer_ops steer_none = {
	.name = "none",
	.create = none_create,
	.destroy = none_destroy,
	.fd = none_fd,
	.recv = none_recv,
};

struct rig {
	struct engine *serial;
	struct worker *w;
	struct bridge *relay;
	int ack_fd;
};

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct steer_config steer = {.workers = 1, .burst_max = 16};
	struct media_config media = {.max_ctx = 4, .max_stream = 4, .burst_max = 16};
	struct batch_runner_config batch = {.slots = 16, .key_slots = 2 * (PAIRS + 1)};
	struct worker_config cfg = {.steer_ops = &steer_none,
		.steer = &steer,
		.media = &media,
		.batch = &batch,
		.batch_max = 16};
	struct bridge_config relay = {
		.workers = 1, .key_slots = 2 * (PAIRS + 1), .max_ctx = 4, .max_stream = 4};
	char err[256];

	assert_non_null(r);
	assert_int_equal(
		engine_serial.open(&r->serial, &(struct engine_config){0}, err, sizeof(err)), 0);
	batch.serial = r->serial;
	event = eventfd(0, EFD_NONBLOCK);
	cfg.ack_fd = r->ack_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(worker_create(&r->w, &cfg, err, sizeof(err)), 0);
	assert_int_equal(worker_start(r->w), 0);
	relay.worker = &r->w;
	assert_int_equal(bridge_create(&r->relay, &relay), 0);
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	struct rig *r = *state;

	worker_destroy(r->w);
	bridge_destroy(r->relay);
	engine_serial.close(r->serial);
	close(event);
	close(r->ack_fd);
	free(r);
	return 0;
}

static int take(struct rig *r, uint32_t *slot, uint8_t kdr)
{
	struct srtp_master m;

	sample_master(&m, SUITE_AES_CM_128_80, 5);
	m.kdr = kdr;
	m.lifetime = 1000;
	return bridge_ops.key_take(r->relay, slot, 0, &m, NULL);
}

/* Waits until the worker has executed all commands. */
static void settle(struct rig *r, uint64_t commands)
{
	bridge_wake(r->relay);
	for (int i = 0; i < 60000 && atomic_load(&r->w->commands) < commands; i++)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	assert_int_equal(atomic_load(&r->w->commands), commands);
	assert_int_equal(atomic_load(&r->w->command_errors), 0);
	bridge_poll(r->relay, 0);
}

static void a_key_derivation_rate_borrows_pairs_and_gives_them_back(void **state)
{
	struct rig *r = *state;
	static const struct xc_key zero;
	const struct xc_key *key = batch_runner_arena(r->w->runner)->key;
	uint64_t commands = 0;

	for (int round = 0; round < 3; round++) {
		uint32_t slot[PAIRS], n = 0, all = PAIRS;
		struct media_key_usage u;

		for (; all >= KDR_PAIRS; all -= KDR_PAIRS)
			assert_int_equal(take(r, &slot[n++], 4), 0);
		assert_int_equal(take(r, &slot[n], 4), -ENOSPC); /* and takes nothing */
		for (; all; all--)
			assert_int_equal(take(r, &slot[n++], 0), 0);
		assert_int_equal(take(r, &slot[n], 0), -ENOSPC);
		commands += 2 * n;
		settle(r, commands);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(key[slot[i]].valid, XC_KEY_VALID);
			bridge_ops.key_usage(r->relay, 0, slot[i], &u);
			assert_int_equal(u.lifetime, 1000);
			bridge_ops.key_release(r->relay, 0, slot[i]);
		}
		commands += PAIRS;
		settle(r, commands);
		for (uint32_t i = 2; i < 2 * (PAIRS + 1); i++)
			assert_memory_equal(&key[i], &zero, sizeof(zero));
	}
}

static void a_key_that_cannot_be_leaves_nothing(void **state)
{
	struct rig *r = *state;
	static const struct xc_key zero;
	struct srtp_master m;
	uint32_t slot = 77;

	sample_master(&m, SUITE_AEAD_AES_128_GCM, 5);
	m.no_rtp_auth = true;
	assert_int_equal(bridge_ops.key_take(r->relay, &slot, 0, &m, NULL), -EINVAL);
	assert_int_equal(slot, 77);
	for (uint32_t i = 2; i < 2 * (PAIRS + 1); i++)
		assert_memory_equal(&batch_runner_arena(r->w->runner)->key[i], &zero, sizeof(zero));
	for (uint32_t i = 0; i < PAIRS; i++)
		assert_int_equal(take(r, &slot, 0), 0);
}

/* --- Marks of indexes ------------------------------------------------------------------------- */

static uint64_t marked(struct rig *r, uint32_t ctx, enum media_table table)
{
	const struct relay_marks *m = bridge_ops.marks(r->relay, 0, ctx);

	for (uint32_t i = 0; m && i < m->n; i++)
		if (m->mark[i].mark.table == table)
			return m->mark[i].mark.index;
	return 0;
}

/* A resumed index counts as reported at once; later reports of the worker replace it. After a
 * reset, older marks are forgotten and earlier reports are ignored. */
static void marks_are_of_the_indexes_that_are_in_force(void **state)
{
	struct rig *r = *state;
	struct media_cmd cmd[2] = {{.type = MEDIA_CTX_SET}, {.type = MEDIA_CTX_RESUME}};
	uint32_t ctx;

	assert_int_equal(bridge_ops.ctx_take(r->relay, &ctx, 0), 0);
	assert_null(bridge_ops.marks(r->relay, 0, ctx));
	cmd[0].id = cmd[1].id = ctx;
	cmd[0].ctx = (struct media_ctx_cfg){.rx_new = true, .tx_new = true, .tx_rtcp_index = 77};
	cmd[1].ctx_resume = (struct media_ctx_resume){.n = 2,
		.mark = {{.ssrc = 7, .table = MEDIA_RX_RTP, .index = 100},
			{.ssrc = 8, .table = MEDIA_TX_RTP, .index = 200}}};
	assert_int_equal(bridge_ops.commit(r->relay, 0, cmd, 2), 0);
	assert_int_equal(marked(r, ctx, MEDIA_RX_RTP), 100);
	assert_int_equal(bridge_ops.marks(r->relay, 0, ctx)->tx_rtcp_next, 77);
	settle(r, 2);
	cmd[1].ctx_resume.mark[0].index = 150; /* as if packets had come */
	assert_int_equal(bridge_ops.commit(r->relay, 0, &cmd[1], 1), 0);
	bridge_ops.marks_ask(r->relay, 0, &ctx, 1);
	settle(r, 4);
	assert_int_equal(marked(r, ctx, MEDIA_RX_RTP), 150);
	assert_int_equal(marked(r, ctx, MEDIA_TX_RTP), 200);
	assert_int_equal(bridge_ops.marks(r->relay, 0, ctx)->n, 2);
	/* Received indexes are reset by the worker's reply; marks of sent indexes stay. The reply
	 * is too old for other marks. */
	bridge_ops.marks_ask(r->relay, 0, &ctx, 1);
	cmd[0].ctx.tx_new = false;
	cmd[0].ctx.short_tags = true; /* another context: unchanged fields are not sent */
	assert_int_equal(bridge_ops.commit(r->relay, 0, cmd, 1), 0);
	settle(r, 6);
	assert_int_equal(marked(r, ctx, MEDIA_RX_RTP), 0);
	assert_int_equal(marked(r, ctx, MEDIA_TX_RTP), 200);
	/* The next context with this handle gets no mark of the previous one. */
	bridge_ops.marks_ask(r->relay, 0, &ctx, 1);
	bridge_ops.ctx_release(r->relay, 0, ctx);
	settle(r, 8);
	assert_int_equal(bridge_ops.ctx_take(r->relay, &ctx, 0), 0);
	assert_int_equal(ctx, cmd[0].id);
	assert_null(bridge_ops.marks(r->relay, 0, ctx));
}

static void what_did_not_change_is_not_sent_again(void **state)
{
	struct rig *r = *state;
	struct media_cmd cmd = {.type = MEDIA_CTX_SET};

	assert_int_equal(bridge_ops.ctx_take(r->relay, &cmd.id, 0), 0);
	assert_int_equal(bridge_ops.commit(r->relay, 0, &cmd, 1), 0);
	assert_int_equal(bridge_ops.commit(r->relay, 0, &cmd, 1), 0);
	settle(r, 1);
	cmd.ctx.short_tags = true;
	assert_int_equal(bridge_ops.commit(r->relay, 0, &cmd, 1), 0);
	settle(r, 2);
	/* The next call that gets the handle sends all fields. */
	bridge_ops.ctx_release(r->relay, 0, cmd.id);
	settle(r, 3);
	assert_int_equal(bridge_ops.ctx_take(r->relay, &cmd.id, 0), 0);
	assert_int_equal(bridge_ops.commit(r->relay, 0, &cmd, 1), 0);
	settle(r, 4);
}

#define MS(n)   ((n)*1000000ull)
#define UNKNOWN UINT64_MAX

/* A worker is asked twenty times a second. Two replies may be read at once with a burst between
 * them. The rate must not become thousands of packets a second, or a restored call would look for
 * its index at the wrong place. */
static void a_rate_is_of_the_stream_and_not_of_a_burst(void **state)
{
	static const struct {
		const char *why;
		struct {
			uint64_t at_ms, index;
		} told[8];
		uint32_t least, most;
	} T[] = {
		{"50 packets a second", {{0, 65530}, {400, 65550}, {1500, 65605}}, 45, 55},
		{"answers in a bunch",
			{{100, 65530}, {400, 65545}, {1500, 65600}, {1501, 65603}, {1502, 65606}},
			45, 60},
		{"a bunch at once", {{100, 65530}, {101, 65533}, {102, 65536}}, 0, 0},
		{"the first second is not unknown", {{100, 10}, {150, 13}, {300, 20}}, 45, 55},
		{"an index that was not known before is no way that was made",
			{{1, UNKNOWN}, {500, 65530}, {1000, 65555}}, 45, 55},
		{"who pauses may go on", {{0, 0}, {1000, 1000}, {2000, 1000}, {3000, 1000}}, 700,
			1000},
		{"faster counts at once", {{0, 0}, {1000, 50}, {2000, 1050}}, 1000, 1000},
		{"the clock that goes back", {{5000, 0}, {6000, 50}, {1000, 51}, {1001, 60}}, 50,
			50},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct relay_mark before, now = {.from = 0};

		for (size_t k = 0; k < ARRAY_LEN(T[i].told) && (k == 0 || T[i].told[k].at_ms);
			k++) {
			before = now;
			now = (struct relay_mark){.mark = {.index = T[i].told[k].index}};
			now.mark.roc_only = now.mark.index == UNKNOWN;
			now.mark.index = now.mark.roc_only ? 0 : now.mark.index;
			bridge_marks_rate(
				&now, k ? &before : NULL, MS(1000000 + T[i].told[k].at_ms));
		}
		if (now.per_s < T[i].least || now.per_s > T[i].most)
			fail_msg("%s: %u a second", T[i].why, now.per_s);
	}
}

/* The caller learns that there is no room. The log names the limit to raise at once, but not for
 * every call. */
static void what_runs_out_is_named(void **state)
{
	struct rig *r = *state;
	uint64_t start = clock_mono_ns();
	uint32_t id;
	char said[4096] = "";
	int err = dup(STDERR_FILENO);
	FILE *f = tmpfile();

	assert_non_null(f);
	fflush(stderr);
	dup2(fileno(f), STDERR_FILENO);
	log_open("test", LOG_WARNING, 1);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(bridge_ops.ctx_take(r->relay, &id, 0), 0);
	for (uint32_t i = 0; i < PAIRS; i++)
		assert_int_equal(take(r, &id, 0), 0);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(bridge_ops.ctx_take(r->relay, &id, 0), -ENOSPC);
		assert_int_equal(take(r, &id, 0), -ENOSPC);
	}
	fflush(stderr);
	dup2(err, STDERR_FILENO);
	close(err);
	rewind(f);
	said[fread(said, 1, sizeof(said) - 1, f)] = 0;
	fclose(f);
	assert_int_equal(r->relay->shortages[SHORT_CONTEXTS], 100);
	assert_int_equal(r->relay->shortages[SHORT_KEYS], 100);
	for (int i = 0; i < 2; i++) {
		const char *text = i ? "out of key slots" : "out of contexts", *at = said;
		uint64_t lines = 0;

		for (; (at = strstr(at, text)); at++, lines++)
			assert_non_null(strstr(at, "widen port-min to port-max"));
		assert_in_range(lines, 1, 1 + (clock_mono_ns() - start) / NS_PER_SEC);
	}
}

static uint64_t wakes(struct rig *r)
{
	eventfd_t n = 0;

	return eventfd_read(r->w->wake_fd, &n) ? 0 : n;
}

static void a_worker_is_woken_once_for_a_request(void **state)
{
	struct rig *r = *state;
	uint32_t slot[2], ctx, commands = 0;
	struct worker_cmd cmd;

	worker_stop(r->w);
	(void)wakes(r);
	assert_int_equal(take(r, &slot[0], 0), 0);
	assert_int_equal(take(r, &slot[1], 0), 0);
	assert_int_equal(bridge_ops.ctx_take(r->relay, &ctx, 0), 0);
	assert_int_equal(wakes(r), 0);
	/* Nothing new to commit, but the keys must arrive. */
	assert_int_equal(bridge_ops.commit(r->relay, 0, NULL, 0), 0);
	assert_int_equal(wakes(r), 1);
	assert_int_equal(bridge_ops.commit(r->relay, 0, NULL, 0), 0);
	assert_int_equal(wakes(r), 0);
	for (int i = 0; i < 2; i++)
		bridge_ops.key_release(r->relay, 0, slot[i]);
	bridge_ops.ctx_release(r->relay, 0, ctx);
	assert_int_equal(wakes(r), 0);
	bridge_wake(r->relay);
	assert_int_equal(wakes(r), 1);
	bridge_wake(r->relay);
	assert_int_equal(wakes(r), 0);
	/* The two commands of a key are a group, the deletions are none. */
	for (; ring_pop(&r->w->cmds, &cmd); commands++)
		assert_int_equal(cmd.more, commands == 0 || commands == 2);
	assert_int_equal(commands, 7);
	secmem_wipe(&cmd, sizeof(cmd));
}

/* A control thread that sends many commands in one turn does not reach bridge_wake() meanwhile. */
static void a_worker_is_woken_when_its_ring_is_full(void **state)
{
	struct rig *r = *state;
	struct worker_cmd cmd;
	uint32_t room, got = 0;

	worker_stop(r->w);
	(void)wakes(r);
	room = ring_room(&r->w->cmds);
	for (uint32_t i = 0; i < room; i++)
		bridge_steer_again(r->relay);
	assert_int_equal(wakes(r), 0);
	for (uint32_t i = 0; i < 100; i++)
		bridge_steer_again(r->relay);
	assert_int_equal(wakes(r), 1);
	bridge_wake(r->relay);
	assert_int_equal(wakes(r), 0); /* what waits for room is not there for it to see */
	while (ring_pop(&r->w->cmds, &cmd))
		got++;
	bridge_poll(r->relay, 0);
	bridge_wake(r->relay);
	assert_int_equal(wakes(r), 1);
	while (ring_pop(&r->w->cmds, &cmd))
		got++;
	assert_int_equal(got, room + 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_key_derivation_rate_borrows_pairs_and_gives_them_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_key_that_cannot_be_leaves_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(
			marks_are_of_the_indexes_that_are_in_force, setup, teardown),
		cmocka_unit_test_setup_teardown(
			what_did_not_change_is_not_sent_again, setup, teardown),
		cmocka_unit_test_setup_teardown(what_runs_out_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_worker_is_woken_once_for_a_request, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_worker_is_woken_when_its_ring_is_full, setup, teardown),
		cmocka_unit_test(a_rate_is_of_the_stream_and_not_of_a_burst),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
