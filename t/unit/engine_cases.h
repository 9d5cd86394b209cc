/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tests that every engine must pass, as cmocka tests over `const struct engine_ops *`. A test
 * program opens its engine in a group setup with engine_setup(), closes it with engine_teardown(),
 * and lists ENGINE_CASES in its table. */
#ifndef UNIT_ENGINE_CASES_H
#define UNIT_ENGINE_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "batch/engine.h"
#include "packet/arena.h"

#define ENGINE_CASES_SLOTS     512u
#define ENGINE_CASES_KEY_SLOTS 1024u

struct engine_fixture {
	const struct engine_ops *ops;
	struct engine *e;
	struct engine_queue *q;
	struct arena a;
	uint8_t *want; /* the reference's results, laid out as a.out */
};

/* *state becomes a struct engine_fixture. 0, or -1 with the cause on stderr. */
int engine_setup(void **state, const struct engine_ops *ops, const struct engine_config *cfg);
int engine_teardown(void **state);

void engine_case_vectors_to_srtp(void **state);
void engine_case_vectors_to_plain(void **state);
void engine_case_all_pairs_as_reference(void **state);
void engine_case_g711_is_converted(void **state);
void engine_case_every_bit_flip_is_rejected(void **state);
void engine_case_wrong_index_is_rejected(void **state);
void engine_case_writes_stay_in_their_place(void **state);
void engine_case_keys_can_change(void **state);
void engine_case_a_wiped_slot_is_refused(void **state);
void engine_case_srtp_without_authentication(void **state);
void engine_case_selftest_passes(void **state);
void engine_case_every_batch_size_is_right(void **state);

#define ENGINE_CASES                                                       \
	cmocka_unit_test(engine_case_vectors_to_srtp),                     \
		cmocka_unit_test(engine_case_vectors_to_plain),            \
		cmocka_unit_test(engine_case_all_pairs_as_reference),      \
		cmocka_unit_test(engine_case_g711_is_converted),           \
		cmocka_unit_test(engine_case_every_bit_flip_is_rejected),  \
		cmocka_unit_test(engine_case_wrong_index_is_rejected),     \
		cmocka_unit_test(engine_case_writes_stay_in_their_place),  \
		cmocka_unit_test(engine_case_keys_can_change),             \
		cmocka_unit_test(engine_case_a_wiped_slot_is_refused),     \
		cmocka_unit_test(engine_case_srtp_without_authentication), \
		cmocka_unit_test(engine_case_selftest_passes),             \
		cmocka_unit_test(engine_case_every_batch_size_is_right)

#endif
