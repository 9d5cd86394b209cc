/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Bytes that leave the machine: encrypted and authenticated under a name, so that none can be read, changed, or put in another's
 * place. AES-256-GCM. */
#ifndef CONTROL_SEAL_H
#define CONTROL_SEAL_H

#include "base/sbuf.h"

struct seal;

/* key_file: 32 bytes, or 64 hexadecimal digits. "none": bytes stay readable and are only marked so; they are refused by whoever has
 * a key, and the other way round. err: one line. 0 or -errno. */
int seal_create(struct seal **out, const char *key_file, char *err, size_t err_len);
void seal_destroy(struct seal *s);
/* Appended to out; an error is left there, or returned: 0 or -errno. */
int seal_close(struct seal *s, struct sbuf *out, struct str name, struct str plain);
/* Appended to out. -EBADMSG: not sealed by this key, under this name. -EPROTONOSUPPORT: of another version. */
int seal_open(struct seal *s, struct sbuf *out, struct str name, struct str sealed);
/* The process that sealed it, and the order: each process has a random salt, and a counter that
 * grows with each sealed value. Authentic only if seal_open() accepts the same bytes. False: not
 * sealed. */
#define SEAL_SALT_LEN 16
struct seal_origin {
	uint8_t salt[SEAL_SALT_LEN];
	uint64_t counter;
};
bool seal_origin(struct seal_origin *out, struct str sealed);
/* key_file was "none": nothing is authentic. */
bool seal_is_plain(const struct seal *s);

#endif
