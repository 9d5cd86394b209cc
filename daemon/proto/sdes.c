/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=crypto lines (RFC 4568 9.1): tag, suite, inline keys, session parameters. What we cannot do
 * (FEC, unknown parameters that are mandatory) is refused with its own reason, so that the next
 * line of the offer is taken instead. Every copy of key material made here is wiped. */
#include "proto/sdes.h"

#include "base/secmem.h"
#include "proto/base64.h"
#include "srtp/preauth.h"

#define LIFETIME_MAX_EXP 48 /* RFC 4568 6.1: at most 2^48 SRTP packets */

/* If a begins with prefix (any case), cut it off. */
static bool strip_prefix(struct str *a, struct str prefix)
{
	if (a->len < prefix.len || !str_eq_nocase((struct str){a->s, prefix.len}, prefix))
		return false;
	a->s += prefix.len;
	a->len -= prefix.len;
	return true;
}

static enum sdes_err parse_lifetime(uint64_t *out, struct str text)
{
	uint64_t v;

	if (strip_prefix(&text, STR("2^"))) {
		if (str_to_u64(&v, text, LIFETIME_MAX_EXP))
			return SDES_ERR_LIFETIME;
		v = 1ull << v;
	} else if (str_to_u64(&v, text, 1ull << LIFETIME_MAX_EXP) || v == 0) {
		return SDES_ERR_LIFETIME;
	}
	*out = v;
	return SDES_OK;
}

/* "value:length": a decimal number, to be written big-endian into that many bytes (RFC 4568 6.1).
 */
static enum sdes_err parse_mki(struct srtp_master *m, struct str text)
{
	struct str value = str_cut(&text, ':');
	uint64_t len;

	if (str_to_u64(&len, text, SUITE_MAX_MKI_LEN) || len == 0 || value.len == 0)
		return SDES_ERR_MKI;
	memset(m->mki, 0, sizeof(m->mki));
	for (size_t i = 0; i < value.len; i++) {
		unsigned carry = (unsigned char)value.s[i] - '0';

		if (carry > 9)
			return SDES_ERR_MKI;
		for (size_t k = srtp_mki_kept((uint32_t)len); k-- > 0;) {
			carry += m->mki[k] * 10u;
			m->mki[k] = (uint8_t)carry;
			carry >>= 8;
		}
		if (carry)
			return SDES_ERR_MKI;
	}
	m->mki_len = (uint8_t)len;
	return SDES_OK;
}

static enum sdes_err parse_key(struct srtp_master *m, struct str text)
{
	const struct srtp_suite *suite = srtp_suite_get(m->suite);
	uint8_t both[SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN];
	enum sdes_err err = SDES_ERR_KEY;

	if (base64_decode(both, sizeof(both), text) == suite->key_len + suite->salt_len) {
		memcpy(m->key, both, suite->key_len);
		memcpy(m->salt, both + suite->key_len, suite->salt_len);
		err = SDES_OK;
	}
	secmem_wipe(both, sizeof(both));
	return err;
}

/* "inline:" key and salt, then "|lifetime" and "|mki:length", both optional. */
static enum sdes_err parse_inline(struct srtp_master *k, struct str text)
{
	enum sdes_err err;

	if (!strip_prefix(&text, STR("inline:")))
		return memchr(text.s, ':', text.len) ? SDES_ERR_KEY_METHOD : SDES_ERR_SYNTAX;
	err = parse_key(k, str_cut(&text, '|'));
	if (err || !text.s)
		return err;
	struct str field = str_cut(&text, '|');
	if (field.len == 0 || !memchr(field.s, ':', field.len)) {
		err = parse_lifetime(&k->lifetime, field);
		if (err || !text.s)
			return err;
		field = str_cut(&text, '|');
	}
	err = parse_mki(k, field);
	return !err && text.s ? SDES_ERR_SYNTAX : err;
}

static bool same_mki(const struct srtp_master *a, const struct srtp_master *b)
{
	return memcmp(a->mki, b->mki, srtp_mki_kept(a->mki_len)) == 0;
}

/* Several keys are told apart by their MKIs, which are of one length (RFC 4568 6.1). */
static enum sdes_err check_mkis(const struct srtp_master *k, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		if (!k[i].mki_len || k[i].mki_len != k[0].mki_len)
			return SDES_ERR_MKI;
		for (uint32_t j = 0; j < i; j++)
			if (same_mki(&k[i], &k[j]))
				return SDES_ERR_MKI;
	}
	return SDES_OK;
}

/* Keys with ';' between. */
static enum sdes_err parse_keys(
	struct srtp_master k[SDES_MAX_KEYS], uint32_t *n, enum srtp_suite_id suite, struct str text)
{
	enum sdes_err err = SDES_OK;

	if (text.len && text.s[text.len - 1] == ';') /* a separator at the end */
		text.len--;
	for (*n = 0; text.s && !err; ++*n) {
		if (*n == SDES_MAX_KEYS)
			return SDES_ERR_MANY_KEYS;
		k[*n].suite = suite;
		err = parse_inline(&k[*n], str_cut(&text, ';'));
	}
	return err ? err : check_mkis(k, *n);
}

static uint8_t preauth_of(struct str name)
{
	enum preauth_scheme s;

	return preauth_find(&s, name) ? (uint8_t)(1 + s) : SDES_PREAUTH_UNKNOWN;
}

static enum sdes_err parse_param(struct sdes *s, struct srtp_master *m, struct str text)
{
	uint64_t v;

	if (strip_prefix(&text, STR(SDES_PREAUTH "="))) {
		s->preauth = preauth_of(text);
		return SDES_OK;
	}
	if (text.s[0] == '-') /* its sender lets us ignore it: RFC 4568 6.3.7 */
		return SDES_OK;
	if (str_eq_nocase(text, STR("UNENCRYPTED_SRTP"))) {
		s->unencrypted_srtp = true;
	} else if (str_eq_nocase(text, STR("UNENCRYPTED_SRTCP"))) {
		s->unencrypted_srtcp = true;
	} else if (str_eq_nocase(text, STR("UNAUTHENTICATED_SRTP"))) {
		m->no_rtp_auth = true;
	} else if (strip_prefix(&text, STR("WSH="))) {
		if (str_to_u64(&v, text, UINT32_MAX))
			return SDES_ERR_PARAM;
		s->wsh = (uint32_t)v;
	} else if (strip_prefix(&text, STR("KDR="))) {
		if (str_to_u64(&v, text, SRTP_KDR_MAX))
			return SDES_ERR_PARAM;
		m->kdr = (uint8_t)v;
	} else if (strip_prefix(&text, STR("FEC_ORDER=")) || strip_prefix(&text, STR("FEC_KEY="))) {
		return SDES_ERR_FEC;
	} else {
		return SDES_ERR_PARAM;
	}
	return SDES_OK;
}

static enum sdes_err parse_all(
	struct sdes *s, struct srtp_master k[SDES_MAX_KEYS], uint32_t *keys, struct str rest)
{
	struct str tag = str_word(&rest), name = str_word(&rest), key = str_word(&rest);
	const struct srtp_suite *suite;
	enum sdes_err err;
	uint64_t v;

	if (tag.len > 9 || str_to_u64(&v, tag, 999999999) || key.len == 0)
		return SDES_ERR_SYNTAX;
	suite = srtp_suite_find(name);
	if (!suite)
		return SDES_ERR_SUITE;
	s->tag = (uint32_t)v;
	s->old_name = !str_eq_nocase(name, str_from(suite->name));
	err = parse_keys(k, keys, suite->id, key);
	for (struct str p = str_word(&rest); !err && p.len; p = str_word(&rest))
		err = parse_param(s, &k[0], p);
	/* The tag of an AEAD is its authentication (RFC 7714). */
	if (!err && k[0].no_rtp_auth && suite->auth == XC_AUTH_GCM)
		err = SDES_ERR_PARAM;
	for (uint32_t i = 1; i < *keys; i++) { /* of the line, so of all its keys */
		k[i].kdr = k[0].kdr;
		k[i].no_rtp_auth = k[0].no_rtp_auth;
	}
	return err;
}

enum sdes_err sdes_parse(struct sdes *out, struct sdes_bag *bag, struct str value)
{
	struct srtp_master k[SDES_MAX_KEYS] = {0};
	struct sdes s = {0};
	uint32_t n = 0;
	enum sdes_err err = parse_all(&s, k, &n, value);

	if (!err && n > 1 && (!bag || bag->n + n - 1 > ARRAY_LEN(bag->master)))
		err = SDES_ERR_MANY_KEYS;
	if (!err) {
		s.master = k[0];
		s.more = (uint8_t)(n - 1);
		if (n > 1) {
			s.more_at = (uint8_t)bag->n;
			memcpy(&bag->master[bag->n], &k[1], (n - 1) * sizeof(*k));
			bag->n += n - 1;
		}
		*out = s;
	}
	secmem_wipe(&s, sizeof(s));
	secmem_wipe(k, sizeof(k));
	return err;
}

static void write_mki(struct sbuf *b, const struct srtp_master *m)
{
	uint8_t n[SUITE_MKI_KEPT];
	char digits[3 * SUITE_MKI_KEPT];
	size_t at = sizeof(digits);
	bool more = true;

	memcpy(n, m->mki, sizeof(n));
	while (more) { /* long division by ten, a digit a round */
		unsigned rest = 0;

		more = false;
		for (size_t i = 0; i < srtp_mki_kept(m->mki_len); i++) {
			rest = rest << 8 | n[i];
			n[i] = (uint8_t)(rest / 10);
			rest %= 10;
			more |= n[i] != 0;
		}
		digits[--at] = (char)('0' + rest);
	}
	sbuf_put(b, "|", 1);
	sbuf_put(b, digits + at, sizeof(digits) - at);
	sbuf_printf(b, ":%u", m->mki_len);
}

static void write_lifetime(struct sbuf *b, uint64_t packets)
{
	if ((packets & (packets - 1)) == 0)
		sbuf_printf(b, "|2^%d", __builtin_ctzll(packets));
	else
		sbuf_printf(b, "|%llu", (unsigned long long)packets);
}

static void write_key(struct sbuf *b, const struct srtp_master *k, bool pad, bool lifetime)
{
	const struct srtp_suite *suite = srtp_suite_get(k->suite);
	uint8_t both[SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN];
	char text[BASE64_LEN(sizeof(both))];
	size_t len;

	memcpy(both, k->key, suite->key_len);
	memcpy(both + suite->key_len, k->salt, suite->salt_len);
	len = base64_encode(text, both, (size_t)suite->key_len + suite->salt_len, pad);
	sbuf_str(b, STR("inline:"));
	sbuf_put(b, text, len);
	secmem_wipe(both, sizeof(both));
	secmem_wipe(text, sizeof(text));
	if (k->lifetime)
		write_lifetime(b, k->lifetime);
	else if (lifetime)
		sbuf_str(b, STR("|2^31"));
	if (k->mki_len)
		write_mki(b, k);
}

void sdes_write(
	struct sbuf *b, const struct sdes *s, const struct sdes_bag *bag, bool pad, bool lifetime)
{
	const struct srtp_suite *suite = srtp_suite_get(s->master.suite);

	sbuf_printf(b, "%u %s ", (unsigned)s->tag,
		s->old_name && *suite->alias ? suite->alias : suite->name);
	write_key(b, &s->master, pad, lifetime);
	for (uint32_t i = 0; i < s->more; i++) {
		sbuf_put(b, ";", 1);
		write_key(b, &bag->master[s->more_at + i], pad, lifetime);
	}
	if (s->master.kdr)
		sbuf_printf(b, " KDR=%u", s->master.kdr);
	if (s->unencrypted_srtp)
		sbuf_str(b, STR(" UNENCRYPTED_SRTP"));
	if (s->unencrypted_srtcp)
		sbuf_str(b, STR(" UNENCRYPTED_SRTCP"));
	if (s->master.no_rtp_auth)
		sbuf_str(b, STR(" UNAUTHENTICATED_SRTP"));
	if (s->preauth && s->preauth <= PREAUTH_KINDS)
		sbuf_printf(b, " " SDES_PREAUTH "=%s",
			preauth_name((enum preauth_scheme)(s->preauth - 1)));
	if (s->wsh)
		sbuf_printf(b, " WSH=%u", (unsigned)s->wsh);
}

const char *sdes_err_text(enum sdes_err e)
{
	static const char *const text[] = {
		[SDES_OK] = "no error",
		[SDES_ERR_SYNTAX] = "malformed crypto attribute",
		[SDES_ERR_SUITE] = "unknown crypto suite",
		[SDES_ERR_KEY] = "key is not base64 or has the wrong length",
		[SDES_ERR_KEY_METHOD] = "key method is not inline",
		[SDES_ERR_MANY_KEYS] = "too many inline keys",
		[SDES_ERR_LIFETIME] = "malformed key lifetime",
		[SDES_ERR_MKI] =
			"MKI malformed, too large, missing, or not unique among several keys",
		[SDES_ERR_FEC] = "FEC with SRTP is not supported",
		[SDES_ERR_PARAM] = "session parameter unknown or malformed",
	};

	return e < ARRAY_LEN(text) ? text[e] : "unknown error";
}
