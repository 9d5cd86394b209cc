/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See cert_file.h. */
#include "app/cert_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/secmem.h"
#include "base/secret_file.h"

#define PEM_MAX 65536u
#define CERT    "--dtls-cert"
#define KEY     "--dtls-key"

/* A certificate without its key is not secret. Returns its length, or -errno. */
static int read_public(const char *path, char *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = 0;
	size_t len = 0;
	int res = fd < 0 ? -errno : 0;

	while (!res && len < PEM_MAX && (n = read(fd, out + len, PEM_MAX - len)) > 0)
		len += (size_t)n;
	if (!res && n < 0)
		res = -errno;
	else if (!res && len == PEM_MAX)
		res = -EFBIG;
	if (fd >= 0)
		close(fd);
	return res ? res : (int)len;
}

static int load(struct dtls_cert **out, const char *cert_path, const char *key_path, char *text[2],
	char *err, size_t err_len)
{
	bool one = !key_path;
	int len[2], res;

	len[0] = secret_file_read(
		one ? CERT : KEY, one ? cert_path : key_path, text[0], PEM_MAX, err, err_len);
	if (len[0] < 0)
		return len[0];
	len[1] = one ? len[0] : read_public(cert_path, text[1]);
	if (len[1] < 0) {
		snprintf(err, err_len, CERT "=%s cannot be read: %s", cert_path, strerror(-len[1]));
		return len[1];
	}
	res = dtls_cert_load(out, (struct str){text[!one], (size_t)len[1]},
		(struct str){text[0], (size_t)len[0]}, clock_real_ns() / NS_PER_SEC);
	if (!res)
		return 0;
	one |= !dtls_cert_error_of_key(res);
	snprintf(err, err_len, "%s=%s %s", one ? CERT : KEY, one ? cert_path : key_path,
		dtls_cert_error(res));
	return -EINVAL;
}

int cert_file_load(struct dtls_cert **out, const char *cert_path, const char *key_path, char *err,
	size_t err_len)
{
	char *text[2] = {secmem_alloc(PEM_MAX), secmem_alloc(PEM_MAX)};
	int res = -ENOMEM;

	if (text[0] && text[1])
		res = load(out, cert_path, key_path, text, err, err_len);
	else
		snprintf(err, err_len, CERT "=%s cannot be loaded: out of memory", cert_path);
	for (int i = 0; i < 2; i++)
		if (text[i])
			secmem_free(text[i], PEM_MAX);
	return res;
}
