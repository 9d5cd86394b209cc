/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Policy of SRTP+. Pure. */
#include "keying/preauth_policy.h"

#include "proto/sdp_preauth.h"

static enum preauth_use use_of(const struct keying_in *in)
{
	return in->r->preauth == NG_PREAUTH_DEFAULT   ? in->policy->preauth.use
		: in->r->preauth == NG_PREAUTH_OFF    ? PREAUTH_USE_OFF
		: in->r->preauth == NG_PREAUTH_ACCEPT ? PREAUTH_USE_ACCEPT
						      : PREAUTH_USE_OFFER;
}

bool keying_preauth_accepts(const struct keying_in *in)
{
	return use_of(in) != PREAUTH_USE_OFF;
}

uint8_t keying_preauth_offers(const struct keying_in *in, uint8_t in_force)
{
	uint8_t scheme = in->r->preauth_scheme ? in->r->preauth_scheme
					       : (uint8_t)(1 + in->policy->preauth.scheme);

	switch (use_of(in)) {
	case PREAUTH_USE_OFFER:
		return in_force && !in->r->preauth_scheme ? in_force : scheme;
	case PREAUTH_USE_ACCEPT:
		return in_force;
	case PREAUTH_USE_OFF:
		break;
	}
	return 0;
}

uint8_t keying_preauth_read(const struct keying_in *in, const struct sdp_media *m)
{
	return keying_preauth_accepts(in) ? sdp_preauth_read(in->sdp, m) : 0;
}

bool keying_preauth_write(struct keying_lines *to, uint8_t scheme, const struct keying_in *in)
{
	struct str line = sdp_preauth_write(in->p, scheme);

	if (!scheme)
		return true;
	if (!line.s || to->n == KEYING_LINES)
		return false;
	to->line[to->n++] = line;
	return true;
}

uint8_t keying_preauth_fits(uint8_t scheme, const struct srtp_master *m, bool clear)
{
	const struct srtp_suite *s = srtp_suite_get(m->suite);

	if (!scheme || !preauth_exists((enum preauth_scheme)(scheme - 1)) || !s ||
		s->cipher == XC_CIPHER_NULL || m->no_rtp_auth ||
		(clear && preauth_is_chain((enum preauth_scheme)(scheme - 1))))
		return 0;
	return scheme;
}
