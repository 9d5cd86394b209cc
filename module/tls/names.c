/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The messages that are read here were written by Kamailio, but callers chose parts of them. */
#include "names.h"

#include <arpa/inet.h>
#include <openssl/x509v3.h>
#include <string.h>
#include <strings.h>

struct text {
	const char *p, *end;
};

static bool starts(struct text t, const char *word)
{
	size_t len = strlen(word);

	return (size_t)(t.end - t.p) >= len && !strncasecmp(t.p, word, len);
}

/* The next header or first line, without the line break. It may be folded (RFC 3261 7.3.1). */
static struct text next_line(struct text *rest)
{
	struct text line = {.p = rest->p, .end = rest->p};
	const char *nl;

	do {
		nl = memchr(line.end, '\n', (size_t)(rest->end - line.end));
		line.end = nl ? nl + 1 : rest->end;
	} while (nl && line.end < rest->end && (*line.end == ' ' || *line.end == '\t'));
	rest->p = line.end;
	while (line.end > line.p && (line.end[-1] == '\n' || line.end[-1] == '\r'))
		line.end--;
	return line;
}

/* The value of the header, if it has one of these names. */
static bool header(struct text *line, const char *name, const char *brief)
{
	struct text t = *line;

	if (starts(t, name))
		t.p += strlen(name);
	else if (brief && starts(t, brief))
		t.p += strlen(brief);
	else
		return false;
	while (t.p < t.end && (*t.p == ' ' || *t.p == '\t'))
		t.p++;
	if (t.p == t.end || *t.p != ':')
		return false;
	line->p = t.p + 1;
	return true;
}

/* The host of a SIP URI. Empty without one. */
static struct text host_of(struct text uri)
{
	struct text host = {.p = uri.end, .end = uri.end};
	const char *at;

	if (starts(uri, "sip:"))
		host.p = uri.p + 4;
	else if (starts(uri, "sips:"))
		host.p = uri.p + 5;
	at = memrchr(host.p, '@', (size_t)(host.end - host.p));
	if (at)
		host.p = at + 1;
	if (host.p < host.end && *host.p == '[')
		return (struct text){.p = host.end, .end = host.end};
	for (const char *p = host.p; p < host.end; p++) {
		if (strchr(":;?>", *p))
			host.end = p;
	}
	return host;
}

static void set_name(struct hop *out, struct text host)
{
	size_t len = (size_t)(host.end - host.p);
	struct in_addr address;

	/* No certificate has a longer name. */
	if (len >= sizeof(out->name))
		len = sizeof(out->name) - 1;
	memcpy(out->name, host.p, len);
	out->name[len] = '\0';
	if (inet_pton(AF_INET, out->name, &address) == 1)
		out->name[0] = '\0';
}

/* Whether the value of a To header has a tag. The name and the URI may contain the same word. */
static bool has_tag(struct text to)
{
	bool quoted = false, uri = false;

	for (; to.p < to.end; to.p++) {
		if (quoted && *to.p == '\\' && to.p + 1 < to.end) {
			to.p++;
		} else if (*to.p == '"' && !uri) {
			quoted = !quoted;
		} else if (!quoted && (*to.p == '<' || *to.p == '>')) {
			uri = *to.p == '<';
		} else if (!quoted && !uri && *to.p == ';') {
			struct text word = {.p = to.p + 1, .end = to.end};

			while (word.p < word.end && strchr(" \t\r\n", *word.p))
				word.p++;
			if (starts(word, "tag"))
				return true;
		}
	}
	return false;
}

/* The URI in the first angle brackets. */
static struct text first_uri(struct text value)
{
	const char *open = memchr(value.p, '<', (size_t)(value.end - value.p)), *close;

	if (!open)
		return value;
	value.p = open + 1;
	close = memchr(value.p, '>', (size_t)(value.end - value.p));
	if (close)
		value.end = close;
	return value;
}

void names_hop(struct hop *out, const char *message, size_t len)
{
	struct text rest = {.p = message, .end = message + len}, line = next_line(&rest), uri;
	bool routed = false;

	out->name[0] = '\0';
	out->initial = false;
	uri.p = memchr(line.p, ' ', (size_t)(line.end - line.p));
	if (!uri.p || starts(line, "SIP/"))
		return;
	uri.p++;
	uri.end = memchr(uri.p, ' ', (size_t)(line.end - uri.p));
	if (!uri.end)
		return;
	out->initial = true;
	for (line = next_line(&rest); line.p < line.end; line = next_line(&rest)) {
		struct text value = line;

		if (!routed && header(&value, "Route", NULL)) {
			routed = true;
			uri = first_uri(value);
		} else if (header(&value, "To", "t")) {
			out->initial = out->initial && !has_tag(value);
		}
	}
	set_name(out, host_of(uri));
}

static bool same(struct text name, const char *wanted)
{
	size_t len = strlen(wanted);

	return (size_t)(name.end - name.p) == len && !strncasecmp(name.p, wanted, len);
}

bool names_match(X509 *cert, const char *name)
{
	GENERAL_NAMES *all = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	bool by_uri = false, by_dns = false, has_uri = false;

	for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
		const GENERAL_NAME *g = sk_GENERAL_NAME_value(all, i);
		struct text t;

		if (g->type != GEN_URI && g->type != GEN_DNS)
			continue;
		t.p = (const char *)ASN1_STRING_get0_data(g->d.ia5);
		t.end = t.p + ASN1_STRING_length(g->d.ia5);
		if (g->type == GEN_DNS) {
			by_dns = by_dns || same(t, name);
		} else if (starts(t, "sip:") && !memchr(t.p, '@', (size_t)(t.end - t.p))) {
			has_uri = true;
			by_uri = by_uri || same(host_of(t), name);
		}
	}
	GENERAL_NAMES_free(all);
	return has_uri ? by_uri : by_dns;
}
