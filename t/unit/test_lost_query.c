/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module/lost: replies of servers, and the state machine of a query, with a clock of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lost_parts.h"

#define LOST "xmlns=\"urn:ietf:params:xml:ns:lost1\""
#define SOS  "urn:service:sos"

#define MAPPING(attributes, content)                                               \
	"<findServiceResponse " LOST "><mapping " attributes " source=\"a.test\" " \
	"sourceId=\"id1\" lastUpdated=\"2026-01-01T00:00:00Z\">" content           \
	"</mapping><path><via source=\"a.test\"/></path></findServiceResponse>"
#define GOOD                                                                                 \
	MAPPING("expires=\"2099-01-01T00:00:00Z\"",                                          \
		"<displayName xml:lang=\"en\">A PSAP</displayName><service>" SOS             \
		"</service><serviceBoundaryReference source=\"a.test\" key=\"k1\"/>"         \
		"<uri>tel:911</uri><uri>sip:a@b</uri><uri>sips:a@b</uri><uri>xmpp:a@b</uri>" \
		"<serviceNumber>911</serviceNumber>")
#define ERROR(name) \
	"<errors " LOST " source=\"a.test\"><" name " message=\"m\" xml:lang=\"en\"/></errors>"
#define REDIRECT(target) \
	"<redirect " LOST " target=\"" target "\" source=\"a.test\" message=\"m\" xml:lang=\"en\"/>"
#define PIDF(lat)                                                                               \
	"<presence xmlns=\"urn:ietf:params:xml:ns:pidf\" "                                      \
	"xmlns:gp=\"urn:ietf:params:xml:ns:pidf:geopriv10\" "                                   \
	"xmlns:gml=\"http://www.opengis.net/gml\" entity=\"pres:a@b\"><tuple id=\"t\"><status>" \
	"<gp:geopriv><gp:location-info><gml:Point><gml:pos>" lat                                \
	" -96</gml:pos></gml:Point></gp:location-info></gp:geopriv></status></tuple></presence>"
#define HELD(x) \
	"<locationResponse xmlns=\"urn:ietf:params:xml:ns:geopriv:held\">" x "</locationResponse>"

/* --- Replies ---------------------------------------------------------------------------------- */

/* A mapping whose URI is one octet too long, and another URI. */
static const char *long_uri(void)
{
	static char s[4000];
	char uri[1022];

	memset(uri, 'a', sizeof(uri));
	snprintf(s, sizeof(s),
		MAPPING("expires=\"NO-CACHE\"", "<uri>sips:%.1020s</uri><uri>sip:%.1020s</uri>"),
		uri, uri);
	return s;
}

static enum reply read_find(const char *s, struct answer *a, struct extent *e)
{
	answer_clear(a);
	free(e->area);
	return lost_read(LOST_FIND, s, strlen(s), a, e);
}

static void a_mapping_has_all_its_parts(void **state)
{
	struct answer a = {0};
	struct extent e = {0};

	(void)state;
	assert_int_equal(read_find(GOOD, &a, &e), REPLY_OK);
	assert_string_equal(a.text[A_uri], "sips:a@b");
	assert_string_equal(a.text[A_uris], "tel:911 sip:a@b sips:a@b xmpp:a@b");
	assert_string_equal(a.text[A_name], "A PSAP");
	assert_string_equal(a.text[A_number], "911");
	assert_string_equal(a.text[A_service], SOS);
	assert_string_equal(a.text[A_boundary_key], "k1");
	assert_string_equal(a.text[A_source], "a.test");
	assert_string_equal(a.text[A_source_id], "id1");
	assert_null(a.text[A_warnings]);
	assert_true(e.expires > 4000000000 && !e.no_cache && !e.area);
	assert_int_equal(
		read_find(MAPPING("expires=\"NO-CACHE\"", "<uri>sip:a</uri>"), &a, &e), REPLY_OK);
	assert_true(e.no_cache);
	assert_int_equal(
		read_find(MAPPING("expires=\"NO-EXPIRATION\"", "<uri>sip:a</uri>"), &a, &e),
		REPLY_OK);
	assert_true(e.expires == INT64_MAX);
	assert_int_equal(read_find(long_uri(), &a, &e), REPLY_OK);
	assert_int_equal(strlen(a.text[A_uri]), 1024);
	assert_string_equal(a.text[A_uris], a.text[A_uri]);
	/* No blanks, brackets or control characters reach the script in URIs and words. */
	assert_int_equal(read_find(MAPPING("expires=\"x y\"",
					   "<uri>sip:a&#13;&#10;Evil: 1</uri><uri>sip:a&gt;b</uri>"
					   "<displayName>a&#10;b</displayName>"),
				 &a, &e),
		REPLY_OK);
	assert_null(a.text[A_uri]);
	assert_null(a.text[A_expires]);
	assert_string_equal(a.text[A_name], "a b");
	assert_int_equal(read_find("<findServiceResponse " LOST "/>", &a, &e), REPLY_GARBAGE);
	assert_int_equal(read_find("<findServiceResponse/>", &a, &e), REPLY_GARBAGE);
	assert_int_equal(read_find(ERROR("notFound"), &a, &e), REPLY_ERROR);
	assert_string_equal(a.text[A_error], "notFound");
	assert_string_equal(a.text[A_message], "m");
	answer_clear(&a);
	free(e.area);
}

static void warnings_services_and_boundaries(void **state)
{
	static const char list[] =
		"<listServicesByLocationResponse " LOST
		"><serviceList> urn:a\n urn:b </serviceList><warnings "
		"source=\"a.test\"><serviceSubstitution message=\"w\" "
		"xml:lang=\"en\"/></warnings><path><via source=\"a.test\"/></path>"
		"</listServicesByLocationResponse>";
	static const char boundary[] =
		"<getServiceBoundaryResponse " LOST "><serviceBoundary profile=\"civic\"><x/>"
		"</serviceBoundary><serviceBoundary profile=\"geodetic-2d\"><gml:Polygon "
		"xmlns:gml=\"http://www.opengis.net/gml\"><gml:exterior><gml:LinearRing>"
		"<gml:posList>0 0 0 1 1 1 0 0</gml:posList></gml:LinearRing></gml:exterior>"
		"</gml:Polygon></serviceBoundary></getServiceBoundaryResponse>";
	struct answer a = {0};
	struct extent e = {0};

	(void)state;
	assert_int_equal(lost_read(LOST_LIST, list, strlen(list), &a, &e), REPLY_OK);
	assert_string_equal(a.text[A_services], "urn:a urn:b");
	assert_string_equal(a.text[A_warnings], "serviceSubstitution");
	assert_string_equal(a.text[A_message], "w");
	assert_int_equal(lost_read(LOST_BOUNDARY, list, strlen(list), &a, &e), REPLY_GARBAGE);
	answer_clear(&a);
	assert_int_equal(lost_read(LOST_BOUNDARY, boundary, strlen(boundary), &a, &e), REPLY_OK);
	assert_non_null(e.area);
	assert_non_null(strstr(a.text[A_boundary], "<gml:posList>0 0 0 1 1 1 0 0</gml:posList>"));
	free(e.area);
	answer_clear(&a);
}

static void dates(void **state)
{
	(void)state;
	assert_int_equal(date_time("1970-01-02T00:00:00Z"), 86400);
	assert_int_equal(date_time("1970-01-02T00:00:00.5"), 86400);
	assert_int_equal(date_time("1970-01-02T01:30:00+01:30"), 86400);
	assert_int_equal(date_time("1970-01-01T23:00:00.25-01:00"), 86400);
	assert_int_equal(date_time("1970-13-01T00:00:00Z"), 0);
	assert_int_equal(date_time("1970-01-02"), 0);
	assert_int_equal(date_time("1970-01-02T00:00:00x"), 0);
	assert_int_equal(date_time("NO-CACHE"), 0);
	assert_int_equal(date_time(NULL), 0);
}

/* --- The state machine ------------------------------------------------------------------------ */

static struct server lost_server[3], lis[1];
static const char *const redirects[] = {"b.test=http://b/lost", "loop.test=http://loop/lost"};
static struct query_config cfg;
static struct query q;
static struct ask ask;
static int64_t now;

static int begin_test(void **state)
{
	(void)state;
	lost_server[0] = (struct server){.url = "http://0/"};
	lost_server[1] = (struct server){.url = "http://1/"};
	lost_server[2] = (struct server){.url = "http://2/"};
	lis[0] = (struct server){.url = "https://lis/"};
	cfg = (struct query_config){.server = lost_server,
		.lis = lis,
		.servers = 2,
		.lises = 1,
		.timeout = 1000,
		.down_time = 10000,
		.max_redirects = 2,
		.redirect = redirects,
		.redirects = 2};
	ask = (struct ask){.op = ASK_FIND, .service = strdup(SOS)};
	now = 1000;
	return 0;
}

static int end_test(void **state)
{
	(void)state;
	query_free(&q);
	ask_clear(&ask);
	return 0;
}

static void add_location(const char *pidf)
{
	assert_int_equal(ask_add_pidf(&ask, pidf, strlen(pidf), METHOD_cid, PROFILE_GEODETIC), 1);
}

static enum step begin(void)
{
	return query_begin(&q, &cfg, &ask, now, now + 3000);
}

static enum step reply(const char *body)
{
	struct http_reply r = {.body = body, .len = strlen(body), .status = 200};

	return query_reply(&q, &r, now);
}

static enum step failure(enum http_error e, int status)
{
	struct http_reply r = {.error = e, .status = status};

	return query_reply(&q, &r, now);
}

static void expect_end(enum result r, const char *error)
{
	assert_int_equal(q.answer.result, r);
	if (error)
		assert_string_equal(q.answer.text[A_error], error);
	else
		assert_null(q.answer.text[A_error]);
	if (r != RESULT_OK)
		assert_null(q.answer.text[A_uri]);
}

static void the_first_server_answers(void **state)
{
	(void)state;
	add_location(PIDF("30.10"));
	assert_int_equal(begin(), STEP_HTTP);
	assert_string_equal(q.http.url, "http://0/");
	assert_non_null(strstr(q.http.body, "<gml:pos>30.10 -96</gml:pos>"));
	assert_int_equal(q.http.timeout, 1000);
	assert_int_equal(reply(GOOD), STEP_DONE);
	expect_end(RESULT_OK, NULL);
	assert_string_equal(q.answer.text[A_uri], "sips:a@b");
	assert_string_equal(q.answer.text[A_server], "http://0/");
	assert_string_equal(q.answer.text[A_method], "cid");
	assert_string_equal(q.answer.text[A_profile], "geodetic-2d");
	assert_int_equal(q.answer.tries, 1);
	assert_true(q.known && q.spot.lat == 30.1);
}

static void failing_servers_are_asked_last(void **state)
{
	(void)state;
	add_location(PIDF("30.10"));
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(failure(HTTP_TIMEOUT, 0), STEP_HTTP);
	assert_string_equal(q.http.url, "http://1/");
	assert_int_equal(reply("garbage"), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "garbage");
	assert_int_equal(lost_server[0].failed, 1);
	query_free(&q);
	lost_server[1].down_until = 0;
	assert_int_equal(begin(), STEP_HTTP);
	assert_string_equal(q.http.url, "http://1/");
	assert_int_equal(failure(HTTP_TLS, 0), STEP_HTTP);
	assert_string_equal(q.http.url, "http://0/");
	assert_int_equal(reply(GOOD), STEP_DONE);
	expect_end(RESULT_OK, NULL);
	assert_int_equal(lost_server[0].down_until, 0);
	query_free(&q);
	now += cfg.down_time + 1;
	assert_int_equal(begin(), STEP_HTTP);
	assert_string_equal(q.http.url, "http://0/");
}

static void the_deadline_ends_it(void **state)
{
	(void)state;
	cfg.servers = 3;
	add_location(PIDF("30.10"));
	assert_int_equal(begin(), STEP_HTTP);
	now += 2500;
	assert_int_equal(failure(HTTP_CONNECT, 0), STEP_HTTP);
	assert_int_equal(q.http.timeout, 500);
	now += 500;
	assert_int_equal(failure(HTTP_TIMEOUT, 0), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "timeout");
}

static void errors_of_servers_and_of_locations(void **state)
{
	(void)state;
	add_location(PIDF("30.10"));
	add_location(PIDF("31.10"));
	assert_int_equal(begin(), STEP_HTTP);
	/* Another server may know better ... */
	assert_int_equal(reply(ERROR("serverError")), STEP_HTTP);
	assert_string_equal(q.http.url, "http://1/");
	/* ... or the next location may be known. */
	assert_int_equal(reply(ERROR("notFound")), STEP_HTTP);
	assert_string_equal(q.http.url, "http://0/");
	assert_non_null(strstr(q.http.body, "31.10"));
	assert_int_equal(reply(ERROR("notFound")), STEP_DONE);
	expect_end(RESULT_REFUSED, "notFound");
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(ERROR("serviceNotImplemented")), STEP_DONE);
	expect_end(RESULT_REFUSED, "serviceNotImplemented");
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(ERROR("internalError")), STEP_HTTP);
	assert_int_equal(reply(ERROR("internalError")), STEP_DONE);
	expect_end(RESULT_REFUSED, "internalError");
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(MAPPING("expires=\"NO-CACHE\"", "")), STEP_DONE);
	expect_end(RESULT_REFUSED, "no-uri");
}

static void redirects_are_bounded(void **state)
{
	(void)state;
	cfg.servers = 1;
	add_location(PIDF("30.10"));
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("b.test")), STEP_HTTP);
	assert_string_equal(q.http.url, "http://b/lost");
	assert_int_equal(reply(GOOD), STEP_DONE);
	expect_end(RESULT_OK, NULL);
	assert_string_equal(q.answer.text[A_server], "http://b/lost");
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("loop.test")), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("loop.test")), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("loop.test")), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "redirect");
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("evil.test")), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "redirect");
}

/* Callers choose the area, and with it where redirects lead. Servers of others keep their turn. */
static void a_redirect_to_nowhere_is_not_the_servers_fault(void **state)
{
	(void)state;
	cfg.servers = 2;
	add_location(PIDF("30.10"));
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("b.test")), STEP_HTTP);
	assert_int_equal(failure(HTTP_CONNECT, 0), STEP_HTTP);
	assert_string_equal(q.http.url, "http://1/");
	assert_int_equal(lost_server[0].down_until, 0);
	assert_int_equal(lost_server[0].failed, 0);
}

static void redirects_to_names(void **state)
{
	(void)state;
	cfg.servers = 1;
	cfg.discover = true;
	add_location(PIDF("30.10"));
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("c.test")), STEP_NAME);
	assert_string_equal(q.name, "c.test");
	assert_int_equal(query_named(&q, "https://c/lost", now), STEP_HTTP);
	assert_string_equal(q.http.url, "https://c/lost");
	assert_true(q.http.stranger);
	assert_non_null(strstr(q.http.body, "<gml:pos>30.10 -96</gml:pos>"));
	/* The table precedes the DNS. */
	assert_int_equal(reply(REDIRECT("b.test")), STEP_HTTP);
	assert_string_equal(q.http.url, "http://b/lost");
	assert_false(q.http.stranger);
	assert_int_equal(reply(REDIRECT("c.test")), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "redirect");
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("d.test")), STEP_NAME);
	assert_int_equal(query_named(&q, NULL, now), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "redirect");
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(REDIRECT("d.test")), STEP_NAME);
	now = q.deadline;
	assert_int_equal(query_named(&q, "https://d/", now), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "timeout");
}

static void servers_known_by_name(void **state)
{
	(void)state;
	lost_server[0].url = "lost:a.test";
	add_location(PIDF("30.10"));
	assert_int_equal(begin(), STEP_NAME);
	assert_string_equal(q.name, "a.test");
	assert_int_equal(q.answer.tries, 0);
	assert_int_equal(query_named(&q, "https://a/lost", now), STEP_HTTP);
	assert_string_equal(q.http.url, "https://a/lost");
	assert_false(q.http.stranger);
	assert_int_equal(reply(GOOD), STEP_DONE);
	expect_end(RESULT_OK, NULL);
	assert_string_equal(q.answer.text[A_server], "https://a/lost");
	query_free(&q);
	/* Without an address it counts as down. */
	assert_int_equal(begin(), STEP_NAME);
	assert_int_equal(query_named(&q, NULL, now), STEP_HTTP);
	assert_string_equal(q.http.url, "http://1/");
	assert_int_equal(lost_server[0].failed, 1);
	query_free(&q);
	assert_int_equal(begin(), STEP_HTTP);
	assert_string_equal(q.http.url, "http://1/");
	assert_int_equal(failure(HTTP_CONNECT, 0), STEP_NAME);
	assert_int_equal(query_named(&q, NULL, now), STEP_DONE);
	expect_end(RESULT_NO_ANSWER, "connect");
}

static bool knows(void *arg, const char *service, const struct spot *s, struct answer *a)
{
	(void)arg;
	if (strcmp(service, SOS) || s->lat != 31.1)
		return false;
	a->cached = true;
	answer_put(a, A_uri, "sip:cached@test");
	return true;
}

static void references_are_fetched(void **state)
{
	static const char uri[] = "https://lis/ref", plain[] = "http://lis/ref";

	(void)state;
	cfg.cached = knows;
	ask_add_reference(&ask, plain, strlen(plain));
	assert_int_equal(begin(), STEP_DONE);
	expect_end(RESULT_REFERENCE, "insecure");
	query_free(&q);
	ask_add_reference(&ask, uri, strlen(uri));
	assert_int_equal(begin(), STEP_HTTP);
	assert_string_equal(q.http.url, uri);
	assert_null(q.http.body);
	/* It knows POST only. */
	assert_int_equal(failure(HTTP_STATUS, 405), STEP_HTTP);
	assert_non_null(strstr(q.http.body, "locationRequest"));
	assert_int_equal(reply(HELD(PIDF("30.5"))), STEP_HTTP);
	assert_string_equal(q.http.url, "http://0/");
	assert_non_null(strstr(q.http.body, "30.5 -96"));
	assert_int_equal(reply(GOOD), STEP_DONE);
	expect_end(RESULT_OK, NULL);
	assert_string_equal(q.answer.text[A_method], "reference");
	assert_non_null(q.answer.text[A_pidf]);
	query_free(&q);
	/* The cache knows the place that the reference yields. */
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(PIDF("31.1")), STEP_DONE);
	expect_end(RESULT_OK, NULL);
	assert_true(q.answer.cached);
	query_free(&q);
	/* It fails: the next location is taken. */
	add_location(PIDF("30.7"));
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply("<error xmlns=\"urn:ietf:params:xml:ns:geopriv:held\" "
			       "code=\"locationUnknown\"/>"),
		STEP_HTTP);
	assert_non_null(strstr(q.http.body, "30.7 -96"));
	query_free(&q);
	ask_clear(&ask);
	ask = (struct ask){.op = ASK_DEREFERENCE, .argument = strdup(uri)};
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply("<error xmlns=\"urn:ietf:params:xml:ns:geopriv:held\" "
			       "code=\"locationUnknown\"><message>no</message></error>"),
		STEP_DONE);
	expect_end(RESULT_REFERENCE, "locationUnknown");
}

/* References that this host may fetch for a caller */
static void hosts_of_references(void **state)
{
	static const struct {
		const char *hosts, *uri;
		bool allowed;
	} T[] = {
		{NULL, "https://x/", true},
		{NULL, "https://x", true},
		{NULL, "HTTPS://[::1]:8/", true},
		{NULL, "http://x/", false},
		{NULL, "file:///etc/passwd", false},
		{NULL, "https://a@b/", false},
		{NULL, "https://", false},
		{"lis.test, .b.test", "https://lis.test:8443/1", true},
		{"lis.test, .b.test", "https://LIS.test", true},
		{"lis.test,.b.test", "https://a.b.test/1", true},
		{"lis.test,.b.test", "https://b.test/1", false},
		{"lis.test,.b.test", "https://xlis.test/1", false},
		{"lis.test,.b.test", "https://evil/?lis.test", false},
		{"lis.test,.b.test", "https://evil/.b.test", false},
		{"lis.test,.b.test", "https://evil\\.b.test/", false},
		{"lis.test,.b.test", "https://lis.test@evil/", false},
		{"lis.test,.b.test", "https://evil%2f.b.test/", false},
		{"lis.test,.b.test", "https://evil#.b.test", false},
		{"", "https://x/", false},
	};

	(void)state;
	ask.op = ASK_DEREFERENCE;
	for (size_t i = 0; i < sizeof(T) / sizeof(*T); i++) {
		cfg.hosts = T[i].hosts;
		free(ask.argument);
		ask.argument = strdup(T[i].uri);
		assert_int_equal(begin(), T[i].allowed ? STEP_HTTP : STEP_DONE);
		query_free(&q);
	}
}

static void some_addresses_are_near(void **state)
{
	static const struct {
		const char *text;
		bool near;
	} T[] = {{"127.0.0.1", true}, {"127.255.255.255", true}, {"0.0.0.0", true},
		{"169.254.169.254", true}, {"224.0.0.1", true}, {"255.255.255.255", true},
		{"10.0.0.1", false}, {"126.255.255.255", false}, {"192.0.2.1", false},
		{"::1", true}, {"::", true}, {"fe80::1", true}, {"ff02::1", true},
		{"::ffff:127.0.0.1", true}, {"::ffff:192.0.2.1", false}, {"::127.0.0.1", true},
		{"2001:db8::1", false}, {"fd00::1", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(T) / sizeof(*T); i++) {
		struct sockaddr_in four = {.sin_family = AF_INET};
		struct sockaddr_in6 six = {.sin6_family = AF_INET6};
		bool is_four = inet_pton(AF_INET, T[i].text, &four.sin_addr) == 1;

		assert_true(is_four || inet_pton(AF_INET6, T[i].text, &six.sin6_addr) == 1);
		assert_int_equal(reach_is_near(is_four ? (const struct sockaddr *)&four
						       : (const struct sockaddr *)&six),
			T[i].near);
	}
}

static void a_lis_is_asked(void **state)
{
	(void)state;
	ask.op = ASK_HELD;
	ask.argument = strdup("sip:a@b");
	assert_int_equal(begin(), STEP_HTTP);
	assert_string_equal(q.http.url, "https://lis/");
	assert_non_null(strstr(q.http.body, "<uri>sip:a@b</uri>"));
	assert_int_equal(reply(HELD("<locationUriSet "
				    "expires=\"2099-01-01T00:00:00Z\"><locationURI>sip:x@y</"
				    "locationURI><locationURI>https://lis/1</locationURI>"
				    "</locationUriSet>" PIDF("30.5"))),
		STEP_DONE);
	expect_end(RESULT_OK, NULL);
	assert_string_equal(q.answer.text[A_location_uri], "https://lis/1");
	assert_non_null(strstr(q.answer.text[A_pidf], "30.5 -96"));
}

static void a_boundary_comes_from_the_server_that_named_it(void **state)
{
	(void)state;
	ask.op = ASK_BOUNDARY;
	ask.argument = strdup("k1");
	ask.first_server = 1;
	assert_int_equal(begin(), STEP_HTTP);
	assert_string_equal(q.http.url, "http://1/");
	assert_int_equal(failure(HTTP_CONNECT, 0), STEP_HTTP);
	assert_string_equal(q.http.url, "http://0/");
}

/* Answers and asks survive the way through shared memory. */
/* What the trace has next: the line, and the texts after it. */
static const char *expect_traced(
	const char *at, const char *line, const char *url, const char *request, const char *reply)
{
	char *want = malloc(strlen(line) + strlen(url) + strlen(request) + strlen(reply) + 100);

	sprintf(want, "%s %zu %zu %zu", line, strlen(url), strlen(request), strlen(reply));
	assert_memory_equal(at, want, strlen(want));
	at = strchr(at, '\n') + 1;
	sprintf(want, "%s%s%s", url, request, reply);
	assert_memory_equal(at, want, strlen(want));
	at += strlen(want);
	free(want);
	return at;
}

static void exchanges_are_kept(void **state)
{
	struct http_reply status = {
		.error = HTTP_STATUS, .status = 500, .body = "oops\0x", .len = 6};
	char *request;
	const char *at;

	(void)state;
	ask_add_reference(&ask, "https://x", 9);
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(HELD("")), STEP_DONE);
	assert_null(q.trace.s); /* not by default */
	query_free(&q);

	cfg.trace = 4000;
	cfg.epoch = 1700000000000;
	assert_int_equal(begin(), STEP_HTTP);
	now += 5;
	assert_int_equal(reply(HELD(PIDF("30.10"))), STEP_HTTP);
	request = strdup(q.http.body);
	now += 7;
	assert_int_equal(reply("no XML"), STEP_HTTP);
	assert_int_equal(query_reply(&q, &status, now), STEP_DONE);
	at = expect_traced(q.trace.s, "held 1700000001000 1700000001005 - 200", "https://x", "",
		HELD(PIDF("30.10")));
	at = expect_traced(
		at, "lost 1700000001005 1700000001012 garbage 200", "http://0/", request, "no XML");
	/* The NUL ends the second reply. */
	assert_non_null(strstr(at, "lost 1700000001012 1700000001012 http 500 9 "));
	assert_non_null(strstr(at, " 4 6\nhttp://1/"));
	assert_string_equal(at + strlen(at) - 4, "oops");
	free(request);

	/* Of a long reply there is the beginning. Later exchanges have no place. */
	query_free(&q);
	cfg.trace = 250;
	assert_int_equal(begin(), STEP_HTTP);
	assert_int_equal(reply(HELD(PIDF("30.10"))), STEP_HTTP);
	assert_int_equal(reply("no XML"), STEP_HTTP);
	assert_in_range(q.trace.len, 50, 250);
	assert_int_equal(strlen(q.trace.s), q.trace.len);
	assert_null(strstr(q.trace.s, "lost "));
}

static void flat_copies(void **state)
{
	struct answer a = {.result = 1, .tries = 3}, copy;
	void *block;

	(void)state;
	answer_put(&a, A_uri, "sip:a@b");
	answer_put(&a, A_name, "n");
	block = malloc(answer_flat_size(&a));
	assert_true(answer_copy(&copy, answer_flatten(&a, block)));
	free(block);
	assert_string_equal(copy.text[A_uri], "sip:a@b");
	assert_string_equal(copy.text[A_name], "n");
	assert_null(copy.text[A_error]);
	answer_clear(&a);
	answer_clear(&copy);
	add_location(PIDF("30.10"));
	ask_add_reference(&ask, "https://x", 9);
	block = malloc(ask_flat_size(&ask));
	assert_string_equal(ask_flatten(&ask, block)->source[1].place.xml, "https://x");
	assert_string_equal(((struct ask *)block)->service, SOS);
	assert_null(((struct ask *)block)->argument);
	free(block);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_test, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_has_all_its_parts),
		cmocka_unit_test(warnings_services_and_boundaries),
		cmocka_unit_test(some_addresses_are_near),
		cmocka_unit_test(dates),
		TEST(the_first_server_answers),
		TEST(failing_servers_are_asked_last),
		TEST(the_deadline_ends_it),
		TEST(errors_of_servers_and_of_locations),
		TEST(redirects_are_bounded),
		TEST(redirects_to_names),
		TEST(a_redirect_to_nowhere_is_not_the_servers_fault),
		TEST(servers_known_by_name),
		TEST(references_are_fetched),
		TEST(hosts_of_references),
		TEST(a_lis_is_asked),
		TEST(a_boundary_comes_from_the_server_that_named_it),
		TEST(exchanges_are_kept),
		TEST(flat_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
