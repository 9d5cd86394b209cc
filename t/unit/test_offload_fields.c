/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The column "kernel" of media/fields.h: each field, changed alone, keeps media out of the kernel
 * in the roles that its column names, and in no others. The other columns: test_fields.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "field_rows.h"
#include "offload_rig.h"

enum role { FROM, TO, HEARER, ROLES };

static void ear_set(const struct field_row *changed)
{
	struct media_cmd c[3] = {
		off_ctx_cmd(3, SUITE_PLAIN, SUITE_PLAIN), off_stream_cmd(EAR), off_stream_cmd(A)};

	c[1].stream.ctx = 3;
	c[1].stream.rtp_to = MEDIA_NONE;
	c[1].stream.listener = true;
	if (changed)
		row_change(changed, &c[1].stream);
	c[2].stream.copy[0] = EAR + 1;
	off_commit(c, 3);
	rig.look[EAR].remote = off_at(12, 6000);
	rig.steer.relays_copies = true;
}

/* Whether A's stream goes to the kernel. changed: a field of the stream with this role. */
static bool goes(void **state, const struct field_row *changed, enum role role)
{
	struct media_cmd c = off_stream_cmd(role == FROM ? A : B);

	off_teardown(state);
	off_setup(state);
	rig.look[B].packets = 0;
	if (role == HEARER) {
		ear_set(changed);
	} else if (changed) {
		row_change(changed, &c.stream);
		off_commit(&c, 1);
	}
	off_tick();
	return rig.kernel[A].now;
}

static bool allowed(const char *kernel, enum role role)
{
	static const char *const WORD[] = {"FROM", "TO", "HEARER"};

	if (row_is(kernel, "COPIES"))
		return role != FROM;
	return !(strncmp(kernel, "NOT_", 4) == 0 && strstr(kernel, WORD[role]));
}

static void a_stream_s_field_keeps_it_out_in_its_roles(void **state)
{
	for (enum role role = FROM; role < ROLES; role++) {
		assert_true(goes(state, NULL, role));
		for (size_t i = 0; i < ARRAY_LEN(STREAM_ROW); i++) {
			const struct field_row *f = &STREAM_ROW[i];

			/* test_offload.c checks the receiver of a stream and its listeners. */
			if (row_is(f->kernel, "FLOW") ||
				(row_is(f->kernel, "COPIES") && role == HEARER))
				continue;
			if (goes(state, f, role) != allowed(f->kernel, role))
				fail_msg("%s: %s, role %d", f->name, f->kernel, role);
		}
	}
}

static void judge_ctx(void **state, const struct field_row *f, size_t offset)
{
	struct media_cmd c = off_ctx_cmd(0, SUITE_PLAIN, SUITE_PLAIN);

	off_teardown(state);
	off_setup(state);
	row_change(f, (uint8_t *)&c.ctx + offset);
	off_commit(&c, 1);
	off_tick();
	if ((off_in_kernel() == 2) != row_is(f->kernel, "ANY"))
		fail_msg("%s: %s", f->name, f->kernel);
}

static void a_context_s_field_keeps_it_out(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(CTX_ROW); i++)
		judge_ctx(state, &CTX_ROW[i], 0);
	for (size_t i = 0; i < ARRAY_LEN(CRYPTO_ROW); i++) {
		judge_ctx(state, &CRYPTO_ROW[i], offsetof(struct media_ctx_cfg, rx));
		judge_ctx(state, &CRYPTO_ROW[i], offsetof(struct media_ctx_cfg, tx));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIGGED(a_stream_s_field_keeps_it_out_in_its_roles),
		RIGGED(a_context_s_field_keeps_it_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
