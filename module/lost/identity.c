/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdbool.h>

#include "identity.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Of a file: another version has another value of one of these. */
struct version {
	struct timespec changed;
	off_t size;
	ino_t inode;
};

struct identity {
	const char *cert_file, *key_file;
	struct version cert_version, key_version;
	SSL_CTX *parsed; /* its certificate, chain and key; NULL: not read yet */
};

struct identity *identity_new(const char *cert_file, const char *key_file)
{
	struct identity *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->cert_file = cert_file;
	i->key_file = key_file ? key_file : cert_file;
	return i;
}

void identity_free(struct identity *i)
{
	if (!i)
		return;
	SSL_CTX_free(i->parsed);
	free(i);
}

static bool look(const char *file, struct version *v)
{
	struct stat s;

	*v = (struct version){0}; /* padding, too: it is compared as octets */
	if (stat(file, &s))
		return false;
	v->changed = s.st_ctim;
	v->size = s.st_size;
	v->inode = s.st_ino;
	return true;
}

/* Without this function OpenSSL would ask for a password at the terminal. */
static int no_password(char *buf, int size, int rwflag, void *arg)
{
	(void)buf;
	(void)size;
	(void)rwflag;
	(void)arg;
	return 0;
}

static SSL_CTX *parse(const struct identity *i)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

	if (!ctx)
		return NULL;
	SSL_CTX_set_default_passwd_cb(ctx, no_password);
	if (SSL_CTX_use_certificate_chain_file(ctx, i->cert_file) == 1 &&
		SSL_CTX_use_PrivateKey_file(ctx, i->key_file, SSL_FILETYPE_PEM) == 1)
		return ctx;
	SSL_CTX_free(ctx);
	return NULL;
}

/* A file that is replaced while it is read looks changed the next time, too. */
static bool refresh(struct identity *i)
{
	struct version cert, key;

	if (!look(i->cert_file, &cert) || !look(i->key_file, &key))
		return false;
	if (i->parsed && !memcmp(&cert, &i->cert_version, sizeof(cert)) &&
		!memcmp(&key, &i->key_version, sizeof(key)))
		return true;
	SSL_CTX_free(i->parsed);
	i->parsed = parse(i);
	i->cert_version = cert;
	i->key_version = key;
	return i->parsed;
}

bool identity_use(struct identity *i, SSL_CTX *ctx)
{
	STACK_OF(X509) *chain = NULL;
	bool ok = refresh(i);

	if (ok) {
		SSL_CTX_get0_chain_certs(i->parsed, &chain);
		ok = SSL_CTX_use_cert_and_key(ctx, SSL_CTX_get0_certificate(i->parsed),
			     SSL_CTX_get0_privatekey(i->parsed), chain, 1) == 1;
	}
	/* libcurl would take these errors for those of the handshake. */
	ERR_clear_error();
	return ok;
}
