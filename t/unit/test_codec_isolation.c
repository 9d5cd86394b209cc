/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plug-ins in processes of their own: those that crash, loop, overwrite, lie, or try to escape. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "codec/stream.h"
#include "codec_paths.h"

enum { N = 160, PATIENCE_MS = 60000 /* a busy machine may be late */, NEVER_MS = 1 << 30 };

static struct codec_home *home_of(const char *plugin, uint32_t answer_ms, char *why)
{
	static char program[CODEC_PATH], path[CODEC_PATH];
	struct codec_home_cfg cfg;
	struct codec_home *h = NULL;

	codec_home_defaults(&cfg);
	cfg.program = codec_path(program, "xcipher-codec-worker");
	cfg.plugin = codec_path(path, plugin);
	cfg.answer_ms = answer_ms;
	cfg.start_ms = PATIENCE_MS;
	if (strstr(plugin, "loop.so"))
		cfg.load_ms = 1500;
	if (strstr(plugin, "short.so"))
		cfg.start_ms = 100;
	return codec_home_create(&h, &cfg, why) ? NULL : h;
}

static struct codec_stream *stream_of(struct codec_home *h, struct codec_entry *e)
{
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES | CODEC_ENCODES};
	struct codec_stream *s = NULL;

	*e = (struct codec_entry){.about = h->hello.about[0], .home = h};
	assert_int_equal(codec_stream_open(&s, e, &cfg), 0);
	return s;
}

static void refused_with_a_reason(void **state)
{
	static const struct {
		const char *plugin, *why;
	} T[] = {
		{"t/codecs/abi.so", "version 99 of the interface, not 1"},
		{"t/codecs/constructor.so", "crashes when it is loaded (signal 11)"},
		{"t/codecs/loop.so", "does not load and pass its tests within 1500 ms"},
		{"t/codecs/name.so", "name is not a name of RTP"},
		{"t/codecs/overwrite.so", "crashes when it is tested (signal 11)"},
		{"t/codecs/short.so", "writes to the socket of its program"},
		{"t/codecs/symbol.so", "does not export xcipher_codec_plugin"},
		{"t/codecs/tone.so", "x-bad: test round_trip: a tone returns with 0.000"},
		{"t/codecs/there-is-none.so", "cannot open shared object file"},
	};
	char why[CODEC_WHY_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		assert_null(home_of(T[i].plugin, 1000, why));
		if (!strstr(why, T[i].why))
			fail_msg("%s: %s", T[i].plugin, why);
	}
}

static void works_as_in_this_process(void **state)
{
	char why[CODEC_WHY_MAX], fmtp[64];
	struct codec_home *h = home_of("codecs/template.so", PATIENCE_MS, why);
	struct codec_entry e;
	struct codec_stream *s = NULL;
	int16_t pcm[N], back[2 * N];
	uint8_t code[N];

	(void)state;
	assert_non_null(h);
	assert_string_equal(h->hello.about[0].name, "x-half");
	assert_string_equal(h->hello.license, "GPL-2.0-or-later");
	s = stream_of(h, &e);
	for (int i = 0; i < N; i++)
		pcm[i] = (int16_t)(200 * (i / 2));
	assert_int_equal(codec_stream_encode(s, pcm, N, code, sizeof(code)), N / 2);
	assert_int_equal(codec_stream_decode(s, code, N / 2, back, 2 * N), N);
	assert_memory_equal(pcm, back, sizeof(pcm));
	assert_int_equal(codec_stream_decode(s, code, N / 2, back, N - 1), -ENOSPC);
	assert_int_equal(codec_stream_encode(s, pcm, 3, code, sizeof(code)), -EINVAL);
	assert_int_equal(codec_stream_conceal(s, XCIPHER_CODEC_LOST, N, back, N), N);
	assert_int_equal(back[0], pcm[N - 1] * 15 / 16);
	assert_int_equal(codec_stream_fmtp(s, fmtp, sizeof(fmtp)), 0);
	codec_stream_close(s);
	codec_home_destroy(h);
}

static void hostile_fmtp_is_refused(void **state)
{
	char why[CODEC_WHY_MAX], out[32];
	struct codec_home *h = home_of("codecs/template.so", PATIENCE_MS, why);
	struct codec_entry e = {.home = h};
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES, .fmtp = "loud=2", .fmtp_len = 6};
	struct codec_stream *s = NULL;

	(void)state;
	assert_non_null(h);
	e.about = h->hello.about[0];
	assert_int_equal(codec_stream_open(&s, &e, &cfg), -EINVAL);
	cfg.fmtp = "LOUD = 1;x=y";
	cfg.fmtp_len = 12;
	assert_int_equal(codec_stream_open(&s, &e, &cfg), 0);
	assert_int_equal(codec_stream_fmtp(s, out, sizeof(out)), 6);
	assert_memory_equal(out, "loud=1", 6);
	codec_stream_close(s);
	cfg.fmtp_len = CODEC_FMTP_MAX + 1;
	assert_int_equal(codec_stream_open(&s, &e, &cfg), -EINVAL);
	codec_home_destroy(h);
}

/* A fault costs its stream one packet and the state, and the other stream nothing. */
static void a_fault_costs_its_stream_only(void **state)
{
	static const struct {
		const char payload[5];
		size_t count; /* offset of the counter */
	} T[] = {
		{"OVER", offsetof(struct codec_faults, crashed)},
		{"DIES", offsetof(struct codec_faults, crashed)},
		{"UNDR", offsetof(struct codec_faults, overwrote)},
		{"LIES", offsetof(struct codec_faults, lied)},
		{"LOOP", offsetof(struct codec_faults, hung)},
		{"WAIT", offsetof(struct codec_faults, hung)},
	};
	char why[CODEC_WHY_MAX];
	struct codec_home *h = home_of("t/codecs/late.so", PATIENCE_MS, why);
	struct codec_entry e;
	int16_t pcm[N];
	uint32_t heard = 0;

	(void)state;
	if (!h)
		fail_msg("late.so: %s", why);
	struct codec_stream *other = stream_of(h, &e);
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		struct codec_stream *s = stream_of(h, &e);
		_Atomic uint64_t *count = (void *)((char *)&h->faults + T[i].count);
		uint64_t before = *count, restarted = h->faults.restarted;

		assert_int_equal(codec_stream_decode(s, (const uint8_t *)"a", 1, pcm, N), 1);
		/* A process that computes or sleeps for ever is not waited for so long. */
		h->cfg.answer_ms = NEVER_MS;
		assert_int_equal(
			codec_stream_decode(s, (const uint8_t *)T[i].payload, 4, pcm, N), -EIO);
		h->cfg.answer_ms = PATIENCE_MS;
		assert_int_equal(*count, before + 1);
		assert_int_equal(h->faults.restarted, restarted + 1);
		/* a new state: its first packet again */
		assert_int_equal(codec_stream_decode(s, (const uint8_t *)"\1", 1, pcm, N), 1);
		assert_int_equal(pcm[0], 257);
		codec_stream_close(s);
		assert_int_equal(codec_stream_decode(other, (const uint8_t *)"\0", 1, pcm, N), 1);
		assert_int_equal(pcm[0], ++heard);
	}
	codec_stream_close(other);
	codec_home_destroy(h);
}

static void restarts_are_bounded(void **state)
{
	char why[CODEC_WHY_MAX];
	struct codec_home *h = home_of("t/codecs/late.so", PATIENCE_MS, why);
	struct codec_entry e;
	struct codec_stream *s = NULL;
	int16_t pcm[N] = {1};

	(void)state;
	assert_non_null(h);
	s = stream_of(h, &e);
	for (uint32_t i = 0; i < h->cfg.per_stream; i++)
		assert_int_equal(codec_stream_decode(s, (const uint8_t *)"DIES", 4, pcm, N), -EIO);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			codec_stream_decode(s, (const uint8_t *)"DIES", 4, pcm, N), -EPIPE);
	assert_int_equal(h->faults.given_up, 1);
	assert_int_equal(h->faults.restarted, h->cfg.per_stream);
	/* the call continues in silence */
	assert_int_equal(codec_stream_conceal(s, XCIPHER_CODEC_LOST, N, pcm, N), N);
	assert_int_equal(pcm[0], 0);
	codec_stream_close(s);
	codec_home_destroy(h);
}

static void a_program_that_ends_ends_its_streams(void **state)
{
	char why[CODEC_WHY_MAX];
	struct codec_home *h = home_of("t/codecs/late.so", PATIENCE_MS, why);
	struct codec_entry e;
	struct codec_stream *s = NULL;
	int16_t pcm[N];

	(void)state;
	assert_non_null(h);
	s = stream_of(h, &e);
	kill(h->pid, SIGKILL);
	/* the kernel kills the stream's process at some later time */
	while (codec_stream_decode(s, (const uint8_t *)"a", 1, pcm, N) == 1)
		;
	assert_int_equal(codec_stream_decode(s, (const uint8_t *)"a", 1, pcm, N), -EPIPE);
	codec_stream_close(s);
	codec_home_destroy(h);
}

static void nothing_gets_out(void **state)
{
	char why[CODEC_WHY_MAX];
	struct codec_home *h = home_of("t/codecs/late.so", PATIENCE_MS, why);
	struct codec_entry e;
	struct codec_stream *s = NULL;
	int16_t pcm[N];

	(void)state;
	assert_non_null(h);
	s = stream_of(h, &e);
	/* the plug-in counts what worked; with 0 it decodes the four bytes */
	assert_int_equal(codec_stream_decode(s, (const uint8_t *)"FREE", 4, pcm, N), 4);
	assert_int_equal(pcm[0], 'F' * 256 + 1);
	codec_stream_close(s);
	codec_home_destroy(h);
}

/* Its program reports what it likes. The host kills nothing but the program's own children. */
static void a_forged_process_is_not_killed(void **state)
{
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES};
	char why[CODEC_WHY_MAX];
	struct codec_home *h = home_of("t/codecs/forge.so", 1000, why);
	struct codec_entry e = {.home = h};
	struct codec_stream *s = NULL;

	(void)state;
	if (!h)
		fail_msg("forge.so: %s", why);
	e.about = h->hello.about[0];
	assert_int_equal(codec_stream_open(&s, &e, &cfg), -EPIPE);
	codec_home_destroy(h);
}

/* Its program reports a codec, but starts no process: it is waited for once. */
static void a_silent_program_is_waited_for_once(void **state)
{
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES};
	char why[CODEC_WHY_MAX];
	struct codec_home *h = home_of("t/codecs/silent.so", 1000, why);
	struct codec_entry e = {.home = h};
	struct codec_stream *s = NULL;

	(void)state;
	if (!h)
		fail_msg("silent.so: %s", why);
	e.about = h->hello.about[0];
	h->cfg.start_ms = 100;
	for (int i = 0; i < 20; i++)
		assert_int_equal(codec_stream_open(&s, &e, &cfg), -EPIPE);
	assert_int_equal(h->faults.silent, 1);
	codec_home_destroy(h);
}

/* A program that was stopped starts processes again, and those that come too late are ended. */
static void a_late_program_is_asked_again(void **state)
{
	struct codec_stream_cfg cfg = {.can = CODEC_DECODES};
	char why[CODEC_WHY_MAX];
	struct codec_home *h = home_of("t/codecs/late.so", PATIENCE_MS, why);
	struct codec_entry e = {.home = h};
	struct codec_stream *s = NULL;
	int16_t pcm[N];

	(void)state;
	assert_non_null(h);
	e.about = h->hello.about[0];
	kill(h->pid, SIGSTOP);
	h->cfg.start_ms = 1;
	assert_int_equal(codec_stream_open(&s, &e, &cfg), -EPIPE);
	assert_int_equal(codec_stream_open(&s, &e, &cfg), -EPIPE);
	assert_int_equal(h->faults.silent, 1);
	kill(h->pid, SIGCONT);
	h->cfg.start_ms = PATIENCE_MS;
	while (codec_stream_open(&s, &e, &cfg) == -EPIPE)
		usleep(1000);
	assert_int_equal(codec_stream_decode(s, (const uint8_t *)"a", 1, pcm, N), 1);
	assert_int_equal(h->faults.silent, 1);
	codec_stream_close(s);
	codec_home_destroy(h);
}

/* A codec thread does not wait 100 ms for each stream of a plug-in that hangs again and again. */
static void patience_ends(void **state)
{
	const uint64_t second = 1000000000;
	struct codec_home h = {.cfg = {.answer_ms = 100}, .hangs = {.per_minute = 2}};

	(void)state;
	pthread_mutex_init(&h.lock, NULL);
	for (uint64_t i = 0; i < 2; i++) {
		codec_home_hung(&h, (5 + i) * second);
		assert_int_equal(codec_home_patience(&h, (5 + i) * second), 100);
	}
	codec_home_hung(&h, 7 * second);
	assert_int_equal(codec_home_patience(&h, 7 * second), 10);
	assert_int_equal(codec_home_patience(&h, 66 * second), 10);
	assert_int_equal(codec_home_patience(&h, 67 * second), 100);
	assert_int_equal(h.faults.hung, 3);
	pthread_mutex_destroy(&h.lock);
}

static void budget_is_per_minute(void **state)
{
	struct codec_budget b = {.per_minute = 2};
	const uint64_t second = 1000000000;

	(void)state;
	assert_true(codec_budget_take(&b, 5 * second));
	assert_true(codec_budget_take(&b, 6 * second));
	assert_false(codec_budget_take(&b, 7 * second));
	assert_false(codec_budget_take(&b, 64 * second));
	assert_true(codec_budget_take(&b, 65 * second));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_with_a_reason),
		cmocka_unit_test(works_as_in_this_process),
		cmocka_unit_test(hostile_fmtp_is_refused),
		cmocka_unit_test(a_fault_costs_its_stream_only),
		cmocka_unit_test(restarts_are_bounded),
		cmocka_unit_test(a_program_that_ends_ends_its_streams),
		cmocka_unit_test(nothing_gets_out),
		cmocka_unit_test(a_forged_process_is_not_killed),
		cmocka_unit_test(a_silent_program_is_waited_for_once),
		cmocka_unit_test(a_late_program_is_asked_again),
		cmocka_unit_test(patience_ends),
		cmocka_unit_test(budget_is_per_minute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
