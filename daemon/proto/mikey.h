/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MIKEY messages (RFC 3830 6, RFC 4650, RFC 4738): parse and write. Pure: no keys, no clock, no
 * allocation. What a message proves is the business of keying/mikey.h. */
#ifndef PROTO_MIKEY_H
#define PROTO_MIKEY_H

#include "base/bytes.h"

#define MIKEY_VERSION      1u
#define MIKEY_MESSAGE_MAX  16384u /* bytes; longer messages are refused */
#define MIKEY_PAYLOADS_MAX 32u    /* of one message, without the header */
#define MIKEY_SESSIONS_MAX 32u    /* crypto sessions of one message */
#define MIKEY_ID_MAX       255u   /* bytes of an identity; longer ones are refused */
#define MIKEY_RAND_MIN     16u    /* RFC 3830 6.11 */
#define MIKEY_MAC_LEN      20u    /* HMAC-SHA-1-160 */

/* Data types of the header (RFC 3830 6.1, RFC 4650 4.1, RFC 4738 4.2.1). X(id, number) */
/* clang-format off */
#define MIKEY_TYPES(X) \
	X(PSK, 0) X(PSK_VERIFY, 1) X(PKE, 2) X(PKE_VERIFY, 3) X(DH_INIT, 4) X(DH_RESP, 5) \
	X(ERROR, 6) X(DHHMAC_INIT, 7) X(DHHMAC_RESP, 8) X(RSAR_INIT, 9) X(RSAR_RESP, 10)

/* Payload types (RFC 3830 6.1). X(id, number) */
#define MIKEY_PAYLOADS(X) \
	X(LAST, 0) X(KEMAC, 1) X(PKE, 2) X(DH, 3) X(SIGN, 4) X(T, 5) X(ID, 6) X(CERT, 7) \
	X(CHASH, 8) X(V, 9) X(SP, 10) X(RAND, 11) X(ERR, 12) X(KEY_DATA, 20) X(EXT, 21)

/* Error numbers (RFC 3830 6.12, RFC 4738 3.9.2). X(id, number, text) */
#define MIKEY_ERRORS(X) \
	X(AUTH, 0, "authentication failure") \
	X(TS, 1, "invalid timestamp") \
	X(PRF, 2, "PRF not supported") \
	X(MAC, 3, "MAC algorithm not supported") \
	X(EA, 4, "encryption algorithm not supported") \
	X(HA, 5, "hash function not supported") \
	X(DH, 6, "DH group not supported") \
	X(ID, 7, "ID not supported") \
	X(CERT, 8, "certificate not supported") \
	X(SP, 9, "SP type not supported") \
	X(SPPAR, 10, "SP parameters not supported") \
	X(DT, 11, "data type not supported") \
	X(UNSPECIFIED, 12, "unspecified error") \
	X(UNPARSEABLE, 13, "message type not supported")

/* Parameters of an SRTP policy (RFC 3830 6.10.1, RFC 7714 14.3). X(id, number, default) */
#define MIKEY_SRTP_PARAMS(X) \
	X(ENCR_ALG, 0, 1) X(ENCR_KEY_LEN, 1, 16) X(AUTH_ALG, 2, 1) X(AUTH_KEY_LEN, 3, 20) \
	X(SALT_KEY_LEN, 4, 14) X(PRF, 5, 0) X(KDR, 6, 0) X(SRTP_ENCR, 7, 1) X(SRTCP_ENCR, 8, 1) \
	X(FEC, 9, 0) X(SRTP_AUTH, 10, 1) X(TAG_LEN, 11, 10) X(PREFIX_LEN, 12, 0) \
	X(AEAD_TAG_LEN, 20, 16)
/* clang-format on */

enum mikey_type {
#define X(id, number) MIKEY_TYPE_##id = (number),
	MIKEY_TYPES(X)
#undef X
};

enum mikey_payload_type {
#define X(id, number) MIKEY_P_##id = (number),
	MIKEY_PAYLOADS(X)
#undef X
};

enum mikey_error_no {
#define X(id, number, text) MIKEY_ERR_##id = (number),
	MIKEY_ERRORS(X)
#undef X
};
/* "" for an unknown number. */
const char *mikey_error_text(uint8_t number);

enum mikey_srtp_param {
#define X(id, number, def) MIKEY_SP_##id = (number),
	MIKEY_SRTP_PARAMS(X)
#undef X
};

enum { MIKEY_ENCR_NULL = 0, MIKEY_ENCR_AES_CM = 1, MIKEY_ENCR_AES_F8 = 2, MIKEY_ENCR_GCM = 6 };
enum { MIKEY_KEMAC_NULL = 0, MIKEY_KEMAC_AES_CM_128 = 1, MIKEY_KEMAC_AES_KW_128 = 2 };
enum { MIKEY_MAC_NULL = 0, MIKEY_MAC_HMAC_SHA1 = 1 };
enum { MIKEY_SIGN_RSA_PKCS1 = 0, MIKEY_SIGN_RSA_PSS = 1 };
enum { MIKEY_TS_NTP_UTC = 0, MIKEY_TS_NTP = 1, MIKEY_TS_COUNTER = 2 };
enum { MIKEY_ID_NAI = 0, MIKEY_ID_URI = 1 };
enum { MIKEY_CERT_X509 = 0, MIKEY_CERT_URL = 1, MIKEY_CERT_SIGN = 2, MIKEY_CERT_ENCR = 3 };
enum { MIKEY_DH_OAKLEY5 = 0, MIKEY_DH_OAKLEY1 = 1, MIKEY_DH_OAKLEY2 = 2 };
enum { MIKEY_HASH_SHA1 = 0, MIKEY_HASH_MD5 = 1 };
enum { MIKEY_KEY_TGK = 0, MIKEY_KEY_TGK_SALT = 1, MIKEY_KEY_TEK = 2, MIKEY_KEY_TEK_SALT = 3 };
enum { MIKEY_KV_NULL = 0, MIKEY_KV_SPI = 1, MIKEY_KV_INTERVAL = 2 };
enum { MIKEY_MAP_SRTP_ID = 0, MIKEY_MAP_EMPTY = 1 };
enum { MIKEY_EXT_VENDOR = 0, MIKEY_EXT_SDP_IDS = 1 };

/* Bytes of a DH value; 0 for an unknown group. */
size_t mikey_dh_len(uint8_t group);

/* One crypto session of the SRTP-ID map (RFC 3830 6.1.1). Its CS ID is its place, from 1. */
struct mikey_cs {
	uint32_t ssrc; /* 0: its sender will choose */
	uint32_t roc;
	uint8_t policy; /* number of its SP payload */
};

struct mikey_header {
	uint8_t type;     /* enum mikey_type */
	bool verify;      /* V: the initiator wants a verification message */
	uint8_t prf;      /* 0 = MIKEY-1 */
	uint8_t map_type; /* MIKEY_MAP_... */
	uint8_t sessions; /* crypto sessions */
	uint32_t csb_id;  /* crypto session bundle */
	struct mikey_cs cs[MIKEY_SESSIONS_MAX];
};

/* Validity of a key (RFC 3830 6.14). */
struct mikey_kv {
	uint8_t type;        /* MIKEY_KV_... */
	struct str spi;      /* MIKEY_KV_SPI */
	struct str from, to; /* MIKEY_KV_INTERVAL */
};

/* Slices point into the message. */
struct mikey_payload {
	uint8_t type;   /* enum mikey_payload_type */
	size_t offset;  /* of its first byte in the message */
	struct str raw; /* the whole payload, its own header included */
	uint8_t kind; /* encryption algorithm, DH group, S type, TS type, ID type, cert type, hash,
	                  * auth alg, protocol type, error number, C of PKE, extension type */
	uint8_t number;  /* SP: policy number */
	uint8_t mac_alg; /* KEMAC */
	struct str data; /* encrypted data, DH value, signature, ID, certificate, hash, RAND... */
	struct str mac;  /* KEMAC, V: the MAC; it is the end of the payload */
	uint64_t time;   /* T */
	struct mikey_kv kv; /* DH */
};

struct mikey_message {
	struct str all; /* the whole message */
	struct mikey_header header;
	uint32_t payloads;
	struct mikey_payload payload[MIKEY_PAYLOADS_MAX];
};

/* Parses one whole message. 0, or -EBADMSG: malformed (a length beyond the end, bytes after the
 * last payload, an unknown payload type, more than the limits above); *offset then has the payload
 * or byte that is wrong. -EPROTONOSUPPORT: not version 1. A signature is always last (RFC 3830
 * 6.5). */
int mikey_parse(struct mikey_message *out, struct str message, size_t *offset);

/* The nth payload of a type, from 0; NULL if there are fewer. */
const struct mikey_payload *mikey_payload_find(
	const struct mikey_message *m, enum mikey_payload_type type, uint32_t nth);

/* --- Inside of payloads ---------------------------------------------------------------------*/

/* A key data sub-payload of decrypted KEMAC data (RFC 3830 6.13). */
struct mikey_key_data {
	uint8_t type; /* MIKEY_KEY_... */
	struct str key;
	struct str salt;
	struct mikey_kv kv;
};
#define MIKEY_KEYS_MAX 16u
struct mikey_key_list {
	uint8_t id_type;
	struct str id; /* empty: none */
	uint32_t count;
	struct mikey_key_data key[MIKEY_KEYS_MAX];
};
/* Sub-payloads of decrypted KEMAC data. first: type of the first one. With an envelope key it is an
 * ID (RFC 3830 3.2), else key data. At least one key. 0, or -EBADMSG with *offset. */
int mikey_keys_parse(struct mikey_key_list *out, struct str data, uint8_t first, size_t *offset);

/* SRTP policy of an SP payload: every parameter, with its default where the payload has none.
 * Indexed by enum mikey_srtp_param. -EBADMSG: malformed; -ENOTSUP: an unknown parameter, or a value
 * longer than 4 bytes. given: bit n is set if parameter n was in the payload. */
struct mikey_policy {
	uint32_t value[32];
	uint32_t given;
};
int mikey_policy_parse(struct mikey_policy *out, struct str params);

/* --- Writing. A fixed buffer with a sticky error: write without checks, check once. ---------*/

struct mikey_writer {
	uint8_t *buf;
	size_t cap, len;
	size_t next; /* place of the last "next payload" field */
	int err;     /* 0, -EMSGSIZE, -EINVAL */
};

/* Starts a message in buf. h->sessions entries of h->cs are written. */
void mikey_write_header(
	struct mikey_writer *w, uint8_t *buf, size_t cap, const struct mikey_header *h);
/* Starts the sub-payloads of KEMAC data: mikey_write_sub_id() or mikey_write_key_data(). */
void mikey_write_chain(struct mikey_writer *w, uint8_t *buf, size_t cap);
void mikey_write_kemac(struct mikey_writer *w, uint8_t encr_alg, struct str data, uint8_t mac_alg);
void mikey_write_pke(struct mikey_writer *w, uint8_t cache, struct str data);
void mikey_write_dh(struct mikey_writer *w, uint8_t group, struct str value);
void mikey_write_sign(struct mikey_writer *w, uint8_t kind, uint16_t len);
void mikey_write_t(struct mikey_writer *w, uint8_t kind, uint64_t time);
void mikey_write_id(struct mikey_writer *w, uint8_t kind, struct str id);
void mikey_write_cert(struct mikey_writer *w, uint8_t kind, struct str der);
void mikey_write_chash(struct mikey_writer *w, uint8_t hash, struct str digest);
void mikey_write_v(struct mikey_writer *w, uint8_t auth_alg);
void mikey_write_sp(struct mikey_writer *w, uint8_t number, struct str params);
void mikey_write_rand(struct mikey_writer *w, struct str rand);
void mikey_write_err(struct mikey_writer *w, uint8_t number);
void mikey_write_ext(struct mikey_writer *w, uint8_t kind, struct str data);
void mikey_write_key_data(struct mikey_writer *w, const struct mikey_key_data *k);
void mikey_write_sub_id(struct mikey_writer *w, uint8_t kind, struct str id);
/* The length of the message, or w->err. KEMAC, V and SIGN leave zeroes at the end for the MAC or
 * the signature, which the caller fills in. */
int mikey_write_end(const struct mikey_writer *w);

#endif
