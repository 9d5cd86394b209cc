/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our certificate and its key, for connections to servers. libcurl would read both files for each
 * connection, which takes as long as the rest of a resumed handshake. */
#ifndef LOST_IDENTITY_H
#define LOST_IDENTITY_H

#include <openssl/ssl.h>

struct identity;

/* PEM files with the chain of the certificate, and its key; key_file NULL: in the same file. They
 * are read at the first use. The texts must outlive it. NULL: out of memory. */
struct identity *identity_new(const char *cert_file, const char *key_file);
void identity_free(struct identity *i);
/* Gives a context the certificate and the key. Reads the files again if they have changed. False:
 * they cannot be read, or the key is that of another certificate. */
bool identity_use(struct identity *i, SSL_CTX *ctx);

#endif
