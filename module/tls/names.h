/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whom a SIP request is for, and whom a certificate is of (RFC 5922). Uses OpenSSL, but nothing of
 * Kamailio. */
#ifndef XCIPHER_MODULE_TLS_NAMES_H
#define XCIPHER_MODULE_TLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/x509.h>

#define NAME_SIZE 256 /* with the NUL */

struct hop {
	char name[NAME_SIZE]; /* host in the URI of the next server; "": an address, or none */
	bool initial;         /* the request has no To tag: it is not within a dialog */
};

/* Reads the next hop from a SIP message: the host of the first Route, or of the request URI. A
 * reply has none. */
void names_hop(struct hop *out, const char *message, size_t len);
/* Whether the certificate is of the SIP domain or host with this name (RFC 5922 7.1 and 7.2): a SIP
 * URI without a user among its subjectAltNames or, if it has none, a DNS name. Wildcards and the
 * common name do not count. */
bool names_match(X509 *cert, const char *name);

#endif
