/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sealed records of a database that anybody may write to: no bytes open that were not sealed with
 * the key, and what was sealed opens only unchanged and under its name, in any process that has the
 * key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "persist/redis_crypt.h"

enum { SALT = 16, OVERHEAD = 4 + SALT + 8 + 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static struct redis_crypt *ours, *others, *none;

static void end(void)
{
	redis_crypt_destroy(ours);
	redis_crypt_destroy(others);
	redis_crypt_destroy(none);
}

static void must(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char err[200], path[64];
	int fd = memfd_create("key", 0);

	(void)argc;
	(void)argv;
	must(fd >= 0 && fchmod(fd, 0600) == 0 &&
		write(fd, "0123456789abcdef0123456789abcdef", 32) == 32);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	must(redis_crypt_create(&ours, "--redis-key-file", path, err, sizeof(err)) == 0);
	must(redis_crypt_create(&others, "--redis-key-file", path, err, sizeof(err)) == 0);
	must(redis_crypt_create(&none, "--redis-key-file", "none", err, sizeof(err)) == 0);
	close(fd);
	return atexit(end);
}

/* Opens a record after the bytes in the buffer. 0: appended the plaintext; an error: appended
 * nothing. */
static int opened(struct redis_crypt *s, struct str name, struct str sealed, struct str plain)
{
	struct sbuf out;
	int err;

	sbuf_init(&out, 0);
	sbuf_str(&out, STR("before"));
	err = redis_crypt_open(s, &out, name, sealed);
	must(!out.err && (!err || err == -EBADMSG || err == -EPROTONOSUPPORT));
	must(out.len == 6 + (err ? 0 : plain.len) && memcmp(out.p, "before", 6) == 0);
	must(err || memcmp(out.p + 6, plain.s, plain.len) == 0);
	sbuf_fini(&out);
	return err;
}

static void from_a_stranger(struct str name, struct str bytes)
{
	bool readable = bytes.len >= 4 && memcmp(bytes.s, "XCSP", 4) == 0;

	must(opened(ours, name, bytes, STR_NONE) != 0);
	must((opened(none, name, bytes,
		      readable ? (struct str){bytes.s + 4, bytes.len - 4} : STR_NONE) == 0) ==
		readable);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct str name, plain;
	struct sbuf sealed;
	uint8_t flip;
	uint32_t at;
	char *copy;

	if (len < 4)
		return 0;
	copy = malloc(len);
	must(copy);
	memcpy(copy, data, len);
	at = be16(data);
	flip = data[2];
	name = (struct str){copy + 4, data[3] < len - 4 ? data[3] : len - 4};
	plain = (struct str){copy + 4 + name.len, len - 4 - name.len};
	from_a_stranger(name, plain);
	sbuf_init(&sealed, 0);
	must(redis_crypt_close(ours, &sealed, name, plain) == 0);
	must(sealed.len == plain.len + OVERHEAD);
	must(opened(ours, name, sbuf_view(&sealed), plain) == 0);
	must(opened(others, name, sbuf_view(&sealed), plain) == 0);
	must(opened(none, name, sbuf_view(&sealed), plain) != 0);
	if (name.len)
		must(opened(ours, (struct str){name.s, name.len - 1}, sbuf_view(&sealed), plain) !=
			0);
	if (flip) {
		sealed.p[at % sealed.len] ^= (char)flip;
		must(opened(others, name, sbuf_view(&sealed), plain) != 0);
		sealed.p[at % sealed.len] ^= (char)flip;
	}
	sealed.len -= 1 + at % sealed.len;
	must(opened(ours, name, sbuf_view(&sealed), plain) != 0);
	sbuf_fini(&sealed);
	free(copy);
	return 0;
}
