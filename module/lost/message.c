/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "buf.h"
#include "xml.h"

#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"
#define NS_HELD_ID  "urn:ietf:params:xml:ns:geopriv:held:id"
#define WORD_MAX    1024

/* --- Requests --------------------------------------------------------------------------------- */

static void location(struct buf *b, const char *service, const struct place *p)
{
	buf_text(b, "<location id=\"loc-1\" profile=\"");
	buf_text(b, profile_name(p->profile));
	buf_text(b, "\">");
	buf_text(b, p->xml);
	buf_text(b, "</location>");
	if (service && *service) {
		buf_text(b, "<service>");
		buf_xml(b, service);
		buf_text(b, "</service>");
	}
}

char *lost_find_service(
	const char *service, const struct place *p, enum boundary boundary, bool recursive)
{
	struct buf b = {0};

	buf_text(&b, DECLARATION "<findService xmlns=\"" NS_LOST "\"");
	if (boundary != BOUNDARY_NONE)
		buf_text(&b,
			boundary == BOUNDARY_VALUE ? " serviceBoundary=\"value\""
						   : " serviceBoundary=\"reference\"");
	buf_text(&b, recursive ? " recursive=\"true\">" : " recursive=\"false\">");
	location(&b, service, p);
	buf_text(&b, "</findService>");
	return buf_take(&b);
}

char *lost_list_services(const char *service, const struct place *p, bool recursive)
{
	struct buf b = {0};

	buf_text(&b, DECLARATION "<listServicesByLocation xmlns=\"" NS_LOST "\"");
	buf_text(&b, recursive ? " recursive=\"true\">" : " recursive=\"false\">");
	location(&b, service, p);
	buf_text(&b, "</listServicesByLocation>");
	return buf_take(&b);
}

char *lost_get_boundary(const char *key)
{
	struct buf b = {0};

	buf_text(&b, DECLARATION "<getServiceBoundary xmlns=\"" NS_LOST "\" key=\"");
	buf_xml(&b, key);
	buf_text(&b, "\"/>");
	return buf_take(&b);
}

char *held_request(const char *identity, int response_ms)
{
	struct buf b = {0};
	char number[16];

	snprintf(number, sizeof(number), "%d", response_ms);
	buf_text(&b, DECLARATION "<locationRequest xmlns=\"" NS_HELD "\" responseTime=\"");
	buf_text(&b, number);
	buf_text(&b, "\"><locationType exact=\"false\">any</locationType>");
	if (identity && *identity) {
		buf_text(&b, "<device xmlns=\"" NS_HELD_ID "\"><uri>");
		buf_xml(&b, identity);
		buf_text(&b, "</uri></device>");
	}
	buf_text(&b, "</locationRequest>");
	return buf_take(&b);
}

/* --- Dates ------------------------------------------------------------------------------------ */

int64_t date_time(const char *s)
{
	struct tm t = {0};
	int used = 0, hours, minutes;
	char sign;
	int64_t at;

	if (!s ||
		sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday,
			&t.tm_hour, &t.tm_min, &t.tm_sec, &used) != 6)
		return 0;
	if (t.tm_year < 1970 || t.tm_mon < 1 || t.tm_mon > 12 || t.tm_mday < 1 || t.tm_mday > 31 ||
		t.tm_hour < 0 || t.tm_hour > 24 || t.tm_min < 0 || t.tm_min > 59 || t.tm_sec < 0 ||
		t.tm_sec > 60)
		return 0;
	t.tm_year -= 1900;
	t.tm_mon--;
	at = timegm(&t);
	s += used;
	if (*s == '.')
		s += 1 + strspn(s + 1, "0123456789");
	if (!*s || !strcmp(s, "Z"))
		return at;
	if (sscanf(s, "%c%2d:%2d", &sign, &hours, &minutes) != 3 || hours < 0 || hours > 14 ||
		minutes < 0 || minutes > 59 || (sign != '+' && sign != '-'))
		return 0;
	return at + (sign == '+' ? -1 : 1) * (hours * 3600 + minutes * 60);
}

/* --- Responses -------------------------------------------------------------------------------- */

/* Appends a word to a list separated by blanks. */
static void list(struct buf *b, const char *word)
{
	if (word && *word) {
		if (b->len)
			buf_text(b, " ");
		buf_text(b, word);
	}
}

static char *take_list(struct buf *b)
{
	if (b->len)
		return buf_take(b);
	buf_free(b);
	return NULL;
}

/* URIs and words of strangers reach the script, which may put them into headers: no control
 * characters and no blanks, and short enough for the next server to read. */
static bool is_word(const char *s)
{
	const char *end = s ? s + strnlen(s, WORD_MAX + 1) : NULL;

	if (!s || end - s > WORD_MAX)
		return false;
	for (; s < end; s++)
		if ((unsigned char)*s <= 0x20 || *s == 0x7f || strchr("<>\"", *s))
			return false;
	return true;
}

/* Texts for people: control characters become blanks. */
static char *clean(char *s)
{
	for (char *p = s; p && *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	return s;
}

static char *word(char *s)
{
	if (s && is_word(s))
		return s;
	free(s);
	return NULL;
}

/* Prefers sips, then sip, then the first. */
static int rank(const char *uri)
{
	return !strncasecmp(uri, "sips:", 5) ? 2 : !strncasecmp(uri, "sip:", 4) ? 1 : 0;
}

static void read_uris(const xmlNode *mapping, struct answer *a)
{
	struct buf all = {0};
	int best = -1;

	for (const xmlNode *n = xml_child(mapping, NS_LOST, "uri"); n;
		n = xml_next(n, NS_LOST, "uri")) {
		char *uri = word(xml_text(n));

		if (uri) {
			list(&all, uri);
			if (rank(uri) > best) {
				best = rank(uri);
				answer_put(a, A_uri, uri);
			}
		}
		free(uri);
	}
	answer_set(a, A_uris, take_list(&all));
}

static void read_expiry(const xmlNode *mapping, struct answer *a, struct extent *e)
{
	const char *s;

	answer_set(a, A_expires, word(xml_attr(mapping, "expires")));
	s = a->text[A_expires];
	e->no_cache = s && !strcmp(s, "NO-CACHE");
	e->expires = s && !strcmp(s, "NO-EXPIRATION") ? INT64_MAX : date_time(s);
}

/* The boundary with the profile geodetic-2d, which is the one that can be judged. */
static const xmlNode *geodetic(const xmlNode *parent)
{
	const xmlNode *n = xml_child(parent, NS_LOST, "serviceBoundary");

	for (; n; n = xml_next(n, NS_LOST, "serviceBoundary")) {
		char *profile = xml_attr(n, "profile");
		bool is = !profile || !strcmp(profile, profile_name(PROFILE_GEODETIC));

		free(profile);
		if (is)
			return n;
	}
	return NULL;
}

static void read_boundary(const xmlNode *parent, struct answer *a, struct extent *e)
{
	const xmlNode *n = geodetic(parent);

	e->area = n ? boundary_area(n) : NULL;
	if (!n)
		n = xml_child(parent, NS_LOST, "serviceBoundary");
	if (n)
		answer_set(a, A_boundary, xml_dump((xmlNode *)n));
}

static enum reply read_mapping(const xmlNode *root, struct answer *a, struct extent *e)
{
	const xmlNode *m = xml_child(root, NS_LOST, "mapping");

	if (!m)
		return REPLY_GARBAGE;
	read_uris(m, a);
	read_expiry(m, a, e);
	read_boundary(m, a, e);
	answer_set(a, A_boundary_key,
		word(xml_attr(xml_child(m, NS_LOST, "serviceBoundaryReference"), "key")));
	answer_set(a, A_name, clean(xml_text(xml_child(m, NS_LOST, "displayName"))));
	answer_set(a, A_number, word(xml_text(xml_child(m, NS_LOST, "serviceNumber"))));
	answer_set(a, A_service, word(xml_text(xml_child(m, NS_LOST, "service"))));
	answer_set(a, A_source, word(xml_attr(m, "source")));
	answer_set(a, A_source_id, word(xml_attr(m, "sourceId")));
	answer_set(a, A_updated, word(xml_attr(m, "lastUpdated")));
	return REPLY_OK;
}

static enum reply read_services(const xmlNode *root, struct answer *a)
{
	const xmlNode *n = xml_child(root, NS_LOST, "serviceList");
	char *text = xml_text(n), *rest = text, *one;
	struct buf all = {0};

	while ((one = strsep(&rest, " \t\r\n")))
		if (is_word(one))
			list(&all, one);
	answer_set(a, A_services, take_list(&all));
	free(text);
	return n ? REPLY_OK : REPLY_GARBAGE;
}

static enum reply read_errors(const xmlNode *root, struct answer *a)
{
	const xmlNode *n = xml_first_element(root);

	answer_put(
		a, A_error, n && is_word((const char *)n->name) ? (const char *)n->name : "errors");
	answer_set(a, A_message, clean(xml_attr(n, "message")));
	return REPLY_ERROR;
}

static void read_warnings(const xmlNode *root, struct answer *a)
{
	struct buf all = {0};

	for (const xmlNode *w = xml_child(root, NS_LOST, "warnings"); w;
		w = xml_next(w, NS_LOST, "warnings"))
		for (const xmlNode *n = xml_first_element(w); n; n = xml_next_element(n)) {
			list(&all, (const char *)n->name);
			if (!a->text[A_message])
				answer_set(a, A_message, clean(xml_attr(n, "message")));
		}
	answer_set(a, A_warnings, take_list(&all));
}

static enum reply read_root(
	enum lost_op op, const xmlNode *root, struct answer *a, struct extent *e)
{
	static const char *const names[] = {[LOST_FIND] = "findServiceResponse",
		[LOST_LIST] = "listServicesByLocationResponse",
		[LOST_BOUNDARY] = "getServiceBoundaryResponse"};

	if (xml_is(root, NS_LOST, "errors"))
		return read_errors(root, a);
	if (xml_is(root, NS_LOST, "redirect")) {
		answer_set(a, A_server, word(xml_attr(root, "target")));
		return a->text[A_server] ? REPLY_REDIRECT : REPLY_GARBAGE;
	}
	if (!xml_is(root, NS_LOST, names[op]))
		return REPLY_GARBAGE;
	read_warnings(root, a);
	if (op == LOST_FIND)
		return read_mapping(root, a, e);
	if (op == LOST_LIST)
		return read_services(root, a);
	read_boundary(root, a, e);
	return a->text[A_boundary] ? REPLY_OK : REPLY_GARBAGE;
}

enum reply lost_read(enum lost_op op, const char *s, size_t len, struct answer *a, struct extent *e)
{
	xmlDoc *doc = xml_read(s, len);
	enum reply r = REPLY_GARBAGE;

	*e = (struct extent){0};
	if (doc)
		r = read_root(op, xmlDocGetRootElement(doc), a, e);
	xmlFreeDoc(doc);
	return r;
}

/* --- HELD ------------------------------------------------------------------------------------- */

static enum reply read_held(xmlNode *root, const char *s, size_t len, struct answer *a)
{
	xmlNode *n;

	if (xml_is(root, NS_PIDF, "presence")) {
		answer_set(a, A_pidf, strndup(s, len));
		return REPLY_OK;
	}
	if (xml_is(root, NS_HELD, "error")) {
		answer_set(a, A_error, word(xml_attr(root, "code")));
		answer_set(a, A_message, clean(xml_text(xml_child(root, NS_HELD, "message"))));
		return REPLY_ERROR;
	}
	if (!xml_is(root, NS_HELD, "locationResponse"))
		return REPLY_GARBAGE;
	n = xml_child(xml_child(root, NS_HELD, "locationUriSet"), NS_HELD, "locationURI");
	for (; n; n = xml_next(n, NS_HELD, "locationURI")) {
		char *uri = word(xml_text(n));

		/* A reference over TLS is preferred. */
		if (uri && (!a->text[A_location_uri] || !strncasecmp(uri, "https:", 6)))
			answer_put(a, A_location_uri, uri);
		free(uri);
	}
	n = xml_child(root, NS_PIDF, "presence");
	if (n)
		answer_set(a, A_pidf, xml_dump(n));
	return a->text[A_pidf] || a->text[A_location_uri] ? REPLY_OK : REPLY_GARBAGE;
}

enum reply held_read(const char *s, size_t len, struct answer *a)
{
	xmlDoc *doc = xml_read(s, len);
	enum reply r = REPLY_GARBAGE;

	if (doc)
		r = read_held(xmlDocGetRootElement(doc), s, len, a);
	xmlFreeDoc(doc);
	return r;
}
