/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Between the files of MIKEY. Layers, each calls only those above it:
 *   mikey_names.c   names, time
 *   mikey_crypto.c  PRF, MAC, encryption, Diffie-Hellman
 *   mikey_unpad.c   what RSA decrypted
 *   mikey_cert.c    certificates, RSA; mikey_trust.c  chains and names
 *   mikey_policy.c  suites; mikey_keys.c  keys of the media; mikey_replay.c; mikey_marks.c
 *   mikey_in.c      a received message; mikey_out.c  what all messages of ours share
 *   mikey_initiate.c, mikey_respond.c, mikey_finish.c, mikey_error.c */
#ifndef KEYING_MIKEY_INT_H
#define KEYING_MIKEY_INT_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "keying/mikey.h"

static inline struct str mikey_bytes(const void *p, size_t len)
{
	return (struct str){p, len};
}

static inline struct str mikey_id_str(const struct mikey_id *id)
{
	return (struct str){id->name, id->len};
}

/* Input of the MAC of a verification message and of the signature of an RSA-R response: data, IDi,
 * IDr, T (RFC 3830 5.2, RFC 4738 3.6). */
#define MIKEY_WITH_IDS_MAX (MIKEY_MESSAGE_MAX + 2 * MIKEY_ID_MAX + 8)
struct str mikey_with_ids(
	uint8_t buf[MIKEY_WITH_IDS_MAX], const struct mikey_run *r, struct str data);

/* --- mikey_crypto.c -------------------------------------------------------------------------*/

/* Constants of RFC 3830 4.1.3 and 4.1.4. */
#define MIKEY_LABEL_TEK            0x2ad01c64u
#define MIKEY_LABEL_SALT           0x39a2c14bu
#define MIKEY_LABEL_TRANSPORT_ENCR 0x150533e1u
#define MIKEY_LABEL_TRANSPORT_AUTH 0x2d22ac75u
#define MIKEY_LABEL_TRANSPORT_SALT 0x29b88916u
#define MIKEY_CS_TRANSPORT         0xffu

struct mikey_label {
	uint32_t constant;
	uint8_t cs_id;
	uint32_t csb_id;
	struct str rand; /* at most 255 bytes */
};

/* HMAC-SHA-1-160. False: an error of OpenSSL; mac is then all zero and accepts nothing. */
bool mikey_hmac(uint8_t mac[MIKEY_MAC_LEN], struct str key, struct str data);
/* The PRF of RFC 3830 4.1.2. False: an error of OpenSSL; out is then wiped. */
bool mikey_prf(uint8_t *out, size_t len, struct str inkey, const struct mikey_label *l);

/* Keys that protect a message (RFC 3830 4.1.4), from a pre-shared or envelope key. */
struct mikey_transport {
	uint8_t encr[16];
	uint8_t salt[14];
	uint8_t auth[MIKEY_MAC_LEN];
};
bool mikey_transport_keys(
	struct mikey_transport *t, struct str inkey, uint32_t csb_id, struct str rand);
#define MIKEY_PRF_BLOCK 32u /* bytes of a part of inkey: 256 bits */
/* An envelope key of 16 to 64 bytes. Its length is as secret as itself. */
#define MIKEY_ENVELOPE_MAX (2 * MIKEY_PRF_BLOCK)
struct mikey_envelope_key {
	uint8_t key[MIKEY_ENVELOPE_MAX]; /* zeroes follow it */
	uint8_t rest;                    /* 0xff: it is longer than MIKEY_PRF_BLOCK. Otherwise 0 */
};
/* The same, and always the same work. */
bool mikey_envelope_keys(struct mikey_transport *t, const struct mikey_envelope_key *k,
	uint32_t csb_id, struct str rand);
/* AES-CM-128 of KEMAC data (RFC 3830 4.2.3), in place, both directions. */
bool mikey_transport_crypt(
	const struct mikey_transport *t, uint32_t csb_id, uint64_t time, uint8_t *data, size_t len);

#define MIKEY_DH_SECRET_LEN 48u
/* g^secret mod p, of mikey_dh_len(group) bytes. 0 or -EIO. */
int mikey_dh_public(uint8_t group, struct str secret, uint8_t out[MIKEY_TGK_MAX]);
/* peer^secret mod p. 0, -ERANGE: the peer's value is not between 2 and p - 2; -EIO. */
int mikey_dh_shared(uint8_t group, struct str secret, struct str peer, uint8_t out[MIKEY_TGK_MAX]);

/* --- mikey_cert.c ---------------------------------------------------------------------------*/

#define MIKEY_RSA_BITS     2048
#define MIKEY_RSA_BITS_MAX 4096
#define MIKEY_RSA_MAX      512u /* bytes of a signature or an encrypted key */

/* From DER certificates of a message, leaf first. 0, -EBADMSG, -EKEYREJECTED, -ENOMEM. */
int mikey_cert_from(struct mikey_cert **out, const struct str *der, uint32_t count);
/* Whether a function that reads PEM failed at the end of the text. False: at a damaged part. */
bool mikey_pem_ended(void);
uint32_t mikey_cert_count(const struct mikey_cert *c);
struct str mikey_cert_der(const struct mikey_cert *c, uint32_t nth);
X509 *mikey_cert_x509(const struct mikey_cert *c, uint32_t nth);
/* Seconds since 1970. INT64_MAX: no time, or a damaged one. */
int64_t mikey_time(const ASN1_TIME *t);
bool mikey_cert_is_private(const struct mikey_cert *c);
size_t mikey_cert_rsa_len(const struct mikey_cert *c); /* bytes of the modulus */

/* RSASSA-PKCS1-v1_5 with SHA-1, as RFC 3830 4.2.1 and 4.2.6 demand. sig: mikey_cert_rsa_len()
 * bytes. */
bool mikey_sign(const struct mikey_cert *c, struct str data, uint8_t *sig);
/* kind: MIKEY_SIGN_... */
bool mikey_verify(const struct mikey_cert *c, uint8_t kind, struct str data, struct str sig);
/* An envelope key for the holder of c. Length, or -EIO. */
int mikey_encrypt(
	const struct mikey_cert *c, bool oaep, struct str key, uint8_t out[MIKEY_RSA_MAX]);
/* RSAES-PKCS1-v1_5 or RSAES-OAEP: MIKEY does not say which it is. Neither: a random key. Always the
 * same work, whatever the ciphertext has. False: c has no private key, or an error. */
bool mikey_decrypt(const struct mikey_cert *c, struct str data, struct mikey_envelope_key *out);

/* --- mikey_unpad.c --------------------------------------------------------------------------*/

/* The same from a decrypted block of len bytes, at most MIKEY_RSA_MAX. False: out of memory. */
bool mikey_unpad(struct mikey_envelope_key *out, const uint8_t *block, size_t len);

/* --- mikey_trust.c --------------------------------------------------------------------------*/

/* Whether the chain of c ends at a root of t, at this time. */
enum mikey_failure mikey_trust_check(
	const struct mikey_trust *t, const struct mikey_cert *c, int64_t now_s);
/* The same for a certificate that the operator named for a peer: it needs no chain. But it must be
 * valid at this time, and no list may revoke it. If it has a chain to a root, and there are lists,
 * it needs a valid one. t may be NULL. */
enum mikey_failure mikey_trust_pinned(
	const struct mikey_trust *t, const struct mikey_cert *c, int64_t now_s);
/* Whether the certificate has this name. A URI: a SAN of type URI. A NAI: a SAN of type e-mail, or
 * DNS. Without such SANs the common name counts. Domains are compared without case. */
bool mikey_cert_has(const struct mikey_cert *c, const struct mikey_id *id);
/* The earliest expiry of the file's certificates, in seconds since 1970. */
int64_t mikey_cert_until(const struct mikey_cert *c);
/* The earliest expiry (nextUpdate) of revocation lists, in seconds since 1970. Of the lists of one
 * issuer, the one that lasts longest counts. INT64_MAX: none expires. */
int64_t mikey_trust_until(const struct mikey_trust *t);
/* The first of these names. 0 or -ENOENT. */
int mikey_cert_name(const struct mikey_cert *c, struct mikey_id *out);

/* --- mikey_policy.c -------------------------------------------------------------------------*/

#define MIKEY_SP_MAX 64u
/* The parameters of an SP payload. Their length. */
size_t mikey_policy_write(uint8_t out[MIKEY_SP_MAX], enum srtp_suite_id suite);
/* SUITE_PLAIN: not a suite of ours, or it switches something off. */
enum srtp_suite_id mikey_policy_suite(const struct mikey_policy *p);
/* The suite of the SP payload with this number in m. A message without any SP payload means the
 * defaults of RFC 3830 6.10.1. SUITE_PLAIN: none, or not a suite of ours. */
enum srtp_suite_id mikey_policy_of(const struct mikey_message *m, uint8_t number);

/* --- mikey_keys.c ---------------------------------------------------------------------------*/

/* Keys of all media, from TGKs or TEKs. r: csb_id, rand, cs, cs_suite, sessions, media. KEYS,
 * VALIDITY; SHARED_KEY: two crypto sessions have the same key, or one has a key of zeroes. */
enum mikey_failure mikey_keys_make(
	struct mikey_keys *out, const struct mikey_run *r, const struct mikey_key_list *k);

/* --- mikey_replay.c -------------------------------------------------------------------------*/

struct mikey_stamp {
	struct str from, to; /* names of the parties */
	struct str owner;    /* mikey_peer.owner, or the name of the peer */
	struct str message;  /* the part that MAC or signature cover */
	uint64_t time;
	uint32_t skew_s;
	uint64_t now_ntp;
};
/* TIME, REPLAY or 0. Changes nothing. */
enum mikey_failure mikey_replay_check(struct mikey_replay *r, const struct mikey_stamp *s);
/* The same, and remembers the message. REPLAY_FULL. */
enum mikey_failure mikey_replay_add(struct mikey_replay *r, const struct mikey_stamp *s);

/* --- mikey_marks.c --------------------------------------------------------------------------*/

/* The latest timestamp of each peer. The file is mapped, so a killed process loses none. A keyed
 * hash of the peer's name selects its place. Peers with the same place share a timestamp. */
struct mikey_marks;
int mikey_marks_open(struct mikey_marks **out, const char *path); /* mikey_replay_keep() */
void mikey_marks_close(struct mikey_marks *m);                    /* NULL is fine */
/* The mark as it was when the file was opened; 0: none. A mark later than limit is ignored. */
uint64_t mikey_marks_before(const struct mikey_marks *m, struct str owner, uint64_t limit);
void mikey_marks_note(struct mikey_marks *m, struct str owner, uint64_t time, uint64_t limit);

/* --- mikey_in.c -----------------------------------------------------------------------------*/

struct mikey_in {
	struct mikey_message m;
	const struct mikey_payload *t, *rand, *kemac, *pke, *sign, *v; /* NULL: absent */
	const struct mikey_payload *dh[2];
	struct mikey_id idi, idr; /* len 0: absent */
	struct mikey_cert *cert;  /* of the CERT payloads; NULL: none */
	struct str covered;       /* the bytes that MAC or signature cover */
};
/* Parses, and sorts the payloads. MALFORMED, TOO_LONG, VERSION, PRF, CERT. */
enum mikey_failure mikey_in_read(struct mikey_in *in, struct str message);
void mikey_in_free(struct mikey_in *in);
/* The MAC of KEMAC or V at the end of the message. ids: append identities and time of the run, as
 * verification messages do (RFC 3830 5.2). */
enum mikey_failure mikey_in_mac(
	const struct mikey_in *in, const uint8_t auth[MIKEY_MAC_LEN], const struct mikey_run *ids);
/* The signature, by in->cert or else by the certificate that the store has. ids: it covers what
 * mikey_with_ids() says. */
enum mikey_failure mikey_in_sign(
	const struct mikey_in *in, const struct mikey_cert *known, const struct mikey_run *ids);
/* Chain, dates, revocation of in->cert, and that it has this identity (len 0: any). Without
 * in->cert, mikey_trust_pinned() of the store's. */
enum mikey_failure mikey_in_cert(struct mikey_in *in, const struct mikey_peer *peer,
	const struct mikey_id *id, uint64_t now_ntp);
/* KEMAC with keys of a pre-shared or envelope key. buf: MIKEY_KEMAC_MAX bytes, which the caller
 * wipes; k points into it. mac: check the MAC of the payload itself, as with envelope keys. */
#define MIKEY_KEMAC_MAX 2048u
struct mikey_open {
	const struct mikey_transport *t;
	bool null_encryption, mac;
	uint8_t *buf;
};
enum mikey_failure mikey_in_keys(const struct mikey_in *in, const struct mikey_run *r,
	const struct mikey_open *o, struct mikey_key_list *k);
/* Transport keys of the envelope key in PKE. A wrong ciphertext is not reported: random keys come
 * out, and the MAC of KEMAC fails. False: an error of OpenSSL. */
bool mikey_in_envelope(const struct mikey_in *in, const struct mikey_cert *mine,
	struct mikey_transport *t, const struct mikey_run *r);

/* --- mikey_out.c ----------------------------------------------------------------------------*/

bool mikey_random(const struct mikey_env *e, void *p, size_t len);
/* The header of a message of this run. */
void mikey_put_header(struct mikey_writer *w, struct mikey_out *out, const struct mikey_run *r,
	enum mikey_type type);
void mikey_put_time(struct mikey_writer *w, const struct mikey_run *r);
void mikey_put_id(struct mikey_writer *w, const struct mikey_id *id); /* len 0: nothing */
void mikey_put_certs(struct mikey_writer *w, const struct mikey_cert *c);
void mikey_put_policy(struct mikey_writer *w, uint8_t number, enum srtp_suite_id suite);
/* KEMAC and PKE with a new TGK in r->tgk, encrypted for the holder of c. id: in KEMAC. Sets
 * r->auth_key. */
struct mikey_envelope {
	const struct mikey_cert *to;
	const struct mikey_id *id;
	bool oaep, chash;
};
bool mikey_put_envelope(struct mikey_writer *w, struct mikey_run *r, const struct mikey_env *env,
	const struct mikey_envelope *e);
bool mikey_new_tgk(struct mikey_run *r, const struct mikey_env *env);
/* KEMAC data of the run's TGK. id: NULL = none. Its length; 0 = an error. */
size_t mikey_tgk_data(
	uint8_t buf[MIKEY_KEMAC_MAX], const struct mikey_run *r, const struct mikey_id *id);
/* End of a message. ids: as in mikey_in_mac(). */
enum mikey_failure mikey_end_mac(
	struct mikey_writer *w, struct mikey_out *out, const struct mikey_run *r, bool ids);
enum mikey_failure mikey_end_sign(struct mikey_writer *w, struct mikey_out *out,
	const struct mikey_cert *mine, const struct mikey_run *ids);
#endif
