/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Two parties of MIKEY, alice and bob, with certificates that are made when a test starts. */
#ifndef UNIT_MIKEY_RIG_H
#define UNIT_MIKEY_RIG_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "keying/mikey.h"

#define RIG_NOW_S  1800000000ull
#define RIG_ALICE  "sip:alice@example.org"
#define RIG_BOB    "sip:bob@example.org"
#define RIG_SERIAL 100 /* of alice's certificate; bob's is the next */

/* A certificate authority. */
struct rig_ca {
	EVP_PKEY *key;
	X509 *x;
	struct mikey_trust *trust; /* without revocation lists */
};

/* Contents of a certificate. uri, email, dns: NULL = no such name. */
struct rig_subject {
	const char *uri, *email, *dns, *cn;
	long serial;
	int64_t from_s, to_s;
	int bits; /* 0 = 2,048 */
};

struct rig_party {
	struct mikey_identity id; /* with the private key */
	struct mikey_peer peer;   /* as the other one knows it */
	struct mikey_cert *public;
};

struct mikey_rig {
	struct rig_ca ca;
	struct rig_party alice, bob;
	struct mikey_replay *replay;
	struct mikey_offer offer;
	struct mikey_accept accept;
	uint64_t now_ntp;  /* of both */
	int find_err;      /* of bob's store */
	uint32_t afforded; /* exchanges that bob's store allowed */
	struct mikey_ask asked;
	/* of the last exchange */
	struct mikey_run i, r;
	struct mikey_keys ik, rk;
	uint8_t ibuf[MIKEY_MESSAGE_MAX], rbuf[MIKEY_MESSAGE_MAX];
	struct mikey_out iout, rout;
};

void rig_ca_make(struct rig_ca *ca, const char *name);
/* usage: of its key, NULL = all that it needs. limits: nameConstraints, NULL = none. */
void rig_ca_make_with(struct rig_ca *ca, const char *name, const char *usage, const char *limits);
void rig_ca_free(struct rig_ca *ca);
/* PEM of a certificate that the authority made, and of its key. Free both with free(). */
void rig_cert_pem(const struct rig_ca *ca, const struct rig_subject *s, char **cert, char **key);
/* The same, loaded. */
struct mikey_cert *rig_cert(const struct rig_ca *ca, const struct rig_subject *s);
/* A list that revokes one serial number (0 = none), as PEM. Free it with free(). */
char *rig_crl(const struct rig_ca *ca, long serial, int64_t from_s, int64_t to_s);
char *rig_ca_pem(const struct rig_ca *ca);

void mikey_rig_init(struct mikey_rig *g);
void mikey_rig_fini(struct mikey_rig *g);

enum mikey_failure mikey_rig_initiate(struct mikey_rig *g, enum mikey_mode m);
enum mikey_failure mikey_rig_respond(struct mikey_rig *g, struct str message);
enum mikey_failure mikey_rig_finish(struct mikey_rig *g, struct str message);
/* All three. Fails the test if one of them fails, or if both sides do not have the same keys. */
void mikey_rig_exchange(struct mikey_rig *g, enum mikey_mode m);
/* Whether each party receives by the parameters that the other sends with, for all media. */
bool mikey_rig_agree(const struct mikey_rig *g);
struct str mikey_rig_sent(const struct mikey_out *o);

#endif
