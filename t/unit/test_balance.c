/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The choice of a worker for a new call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bridge/balance.h"
#include "base/bytes.h"

#define T  PLACE_TOGETHER
#define R  (16 * PLACE_TOGETHER)
#define BB PLACE_BUSY

static void calls_are_together_until_a_worker_has_enough(void **state)
{
	static const struct {
		const char *why;
		struct balance w[3];
		bool spread;
		uint32_t want;
	} C[] = {
		{"the first call: the first worker",
			{{0, R, 0, false}, {0, R, 0, false}, {0, R, 0, false}}, false, 0},
		{"where others are", {{0, R, 0, false}, {2, R, 1, false}, {0, R, 0, false}}, false,
			1},
		{"where most are", {{8, R, 1, false}, {9, R, 1, false}, {1, R, 1, false}}, false,
			1},
		{"one has enough: the next",
			{{T, R, 40, false}, {0, R, 0, false}, {0, R, 0, false}}, false, 1},
		{"one place is left", {{T - 1, R, 40, false}, {5, R, 0, false}, {0, R, 0, false}},
			false, 0},
		{"one has more than enough, another some",
			{{T + 9, R, 40, false}, {0, R, 0, false}, {3, R, 0, false}}, false, 2},
		{"all have enough: evenly",
			{{T + 2, R, 40, false}, {T + 1, R, 40, false}, {T + 2, R, 40, false}},
			false, 1},
		{"its calls are heavy: another",
			{{10, R, BB, false}, {0, R, 0, false}, {0, R, 0, false}}, false, 1},
		{"busy, but not too much",
			{{10, R, BB - 1, false}, {0, R, 0, false}, {0, R, 0, false}}, false, 0},
		{"all are busy: evenly", {{10, R, 90, false}, {7, R, 60, false}, {8, R, 99, false}},
			false, 1},
		{"half of its ports are taken",
			{{50, 100, 1, false}, {0, 100, 0, false}, {0, 100, 0, false}}, false, 1},
		{"fewer ports than calls", {{1, 2, 1, false}, {1, 2, 1, false}, {0, 2, 0, false}},
			false, 2},
		{"without ports", {{0, 0, 0, false}, {0, 2, 0, false}, {0, 2, 0, false}}, false, 1},
		{"asked to spread", {{3, R, 1, false}, {2, R, 1, false}, {2, R, 1, false}}, true,
			1},
		{"most are where commands wait: another",
			{{9, R, 1, true}, {0, R, 0, false}, {3, R, 0, false}}, false, 2},
		{"spread, but not where commands wait",
			{{9, R, 1, false}, {0, R, 0, true}, {3, R, 0, false}}, true, 2},
		{"commands wait everywhere: evenly",
			{{9, R, 1, true}, {2, R, 0, true}, {3, R, 0, true}}, false, 1},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(C); i++) {
		uint32_t got = balance_call(C[i].w, 3, C[i].spread);

		if (got != C[i].want)
			fail_msg("%s: worker %u", C[i].why, got);
	}
}

static void one_worker_gets_everything(void **state)
{
	static const struct balance W[] = {{0, 2, 0, false}, {T + 5, T + 5, 100, false}};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(W); i++)
		assert_int_equal(balance_call(&W[i], 1, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_together_until_a_worker_has_enough),
		cmocka_unit_test(one_worker_gets_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
