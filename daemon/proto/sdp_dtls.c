/* SPDX-License-Identifier: GPL-2.0-or-later */
/* See sdp_dtls.h. */
#include "proto/sdp_dtls.h"

#include <errno.h>

static const struct hash {
	const char *name;
	uint8_t len;
} hashes[] = {
#define X(id, name, len) {name, len},
	DTLS_HASHES(X)
#undef X
};

static const char *const setups[] = {
	[DTLS_SETUP_NONE] = "",
	[DTLS_SETUP_ACTIVE] = "active",
	[DTLS_SETUP_PASSIVE] = "passive",
	[DTLS_SETUP_ACTPASS] = "actpass",
	[DTLS_SETUP_HOLDCONN] = "holdconn",
};

const char *dtls_hash_name(enum dtls_hash h)
{
	return (size_t)h < ARRAY_LEN(hashes) ? hashes[h].name : "";
}

size_t dtls_hash_len(enum dtls_hash h)
{
	return (size_t)h < ARRAY_LEN(hashes) ? hashes[h].len : 0;
}

const char *dtls_setup_name(enum dtls_setup s)
{
	return (size_t)s < ARRAY_LEN(setups) ? setups[s] : "";
}

static enum dtls_setup dtls_setup_find(struct str name)
{
	for (size_t i = DTLS_SETUP_ACTIVE; i < ARRAY_LEN(setups); i++)
		if (str_eq_nocase(name, str_from(setups[i])))
			return (enum dtls_setup)i;
	return DTLS_SETUP_NONE;
}

/* --- Fingerprints ----------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int sdp_fingerprint_parse(struct dtls_fingerprint *out, struct str value)
{
	struct str name = str_word(&value), hex = str_word(&value);
	struct dtls_fingerprint f = {0};
	uint8_t h = 0;

	if (!name.len || !hex.len || str_trim(value).len)
		return -EBADMSG;
	while (h < DTLS_HASH_COUNT && !str_eq_nocase(name, str_from(hashes[h].name)))
		h++;
	if (h == DTLS_HASH_COUNT)
		return -ENOTSUP;
	if (hex.len + 1 != 3u * hashes[h].len)
		return -EBADMSG;
	f.hash = h;
	for (size_t i = 0; i < hashes[h].len; i++) {
		int high = hex_digit(hex.s[3 * i]), low = hex_digit(hex.s[3 * i + 1]);

		if (high < 0 || low < 0 || (i && hex.s[3 * i - 1] != ':'))
			return -EBADMSG;
		f.value[i] = (uint8_t)(high << 4 | low);
	}
	*out = f;
	return 0;
}

void sdp_fingerprint_write(struct sbuf *b, const struct dtls_fingerprint *f)
{
	sbuf_printf(b, "%s ", dtls_hash_name((enum dtls_hash)f->hash));
	for (size_t i = 0; i < dtls_hash_len((enum dtls_hash)f->hash); i++)
		sbuf_printf(b, "%s%02X", i ? ":" : "", f->value[i]);
}

bool sdp_fingerprint_eq(const struct dtls_fingerprint *a, const struct dtls_fingerprint *b)
{
	return a->hash == b->hash && a->hash < DTLS_HASH_COUNT &&
		memcmp(a->value, b->value, hashes[a->hash].len) == 0;
}

static bool has(const struct dtls_fingerprints *set, const struct dtls_fingerprint *f)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (sdp_fingerprint_eq(&set->f[i], f))
			return true;
	return false;
}

bool sdp_fingerprints_eq(const struct dtls_fingerprints *a, const struct dtls_fingerprints *b)
{
	for (uint32_t i = 0; i < a->count; i++)
		if (!has(b, &a->f[i]))
			return false;
	for (uint32_t i = 0; i < b->count; i++)
		if (!has(a, &b->f[i]))
			return false;
	return true;
}

/* --- Attributes ------------------------------------------------------------------------------- */

static bool tls_id_valid(struct str id)
{
	if (id.len < DTLS_TLS_ID_MIN || id.len > DTLS_TLS_ID_MAX)
		return false;
	for (size_t i = 0; i < id.len; i++) { /* tls-id-char of RFC 8842 4 */
		char c = id.s[i];

		if (!((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
			    c == '+' || c == '/' || c == '-' || c == '_'))
			return false;
	}
	return true;
}

static void add_print(struct sdp_dtls *d, struct str value, bool *seen)
{
	struct dtls_fingerprint f;

	*seen = true;
	if (d->prints.count < DTLS_FINGERPRINTS && sdp_fingerprint_parse(&f, value) == 0 &&
		!has(&d->prints, &f))
		d->prints.f[d->prints.count++] = f;
}

/* Reads those attributes of one level that a more specific level did not have. */
static void read_level(struct sdp_dtls *d, const struct sdp_line *from, bool seen[3])
{
	bool had_print = seen[0], had_setup = seen[1], had_id = seen[2];

	for (const struct sdp_line *l = from; l; l = l->next) {
		if (l->type != 'a')
			continue;
		if (!had_print && str_eq(l->name, STR("fingerprint"))) {
			add_print(d, l->arg, &seen[0]);
		} else if (!had_setup && !seen[1] && str_eq(l->name, STR("setup"))) {
			d->setup = dtls_setup_find(str_trim(l->arg));
			seen[1] = true;
		} else if (!had_id && !seen[2] && str_eq(l->name, STR("tls-id"))) {
			struct str id = str_trim(l->arg);

			d->tls_id = tls_id_valid(id) ? id : STR_NONE;
			seen[2] = true;
		}
	}
}

void sdp_dtls_read(struct sdp_dtls *out, const struct sdp *s, const struct sdp_media *m)
{
	bool seen[3] = {false};

	memset(out, 0, sizeof(*out));
	read_level(out, m->lines, seen);
	read_level(out, s->session, seen);
	out->unusable = seen[0] && out->prints.count == 0;
}

/* --- Roles ------------------------------------------------------------------------------------ */

const char *dtls_role_err_text(enum dtls_role_err e)
{
	static const char *const texts[] = {"",
#define X(id, text) text,
		DTLS_ROLE_ERRORS(X)
#undef X
	};

	return (size_t)e < ARRAY_LEN(texts) ? texts[e] : "";
}

enum dtls_role_err dtls_setup_answer(enum dtls_setup *setup, enum dtls_role *role,
	enum dtls_setup offered, enum dtls_role want, enum dtls_role current)
{
	enum dtls_role r = DTLS_ROLE_CLIENT;

	if (offered == DTLS_SETUP_HOLDCONN)
		return DTLS_ROLE_ERR_HOLDCONN;
	if (offered == DTLS_SETUP_ACTIVE || offered == DTLS_SETUP_NONE)
		r = DTLS_ROLE_SERVER;
	else if (offered == DTLS_SETUP_ACTPASS && current != DTLS_ROLE_NONE)
		r = current;
	else if (offered == DTLS_SETUP_ACTPASS && want != DTLS_ROLE_NONE)
		r = want;
	*role = r;
	*setup = r == DTLS_ROLE_CLIENT ? DTLS_SETUP_ACTIVE : DTLS_SETUP_PASSIVE;
	return DTLS_ROLE_OK;
}

enum dtls_setup dtls_setup_offer(enum dtls_role current, bool old)
{
	if (!old || current == DTLS_ROLE_NONE)
		return DTLS_SETUP_ACTPASS;
	return current == DTLS_ROLE_CLIENT ? DTLS_SETUP_ACTIVE : DTLS_SETUP_PASSIVE;
}

enum dtls_role_err dtls_setup_answered(
	enum dtls_role *role, enum dtls_setup offered, enum dtls_setup answered)
{
	enum dtls_setup peer = answered;

	if (answered == DTLS_SETUP_HOLDCONN || offered == DTLS_SETUP_HOLDCONN)
		return DTLS_ROLE_ERR_HOLDCONN;
	if (answered == DTLS_SETUP_ACTPASS)
		return DTLS_ROLE_ERR_ACTPASS;
	if (peer == DTLS_SETUP_NONE)
		peer = offered == DTLS_SETUP_ACTIVE ? DTLS_SETUP_PASSIVE : DTLS_SETUP_ACTIVE;
	if (peer == offered)
		return DTLS_ROLE_ERR_SAME;
	*role = peer == DTLS_SETUP_ACTIVE ? DTLS_ROLE_SERVER : DTLS_ROLE_CLIENT;
	return DTLS_ROLE_OK;
}
