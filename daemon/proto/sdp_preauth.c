/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proto/sdp_preauth.h"

#include "srtp/preauth.h"

static const struct sdp_line *line_of(const struct sdp_line *l)
{
	while (l && (l->type != 'a' || !str_eq(l->name, STR(SDP_PREAUTH))))
		l = l->next;
	return l;
}

uint8_t sdp_preauth_read(const struct sdp *s, const struct sdp_media *m)
{
	const struct sdp_line *l = line_of(m->lines);
	enum preauth_scheme scheme;

	l = l ? l : line_of(s->session);
	return l && preauth_find(&scheme, str_trim(l->arg)) ? (uint8_t)(1 + scheme) : 0;
}

struct str sdp_preauth_write(struct pool *p, uint8_t scheme)
{
	if (!scheme)
		return STR("");
	return pool_printf(p, SDP_PREAUTH ":%s", preauth_name((enum preauth_scheme)(scheme - 1)));
}
