/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identities for MIKEY from an ini file (--mikey-config): ours with its key pair and trusted roots,
 * and those of peers with their pre-shared keys, and what they may do. xcipher-keying(7) describes
 * the file. Keys are in secure memory. A reload makes another one. Control thread only. */
#ifndef KEYING_MIKEY_CONFIG_H
#define KEYING_MIKEY_CONFIG_H

#include "keying/mikey.h"
#include "keying/mikey_budget.h"

#define MIKEY_PEERS_MAX 4096u /* sections of peers in the file */

struct mikey_config;

/* 0, or -errno with one line in err that says what to do. Reads files, so it blocks. */
int mikey_config_load(struct mikey_config **out, const char *path, char *err, size_t err_len);
void mikey_config_destroy(struct mikey_config *c); /* NULL is fine */

/* A peer, and ourselves towards it. Pointers are valid as long as the config. Wipe peer.psk. */
struct mikey_party {
	struct mikey_identity mine;
	struct mikey_peer peer;
	uint8_t mode[MIKEY_MODE_COUNT]; /* allowed ones, the preferred first */
	uint32_t modes;
	bool may_initiate; /* messages of the peer are answered */
	bool may_respond;  /* the peer gets messages of ours */
};
/* By identity: the section of this name, else that of its domain ("*@example.org"), else "*". 0, or
 * -ENOENT. */
int mikey_config_find(
	const struct mikey_config *c, struct mikey_party *out, const struct mikey_id *id);

struct mikey_limits {
	uint32_t skew_s;
	bool null_key_encryption, weak_dh;
	struct mikey_rates rates; /* peer: default for peers without an entry of their own */
};
const struct mikey_limits *mikey_config_limits(const struct mikey_config *c);
/* Sections of peers. */
uint32_t mikey_config_peers(const struct mikey_config *c);

#define MIKEY_WARN_CERT_DAYS 30 /* before our certificate expires */
#define MIKEY_WARN_CRL_DAYS  2  /* before a revocation list needs its successor */

/* Calls warn() with a line for each reason why exchanges with certificates fail now, or will soon:
 * our certificate does not have our identity, or the certificate or a revocation list expires.
 * Lines name the file, and the date of an expiry. */
void mikey_config_check(const struct mikey_config *c, int64_t now_s,
	void (*warn)(void *arg, const char *line), void *arg);

/* "sip:bob@example.org" is a URI, "bob@example.org" an NAI. -EINVAL: empty or too long. */
int mikey_id_from_text(struct mikey_id *out, struct str text);

#endif
