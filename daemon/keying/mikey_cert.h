/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates for MIKEY: our key pairs with their chains, and certificates of peers. Constant once
 * loaded, so any thread may read them. RSA of 2,048 bits or more. */
#ifndef KEYING_MIKEY_CERT_H
#define KEYING_MIKEY_CERT_H

#include "base/bytes.h"

struct mikey_cert; /* a certificate, its chain, and the private key if it is ours */

#define MIKEY_CHAIN_MAX 4u /* certificates in a message or a file */

/* A PEM text with our certificate first, then those of its issuers (the root may be left out), and
 * the private key anywhere. 0, -EBADMSG (no certificate, or key = true and no key), -EKEYREJECTED
 * (key and certificate do not fit, not RSA, or too short), -E2BIG (chain too long), -ENOMEM. The
 * caller wipes the text. */
int mikey_cert_load(struct mikey_cert **out, struct str pem, bool key);
void mikey_cert_free(struct mikey_cert *c); /* NULL is fine */

#endif
