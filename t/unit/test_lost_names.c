/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module/lost: names of LoST servers, with a DNS and a clock of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <netdb.h>
#include <resolv.h>
#include <semaphore.h>
#include <unistd.h>

#undef res_nquery
#define res_nquery fake_query
static int fake_query(res_state s, const char *name, int class, int type, unsigned char *p, int n);

#include "../../module/lost/naptr.c"
#include "../../module/lost/names.c"

#define PATIENCE_S 120 /* a test that hangs has failed */
#define SOON       1000

static sem_t woken, silence;
static int options;  /* of the resolver */
static int outage;   /* 1: no name server answers */
static uint32_t ttl; /* of its answers */

/* "silent...": no answer until the test lets it go. "none...": no record. Else a URL with the name.
 */
static int fake_query(res_state s, const char *name, int class, int type, unsigned char *p, int n)
{
	static const uint8_t head[] = {0, 1, 0x81, 0x80, 0, 0, 0, 1, 0, 0, 0, 0};
	char regexp[128];
	uint8_t *at = p;
	size_t len;

	assert_true(class == ns_c_in && type == ns_t_naptr && n >= 512);
	__atomic_store_n(&options, (int)s->options, __ATOMIC_RELAXED);
	if (!strncmp(name, "silent", 6))
		sem_wait(&silence);
	if (__atomic_load_n(&outage, __ATOMIC_RELAXED) || !strncmp(name, "silent", 6)) {
		s->res_h_errno = TRY_AGAIN;
		return -1;
	}
	if (!strncmp(name, "none", 4)) {
		s->res_h_errno = HOST_NOT_FOUND;
		return -1;
	}
	len = (size_t)snprintf(regexp, sizeof(regexp), "!.*!https://%s/!", name);
	memcpy(at, head, sizeof(head));
	at += sizeof(head);
	*at++ = 0; /* the owner */
	NS_PUT16(ns_t_naptr, at);
	NS_PUT16(ns_c_in, at);
	NS_PUT32(__atomic_load_n(&ttl, __ATOMIC_RELAXED), at);
	NS_PUT16(4 + 2 + 11 + 1 + len + 1, at);
	NS_PUT32(0, at);
	memcpy(at, "\1u\12LoST:https", 13);
	at += 13;
	*at++ = (uint8_t)len;
	memcpy(at, regexp, len);
	at += len;
	*at++ = 0;
	return (int)(at - p);
}

void http_wake(struct http *h)
{
	(void)h;
	sem_post(&woken);
}

struct got {
	int count;
	char url[NAPTR_NAME_MAX]; /* of the last one; "": none */
};

static void on_url(void *arg, const char *url)
{
	struct got *g = arg;

	g->count++;
	strcpy(g->url, url ? url : "");
}

static bool ask(const char *name, bool configured, int64_t now, struct got *g)
{
	struct names_ask a = {.name = name,
		.configured = configured,
		.now = now,
		.until = now + SOON,
		.done = on_url,
		.arg = g};

	*g = (struct got){0};
	return names_find(&a);
}

/* Waits for so many threads. */
static void wait_for(int threads)
{
	for (int i = 0; i < threads; i++)
		sem_wait(&woken);
}

static const char *find(const char *name, bool configured, int64_t now, int threads)
{
	static struct got g;

	assert_true(ask(name, configured, now, &g));
	wait_for(threads);
	names_run(NULL, now);
	assert_int_equal(g.count, 1);
	return g.url;
}

static int begin_test(void **state)
{
	(void)state;
	alarm(PATIENCE_S);
	ttl = 100;
	outage = 0;
	memset(known, 0, sizeof(known));
	return sem_init(&woken, 0, 0) || sem_init(&silence, 0, 0);
}

static void a_result_is_kept_until_it_expires(void **state)
{
	(void)state;
	assert_string_equal(find("a.test", true, 0, 1), "https://a.test/");
	assert_string_equal(find("A.TEST", true, 99999, 0), "https://a.test/");
	assert_string_equal(find("a.test", true, 100000, 1), "https://a.test/");
	assert_string_equal(find("none.test", true, 0, 1), "");
	assert_string_equal(find("none.test", true, 29999, 0), "");
	assert_string_equal(find("none.test", true, 30000, 1), "");
}

static void what_is_no_name(void **state)
{
	static const char *const names[] = {
		"", "a b.test", "\xc2\x9bJ.test", "a\x1b.test", "a/b", "a\\.test", "a%", "a@b"};
	char name[NAPTR_NAME_MAX + 1];
	struct got g;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_false(ask(names[i], false, 0, &g));
	memset(name, 'a', sizeof(name));
	name[NAPTR_NAME_MAX] = '\0';
	assert_false(ask(name, false, 0, &g));
	assert_false(names_busy());
}

/* Routes of other calls run between the question and the answer. */
static void a_result_that_expires_meanwhile_counts(void **state)
{
	struct got g;

	(void)state;
	find("a.test", true, 0, 1);
	assert_true(ask("a.test", true, 99999, &g));
	names_run(NULL, 100001);
	assert_string_equal(g.url, "https://a.test/");
}

/* A server that lies chooses the names of redirects, and whoever has these names their DNS. */
static void names_of_redirects_take_no_place_of_configured_ones(void **state)
{
	char name[32];
	struct got g[64], own[8];
	int begun = 0;

	(void)state;
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "silent%d.test", i);
		begun += ask(name, false, 0, &g[i]);
	}
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "own%d.test", i);
		assert_true(ask(name, true, 0, &own[i]));
	}
	wait_for(8);
	names_run(NULL, 0);
	for (int i = 0; i < 8; i++)
		assert_true(own[i].count == 1 && own[i].url[0]);
	names_run(NULL, SOON);
	for (int i = 0; i < begun; i++)
		sem_post(&silence);
	wait_for(begun);
	names_run(NULL, SOON);
	assert_false(names_busy());
	/* Nor what is kept. */
	ttl = TTL_MAX;
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "x%d.test", i);
		find(name, false, SOON, 1);
	}
	for (int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "own%d.test", i);
		find(name, true, SOON, 0);
	}
}

/* More results at once than places are left. */
static void all_that_wait_get_their_results(void **state)
{
	char name[32], url[64];
	struct got g[4];

	(void)state;
	ttl = TTL_MAX;
	for (int i = 0; i < 64; i++) {
		snprintf(name, sizeof(name), "x%d.test", i);
		find(name, false, 0, 1);
	}
	ttl = 30;
	for (int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "y%d.test", i);
		assert_true(ask(name, false, 0, &g[i]));
	}
	wait_for(4);
	names_run(NULL, 0);
	for (int i = 0; i < 4; i++) {
		snprintf(url, sizeof(url), "https://y%d.test/", i);
		assert_string_equal(g[i].url, url);
	}
}

static void an_outage_of_the_dns_loses_no_server(void **state)
{
	(void)state;
	find("a.test", true, 0, 1);
	outage = 1;
	assert_string_equal(find("a.test", true, 200000, 1), "https://a.test/");
	assert_string_equal(find("a.test", true, 229999, 0), "https://a.test/");
	assert_string_equal(find("b.test", true, 200000, 1), "");
	outage = 0;
	assert_string_equal(find("a.test", true, 230000, 1), "https://a.test/");
}

/* glibc waits for a TCP connection without any limit, and a name is looked up once at a time. */
static void the_dns_is_asked_by_udp_only(void **state)
{
	(void)state;
	find("a.test", true, 0, 1);
	assert_true(options & RES_IGNTC);
	assert_false(options & RES_USEVC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_result_is_kept_until_it_expires, begin_test),
		cmocka_unit_test_setup(what_is_no_name, begin_test),
		cmocka_unit_test_setup(a_result_that_expires_meanwhile_counts, begin_test),
		cmocka_unit_test_setup(
			names_of_redirects_take_no_place_of_configured_ones, begin_test),
		cmocka_unit_test_setup(all_that_wait_get_their_results, begin_test),
		cmocka_unit_test_setup(an_outage_of_the_dns_loses_no_server, begin_test),
		cmocka_unit_test_setup(the_dns_is_asked_by_udp_only, begin_test),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
