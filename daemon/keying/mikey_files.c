/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keying/mikey_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/secmem.h"
#include "base/secret_file.h"

#define FILE_MAX (1u << 20) /* certificates, revocation lists */

bool mikey_complain(const struct mikey_files *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->err, r->err_len, fmt, ap);
	va_end(ap);
	return false;
}

bool mikey_file_place(const struct mikey_files *r, char out[MIKEY_PATH], const char *name)
{
	const char *slash = strrchr(r->path, '/');
	int dir = *name != '/' && slash ? (int)(slash - r->path) + 1 : 0;
	int n = snprintf(out, MIKEY_PATH, "%.*s%s", dir, r->path, name);

	return (n > 0 && n < (int)MIKEY_PATH) || mikey_complain(r, "--mikey-config: path too long");
}

/* O_NONBLOCK, because a named pipe would block a reload. */
FILE *mikey_file_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	FILE *f = NULL;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		if (S_ISREG(st.st_mode))
			f = fdopen(fd, "re");
		else
			errno = EINVAL;
	}
	if (!f && fd >= 0)
		close(fd);
	return f;
}

bool mikey_file_read(const struct mikey_files *r, const char *path, struct str *text)
{
	FILE *f = mikey_file_open(path);
	char *buf = f ? malloc(FILE_MAX) : NULL;
	size_t n = buf ? fread(buf, 1, FILE_MAX, f) : 0;
	bool whole = buf && n < FILE_MAX && !ferror(f);

	if (f)
		fclose(f);
	*text = (struct str){buf, n};
	if (!whole) {
		free(buf);
		*text = STR_NONE;
		return mikey_complain(r,
			"--mikey-config: cannot read %s, or it is not a file of up to 1 MiB", path);
	}
	return true;
}

bool mikey_file_cert(
	const struct mikey_files *r, struct mikey_cert **out, const char *name, bool key)
{
	char path[MIKEY_PATH], *text;
	int n, err;

	if (!mikey_file_place(r, path, name))
		return false;
	text = secmem_alloc(FILE_MAX);
	if (!text)
		return mikey_complain(r, "out of memory");
	if (key) {
		n = secret_file_read(
			"--mikey-config: certificate", path, text, FILE_MAX, r->err, r->err_len);
	} else {
		struct str open;

		n = mikey_file_read(r, path, &open) ? (int)open.len : -EIO;
		if (n > 0)
			memcpy(text, open.s, open.len);
		free((char *)(uintptr_t)open.s);
	}
	if (n < 0) {
		secmem_free(text, FILE_MAX);
		return false;
	}
	mikey_cert_free(*out);
	*out = NULL;
	err = mikey_cert_load(out, (struct str){text, (size_t)n}, key);
	secmem_free(text, FILE_MAX);
	if (err == -EKEYREJECTED)
		return mikey_complain(r,
			"--mikey-config: %s: needs RSA of 2,048 bits or more, and a key that fits",
			path);
	return !err ||
		mikey_complain(r, "--mikey-config: %s: no usable PEM certificate%s", path,
			key ? " with its private key" : "");
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

/* The first line: text, or hex digits after "0x". */
static bool psk_from(struct mikey_psk *out, struct str line)
{
	size_t len = line.len;

	if (!str_starts(line, STR("0x"))) {
		if (len < MIKEY_PSK_MIN || len > MIKEY_PSK_MAX)
			return false;
		memcpy(out->key, line.s, len);
		out->len = (uint8_t)len;
		return true;
	}
	if (len % 2 || len / 2 - 1 < MIKEY_PSK_MIN || len / 2 - 1 > MIKEY_PSK_MAX)
		return false;
	for (size_t i = 2; i < len; i += 2) {
		int high = hex_digit(line.s[i]), low = hex_digit(line.s[i + 1]);

		if (high < 0 || low < 0)
			return false;
		out->key[i / 2 - 1] = (uint8_t)(high << 4 | low);
	}
	out->len = (uint8_t)(len / 2 - 1);
	return true;
}

bool mikey_file_psk(const struct mikey_files *r, struct mikey_psk *out, const char *name)
{
	char path[MIKEY_PATH], text[512];
	int n;
	bool good;

	if (!mikey_file_place(r, path, name))
		return false;
	n = secret_file_read(
		"--mikey-config: psk-file", path, text, sizeof(text), r->err, r->err_len);
	if (n < 0)
		return false;
	good = psk_from(out, secret_file_line(text, (size_t)n));
	secmem_wipe(text, sizeof(text));
	return good ||
		mikey_complain(
			r, "--mikey-config: %s: needs 16 to 64 characters, or hex after 0x", path);
}
