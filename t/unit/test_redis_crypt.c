/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encryption of saved calls: data opens only under its own name and key, and a nonce is never used
 * twice. */
#include "persist/redis_crypt.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/log.h"

static char path[] = "/tmp/xcipher-seal-XXXXXX";

static void write_key(const void *p, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(p, 1, len, f), len);
	fclose(f);
	chmod(path, 0600);
}

static struct redis_crypt *seal_with(const void *key, size_t len)
{
	struct redis_crypt *s = NULL;
	char err[256] = "";

	write_key(key, len);
	if (redis_crypt_create(&s, "--redis-key-file", path, err, sizeof(err)))
		fail_msg("%s", err);
	return s;
}

static const char hex[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";

static int opens(struct redis_crypt *s, struct str name, struct str sealed, const char *want)
{
	struct sbuf out;
	int err;

	sbuf_init(&out, 0);
	err = redis_crypt_open(s, &out, name, sealed);
	if (!err)
		assert_true(str_eq(sbuf_view(&out), str_from(want)));
	else
		assert_int_equal(out.len, 0);
	sbuf_fini(&out);
	return err;
}

static void it_opens_under_its_name_and_key_only(void **state)
{
	uint8_t raw[32];
	struct redis_crypt *a, *b, *other, *plain;
	struct sbuf x;
	char err[256];

	(void)state;
	for (int i = 0; i < 32; i++)
		raw[i] = (uint8_t)i;
	a = seal_with(hex, sizeof(hex) - 1);
	b = seal_with(raw, sizeof(raw)); /* the same key, another process */
	raw[31] ^= 1;
	other = seal_with(raw, sizeof(raw));
	assert_int_equal(
		redis_crypt_create(&plain, "--redis-key-file", "none", err, sizeof(err)), 0);
	sbuf_init(&x, 0);
	assert_int_equal(redis_crypt_close(a, &x, STR("call/c"), STR("secret")), 0);
	assert_null(memmem(x.p, x.len, "secret", 6));
	assert_int_equal(opens(a, STR("call/c"), sbuf_view(&x), "secret"), 0);
	assert_int_equal(opens(b, STR("call/c"), sbuf_view(&x), "secret"), 0);
	assert_int_equal(opens(other, STR("call/c"), sbuf_view(&x), ""), -EBADMSG);
	assert_int_equal(opens(a, STR("call/s"), sbuf_view(&x), ""), -EBADMSG);
	assert_int_equal(opens(plain, STR("call/c"), sbuf_view(&x), ""), -EBADMSG);
	for (size_t i = 0; i < x.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			x.p[i] ^= (char)(1 << bit);
			assert_int_not_equal(opens(a, STR("call/c"), sbuf_view(&x), ""), 0);
			x.p[i] ^= (char)(1 << bit);
		}
	for (size_t len = 0; len < x.len; len++)
		assert_int_equal(opens(a, STR("call/c"), (struct str){x.p, len}, ""), -EBADMSG);
	x.p[3] = 3; /* a later version */
	assert_int_equal(opens(a, STR("call/c"), sbuf_view(&x), ""), -EPROTONOSUPPORT);
	/* With a key, unencrypted data is refused. */
	x.len = 0;
	assert_int_equal(redis_crypt_close(plain, &x, STR("call/c"), STR("secret")), 0);
	assert_int_equal(opens(plain, STR("call/c"), sbuf_view(&x), "secret"), 0);
	assert_int_equal(opens(a, STR("call/c"), sbuf_view(&x), ""), -EBADMSG);
	sbuf_fini(&x);
	redis_crypt_destroy(a);
	redis_crypt_destroy(b);
	redis_crypt_destroy(other);
	redis_crypt_destroy(plain);
}

/* Encrypted data shows the process that wrote it, and the order. */
static void it_tells_who_sealed_it_and_when(void **state)
{
	struct redis_crypt *a = seal_with(hex, sizeof(hex) - 1),
			   *b = seal_with(hex, sizeof(hex) - 1), *plain;
	struct redis_crypt_origin first, second, other;
	char err[256];
	struct sbuf x;

	(void)state;
	sbuf_init(&x, 0);
	assert_int_equal(redis_crypt_close(a, &x, STR("n"), STR("m")), 0);
	assert_true(redis_crypt_origin(&first, sbuf_view(&x)));
	x.len = 0;
	assert_int_equal(redis_crypt_close(a, &x, STR("n"), STR_NONE), 0);
	assert_true(redis_crypt_origin(&second, sbuf_view(&x)));
	assert_false(redis_crypt_origin(&other, (struct str){x.p, x.len - 1}));
	assert_int_equal(opens(b, STR("n"), sbuf_view(&x), ""), 0);
	x.len = 0;
	assert_int_equal(redis_crypt_close(b, &x, STR("n"), STR("m")), 0);
	assert_true(redis_crypt_origin(&other, sbuf_view(&x)));
	assert_memory_equal(first.salt, second.salt, sizeof(first.salt));
	assert_memory_not_equal(first.salt, other.salt, sizeof(first.salt));
	assert_true(second.counter > first.counter);
	assert_int_equal(
		redis_crypt_create(&plain, "--redis-key-file", "none", err, sizeof(err)), 0);
	assert_true(redis_crypt_is_plain(plain) && !redis_crypt_is_plain(a));
	x.len = 0;
	assert_int_equal(redis_crypt_close(plain, &x, STR("n"),
				 STR("mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm")),
		0);
	assert_false(redis_crypt_origin(&other, sbuf_view(&x)));
	sbuf_fini(&x);
	redis_crypt_destroy(a);
	redis_crypt_destroy(b);
	redis_crypt_destroy(plain);
}

/* Equal data under equal names never gives equal ciphertext, in one process and in two. */
static void a_nonce_is_never_used_twice(void **state)
{
	struct redis_crypt *s[2] = {
		seal_with(hex, sizeof(hex) - 1), seal_with(hex, sizeof(hex) - 1)};
	struct sbuf x[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(x); i++) {
		sbuf_init(&x[i], 0);
		assert_int_equal(redis_crypt_close(s[i % 2], &x[i], STR("n"), STR("secret")), 0);
		for (size_t k = 0; k < i; k++) /* salt and counter */
			assert_memory_not_equal(x[i].p + 4, x[k].p + 4, 24);
	}
	for (size_t i = 0; i < ARRAY_LEN(x); i++)
		sbuf_fini(&x[i]);
	redis_crypt_destroy(s[0]);
	redis_crypt_destroy(s[1]);
}

static void a_file_that_holds_no_key_is_refused(void **state)
{
	static const char *const bad[] = {"", "short", "00",
		"zz0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"};
	struct redis_crypt *s = NULL;
	char err[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		write_key(bad[i], strlen(bad[i]));
		assert_int_equal(redis_crypt_create(&s, "--redis-key-file", path, err, sizeof(err)),
			-EINVAL);
		assert_non_null(strstr(err, "openssl rand -hex 32"));
	}
	assert_int_equal(
		redis_crypt_create(&s, "--redis-key-file", "/nowhere/key", err, sizeof(err)),
		-ENOENT);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	return fd < 0;
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_opens_under_its_name_and_key_only),
		cmocka_unit_test(it_tells_who_sealed_it_and_when),
		cmocka_unit_test(a_nonce_is_never_used_twice),
		cmocka_unit_test(a_file_that_holds_no_key_is_refused),
	};

	log_open("test", LOG_ERR, 1);
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
