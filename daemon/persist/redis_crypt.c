/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sealing (AES-256-GCM of OpenSSL, NIST SP 800-38D). A nonce must never repeat under a key, and
 * nodes share the key file. So each process has its own key: HKDF-SHA256 (RFC 5869) of the file's
 * key with 128 random bits, which are written with every record. Under this key the nonce is a
 * counter. The name is authenticated, but not written: a record opens only under its own name.
 *
 *   "XCS" version(2) salt(16) counter(8) ciphertext tag(16)         version 'P': "XCSP" plaintext */
#include "persist/redis_crypt.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/secmem.h"
#include "base/secret_file.h"

enum {
	KEY = 32,
	SALT = SEAL_SALT_LEN,
	COUNTER = 8,
	TAG = 16,
	HEAD = 4,
	SEALED_MIN = HEAD + SALT + COUNTER + TAG
};
static const char head_sealed[HEAD + 1] = "XCS\x02", head_plain[HEAD + 1] = "XCSP";

#define PEERS 4 /* processes whose keys are cached: usually one or two are read at a time */

struct peer {
	bool set;
	uint8_t salt[SALT], key[KEY];
};

struct redis_crypt {
	bool plain;
	uint8_t master[KEY];
	struct peer own, peer[PEERS];
	uint32_t peer_next;
	uint64_t counter;
	EVP_CIPHER_CTX *ctx;
};

static int derive(const struct redis_crypt *s, const uint8_t *salt, uint8_t key[KEY])
{
	static const uint8_t info[] = "xcipher saved calls";
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, NULL);
	size_t len = KEY;
	bool ok = c && EVP_PKEY_derive_init(c) == 1 &&
		EVP_PKEY_CTX_set_hkdf_md(c, EVP_sha256()) == 1 &&
		EVP_PKEY_CTX_set1_hkdf_salt(c, salt, SALT) == 1 &&
		EVP_PKEY_CTX_set1_hkdf_key(c, s->master, KEY) == 1 &&
		EVP_PKEY_CTX_add1_hkdf_info(c, info, sizeof(info) - 1) == 1 &&
		EVP_PKEY_derive(c, key, &len) == 1;

	EVP_PKEY_CTX_free(c);
	return ok ? 0 : -EIO;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'    ? c - '0'
		: c >= 'a' && c <= 'f' ? c - 'a' + 10
		: c >= 'A' && c <= 'F' ? c - 'A' + 10
				       : -1;
}

static bool read_hex(uint8_t key[KEY], const char *text, size_t len)
{
	while (len && (text[len - 1] == '\n' || text[len - 1] == '\r' || text[len - 1] == ' '))
		len--;
	if (len != 2 * KEY)
		return false;
	for (size_t i = 0; i < KEY; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		key[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

static int read_key(
	uint8_t key[KEY], const char *option, const char *path, char *err, size_t err_len)
{
	char text[128];
	int len = secret_file_read(option, path, text, sizeof(text), err, err_len);
	int res = len < 0 ? len : 0;

	if (len == KEY) {
		memcpy(key, text, KEY);
	} else if (len >= 0 && !read_hex(key, text, (size_t)len)) {
		snprintf(err, err_len,
			"%s=%s must hold 32 bytes or 64 hexadecimal digits, as of: openssl rand -hex 32",
			option, path);
		res = -EINVAL;
	}
	secmem_wipe(text, sizeof(text));
	return res;
}

int redis_crypt_create(struct redis_crypt **out, const char *option, const char *key_file,
	char *err, size_t err_len)
{
	struct redis_crypt *s = secmem_alloc(sizeof(*s));
	int res = s ? 0 : -ENOMEM;

	if (!s)
		return res;
	s->plain = strcmp(key_file, "none") == 0;
	if (!s->plain) {
		res = read_key(s->master, option, key_file, err, err_len);
		res = res ? res : secmem_random(s->own.salt, SALT);
		res = res ? res : derive(s, s->own.salt, s->own.key);
		s->ctx = EVP_CIPHER_CTX_new();
		res = res ? res : s->ctx ? 0 : -ENOMEM;
	}
	if (res) {
		redis_crypt_destroy(s);
		return res;
	}
	*out = s;
	return 0;
}

void redis_crypt_destroy(struct redis_crypt *s)
{
	if (!s)
		return;
	EVP_CIPHER_CTX_free(s->ctx);
	secmem_free(s, sizeof(*s));
}

static void put_be64(uint8_t *p, uint64_t v)
{
	put_be32(p, (uint32_t)(v >> 32));
	put_be32(p + 4, (uint32_t)v);
}

int redis_crypt_close(struct redis_crypt *s, struct sbuf *out, struct str name, struct str plain)
{
	uint8_t head[HEAD + SALT + COUNTER], iv[12] = {0}, tag[TAG] = {0};
	size_t at = out->len + (s->plain ? HEAD : sizeof(head));
	int n;

	if (s->plain) {
		sbuf_put(out, head_plain, HEAD);
		sbuf_str(out, plain);
		return out->err;
	}
	memcpy(head, head_sealed, HEAD);
	memcpy(head + HEAD, s->own.salt, SALT);
	put_be64(head + HEAD + SALT, ++s->counter);
	memcpy(iv + 4, head + HEAD + SALT, COUNTER);
	sbuf_put(out, head, sizeof(head));
	sbuf_str(out, plain);
	sbuf_put(out, tag, TAG); /* its place */
	if (out->err)
		return out->err;
	if (EVP_EncryptInit_ex(s->ctx, EVP_aes_256_gcm(), NULL, s->own.key, iv) != 1 ||
		EVP_EncryptUpdate(s->ctx, NULL, &n, head, sizeof(head)) != 1 ||
		EVP_EncryptUpdate(s->ctx, NULL, &n, (const uint8_t *)name.s, (int)name.len) != 1 ||
		EVP_EncryptUpdate(s->ctx, (uint8_t *)out->p + at, &n, (uint8_t *)out->p + at,
			(int)plain.len) != 1 ||
		EVP_EncryptFinal_ex(s->ctx, tag, &n) != 1 ||
		EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_GCM_GET_TAG, TAG, tag) != 1) {
		secmem_wipe(out->p + at, plain.len);
		return -EIO;
	}
	memcpy(out->p + at + plain.len, tag, TAG);
	return 0;
}

static const uint8_t *key_of(struct redis_crypt *s, const uint8_t *salt)
{
	struct peer *p = &s->own;

	if (memcmp(p->salt, salt, SALT) == 0)
		return p->key;
	for (uint32_t i = 0; i < PEERS; i++)
		if (s->peer[i].set && memcmp(s->peer[i].salt, salt, SALT) == 0)
			return s->peer[i].key;
	p = &s->peer[s->peer_next++ % PEERS];
	p->set = derive(s, salt, p->key) == 0;
	memcpy(p->salt, salt, SALT);
	return p->set ? p->key : NULL;
}

int redis_crypt_open(struct redis_crypt *s, struct sbuf *out, struct str name, struct str sealed)
{
	const uint8_t *in = (const uint8_t *)sealed.s, *key;
	uint8_t iv[12] = {0}, tag[TAG];
	size_t at = out->len, len;
	int n;

	if (sealed.len < HEAD || memcmp(in, head_sealed, HEAD - 1) != 0)
		return -EBADMSG;
	if (s->plain && memcmp(in, head_plain, HEAD) == 0) {
		sbuf_put(out, in + HEAD, sealed.len - HEAD);
		return out->err;
	}
	if (in[HEAD - 1] != head_sealed[HEAD - 1] && in[HEAD - 1] != head_plain[HEAD - 1])
		return -EPROTONOSUPPORT;
	if (s->plain || sealed.len < SEALED_MIN || in[HEAD - 1] != head_sealed[HEAD - 1])
		return -EBADMSG;
	len = sealed.len - SEALED_MIN;
	key = key_of(s, in + HEAD);
	if (!key)
		return -EIO;
	memcpy(iv + 4, in + HEAD + SALT, COUNTER);
	memcpy(tag, in + sealed.len - TAG, TAG);
	sbuf_put(out, in + HEAD + SALT + COUNTER, len);
	if (out->err)
		return out->err;
	if (EVP_DecryptInit_ex(s->ctx, EVP_aes_256_gcm(), NULL, key, iv) == 1 &&
		EVP_DecryptUpdate(s->ctx, NULL, &n, in, HEAD + SALT + COUNTER) == 1 &&
		EVP_DecryptUpdate(s->ctx, NULL, &n, (const uint8_t *)name.s, (int)name.len) == 1 &&
		EVP_DecryptUpdate(s->ctx, (uint8_t *)out->p + at, &n, (uint8_t *)out->p + at,
			(int)len) == 1 &&
		EVP_CIPHER_CTX_ctrl(s->ctx, EVP_CTRL_GCM_SET_TAG, TAG, tag) == 1 &&
		EVP_DecryptFinal_ex(s->ctx, (uint8_t *)out->p + at + len, &n) == 1)
		return 0;
	secmem_wipe(out->p + at, len);
	out->len = at;
	return -EBADMSG;
}

bool redis_crypt_origin(struct redis_crypt_origin *out, struct str sealed)
{
	const uint8_t *in = (const uint8_t *)sealed.s;

	if (sealed.len < SEALED_MIN || memcmp(in, head_sealed, HEAD) != 0)
		return false;
	memcpy(out->salt, in + HEAD, SALT);
	out->counter = (uint64_t)be32(in + HEAD + SALT) << 32 | be32(in + HEAD + SALT + 4);
	return true;
}

bool redis_crypt_is_plain(const struct redis_crypt *s)
{
	return s->plain;
}
