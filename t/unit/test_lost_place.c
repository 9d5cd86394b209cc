/* SPDX-License-Identifier: GPL-2.0-or-later */
/* module/lost: locations and requests. Each request that it writes is valid by the schema of RFC
 * 5222, and has the numbers as they came. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <libxml/relaxng.h>

#include "lost_parts.h"

#define GML        "xmlns:gml=\"http://www.opengis.net/gml\""
#define GS         GML " xmlns:gs=\"http://www.opengis.net/pidflo/1.0\""
#define CRS        " srsName=\"urn:ogc:def:crs:EPSG::4326\""
#define CRS3       " srsName=\"urn:ogc:def:crs:EPSG::4979\""
#define M          " uom=\"urn:ogc:def:uom:EPSG::9001\""
#define DEG        " uom=\"urn:ogc:def:uom:EPSG::9102\""
#define RING(list) "<gml:LinearRing><gml:posList>" list "</gml:posList></gml:LinearRing>"

static xmlRelaxNG *schema;

static void silent(void *arg, const char *text, ...)
{
	(void)arg;
	(void)text;
}

static int load_schema(void **state)
{
	xmlRelaxNGParserCtxt *c = xmlRelaxNGNewParserCtxt("ng911/schema/lost.rng");

	(void)state;
	schema = xmlRelaxNGParse(c);
	xmlRelaxNGFreeParserCtxt(c);
	return schema ? 0 : -1;
}

static int free_schema(void **state)
{
	(void)state;
	xmlRelaxNGFree(schema);
	xmlRelaxNGCleanupTypes();
	return 0;
}

static bool valid(const char *s)
{
	xmlDoc *doc = xml_read(s, strlen(s));
	xmlRelaxNGValidCtxt *c = xmlRelaxNGNewValidCtxt(schema);
	bool ok;

	assert_non_null(doc);
	xmlRelaxNGSetValidErrors(c, silent, silent, NULL);
	ok = xmlRelaxNGValidateDoc(c, doc) == 0;
	xmlRelaxNGFreeValidCtxt(c);
	xmlFreeDoc(doc);
	return ok;
}

static int shape(struct place *p, const char *s)
{
	xmlDoc *doc = xml_read(s, strlen(s));
	int err;

	assert_non_null(doc);
	err = place_shape(p, xmlDocGetRootElement(doc));
	xmlFreeDoc(doc);
	return err;
}

/* All requests about this place are valid, and contain the text. */
static void check_requests(const struct place *p, const char *text)
{
	for (int i = 0; i < BOUNDARY_COUNT + 2; i++) {
		char *s = i < BOUNDARY_COUNT
			? lost_find_service("urn:service:sos", p, (enum boundary)i, i & 1)
			: lost_list_services(i & 1 ? "urn:service:sos" : "", p, i & 1);

		assert_non_null(s);
		if (!valid(s) || !strstr(s, text))
			fail_msg("not valid, or without %s: %s", text, s);
		free(s);
	}
}

static void every_shape_arrives_as_it_came(void **state)
{
	static const struct {
		const char *xml, *text;
		double lat, lon, radius; /* radius < 0: not checked */
	} T[] = {
		{"<gml:Point " GML CRS
		 "><gml:pos>30.6280012 -96.33440680000001</gml:pos></gml:Point>",
			"<gml:pos>30.6280012 -96.33440680000001</gml:pos>", 30.6280012, -96.3344068,
			0},
		{"<gml:Point " GML "><gml:pos> +30.50 -9.600e1\n</gml:pos></gml:Point>",
			"<gml:pos>+30.50 -9.600e1</gml:pos>", 30.5, -96, 0},
		{"<gml:Point " GML CRS3 "><gml:pos>30.10 -96.20 100.5</gml:pos></gml:Point>",
			"<gml:Point xmlns:gml=\"http://www.opengis.net/gml\"" CRS
			"><gml:pos>30.10 -96.20</gml:pos>",
			30.1, -96.2, 0},
		{"<gs:Circle " GS CRS "><gml:pos>42.5463 -73.2512</gml:pos><gs:radius" M
		 ">850.24</gs:radius></gs:Circle>",
			"<gs:radius" M ">850.24</gs:radius>", 42.5463, -73.2512, 850.24},
		{"<gs:Ellipse " GS CRS "><gml:pos>42.5463 -73.2512</gml:pos><gs:semiMajorAxis" M
		 ">1275</gs:semiMajorAxis><gs:semiMinorAxis" M
		 ">670.0</gs:semiMinorAxis><gs:orientation" DEG
		 ">43.20</gs:orientation></gs:Ellipse>",
			"<gs:orientation" DEG ">43.20</gs:orientation>", 42.5463, -73.2512, 1275},
		{"<gs:ArcBand " GS CRS "><gml:pos>42.5463 -73.2512</gml:pos><gs:innerRadius" M
		 ">3594</gs:innerRadius><gs:outerRadius" M
		 "> 4148 </gs:outerRadius><gs:startAngle" DEG
		 ">20</gs:startAngle><gs:openingAngle" DEG ">20.00</gs:openingAngle></gs:ArcBand>",
			"<gs:openingAngle" DEG ">20.00</gs:openingAngle>", 42.5463, -73.2512, 4148},
		{"<gml:Polygon " GML CRS "><gml:exterior>" RING(
			 "43.3110 -73.4220  43.1110 -73.3220 43.1110 -73.2220 43.3110 -73.4220") "</gml:exterior></gml:Polygon>",
			"<gml:posList>43.3110 -73.4220  43.1110 -73.3220 43.1110 -73.2220 43.3110 -73.4220</gml:posList>",
			43.211, -73.322, -1},
		{"<gml:Polygon " GML CRS
		 "><gml:exterior><gml:LinearRing><gml:pos>43.3110 -73.4220</gml:pos>"
		 "<gml:pos>43.1110 -73.3220</gml:pos><gml:pos>43.1110 -73.2220</gml:pos>"
		 "<gml:pos>43.3110 -73.4220</gml:pos></gml:LinearRing></gml:exterior></gml:Polygon>",
			"<gml:pos>43.1110 -73.3220</gml:pos><gml:pos>43.1110 -73.2220</gml:pos>",
			43.211, -73.322, -1},
		{"<gs:Sphere " GS CRS3 "><gml:pos>42.5463 -73.2512 26.3</gml:pos><gs:radius" M
		 ">850.24</gs:radius></gs:Sphere>",
			"<gml:pos>42.5463 -73.2512</gml:pos><gs:radius" M
			">850.24</gs:radius></gs:Circle>",
			42.5463, -73.2512, 850.24},
		{"<gs:Ellipsoid " GS CRS3
		 "><gml:pos>42.5463 -73.2512 26.3</gml:pos><gs:semiMajorAxis" M
		 ">7.7156</gs:semiMajorAxis><gs:semiMinorAxis" M
		 ">3.31</gs:semiMinorAxis><gs:verticalAxis" M
		 ">28.7</gs:verticalAxis><gs:orientation" DEG
		 ">142</gs:orientation></gs:Ellipsoid>",
			"7.7156", 42.5463, -73.2512, 7.7156},
		{"<gs:Prism " GS CRS3 "><gs:base><gml:Polygon><gml:exterior>" RING(
			 "42.5 -73.5 36.6 42.4 -73.6 36.6 42.4 -73.4 36.6 42.5 -73.5 36.6") "</gml:exterior></gml:Polygon></gs:base><gs:height" M
											    ">2.4</gs:height></gs:Prism>",
			"<gml:posList>42.5 -73.5 42.4 -73.6 42.4 -73.4 42.5 -73.5</gml:posList>",
			42.45, -73.5, -1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(T) / sizeof(*T); i++) {
		struct place p;

		assert_int_equal(shape(&p, T[i].xml), 0);
		check_requests(&p, T[i].text);
		assert_true(p.known);
		assert_true(fabs(p.spot.lat - T[i].lat) < 1e-9);
		assert_true(fabs(p.spot.lon - T[i].lon) < 1e-9);
		if (T[i].radius >= 0)
			assert_true(p.spot.radius == T[i].radius);
		else
			assert_true(p.spot.radius > 1000);
		free(p.xml);
	}
}

static void improper_shapes_are_refused(void **state)
{
	static const char *const T[] = {
		"<gml:Point " GML "/>",
		"<gml:Point " GML "><gml:pos>30.1</gml:pos></gml:Point>",
		"<gml:Point " GML "><gml:pos>30.1 -96 5</gml:pos></gml:Point>",
		"<gml:Point " GML "><gml:pos>91 0</gml:pos></gml:Point>",
		"<gml:Point " GML "><gml:pos>0 181</gml:pos></gml:Point>",
		"<gml:Point " GML "><gml:pos>nan 0</gml:pos></gml:Point>",
		"<gml:Point " GML "><gml:pos>0x10 0</gml:pos></gml:Point>",
		"<gml:Point " GML "><gml:pos>1e999 0</gml:pos></gml:Point>",
		"<gml:Point " GML " srsName=\"EPSG:3857\"><gml:pos>1 0</gml:pos></gml:Point>",
		"<gml:LineString " GML "><gml:posList>1 0 2 0</gml:posList></gml:LineString>",
		"<gs:Circle " GS "><gml:pos>1 0</gml:pos></gs:Circle>",
		"<gs:Circle " GS "><gml:pos>1 0</gml:pos><gs:radius>-5</gs:radius></gs:Circle>",
		"<gs:Circle " GS "><gml:pos>1 0</gml:pos><gs:radius" DEG
		">5</gs:radius></gs:Circle>",
		"<gml:Polygon " GML
		"><gml:exterior>" RING("1 0 2 0 1 0") "</gml:exterior></gml:Polygon>",
		"<gml:Polygon " GML
		"><gml:exterior>" RING("1 0 2 0 2 1 1") "</gml:exterior></gml:Polygon>",
		"<gml:Polygon " GML "/>",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(T) / sizeof(*T); i++) {
		xmlDoc *doc = xml_read(T[i], strlen(T[i]));
		struct place p = {.xml = NULL};

		if (doc)
			assert_true(place_shape(&p, xmlDocGetRootElement(doc)) < 0);
		assert_null(p.xml);
		xmlFreeDoc(doc);
	}
}

#define CIVIC                                                                                        \
	"<ca:civicAddress xmlns:ca=\"urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr\" "             \
	"xml:lang=\"en-US\"><ca:country>US</ca:country><ca:A1>TX</ca:A1><ca:RD>Texas &amp; "         \
	"Main</ca:RD><x:PN xmlns:x=\"urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr:ext\">7</x:PN>" \
	"</ca:civicAddress>"
#define POINT(pos) "<gml:Point " GML CRS "><gml:pos>" pos "</gml:pos></gml:Point>"
#define INFO(x)    "<gp:geopriv><gp:location-info>" x "</gp:location-info></gp:geopriv>"
#define PRESENCE(x)                                            \
	"<presence xmlns=\"urn:ietf:params:xml:ns:pidf\" "     \
	"xmlns:dm=\"urn:ietf:params:xml:ns:pidf:data-model\" " \
	"xmlns:gp=\"urn:ietf:params:xml:ns:pidf:geopriv10\" entity=\"pres:a@b\">" x "</presence>"
#define TUPLE(x) "<tuple id=\"t\"><status>" x "</status></tuple>"

static void civic_addresses_keep_language_and_extensions(void **state)
{
	static const char xml[] = PRESENCE(TUPLE(INFO(CIVIC)));
	struct places p = {.n = 0};

	(void)state;
	assert_int_equal(places_read(&p, xml, strlen(xml), PROFILE_GEODETIC), 1);
	assert_int_equal(p.v[0].profile, PROFILE_CIVIC);
	assert_false(p.v[0].known);
	check_requests(&p.v[0], "profile=\"civic\"><civicAddress ");
	check_requests(&p.v[0],
		"xml:lang=\"en-US\"><country>US</country><A1>TX</A1><RD>Texas &amp; Main</RD>");
	check_requests(&p.v[0],
		"<PN xmlns=\"urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr:ext\">7</PN>");
	places_free(&p);
}

/* RFC 5491 section 3.4, rule 8 */
static void the_best_location_comes_first(void **state)
{
	static const char all[] = PRESENCE(
		"<dm:person id=\"p\">" INFO(POINT("1 1")) "</dm:person>" TUPLE(INFO(POINT("2 2")))
			TUPLE(INFO("<unknown/>")) "<dm:device id=\"d\">" INFO(
				CIVIC POINT("3 3")) "</dm:device>");
	struct places p = {.n = 0};

	(void)state;
	assert_int_equal(places_read(&p, all, strlen(all), PROFILE_GEODETIC), 4);
	assert_true(p.v[0].spot.lat == 3);
	assert_int_equal(p.v[1].profile, PROFILE_CIVIC);
	assert_true(p.v[2].spot.lat == 2);
	assert_true(p.v[3].spot.lat == 1);
	places_free(&p);
	assert_int_equal(places_read(&p, all, strlen(all), PROFILE_CIVIC), 4);
	assert_int_equal(p.v[0].profile, PROFILE_CIVIC);
	places_free(&p);
	assert_int_equal(places_read(&p, "<a/>", 4, PROFILE_CIVIC), -EBADMSG);
	assert_int_equal(places_read(&p, "<a>", 3, PROFILE_CIVIC), -EBADMSG);
}

static void other_requests(void **state)
{
	char *s = lost_get_boundary("7214148E0433AFE2FA2D48003D31172E<&\"");

	(void)state;
	assert_true(valid(s));
	assert_false(valid("<findService xmlns=\"urn:ietf:params:xml:ns:lost1\"/>"));
	assert_non_null(strstr(s, "2E&lt;&amp;&quot;\""));
	free(s);
	s = held_request("sip:a&b@c", 1000);
	assert_non_null(strstr(s, "responseTime=\"1000\""));
	assert_non_null(strstr(s, "<uri>sip:a&amp;b@c</uri>"));
	free(s);
}

/* Bombs and external entities: a DOCTYPE is refused before any of it is read. */
static void doctypes_are_refused(void **state)
{
	static const char *const T[] = {
		"<!DOCTYPE a><a/>",
		"<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
		"<!DOCTYPE a SYSTEM \"http://127.0.0.1/x\"><a/>",
		"<?xml version=\"1.0\"?>\n<!-- x --><!DOCTYPE a [<!ENTITY b SYSTEM \"file:///etc/passwd\">]><a>&b;</a>",
		"<a>&b;</a>",
		"",
		"<a",
		"<a></b>",
	};
	char *deep = malloc(4 * 300 + 1), *many;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(T) / sizeof(*T); i++)
		assert_null(xml_read(T[i], strlen(T[i])));
	/* Deeper than libxml2 allows, so recursion ends */
	for (int i = 0; i < 300; i++)
		memcpy(deep + 3 * i, "<a>", 3);
	assert_null(xml_read(deep, 900));
	free(deep);
	many = malloc(4 * (XML_ELEMENTS_MAX + 10) + 16);
	n = (size_t)sprintf(many, "<a>");
	for (int i = 0; i < XML_ELEMENTS_MAX; i++, n += 4)
		memcpy(many + n, "<b/>", 4);
	n += (size_t)sprintf(many + n, "</a>");
	assert_null(xml_read(many, n));
	free(many);
}

/* libxml2 compares each attribute with all others of its element, and looks up each prefix among
 * all. A body of 64 KB took 0.1 s in a SIP worker, and an answer of 1 MB half a minute. */
static void many_attributes_are_refused(void **state)
{
	char *doc = malloc(200000), utf16[2 * 128];
	xmlDoc *read;
	size_t n;

	(void)state;
	for (uint32_t count = XML_ATTRIBUTES_MAX; count <= XML_ATTRIBUTES_MAX + 1; count++) {
		n = (size_t)sprintf(doc, "<a><b/><c");
		for (uint32_t i = 0; i < count; i++)
			n += (size_t)sprintf(doc + n, " a%u='>'", i);
		n += (size_t)sprintf(doc + n, "/></a>");
		read = xml_read(doc, n);
		assert_int_equal(read != NULL, count == XML_ATTRIBUTES_MAX);
		xmlFreeDoc(read);
	}
	n = (size_t)sprintf(doc, "<a>");
	for (uint32_t i = 0; i <= XML_NAMESPACES_MAX; i++)
		n += (size_t)sprintf(doc + n, "<b xmlns='%u'/>", i);
	n += (size_t)sprintf(doc + n, "</a>");
	assert_null(xml_read(doc, n));
	/* In other encodings these characters are other octets. */
	n = (size_t)sprintf(doc, "<?xml version='1.0' encoding='UTF-16'?><a b='c'/>");
	for (size_t i = 0; i < n; i++) {
		utf16[2 * i] = doc[i];
		utf16[2 * i + 1] = 0;
	}
	assert_null(xml_read(utf16, 2 * n));
	free(doc);
}

static void the_encoding_is_utf_8(void **state)
{
	static const char named[] = "<?xml version='1.0' encoding='IBM037'?><a b='\xc3\xa4'/>";
	static const char latin[] = "<?xml version='1.0' encoding='ISO-8859-1'?><a b='\xe4'/>";
	xmlDoc *doc = xml_read(named, sizeof(named) - 1);
	char *b = doc ? xml_attr(xmlDocGetRootElement(doc), "b") : NULL;

	(void)state;
	assert_non_null(b);
	assert_string_equal(b, "\xc3\xa4");
	free(b);
	xmlFreeDoc(doc);
	assert_null(xml_read(latin, sizeof(latin) - 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shape_arrives_as_it_came),
		cmocka_unit_test(improper_shapes_are_refused),
		cmocka_unit_test(civic_addresses_keep_language_and_extensions),
		cmocka_unit_test(the_best_location_comes_first),
		cmocka_unit_test(other_requests),
		cmocka_unit_test(doctypes_are_refused),
		cmocka_unit_test(many_attributes_are_refused),
		cmocka_unit_test(the_encoding_is_utf_8),
	};

	return cmocka_run_group_tests(tests, load_schema, free_schema);
}
