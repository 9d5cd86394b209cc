/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Columns "compared", "fast" and "saved" of media/fields.h: each field is changed alone and has
 * exactly the effects its columns name. Column "kernel": test_offload_fields.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "media/fast_path.h"
#include "persist/save_format.h"
#include "persist/save_read.h"
#include "persist/save_tables.h"
#include "field_rows.h"
#include "media_rig.h"
#include "persist/save_write.h"

static bool is_compared(const struct field_row *f)
{
	return strncmp(f->compared, "BY_", 3) == 0;
}

static void a_change_is_sent_as_its_column_says(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_stream_cfg sent = r->m->stream[A].cfg, now;
	struct media_ctx_cfg ctx = *r->m->ctx[0].cfg, ctx_now;

	(void)state;
	assert_true(media_stream_same(&sent, &sent) && media_ctx_same(&ctx, &ctx));
	for (size_t i = 0; i < ARRAY_LEN(STREAM_ROW); i++) {
		now = sent;
		row_change(&STREAM_ROW[i], &now);
		if (media_stream_same(&sent, &now) == is_compared(&STREAM_ROW[i]))
			fail_msg("%s: %s", STREAM_ROW[i].name, STREAM_ROW[i].compared);
		/* An event field is sent whenever it is set, and never when it is cleared. */
		if (media_stream_same(&now, &now) == row_is(STREAM_ROW[i].compared, "BY_EVENT") ||
			media_stream_same(&now, &sent) !=
				(!is_compared(&STREAM_ROW[i]) ||
					row_is(STREAM_ROW[i].compared, "BY_EVENT")))
			fail_msg("%s back: %s", STREAM_ROW[i].name, STREAM_ROW[i].compared);
	}
	for (size_t i = 0; i < ARRAY_LEN(CTX_ROW); i++) {
		ctx_now = ctx;
		row_change(&CTX_ROW[i], &ctx_now);
		if (media_ctx_same(&ctx, &ctx_now) == is_compared(&CTX_ROW[i]))
			fail_msg("%s: %s", CTX_ROW[i].name, CTX_ROW[i].compared);
	}
	for (size_t i = 0; i < 2 * ARRAY_LEN(CRYPTO_ROW); i++) {
		const struct field_row *f = &CRYPTO_ROW[i / 2];

		ctx_now = ctx;
		row_change(f, i % 2 ? &ctx_now.tx : &ctx_now.rx);
		if (media_ctx_same(&ctx, &ctx_now) == is_compared(f))
			fail_msg("%s: %s", f->name, f->compared);
	}
	rig_free(r);
}

static void the_fast_path_takes_what_its_column_allows(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd set = {.type = MEDIA_STREAM_SET, .id = A, .now_ns = 1};
	const struct media_stream_cfg base = r->m->stream[A].cfg;

	(void)state;
	assert_true(r->m->stream[A].fast);
	for (size_t i = 0; i < ARRAY_LEN(STREAM_ROW); i++) {
		const struct field_row *f = &STREAM_ROW[i];

		set.stream = base;
		row_change(f, &set.stream);
		assert_int_equal(media_command(r->m, &set), 0);
		if (r->m->stream[A].fast != row_is(f->fast, "ANY"))
			fail_msg("%s: %s", f->name, f->fast);
		set.stream = base;
		if (row_is(f->fast, "RTP_ZERO"))
			((uint8_t *)&set.stream)[f->offset + f->len / 2] = 1;
		assert_int_equal(media_command(r->m, &set), 0);
		if (!r->m->stream[A].fast)
			fail_msg("%s: back, or of RTCP", f->name);
	}
	rig_free(r);
}

static void the_fast_path_takes_what_contexts_allow(void **state)
{
	struct rig *r = rig_new(SUITE_AES_CM_128_80, SUITE_AES_CM_128_80, 0);
	struct media_cmd set = {.type = MEDIA_CTX_SET, .id = 0, .now_ns = 1};
	const struct media_ctx_cfg base = *r->m->ctx[0].cfg;
	struct media_crypto c;

	(void)state;
	assert_true(r->m->ctx[0].rx.fast && r->m->ctx[0].tx.fast);
	for (size_t i = 0; i < ARRAY_LEN(CRYPTO_ROW); i++) {
		c = base.rx;
		row_change(&CRYPTO_ROW[i], &c);
		if (media_fast_way(&c) != row_is(CRYPTO_ROW[i].fast, "ANY"))
			fail_msg("%s: %s", CRYPTO_ROW[i].name, CRYPTO_ROW[i].fast);
	}
	for (size_t i = 0; i < ARRAY_LEN(CTX_ROW); i++) {
		if (CTX_ROW[i].len == sizeof(struct media_crypto))
			continue;
		set.ctx = base;
		row_change(&CTX_ROW[i], &set.ctx);
		assert_int_equal(media_command(r->m, &set), 0);
		if (r->m->ctx[0].rx.fast + r->m->ctx[0].tx.fast !=
			(row_is(CTX_ROW[i].fast, "WAY") ? 1 : 2))
			fail_msg("%s: %s", CTX_ROW[i].name, CTX_ROW[i].fast);
	}
	rig_free(r);
}

/* --- Saved ------------------------------------------------------------------------------------ */

enum { IN_CALL, IN_SIDE, IN_LEG };
struct saved_row {
	const char *field; /* that it brings back */
	int in;
	const char *key;
	size_t offset;
};
#define SAVED_CALL(...)                                      {NAME, IN_CALL, __VA_ARGS__},
#define SAVED_SIDE(...)                                      {NAME, IN_SIDE, __VA_ARGS__},
#define SAVED_LEG(...)                                       {NAME, IN_LEG, __VA_ARGS__},
#define NOT_SAVED                                            {NAME, -1, "", 0},
#define NUM(key, of, member, most)                           key, offsetof(struct of, member)
#define FLAG(key, of, member)                                key, offsetof(struct of, member)
#define ADDR_ROW(key, of, member)                            key, offsetof(struct of, member)
#define BYTES_ROW(key, of, member)                           key, offsetof(struct of, member)
#define LOCAL_ROW(key, of, member)                           key, offsetof(struct of, member)
#define RECORD_ROW(key, of, member, rows)                    key, offsetof(struct of, member)
#define NAME                                                 ""
#define X(type, name, suffix, compared, fast, kernel, saved) {#name, -2, "", 0}, saved
static const struct saved_row SAVED[] = {CTX_FIELDS(X) STREAM_FIELDS(X)};
#undef X

static const struct record *record_of(int in)
{
	const struct record *at = &save_call;

	for (; in; in--)
		for (size_t i = 0; i < at->fields; i++)
			if (at->field[i].kind == (at == &save_call ? SIDES : LEGS)) {
				at = at->field[i].record;
				break;
			}
	return at;
}

/* Finds the row with this key in a table; there must be exactly one. */
static const struct field *row_of(const struct record *r, const char *key)
{
	const struct field *found = NULL;

	for (size_t i = 0; i < r->fields; i++)
		if (strcmp(r->field[i].key, key) == 0) {
			assert_null(found);
			found = &r->field[i];
		}
	return found;
}

static void put(const struct field *f, uint8_t *base)
{
	if (f->kind == RECORD)
		put(&f->record->field[0], base + f->offset);
	else if (f->kind == LIST) {
		base[f->count] = 1;
		put(&f->record->field[0], base + f->offset);
	} else if (f->kind == ADDR)
		assert_int_equal(endpoint_parse((void *)(base + f->offset), STR("192.0.2.7:9")), 0);
	else
		base[f->offset] = f->kind == NUMBER && f->max == 1 ? 1 : 2;
}

static struct call *call_make(struct keystore *k)
{
	struct call *c = call_new(STR("id"), 1);

	for (int i = 0; i < 3; i++)
		assert_int_equal(call_side_add(c, STR_NONE, STR_NONE), i);
	assert_non_null(side_leg(k, c->side[0], 0));
	c->side[0]->leg[0]->keying.in_force = KEYING_SDES; /* for its keys, if it has any */
	return c;
}

static uint8_t *base_of(const struct call *c, int in)
{
	return in == IN_CALL    ? (uint8_t *)(uintptr_t)c
		: in == IN_SIDE ? (uint8_t *)c->side[0]
				: (uint8_t *)c->side[0]->leg[0];
}

static void comes_back(const struct saved_row *s, const struct field *f)
{
	static const struct relay_local LOCALS[3] = {{.addr = {.addr = {1}, .family = AF_INET}},
		{.addr = {.addr = {2}, .family = AF_INET}},
		{.addr = {.addr = {3}, .family = AF_INET}}};
	struct call_state none = {0}, state;
	struct keystore k = {0};
	struct call *c = call_make(&k), *again;
	struct sbuf b;
	struct pool *p;

	assert_int_equal(pool_create(&p, 1 << 16), 0);
	sbuf_init(&b, 0);
	put(f, base_of(c, s->in));
	save_write_call(&b, c, LOCALS, 3, &none);
	if (save_read_call(&again, &state, &k, p, sbuf_view(&b), (struct save_locals){LOCALS, 3}))
		fail_msg("%s, \"%s\": it is not read", s->field, s->key);
	assert_memory_equal(
		base_of(c, s->in) + f->offset, base_of(again, s->in) + f->offset, f->size);
	call_free(&k, c);
	call_free(&k, again);
	sbuf_fini(&b);
	pool_destroy(p);
	keystore_fini(&k);
}

static void what_is_saved_comes_back(void **state)
{
	const char *field = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(SAVED); i++) {
		struct saved_row s = SAVED[i];
		const struct field *f;

		if (s.in == -2)
			field = s.field;
		if (s.in < 0)
			continue;
		s.field = field;
		f = row_of(record_of(s.in), s.key);
		if (!f || f->offset != s.offset)
			fail_msg("%s: \"%s\" is not in its table", s.field, s.key);
		comes_back(&s, f);
	}
}

static void keys_of_a_table_are_unique(void **state)
{
	(void)state;
	for (int in = IN_CALL; in <= IN_LEG; in++)
		for (size_t i = 0; i < record_of(in)->fields; i++)
			assert_non_null(row_of(record_of(in), record_of(in)->field[i].key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_is_sent_as_its_column_says),
		cmocka_unit_test(the_fast_path_takes_what_its_column_allows),
		cmocka_unit_test(the_fast_path_takes_what_contexts_allow),
		cmocka_unit_test(what_is_saved_comes_back),
		cmocka_unit_test(keys_of_a_table_are_unique),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
