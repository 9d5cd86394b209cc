/* SPDX-License-Identifier: GPL-2.0-or-later */
/* SRTP policies of MIKEY (RFC 3830 6.10.1, RFC 7714 14.3) and our suites. */
#include "keying/mikey_int.h"

#define PROTOCOL_SRTP 0

static uint8_t encr_alg(const struct srtp_suite *s)
{
	switch (s->cipher) {
	case XC_CIPHER_AES_CM:
		return MIKEY_ENCR_AES_CM;
	case XC_CIPHER_AES_F8:
		return MIKEY_ENCR_AES_F8;
	case XC_CIPHER_GCM:
		return MIKEY_ENCR_GCM;
	default:
		return MIKEY_ENCR_NULL;
	}
}

bool mikey_suite_known(enum srtp_suite_id suite)
{
	return suite > SUITE_PLAIN && suite < SUITE_COUNT;
}

struct params {
	uint8_t *out;
	size_t len;
};

static void put(struct params *p, enum mikey_srtp_param type, uint8_t value)
{
	p->out[p->len++] = (uint8_t)type;
	p->out[p->len++] = 1;
	p->out[p->len++] = value;
}

size_t mikey_policy_write(uint8_t out[MIKEY_SP_MAX], enum srtp_suite_id suite)
{
	const struct srtp_suite *s = srtp_suite_get(suite);
	struct params p = {.out = out};

	put(&p, MIKEY_SP_ENCR_ALG, encr_alg(s));
	put(&p, MIKEY_SP_ENCR_KEY_LEN, s->key_len);
	if (s->cipher == XC_CIPHER_GCM) {
		put(&p, MIKEY_SP_AUTH_ALG, 0);
		put(&p, MIKEY_SP_SALT_KEY_LEN, s->salt_len);
		put(&p, MIKEY_SP_AEAD_TAG_LEN, s->rtp_tag_len);
	} else {
		put(&p, MIKEY_SP_AUTH_ALG, 1);
		put(&p, MIKEY_SP_AUTH_KEY_LEN, 20);
		put(&p, MIKEY_SP_SALT_KEY_LEN, s->salt_len);
		put(&p, MIKEY_SP_TAG_LEN, s->rtp_tag_len);
	}
	put(&p, MIKEY_SP_SRTP_ENCR, 1);
	put(&p, MIKEY_SP_SRTCP_ENCR, 1);
	put(&p, MIKEY_SP_SRTP_AUTH, 1);
	return p.len;
}

static bool given(const struct mikey_policy *p, enum mikey_srtp_param type)
{
	return p->given & 1u << type;
}

/* A key length that the message does not give is that of the suite, if it is the only one. */
static bool fits_gcm(const struct srtp_suite *s, const struct mikey_policy *p)
{
	return p->value[MIKEY_SP_AEAD_TAG_LEN] == s->rtp_tag_len &&
		(!given(p, MIKEY_SP_SALT_KEY_LEN) ||
			p->value[MIKEY_SP_SALT_KEY_LEN] == s->salt_len);
}

static bool fits_hmac(const struct srtp_suite *s, const struct mikey_policy *p)
{
	return p->value[MIKEY_SP_AUTH_ALG] == 1 && p->value[MIKEY_SP_AUTH_KEY_LEN] == 20 &&
		p->value[MIKEY_SP_SALT_KEY_LEN] == s->salt_len &&
		p->value[MIKEY_SP_TAG_LEN] == s->rtp_tag_len && p->value[MIKEY_SP_SRTP_AUTH] == 1;
}

static bool fits(const struct srtp_suite *s, const struct mikey_policy *p)
{
	if (p->value[MIKEY_SP_ENCR_ALG] != encr_alg(s) ||
		p->value[MIKEY_SP_ENCR_KEY_LEN] != s->key_len)
		return false;
	return s->cipher == XC_CIPHER_GCM ? fits_gcm(s, p) : fits_hmac(s, p);
}

enum srtp_suite_id mikey_policy_suite(const struct mikey_policy *p)
{
	bool null = p->value[MIKEY_SP_ENCR_ALG] == MIKEY_ENCR_NULL;

	/* A policy that switches encryption off in another way than by the NULL cipher is refused:
	 * our list of suites could not forbid it. */
	if ((!null && (p->value[MIKEY_SP_SRTP_ENCR] != 1 || p->value[MIKEY_SP_SRTCP_ENCR] != 1)) ||
		p->value[MIKEY_SP_PRF] || p->value[MIKEY_SP_KDR] || p->value[MIKEY_SP_FEC] ||
		p->value[MIKEY_SP_PREFIX_LEN])
		return SUITE_PLAIN;
	for (enum srtp_suite_id id = SUITE_PLAIN + 1; id < SUITE_COUNT; id++)
		if (fits(srtp_suite_get(id), p))
			return id;
	return SUITE_PLAIN;
}

enum srtp_suite_id mikey_policy_of(const struct mikey_message *m, uint8_t number)
{
	const struct mikey_payload *found = NULL, *sp;
	struct str params = STR_NONE;
	struct mikey_policy p;

	for (uint32_t i = 0; (sp = mikey_payload_find(m, MIKEY_P_SP, i)); i++) {
		if (sp->number != number)
			continue;
		if (found || sp->kind != PROTOCOL_SRTP)
			return SUITE_PLAIN;
		found = sp;
	}
	if (found)
		params = found->data;
	else if (mikey_payload_find(m, MIKEY_P_SP, 0))
		return SUITE_PLAIN;
	return mikey_policy_parse(&p, params) ? SUITE_PLAIN : mikey_policy_suite(&p);
}
