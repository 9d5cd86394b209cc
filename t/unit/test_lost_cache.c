/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module/lost: which places a boundary certainly contains, and the cache of mappings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lost_parts.h"

#define SOS "urn:service:sos"

static void add_ring(struct geo_build *b, const double *at, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(geo_add(b, at[2 * i], at[2 * i + 1]), 0);
	assert_int_equal(geo_close(b), 0);
}

static struct area *square(double south, double west, double size)
{
	struct geo_build b = {0};
	double at[] = {south, west, south, west + size, south + size, west + size, south + size,
		west, south, west};
	struct area *a;

	add_ring(&b, at, 5);
	a = geo_area(&b);
	assert_non_null(a);
	geo_build_free(&b);
	return a;
}

static bool covers(const struct area *a, double lat, double lon, double radius)
{
	struct spot s = {lat, lon, radius};

	return geo_covers(a, &s);
}

static void only_what_is_certainly_inside_is_covered(void **state)
{
	struct area *a = square(30, -97, 0.1);

	(void)state;
	assert_int_equal(area_points(a), 4);
	assert_true(covers(a, 30.05, -96.95, 0));
	assert_false(covers(a, 30.2, -96.95, 0));
	assert_false(covers(a, 29.9, -96.95, 0));
	assert_false(covers(a, 30.05, -97.1, 0));
	assert_false(covers(a, 30.05, -96.8, 0));
	/* On an edge and on a corner nobody knows */
	assert_false(covers(a, 30.05, -97, 0));
	assert_false(covers(a, 30, -97, 0));
	assert_false(covers(a, 30.0000005, -96.95, 0));
	assert_false(covers(a, NAN, -96.95, 0));
	/* Circles: the edge is 5.5 km to the north, 4.8 km to the west */
	assert_true(covers(a, 30.05, -96.95, 4500));
	assert_false(covers(a, 30.05, -96.95, 4900));
	assert_false(covers(a, 30.05, -96.95, 1e9));
	free(a);
}

/* Not all servers take the northern edge of a wide area for a straight line. */
static void where_a_geodesic_departs_nobody_knows(void **state)
{
	struct area *a = square(30, -100, 10);

	(void)state;
	assert_true(covers(a, 35, -95, 0));
	assert_true(covers(a, 39.0, -95, 0));
	assert_false(covers(a, 39.99, -95, 0));
	assert_false(covers(a, 30.01, -95, 0));
	assert_true(covers(a, 35, -99.99, 0));
	free(a);
}

static void holes_and_several_polygons(void **state)
{
	static const char xml[] =
		"<serviceBoundary xmlns=\"urn:ietf:params:xml:ns:lost1\" "
		"xmlns:gml=\"http://www.opengis.net/gml\"><gml:MultiSurface><gml:surfaceMember>"
		"<gml:Polygon><gml:exterior><gml:LinearRing><gml:posList>0 0 0 1 1 1 1 0 0 "
		"0</gml:posList></gml:LinearRing></gml:exterior><gml:interior><gml:LinearRing>"
		"<gml:pos>0.4 0.4</gml:pos><gml:pos>0.6 0.4</gml:pos><gml:pos>0.6 0.6</gml:pos>"
		"<gml:pos>0.4 0.6</gml:pos><gml:pos>0.4 0.4</gml:pos></gml:LinearRing>"
		"</gml:interior></gml:Polygon></gml:surfaceMember><gml:surfaceMember><gml:Polygon>"
		"<gml:exterior><gml:LinearRing><gml:posList>2 2 2 3 3 3 3 2 2 2</gml:posList>"
		"</gml:LinearRing></gml:exterior></gml:Polygon></gml:surfaceMember>"
		"</gml:MultiSurface></serviceBoundary>";
	xmlDoc *doc = xml_read(xml, strlen(xml));
	struct area *a = boundary_area(xmlDocGetRootElement(doc));

	(void)state;
	assert_non_null(a);
	assert_int_equal(a->rings, 3);
	assert_true(covers(a, 0.2, 0.2, 0));
	assert_false(covers(a, 0.5, 0.5, 0));
	assert_false(covers(a, 1.5, 1.5, 0));
	assert_true(covers(a, 2.5, 2.5, 0));
	/* A circle around the hole */
	assert_false(covers(a, 0.3, 0.5, 12000));
	assert_true(covers(a, 0.2, 0.5, 12000));
	free(a);
	xmlFreeDoc(doc);
}

static void areas_that_cannot_be_judged(void **state)
{
	static const double pole[] = {80, 0, 80, 10, 89, 5}, line[] = {170, 0},
			    antimeridian[] = {0, 179, 1, 179, 1, -179, 0, -179};
	struct geo_build b = {0};

	(void)state;
	add_ring(&b, pole, 3);
	assert_null(geo_area(&b));
	geo_build_free(&b);
	add_ring(&b, antimeridian, 4);
	assert_null(geo_area(&b));
	geo_build_free(&b);
	assert_int_equal(geo_add(&b, line[1], line[0]), 0);
	assert_int_equal(geo_close(&b), -EINVAL);
	assert_null(geo_area(&b));
	geo_build_free(&b);
	b.points_max = 2;
	assert_int_equal(geo_add(&b, 0, 0), 0);
	assert_int_equal(geo_add(&b, 0, 1), 0);
	assert_int_equal(geo_add(&b, 1, 1), -E2BIG);
	geo_build_free(&b);
}

/* Against a simple model: a polygon that looks like a star, and many places. */
static void ray_casting_agrees_with_a_model(void **state)
{
	struct geo_build b = {0};
	struct area *a;
	int inside = 0;

	(void)state;
	for (int i = 0; i < 360; i++) {
		double r = i % 20 < 10 ? 1 : 0.5, w = i * 3.14159265358979 / 180;

		geo_add(&b, 10 + r * sin(w), 20 + r * cos(w));
	}
	geo_close(&b);
	a = geo_area(&b);
	geo_build_free(&b);
	for (int i = 0; i < 20000; i++) {
		int row = i / 200;
		double y = (i % 200) / 80.0 - 1.25, x = row / 40.0 - 1.25;
		double r = sqrt(x * x + y * y);

		if (covers(a, 10 + y, 20 + x, 0)) {
			inside++;
			assert_true(r < 1);
		} else {
			assert_true(r > 0.49);
		}
	}
	assert_in_range(inside, 6000, 13000);
	free(a);
}

/* --- Cache ------------------------------------------------------------------------------------ */

static int blocks;

static void *counted_alloc(size_t n)
{
	blocks++;
	return malloc(n);
}

static void counted_free(void *p)
{
	blocks--;
	free(p);
}

static bool insert(
	struct cache *c, const char *service, const char *id, const struct area *a, int64_t expires)
{
	struct cache_key k = {.service = service, .expires = expires, .now = 100};
	struct answer answer = {.result = RESULT_OK};
	char uri[64];
	bool ok;

	snprintf(uri, sizeof(uri), "sip:%s@test", id);
	answer_put(&answer, A_uri, uri);
	answer_put(&answer, A_source, "lost.test");
	answer_put(&answer, A_source_id, id);
	answer_put(&answer, A_boundary_key, id);
	answer_put(&answer, A_pidf, "a location");
	answer_put(&answer, A_location_uri, "https://a/reference");
	answer.tries = 3;
	ok = cache_insert(c, &k, &answer, a);
	answer_clear(&answer);
	return ok;
}

/* The URI's user, or '-' for a miss, '?' for ambiguous. */
static char look(struct cache *c, const char *service, double lat, double lon, int64_t now)
{
	struct spot s = {lat, lon, 0};
	struct answer a = {0};
	enum cache_found f = cache_find(c, service, &s, now, &a);
	char found = f == CACHE_HIT ? a.text[A_uri][4] : f == CACHE_MISS ? '-' : '?';

	assert_true(f != CACHE_HIT || a.cached);
	/* The first caller's location is not the second one's business. */
	assert_true(!a.text[A_pidf] && !a.text[A_location_uri] && !a.tries);
	answer_clear(&a);
	return found;
}

static void hits_by_service_boundary_and_expiry(void **state)
{
	struct area *one = square(30, -97, 1), *two = square(31, -97, 1);
	struct cache c;

	(void)state;
	cache_init(&c, 10, 1 << 20, counted_alloc, counted_free);
	assert_true(insert(&c, SOS, "a", one, 200));
	assert_true(insert(&c, SOS, "b", two, 300));
	assert_int_equal(look(&c, SOS, 30.5, -96.5, 100), 'a');
	assert_int_equal(look(&c, SOS, 31.5, -96.5, 100), 'b');
	assert_int_equal(look(&c, SOS, 32.5, -96.5, 100), '-');
	assert_int_equal(look(&c, SOS ".fire", 30.5, -96.5, 100), '-');
	assert_int_equal(look(&c, SOS, 30.5, -96.5, 200), '-');
	assert_int_equal(look(&c, SOS, 31.5, -96.5, 299), 'b');
	assert_false(insert(&c, SOS, "c", two, 100));
	/* The same mapping moves: its old boundary is forgotten. */
	assert_true(insert(&c, SOS, "b", one, 300));
	assert_int_equal(look(&c, SOS, 31.5, -96.5, 100), '-');
	assert_int_equal(look(&c, SOS, 30.5, -96.5, 100), '?');
	assert_int_equal(look(&c, SOS, 30.5, -96.5, 250), 'b');
	/* An expired entry still has its area, so that it need not be fetched again. */
	assert_non_null(cache_area(&c, SOS, "lost.test", "a"));
	assert_null(cache_area(&c, SOS, "lost.test", "x"));
	assert_null(cache_area(&c, SOS, "x.test", "a"));
	assert_true(insert(&c, SOS, "a", cache_area(&c, SOS, "lost.test", "a"), 900));
	assert_int_equal(look(&c, SOS, 30.5, -96.5, 800), 'a');
	assert_int_equal(cache_clear(&c, SOS ".fire"), 0);
	assert_int_equal(cache_clear(&c, SOS), 2);
	assert_int_equal(c.entries, 0);
	assert_int_equal(c.bytes, 0);
	assert_int_equal(blocks, 0);
	free(one);
	free(two);
}

static bool count_views(void *arg, const struct cache_view *v)
{
	assert_int_equal(v->points, 4);
	return ++*(int *)arg < 3;
}

static void it_is_bounded_and_keeps_what_is_used(void **state)
{
	struct area *at[6];
	struct cache c;
	int views = 0;

	(void)state;
	cache_init(&c, 3, 1 << 20, counted_alloc, counted_free);
	for (int i = 0; i < 6; i++) {
		char id[2] = {(char)('a' + i), 0};

		at[i] = square(30 + i, -97, 1);
		assert_true(insert(&c, SOS, id, at[i], 1000));
		assert_int_equal(look(&c, SOS, 30.5, -96.5, 100), 'a');
	}
	assert_int_equal(c.entries, 3);
	assert_int_equal(c.evicted, 3);
	assert_int_equal(look(&c, SOS, 31.5, -96.5, 100), '-');
	assert_int_equal(look(&c, SOS, 35.5, -96.5, 100), 'f');
	cache_each(&c, count_views, &views);
	assert_int_equal(views, 3);
	cache_clear(&c, NULL);
	/* By bytes */
	cache_init(&c, 1000, 1500, counted_alloc, counted_free);
	for (int i = 0; i < 6; i++) {
		char id[2] = {(char)('a' + i), 0};

		assert_true(insert(&c, SOS, id, at[i], 1000));
		assert_true(c.bytes <= 1500);
	}
	assert_in_range(c.entries, 1, 4);
	cache_clear(&c, NULL);
	cache_init(&c, 1000, 100, counted_alloc, counted_free);
	assert_false(insert(&c, SOS, "a", at[0], 1000));
	cache_init(&c, 0, 1 << 20, counted_alloc, counted_free);
	assert_false(insert(&c, SOS, "a", at[0], 1000));
	assert_int_equal(blocks, 0);
	for (int i = 0; i < 6; i++)
		free(at[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_certainly_inside_is_covered),
		cmocka_unit_test(where_a_geodesic_departs_nobody_knows),
		cmocka_unit_test(holes_and_several_polygons),
		cmocka_unit_test(areas_that_cannot_be_judged),
		cmocka_unit_test(ray_casting_agrees_with_a_model),
		cmocka_unit_test(hits_by_service_boundary_and_expiry),
		cmocka_unit_test(it_is_bounded_and_keeps_what_is_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
