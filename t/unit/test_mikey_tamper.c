/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Every byte of every message, changed: no message but the right one gives keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mikey_rig.h"

static struct mikey_rig rig; /* large: not on the stack */
static uint8_t copy[MIKEY_MESSAGE_MAX + 1];

static int setup(void **state)
{
	(void)state;
	mikey_rig_init(&rig);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	mikey_rig_fini(&rig);
	return 0;
}

typedef enum mikey_failure take(struct mikey_rig *g, struct str message);

/* m: another message than the right one. */
static void wrong(take *f, const struct mikey_keys *keys, size_t len)
{
	assert_int_not_equal(f(&rig, (struct str){(const char *)copy, len}), MIKEY_OK);
	assert_int_equal(keys->media, 0);
}

static void tamper(take *f, const struct mikey_keys *keys, size_t len)
{
	static const uint8_t masks[] = {0x01, 0x80, 0xff};

	for (size_t i = 0; i < len; i++)
		for (size_t m = 0; m < ARRAY_LEN(masks); m++) {
			copy[i] ^= masks[m];
			wrong(f, keys, len);
			copy[i] ^= masks[m];
		}
	for (size_t i = 0; i < len; i++)
		wrong(f, keys, i);
	copy[len] = 0;
	wrong(f, keys, len + 1);
}

static void mode(enum mikey_mode m)
{
	assert_int_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
	memcpy(copy, rig.iout.buf, rig.iout.len);
	tamper(mikey_rig_respond, &rig.rk, rig.iout.len);
	assert_int_equal(mikey_rig_respond(&rig, mikey_rig_sent(&rig.iout)), MIKEY_OK);
	memcpy(copy, rig.rout.buf, rig.rout.len);
	tamper(mikey_rig_finish, &rig.ik, rig.rout.len);
	assert_int_equal(mikey_rig_finish(&rig, mikey_rig_sent(&rig.rout)), MIKEY_OK);
	assert_true(mikey_rig_agree(&rig));
}

static void test_psk(void **state)
{
	(void)state;
	mode(MIKEY_PSK);
}

static void test_pke(void **state)
{
	(void)state;
	mode(MIKEY_PKE);
}

static void test_dh(void **state)
{
	(void)state;
	mode(MIKEY_DH);
}

static void test_dhhmac(void **state)
{
	(void)state;
	mode(MIKEY_DHHMAC);
}

static void test_rsar(void **state)
{
	(void)state;
	mode(MIKEY_RSAR);
}

static void test_without_verification_message(void **state)
{
	(void)state;
	rig.offer.no_verify = true;
	assert_int_equal(mikey_rig_initiate(&rig, MIKEY_PSK), MIKEY_OK);
	memcpy(copy, rig.iout.buf, rig.iout.len);
	tamper(mikey_rig_respond, &rig.rk, rig.iout.len);
}

/* A message of one mode with the data type of another. */
static void test_other_types(void **state)
{
	(void)state;
	for (enum mikey_mode m = 0; m < MIKEY_MODE_COUNT; m++) {
		assert_int_equal(mikey_rig_initiate(&rig, m), MIKEY_OK);
		memcpy(copy, rig.iout.buf, rig.iout.len);
		for (uint32_t type = 0; type < 256; type++) {
			if (type == rig.iout.buf[1])
				continue;
			copy[1] = (uint8_t)type;
			wrong(mikey_rig_respond, &rig.rk, rig.iout.len);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(test_psk),
		T(test_pke),
		T(test_dh),
		T(test_dhhmac),
		T(test_rsar),
		T(test_without_verification_message),
		T(test_other_types),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
