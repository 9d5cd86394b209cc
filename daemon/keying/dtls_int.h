/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of DTLS-SRTP only. */
#ifndef KEYING_DTLS_INT_H
#define KEYING_DTLS_INT_H

#include <openssl/bio.h>
#include <openssl/ssl.h>

#include "keying/dtls.h"

/* --- dtls_cert.c ------------------------------------------------------------------------------ */

/* OpenSSL's context with this certificate and key, prepared by dtls_tls_prepare(). */
SSL_CTX *dtls_cert_ctx(const struct dtls_cert *c);
const BIO_METHOD *dtls_cert_bio(const struct dtls_cert *c);

/* --- dtls_io.c: datagrams between an association and OpenSSL ---------------------------------- */

#define DTLS_OUT_BYTES 12288u /* a flight with a large certificate */
#define DTLS_OUT_HELD  1024u  /* after the handshake: a repeated last flight, and a close_notify */
#define DTLS_OUT_COUNT 48u    /* the same in packets of DTLS_MTU_MIN */

struct dtls_io {
	const uint8_t *in; /* the datagram that OpenSSL reads next */
	size_t in_len;
	uint64_t shift; /* added to the sequence numbers of unencrypted records that we send */
	bool discard;   /* OpenSSL's output is thrown away */
	uint32_t lost;  /* packets that had no room */
	uint16_t at, n; /* first packet that was not taken, and number of packets */
	uint16_t head;  /* its first byte */
	uint16_t used;
	uint16_t len[DTLS_OUT_COUNT];
	uint16_t cap;
	uint8_t *out; /* cap bytes */
};

/* A BIO method for datagrams. NULL: out of memory. */
BIO_METHOD *dtls_io_method(void);
/* ssl reads from and writes to io. False: out of memory. */
bool dtls_io_attach(SSL *ssl, const BIO_METHOD *method, struct dtls_io *io);
/* Room for packets to send. False: out of memory. */
bool dtls_io_init(struct dtls_io *io);
void dtls_io_fini(struct dtls_io *io);
/* Reduces the room to DTLS_OUT_HELD, once all packets were taken. */
void dtls_io_shrink(struct dtls_io *io);
/* As dtls_next(). */
int dtls_io_next(struct dtls_io *io, uint8_t *buf, size_t cap);

/* --- dtls_tls.c: OpenSSL's settings and callbacks --------------------------------------------- */

/* Certificate of the peer, by all hashes: the certificate itself need not be kept. */
struct dtls_peer {
	bool known;
	uint8_t digest[DTLS_HASH_COUNT][DTLS_DIGEST_MAX];
};

/* State that OpenSSL's callbacks read and write; SSL_get_app_data() points to it. */
struct dtls_tls {
	struct dtls_peer peer;
	struct dtls_fingerprints expected;
	bool expecting; /* expected is set */
	bool allow_sha1;
	enum srtp_suite_id profile[DTLS_PROFILES_MAX];
	uint32_t profiles;
	enum dtls_failure failure; /* found by a callback, before OpenSSL reports its own */
	bool alerted;              /* the peer sent a fatal alert */
	bool repeated;             /* a timer of OpenSSL expired */
	uint64_t first_ns;
	uint64_t timer_ns; /* the current duration of OpenSSL's timer */
};

/* Versions, ciphers, callbacks. False: OpenSSL refused. */
bool dtls_tls_prepare(SSL_CTX *ctx);
/* The profiles of t for one connection; the callbacks use t as long as ssl lives. */
bool dtls_tls_attach(SSL *ssl, struct dtls_tls *t);
/* The client returned a cookie, so its ClientHello is the second message of the handshake, but the
 * first that OpenSSL sees. Prepares OpenSSL for it. record_seq: its record number. The client has
 * seen the gate's record numbers up to its own, so ours continue from there. */
void dtls_tls_skip_cookie(SSL *ssl, struct dtls_io *io, uint64_t record_seq);
/* The fingerprint of x by h: dtls_hash_len(h) bytes. */
bool dtls_tls_digest(uint8_t out[DTLS_DIGEST_MAX], const X509 *x, enum dtls_hash h);
/* Whether the peer's certificate has one of the expected fingerprints. */
bool dtls_tls_match(const struct dtls_tls *t);
/* The reason of a failed call, from t and OpenSSL's error queue, which is cleared. */
enum dtls_failure dtls_tls_reason(const struct dtls_tls *t);
/* Both directions' keys (RFC 5764 4.2). DTLS_FAIL_NONE, _NO_PROFILE or _INTERNAL. */
enum dtls_failure dtls_tls_export(
	SSL *ssl, enum dtls_role role, struct srtp_master *rx, struct srtp_master *tx);

#endif
