/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "source.h"

#include <string.h>
#include <strings.h>

#include <core/parser/parse_content.h>

#include "sipbody.h"

#define HEADERS_MAX 16 /* of Geolocation */

static struct span span_of(str s)
{
	return (struct span){s.s, s.len > 0 ? (size_t)s.len : 0};
}

static bool named(const struct hdr_field *h, const char *name)
{
	return (size_t)h->name.len == strlen(name) && !strncasecmp(h->name.s, name, strlen(name));
}

static struct span header(struct sip_msg *msg, const char *name)
{
	for (const struct hdr_field *h = msg->headers; h; h = h->next)
		if (named(h, name))
			return span_of(h->body);
	return (struct span){NULL, 0};
}

static struct span body_of(struct sip_msg *msg)
{
	const char *body = get_body(msg), *end = msg->buf + msg->len;

	return body && body < end ? (struct span){body, (size_t)(end - body)}
				  : (struct span){NULL, 0};
}

/* One URI of a Geolocation header: a part of the body, or a reference. */
static void add(
	struct ask *a, struct sip_msg *msg, struct span uri, bool values, enum profile prefer)
{
	struct span part, cid;

	if (values && span_begins(uri, "cid:")) {
		cid = (struct span){uri.s + 4, uri.len - 4};
		if (cid.len && msg->content_type &&
			body_part(span_of(msg->content_type->body), header(msg, "Content-ID"),
				body_of(msg), cid, &part))
			ask_add_pidf(a, part.s, part.len, METHOD_cid, prefer);
	}
	if (!values && (span_begins(uri, "https:") || span_begins(uri, "http:")))
		ask_add_reference(a, uri.s, uri.len);
}

int source_collect(struct ask *a, struct sip_msg *msg, enum profile prefer)
{
	if (parse_headers(msg, HDR_EOH_F, 0) < 0)
		return 0;
	for (int values = 1; values >= 0; values--) {
		int n = 0;

		for (const struct hdr_field *h = msg->headers; h && n < HEADERS_MAX; h = h->next) {
			struct span value = span_of(h->body), uri;

			if (!named(h, "Geolocation"))
				continue;
			n++;
			while (a->sources < SOURCES_MAX && geolocation_next(&value, &uri))
				add(a, msg, uri, values, prefer);
		}
	}
	return a->sources;
}

bool source_routing_denied(struct sip_msg *msg)
{
	struct span v;

	if (parse_headers(msg, HDR_EOH_F, 0) < 0)
		return false;
	v = header(msg, "Geolocation-Routing");
	return v.len >= 2 && span_begins(v, "no") && (v.len == 2 || strchr(" \t\r\n;", v.s[2]));
}

bool source_is_emergency(const char *service)
{
	static const char *const prefixes[] = {"urn:service:sos", "urn:service:test.sos",
		"urn:emergency:service:sos", "urn:emergency:service:test.sos",
		"urn:nena:service:sos"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (!strncasecmp(service, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}
