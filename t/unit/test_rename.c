/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SSRCs that change after a restart, in all that feedback names: RFC 4585, RFC 5104, REMB and
 * transport-wide feedback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "media/rename.h"
#include "media/state.h"

#define KEY      0x1234567890abcdefull
#define SENDER   0xaaaa0001u
#define OURS     0xbbbb0001u
#define OURS_RTX 0xbbbb0002u
#define SAME     0x000a0103u

/* Words of a packet after the first; SSRCs are written as above. */
static const struct {
	const char *name;
	uint8_t format, type;
	uint32_t words, word[8];
	uint32_t named; /* bit per word that names our SSRC */
} T[] = {
	{"NACK", 1, 205, 3, {SENDER, OURS, SAME}, 2},
	{"TMMBR", 3, 205, 4, {SENDER, 0, OURS, SAME}, 4},
	{"TMMBN of two", 4, 205, 6, {SENDER, 0, OURS, SAME, OURS_RTX, SAME}, 4 | 16},
	{"transport-cc", 15, 205, 4, {SENDER, OURS, SAME, SAME}, 2},
	{"PLI", 1, 206, 2, {SENDER, OURS}, 2},
	{"SLI", 2, 206, 3, {SENDER, OURS, SAME}, 2},
	{"FIR", 4, 206, 4, {SENDER, 0, OURS, SAME}, 4},
	{"VBCM with content", 7, 206, 6, {SENDER, 0, OURS, SAME, OURS, SAME}, 4},
	{"FIR of two", 4, 206, 6, {SENDER, 0, OURS, SAME, OURS_RTX, SAME}, 4 | 16},
	{"REMB", 15, 206, 6, {SENDER, 0, 0x52454d42, 0x02040000, OURS, OURS_RTX}, 16 | 32},
	{"REMB that claims more", 15, 206, 5, {SENDER, 0, 0x52454d42, 0xff040000, OURS}, 16},
	{"AFB of another kind", 15, 206, 5, {SENDER, OURS, 0x41424344, 0x02040000, OURS}, 2},
};

static void feedback_names_the_ssrc_of_the_source(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++) {
		uint8_t p[4 + 4 * ARRAY_LEN(T[0].word)] = {
			0x80 | T[i].format, T[i].type, 0, (uint8_t)T[i].words};
		size_t len = 4 + 4 * (size_t)T[i].words;

		/* As the terminal writes it: it knows our packets by their new names. */
		for (uint32_t k = 0; k < T[i].words; k++)
			put_be32(p + 4 + 4 * (size_t)k,
				T[i].named >> k & 1 ? media_rename(KEY, T[i].word[k])
						    : T[i].word[k]);
		media_rename_rtcp(KEY, p, len, false);
		for (uint32_t k = 0; k < T[i].words; k++)
			if (be32(p + 4 + 4 * (size_t)k) != T[i].word[k])
				fail_msg("%s: word %u", T[i].name, k);
	}
}

/* A retransmission has an SSRC of its own (RFC 4588 8.3), and its own name. */
static void retransmissions_have_their_own_names(void **state)
{
	(void)state;
	assert_true(media_rename(KEY, OURS) != media_rename(KEY, OURS_RTX));
	assert_int_equal(media_rename_back(KEY, media_rename(KEY, OURS_RTX)), OURS_RTX);
}

static void truncated_feedback_is_left_alone(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(T); i++)
		for (size_t len = 0; len <= 4 + 4 * (size_t)T[i].words; len++) {
			uint8_t *p = calloc(len ? len : 1, 1);

			assert_non_null(p);
			for (size_t k = 0; k < len; k++)
				p[k] = k == 0 ? 0x80 | T[i].format : k == 1 ? T[i].type : 0xff;
			media_rename_rtcp(KEY, p, len, false);
			free(p);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(feedback_names_the_ssrc_of_the_source),
		cmocka_unit_test(retransmissions_have_their_own_names),
		cmocka_unit_test(truncated_feedback_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
