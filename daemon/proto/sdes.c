/* SPDX-License-Identifier: GPL-2.0-or-later */
/* a=crypto lines (RFC 4568 9.1): tag, suite, one inline key, session parameters. What we cannot do (several keys, a key
 * derivation rate, FEC) is refused with its own reason, so that the next line of the offer is taken instead. Every copy
 * of key material made here is wiped. */
#include "proto/sdes.h"

#include "base/secmem.h"
#include "proto/base64.h"

#define LIFETIME_MAX_EXP 48 /* RFC 4568 6.1: at most 2^48 SRTP packets */
#define MKI_MAX_LEN_RFC  128
#define KDR_MAX_EXP      24

/* The next word; blanks before it are skipped. Empty at the end. */
static struct str next_word(struct str *rest)
{
	struct str word;

	while (rest->len && (*rest->s == ' ' || *rest->s == '\t')) {
		rest->s++;
		rest->len--;
	}
	word = (struct str){rest->s, 0};
	while (word.len < rest->len && rest->s[word.len] != ' ' && rest->s[word.len] != '\t')
		word.len++;
	if (word.len) {
		rest->s += word.len;
		rest->len -= word.len;
	}
	return word;
}

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

/* "value:length": a decimal number, to be written big-endian into that many bytes. */
static enum sdes_err parse_mki(struct srtp_master *m, struct str text)
{
	struct str value = str_cut(&text, ':');
	uint64_t len;

	if (str_to_u64(&len, text, MKI_MAX_LEN_RFC) || len == 0 || len > SUITE_MAX_MKI_LEN ||
		value.len == 0)
		return SDES_ERR_MKI;
	memset(m->mki, 0, sizeof(m->mki));
	for (size_t i = 0; i < value.len; i++) {
		unsigned carry = (unsigned char)value.s[i] - '0';

		if (carry > 9)
			return SDES_ERR_MKI;
		for (size_t k = len; k-- > 0;) {
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
static enum sdes_err parse_inline(struct sdes *s, struct str text)
{
	enum sdes_err err;

	if (!strip_prefix(&text, STR("inline:")))
		return memchr(text.s, ':', text.len) ? SDES_ERR_KEY_METHOD : SDES_ERR_SYNTAX;
	if (text.len && text.s[text.len - 1] == ';') /* a separator with nothing behind it */
		text.len--;
	if (text.len && memchr(text.s, ';', text.len))
		return SDES_ERR_MANY_KEYS;
	err = parse_key(&s->master, str_cut(&text, '|'));
	if (err || !text.s)
		return err;
	struct str field = str_cut(&text, '|');
	if (field.len == 0 || !memchr(field.s, ':', field.len)) {
		err = parse_lifetime(&s->lifetime, field);
		if (err || !text.s)
			return err;
		field = str_cut(&text, '|');
	}
	err = parse_mki(&s->master, field);
	return !err && text.s ? SDES_ERR_SYNTAX : err;
}

static enum sdes_err parse_param(struct sdes *s, struct str text)
{
	uint64_t v;

	if (text.s[0] == '-') /* its sender lets us ignore it: RFC 4568 6.3.7 */
		return SDES_OK;
	if (str_eq_nocase(text, STR("UNENCRYPTED_SRTP"))) {
		s->unencrypted_srtp = true;
	} else if (str_eq_nocase(text, STR("UNENCRYPTED_SRTCP"))) {
		s->unencrypted_srtcp = true;
	} else if (str_eq_nocase(text, STR("UNAUTHENTICATED_SRTP"))) {
		s->unauthenticated_srtp = true;
	} else if (strip_prefix(&text, STR("WSH="))) {
		if (str_to_u64(&v, text, UINT32_MAX))
			return SDES_ERR_PARAM;
		s->wsh = (uint32_t)v;
	} else if (strip_prefix(&text, STR("KDR="))) {
		if (str_to_u64(&v, text, KDR_MAX_EXP) || v != 0)
			return SDES_ERR_PARAM;
	} else {
		return SDES_ERR_PARAM; /* FEC_ORDER, FEC_KEY and what nobody knows */
	}
	return SDES_OK;
}

static enum sdes_err parse_all(struct sdes *s, struct str rest)
{
	struct str tag = next_word(&rest), name = next_word(&rest), key = next_word(&rest);
	const struct srtp_suite *suite;
	enum sdes_err err;
	uint64_t v;

	if (tag.len > 9 || str_to_u64(&v, tag, 999999999) || key.len == 0)
		return SDES_ERR_SYNTAX;
	suite = srtp_suite_find(name);
	if (!suite)
		return SDES_ERR_SUITE;
	s->tag = (uint32_t)v;
	s->master.suite = suite->id;
	err = parse_inline(s, key);
	for (struct str p = next_word(&rest); !err && p.len; p = next_word(&rest))
		err = parse_param(s, p);
	return err;
}

enum sdes_err sdes_parse(struct sdes *out, struct str value)
{
	struct sdes s = {0};
	enum sdes_err err = parse_all(&s, value);

	if (!err)
		*out = s;
	secmem_wipe(&s, sizeof(s));
	return err;
}

static void write_mki(struct sbuf *b, const struct srtp_master *m)
{
	uint8_t n[SUITE_MAX_MKI_LEN];
	char digits[3 * SUITE_MAX_MKI_LEN];
	size_t at = sizeof(digits);
	bool more = true;

	memcpy(n, m->mki, sizeof(n));
	while (more) { /* long division by ten, a digit a round */
		unsigned rest = 0;

		more = false;
		for (size_t i = 0; i < m->mki_len; i++) {
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

void sdes_write(struct sbuf *b, const struct sdes *s, bool pad, bool lifetime)
{
	const struct srtp_suite *suite = srtp_suite_get(s->master.suite);
	uint8_t both[SUITE_MAX_KEY_LEN + SUITE_MAX_SALT_LEN];
	char text[BASE64_LEN(sizeof(both))];
	size_t len;

	memcpy(both, s->master.key, suite->key_len);
	memcpy(both + suite->key_len, s->master.salt, suite->salt_len);
	len = base64_encode(text, both, (size_t)suite->key_len + suite->salt_len, pad);
	sbuf_printf(b, "%u %s inline:", (unsigned)s->tag, suite->name);
	sbuf_put(b, text, len);
	secmem_wipe(both, sizeof(both));
	secmem_wipe(text, sizeof(text));
	if (s->lifetime)
		write_lifetime(b, s->lifetime);
	else if (lifetime)
		sbuf_str(b, STR("|2^31"));
	if (s->master.mki_len)
		write_mki(b, &s->master);
	if (s->kdr)
		sbuf_printf(b, " KDR=%u", s->kdr);
	if (s->unencrypted_srtp)
		sbuf_str(b, STR(" UNENCRYPTED_SRTP"));
	if (s->unencrypted_srtcp)
		sbuf_str(b, STR(" UNENCRYPTED_SRTCP"));
	if (s->unauthenticated_srtp)
		sbuf_str(b, STR(" UNAUTHENTICATED_SRTP"));
	if (s->wsh)
		sbuf_printf(b, " WSH=%u", (unsigned)s->wsh);
}

const char *sdes_err_text(enum sdes_err e)
{
	static const char *const text[] = {
		[SDES_OK] = "no error",
		[SDES_ERR_SYNTAX] = "malformed crypto attribute",
		[SDES_ERR_SUITE] = "unknown crypto suite",
		[SDES_ERR_KEY] = "key is no base64 or has the wrong length",
		[SDES_ERR_KEY_METHOD] = "key method is not inline",
		[SDES_ERR_MANY_KEYS] = "more than one inline key",
		[SDES_ERR_LIFETIME] = "malformed key lifetime",
		[SDES_ERR_MKI] = "malformed or too long MKI",
		[SDES_ERR_PARAM] = "session parameter that we cannot do",
	};

	return e < ARRAY_LEN(text) ? text[e] : "unknown error";
}
