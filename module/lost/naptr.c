/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "naptr.h"

#include <arpa/nameser.h>
#include <limits.h>
#include <resolv.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define SERVICE "LoST:https"
#define FIXED   4 /* octets of order and preference */

/* One of the three texts of a record. */
struct text {
	const uint8_t *p;
	size_t len;
};

static bool is_text(const struct text *t, const char *s)
{
	return t->len == strlen(s) && !strncasecmp((const char *)t->p, s, t->len);
}

/* "!.*!URL!", with any delimiter. RFC 4848 allows no other pattern, and no back references. */
static bool url_of(const struct text *regexp, char *url)
{
	const char *p = (const char *)regexp->p, *end = p + regexp->len;
	size_t n;

	if (regexp->len < 5 || memcmp(p + 1, ".*", 2) || p[3] != p[0] || end[-1] != p[0])
		return false;
	p += 4;
	n = (size_t)(end - 1 - p);
	if (n >= NAPTR_NAME_MAX || n < sizeof("https://") || strncasecmp(p, "https://", 8))
		return false;
	for (size_t i = 0; i < n; i++)
		if (p[i] <= ' ' || p[i] > '~' || p[i] == '\\' || p[i] == end[-1])
			return false;
	memcpy(url, p, n);
	url[n] = '\0';
	return true;
}

/* A record with a URL, or with another name to look up. */
static bool record_read(ns_msg *m, const ns_rr *rr, struct naptr *out)
{
	const uint8_t *p = ns_rr_rdata(*rr) + FIXED, *end = ns_rr_rdata(*rr) + ns_rr_rdlen(*rr);
	struct text text[3]; /* flags, service, regexp */
	int n;

	if (ns_rr_rdlen(*rr) < FIXED)
		return false;
	for (int i = 0; i < 3; i++) {
		if (p >= end || *p > end - p - 1)
			return false;
		text[i] = (struct text){.p = p + 1, .len = *p};
		p += 1 + *p;
	}
	if (!is_text(&text[1], SERVICE))
		return false;
	*out = (struct naptr){.ttl = ns_rr_ttl(*rr)};
	if (is_text(&text[0], "u"))
		return url_of(&text[2], out->url);
	if (text[0].len || text[2].len)
		return false;
	n = dn_expand(ns_msg_base(*m), ns_msg_end(*m), p, out->next, sizeof(out->next));
	return n == end - p && out->next[0];
}

int naptr_read(const uint8_t *reply, size_t len, struct naptr *out)
{
	uint32_t best = 0, rank;
	struct naptr found;
	bool any = false;
	ns_msg m;
	ns_rr rr;

	if (len > INT_MAX || ns_initparse(reply, (int)len, &m))
		return -1;
	for (int i = 0; i < ns_msg_count(m, ns_s_an); i++) {
		if (ns_parserr(&m, ns_s_an, i, &rr))
			return -1;
		if (ns_rr_type(rr) != ns_t_naptr || ns_rr_class(rr) != ns_c_in ||
			!record_read(&m, &rr, &found))
			continue;
		/* Order and preference, in this order. */
		rank = ns_get32(ns_rr_rdata(rr));
		if (any && rank >= best)
			continue;
		best = rank;
		any = true;
		*out = found;
	}
	return any ? 0 : -1;
}
