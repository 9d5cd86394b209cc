/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Input of module/lost: the first byte chooses between a PIDF-LO, a server's reply to each kind of
 * request, a body of SIP, a DNS reply, and a query whose exchanges all end with this input. */
#include <stdint.h>
#include <stdlib.h>

#include "../unit/lost_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* XML written for a location must be well-formed for any input. */
static void written(char *s)
{
	xmlDoc *doc = s ? xml_read(s, strlen(s)) : NULL;

	if (!doc)
		abort();
	xmlFreeDoc(doc);
	free(s);
}

static void pidf(const char *s, size_t len)
{
	struct places p = {.n = 0};

	places_read(&p, s, len, len & 1 ? PROFILE_CIVIC : PROFILE_GEODETIC);
	for (int i = 0; i < p.n; i++) {
		written(lost_find_service("urn:service:sos", &p.v[i], BOUNDARY_VALUE, true));
		if (p.v[i].known && !(p.v[i].spot.radius >= 0))
			abort();
	}
	places_free(&p);
}

static void check_answer(const struct answer *a)
{
	static const int words[] = {A_uri, A_number, A_service, A_source, A_source_id,
		A_boundary_key, A_updated, A_expires, A_location_uri, A_error};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (a->text[words[i]] && !is_word(a->text[words[i]]))
			abort();
	for (const char *c = a->text[A_name]; c && *c; c++)
		if ((unsigned char)*c < 0x20)
			abort();
}

static void reply(enum lost_op op, const char *s, size_t len)
{
	struct answer a = {0};
	struct extent e;
	struct spot at = {0.5, 0.5, 10};

	lost_read(op, s, len, &a, &e);
	check_answer(&a);
	if (e.area)
		geo_covers(e.area, &at);
	free(e.area);
	answer_clear(&a);
}

static void held(const char *s, size_t len)
{
	struct answer a = {0};

	held_read(s, len, &a);
	check_answer(&a);
	answer_clear(&a);
}

static void body(const char *s, size_t len)
{
	struct span type = {s, len > 60 ? 60 : len}, rest = {s + type.len, len - type.len};
	struct span value = {s, len}, none = {NULL, 0}, id = {"a@b", 3}, found;

	if (body_part(type, none, rest, id, &found) &&
		(found.s < s || found.s + found.len > s + len))
		abort();
	body_part(type, none, rest, none, &found);
	while (geolocation_next(&value, &found))
		if (found.s < s || found.s + found.len > s + len)
			abort();
}

static void dns(const uint8_t *p, size_t len)
{
	struct naptr n;

	if (naptr_read(p, len, &n))
		return;
	if (strlen(n.url) >= sizeof(n.url) || strlen(n.next) >= sizeof(n.next) ||
		(n.url[0] && strncasecmp(n.url, "https://", 8)) || !(n.url[0] || n.next[0]))
		abort();
}

/* However servers reply, a query ends. */
static void query(const char *s, size_t len)
{
	static const char uri[] = "https://x/";
	static const char *const redirect[] = {"b.test=http://b/"};
	struct server two[2] = {{.url = "http://0/"}, {.url = "http://1/"}};
	struct query_config cfg = {.server = two,
		.trace = 2000,
		.servers = 2,
		.timeout = 1000,
		.max_redirects = 2,
		.redirect = redirect,
		.redirects = 1,
		.discover = true};
	struct ask ask = {.op = ASK_FIND, .service = strdup("urn:service:sos")};
	struct http_reply r = {.body = s, .len = len, .status = 200};
	struct query q;
	int n = 0;

	ask_add_reference(&ask, uri, sizeof(uri) - 1);
	ask_add_pidf(&ask, s, len, METHOD_cid, PROFILE_GEODETIC);
	for (enum step step = query_begin(&q, &cfg, &ask, 0, 100000); step != STEP_DONE;
		step = step == STEP_HTTP ? query_reply(&q, &r, 0)
					 : query_named(&q, n & 1 ? uri : NULL, 0))
		if (++n > 200)
			abort();
	check_answer(&q.answer);
	if (q.trace.len > cfg.trace)
		abort();
	query_free(&q);
	ask_clear(&ask);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const char *s = (const char *)data + 1;

	if (!len--)
		return 0;
	switch (*data) {
	case 'p':
		pidf(s, len);
		break;
	case 'f':
		reply(LOST_FIND, s, len);
		break;
	case 'l':
		reply(LOST_LIST, s, len);
		break;
	case 'g':
		reply(LOST_BOUNDARY, s, len);
		break;
	case 'h':
		held(s, len);
		break;
	case 'b':
		body(s, len);
		break;
	case 'n':
		dns(data + 1, len);
		break;
	default:
		query(s, len);
	}
	return 0;
}
