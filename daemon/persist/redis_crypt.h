/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encrypts and authenticates bytes that leave the machine, bound to a name, so that they cannot be
 * read, changed, or swapped. AES-256-GCM. */
#ifndef PERSIST_REDIS_CRYPT_H
#define PERSIST_REDIS_CRYPT_H

#include "base/sbuf.h"

struct redis_crypt;

/* option: the name of the option that gave key_file, for err. key_file: 32 bytes, or 64 hexadecimal
 * digits. "none": records are stored in the clear and marked so. A node with a key refuses these
 * records, and a node without a key refuses encrypted ones. err: one line. 0 or -errno. */
int redis_crypt_create(struct redis_crypt **out, const char *option, const char *key_file,
	char *err, size_t err_len);
void redis_crypt_destroy(struct redis_crypt *s);
/* Appends to out. Errors stay in out, too: 0 or -errno. */
int redis_crypt_close(struct redis_crypt *s, struct sbuf *out, struct str name, struct str plain);
/* Appends to out. -EBADMSG: not sealed by this key under this name. -EPROTONOSUPPORT: another
 * version. */
int redis_crypt_open(struct redis_crypt *s, struct sbuf *out, struct str name, struct str sealed);
/* The process that sealed a value, and its order: each process has a random salt, and a counter
 * that rises with each value. Authentic only if redis_crypt_open() accepts the same bytes. False:
 * not sealed. */
#define SEAL_SALT_LEN 16
struct redis_crypt_origin {
	uint8_t salt[SEAL_SALT_LEN];
	uint64_t counter;
};
bool redis_crypt_origin(struct redis_crypt_origin *out, struct str sealed);
/* key_file was "none": nothing is authentic. */
bool redis_crypt_is_plain(const struct redis_crypt *s);

#endif
