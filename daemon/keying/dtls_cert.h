/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Our certificates for DTLS-SRTP. Several may live at once: each association holds a reference to
 * its own. Fingerprints of it go into SDP. Private keys are never logged or written. The process
 * has no core dumps; OpenSSL keeps keys on its heap, which it wipes when it frees them.
 * All functions may be called by any thread. */
#ifndef KEYING_DTLS_CERT_H
#define KEYING_DTLS_CERT_H

#include "proto/sdp_dtls.h"

struct dtls_cert;

/* A new ECDSA P-256 certificate, self-signed, with a random serial number and a subject that names
 * nobody. It is valid from one day before now_s to one day after now_s + life_s (seconds since
 * 1970). 0, -ENOMEM, or -EIO if OpenSSL fails. The caller owns one reference. */
int dtls_cert_create(struct dtls_cert **out, uint64_t now_s, uint32_t life_s);
/* The first certificate of a PEM text, and the first private key of another (ECDSA of 256 bits, RSA
 * of 2,048 bits, or more). Both may be the same text. Further certificates are ignored: the
 * fingerprint proves the first one, and a chain would only make flights longer. Encrypted keys are
 * refused. now_s: seconds since 1970. The caller wipes the texts. 0, or an error that
 * dtls_cert_error() explains. */
int dtls_cert_load(struct dtls_cert **out, struct str cert, struct str key, uint64_t now_s);
/* Why the file was refused, and the required content. err: of dtls_cert_load(). */
const char *dtls_cert_error(int err);
/* Whether err concerns the key, and not the certificate. */
bool dtls_cert_error_of_key(int err);

struct dtls_cert *dtls_cert_get(struct dtls_cert *c);
void dtls_cert_put(struct dtls_cert *c); /* NULL is fine; the last one frees it */

/* The fingerprint by this hash. 0 or -EINVAL. */
int dtls_cert_fingerprint(
	struct dtls_fingerprint *out, const struct dtls_cert *c, enum dtls_hash h);
/* Identifies a certificate by its SHA-256. Never 0. */
uint64_t dtls_cert_id_of(const struct dtls_fingerprint *sha256);
uint64_t dtls_cert_id(const struct dtls_cert *c);
/* Whether half of its life is over at now_s, so that new calls should get a new one. Never true
 * for one that was loaded. */
bool dtls_cert_is_old(const struct dtls_cert *c, uint64_t now_s);

#endif
