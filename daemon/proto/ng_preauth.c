/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The key preauth of ng: whether SRTP+ is accepted and offered, and by which scheme. */
#include "proto/ng_int.h"
#include "srtp/preauth.h"

/* "offer" may be followed by ':' and a scheme; a scheme alone is an offer, too. */
bool ng_set_preauth(struct ng_parser *x, struct str value)
{
	struct str word = str_cut(&value, ':');
	enum preauth_scheme s;

	if (ng_spelled_like(STR("off"), word) || ng_spelled_like(STR("no"), word))
		x->r->preauth = NG_PREAUTH_OFF;
	else if (ng_spelled_like(STR("accept"), word))
		x->r->preauth = NG_PREAUTH_ACCEPT;
	else if (ng_spelled_like(STR("offer"), word))
		x->r->preauth = NG_PREAUTH_OFFER;
	else if (!value.s)
		value = word;
	else
		return false;
	if (!value.s)
		return true;
	if (x->r->preauth != NG_PREAUTH_OFFER && value.s != word.s)
		return false;
	if (!preauth_find(&s, value)) {
		ng_note(x, STR("preauth"), preauth_why_not(value));
		return false;
	}
	x->r->preauth = NG_PREAUTH_OFFER;
	x->r->preauth_scheme = (uint8_t)(1 + s);
	return true;
}
