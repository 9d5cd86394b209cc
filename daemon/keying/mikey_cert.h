/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Certificates for MIKEY: our key pairs with their chains, certificates of peers, trusted roots
 * with revocation lists. Constant once loaded, so any thread may read them. RSA of 2,048
 * bits or more. */
#ifndef KEYING_MIKEY_CERT_H
#define KEYING_MIKEY_CERT_H

#include "base/bytes.h"

struct mikey_cert;  /* a certificate, its chain, and the private key if it is ours */
struct mikey_trust; /* roots and revocation lists */

#define MIKEY_CHAIN_MAX 4u /* certificates in a message or a file */

/* A PEM text with our certificate first, then those of its issuers (the root may be left out), and
 * the private key anywhere. 0, -EBADMSG (no certificate, or key = true and no key), -EKEYREJECTED
 * (key and certificate do not fit, not RSA, or too short), -E2BIG (chain too long), -ENOMEM. The
 * caller wipes the text. */
int mikey_cert_load(struct mikey_cert **out, struct str pem, bool key);
void mikey_cert_free(struct mikey_cert *c); /* NULL is fine */

/* roots: PEM certificates. crls: PEM revocation lists, or empty. With lists, every certificate of a
 * chain needs a valid list of its issuer. 0, -EBADMSG (no certificate, or crls without a list),
 * -ENOMEM. */
int mikey_trust_load(struct mikey_trust **out, struct str roots, struct str crls);
void mikey_trust_free(struct mikey_trust *t); /* NULL is fine */

#endif
