/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When media asks whether a source is possible at an interface: for each unconfirmed source, before
 * any cipher work, and for nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "media_rig.h"

struct asked {
	uint32_t n;
	uint32_t refuse; /* this interface */
	bool expected;
};

static enum packet_verdict believe(void *arg, const struct packet_in *in, bool expected)
{
	struct asked *a = arg;

	a->n++;
	a->expected = expected;
	return in->dev == a->refuse ? PACKET_DROP_MARTIAN : PACKET_JOB;
}

static void start(struct rig **r, struct asked *a, bool strict)
{
	struct media_cmd cmd;

	*r = rig_new(SUITE_PLAIN, SUITE_AES_CM_128_80, 0);
	(*r)->m->cfg.believe = believe;
	(*r)->m->cfg.believe_arg = a;
	cmd = rig_stream_cmd(A, PORT_A, 0, B, B_RTCP, "192.0.2.1:4000");
	cmd.stream.strict_source = strict;
	cmd.stream.learning = MEDIA_LEARN_IMMEDIATE;
	assert_int_equal(media_command((*r)->m, &cmd), 0);
}

/* One packet from A's terminal, or from another port of it, by this interface. Returns whether it
 * left. */
static bool passes(struct rig *r, uint32_t index, uint16_t port, uint32_t dev)
{
	rig_send(r, 7, index, 0);
	r->in[0].src.port = port;
	r->in[0].dev = dev;
	rig_run(r);
	return r->outs == 1;
}

static void the_confirmed_source_and_interface_are_not_asked_about(void **state)
{
	(void)state;
	for (int strict = 0; strict < 2; strict++) {
		struct asked a = {.refuse = 9};
		struct rig *r;
		uint32_t index = 100;

		start(&r, &a, strict);
		assert_true(passes(r, index++, 4000, 2));
		assert_int_equal(a.n, 1);
		assert_true(a.expected);
		for (int i = 0; i < 20; i++)
			assert_true(passes(r, index++, 4000, 2));
		assert_int_equal(a.n, 1);
		/* The same source arrives at another interface. */
		assert_false(passes(r, index, 4000, 9));
		assert_int_equal(rig_dropped(r, A, PACKET_DROP_MARTIAN), 1);
		assert_int_equal(a.n, 2);
		assert_true(passes(r, index++, 4000, 2));
		assert_int_equal(a.n, 2);
		/* The terminal moves to another interface: media asks once. */
		assert_true(passes(r, index++, 4000, 3));
		assert_true(passes(r, index++, 4000, 3));
		assert_int_equal(a.n, 3);
		/* The packet came by a socket, so the host's stack has checked it. */
		assert_true(passes(r, index++, 4000, 0));
		assert_int_equal(a.n, 3);
		/* The interface number exceeds what the stream can store. */
		assert_true(passes(r, index++, 4000, 70000));
		assert_true(passes(r, index++, 4000, 70000));
		assert_int_equal(a.n, 5);
		rig_free(r);
	}
}

static void a_refused_source_changes_nothing(void **state)
{
	struct asked a = {.refuse = 9};
	struct rig *r;
	void *before, *after;
	size_t len;

	(void)state;
	start(&r, &a, false);
	before = rig_snapshot(r, &len);
	assert_false(passes(r, 100, 4000, 9));
	after = rig_snapshot(r, &len);
	assert_memory_equal(before, after, len);
	free(before);
	free(after);
	/* A stranger's interface does not replace that of the confirmed source. */
	assert_true(passes(r, 100, 4000, 2));
	assert_true(passes(r, 101, 4001, 3));
	a.refuse = 3;
	assert_false(passes(r, 102, 4000, 3));
	rig_free(r);
}

static void strangers_are_dropped_before_anybody_is_asked(void **state)
{
	struct asked a = {.refuse = 9};
	struct rig *r;

	(void)state;
	start(&r, &a, true);
	assert_true(passes(r, 100, 4000, 2));
	assert_false(passes(r, 101, 4001, 2));
	assert_int_equal(rig_dropped(r, A, PACKET_DROP_SOURCE), 1);
	assert_int_equal(a.n, 1);
	rig_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_confirmed_source_and_interface_are_not_asked_about),
		cmocka_unit_test(a_refused_source_changes_nothing),
		cmocka_unit_test(strangers_are_dropped_before_anybody_is_asked),
	};

	return cmocka_run_group_tests_name("believe", tests, NULL, NULL);
}
