/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "xml.h"

#define SRS_2D "urn:ogc:def:crs:EPSG::4326"
#define SRS_3D "urn:ogc:def:crs:EPSG::4979"

/* The content of one <location-info> has at most so many alternatives. */
#define INFO_MAX 8

static const char *const PROFILE_NAMES[PROFILE_COUNT] = {
#define X(id, name) [PROFILE_##id] = name,
	PROFILES(X)
#undef X
};

const char *profile_name(enum profile p)
{
	return PROFILE_NAMES[p];
}

/* --- Shapes ----------------------------------------------------------------------------------- */

/* State of a shape's writer: its output, and the corners found. */
struct shape {
	struct buf out;
	struct geo_build corners;
	bool altitude; /* positions have three numbers, of which LoST takes two */
};

static const char *skip_blanks(const char *s)
{
	return s + strspn(s, " \t\r\n");
}

/* Copies positions. With altitudes only the texts of latitude and longitude. */
static int positions(struct shape *w, const char *s, int min, int max)
{
	double lat, lon, alt;
	int n = 0, err = 0;

	for (s = skip_blanks(s); *s && !err && n < max; n++) {
		const char *begin = s, *end;

		if (!geo_position(&s, &lat, &lon))
			return -EINVAL;
		end = s;
		if (w->altitude && !geo_number(&s, &alt))
			return -EINVAL;
		if (*s && s == skip_blanks(s))
			return -EINVAL;
		s = skip_blanks(s);
		err = geo_add(&w->corners, lat, lon);
		if (!w->altitude)
			end = s;
		buf_add(&w->out, begin, (size_t)(end - begin));
		if (w->altitude && *s)
			buf_text(&w->out, " ");
	}
	return err ? err : n < min || *s ? -EINVAL : 0;
}

/* <gml:pos> of a point or of a centre. */
static int pos(struct shape *w, const xmlNode *parent)
{
	char *s = xml_text(xml_child(parent, NS_GML, "pos"));
	int err = s ? 0 : -EINVAL;

	buf_text(&w->out, "<gml:pos>");
	if (s)
		err = positions(w, s, 1, 1);
	buf_text(&w->out, "</gml:pos>");
	free(s);
	return err;
}

static bool is_metres(const char *uom)
{
	return !uom || !strcmp(uom, "urn:ogc:def:uom:EPSG::9001");
}

static bool is_degrees(const char *uom)
{
	return !uom || !strcmp(uom, "urn:ogc:def:uom:EPSG::9102");
}

/* <gs:NAME uom="...">number</gs:NAME>, in metres, or in degrees if angle. */
static int measure(struct shape *w, const xmlNode *parent, const char *name, bool angle, double *v)
{
	const xmlNode *n = xml_child(parent, NS_GS, name);
	char *text = xml_text(n), *uom = xml_attr(n, "uom");
	const char *at = text;
	bool ok = text && (angle ? is_degrees(uom) : is_metres(uom)) && geo_number(&at, v) &&
		!*at && (angle || *v >= 0);

	if (ok) {
		buf_text(&w->out, "<gs:");
		buf_text(&w->out, name);
		buf_text(&w->out,
			angle ? " uom=\"urn:ogc:def:uom:EPSG::9102\">"
			      : " uom=\"urn:ogc:def:uom:EPSG::9001\">");
		buf_text(&w->out, text);
		buf_text(&w->out, "</gs:");
		buf_text(&w->out, name);
		buf_text(&w->out, ">");
	}
	free(text);
	free(uom);
	return ok ? 0 : -EINVAL;
}

/* One gml:LinearRing, as gml:posList or as several gml:pos. */
static int ring(struct shape *w, const xmlNode *owner)
{
	const xmlNode *linear = xml_child(owner, NS_GML, "LinearRing");
	const xmlNode *n = xml_child(linear, NS_GML, "posList");
	const char *name = n ? "posList" : "pos";
	int err = linear ? 0 : -EINVAL;

	buf_text(&w->out, "<gml:LinearRing>");
	if (!n)
		n = xml_child(linear, NS_GML, "pos");
	for (int i = 0; n && !err; n = xml_next(n, NS_GML, name), i++) {
		char *s = xml_text(n);

		buf_text(&w->out, "<gml:");
		buf_text(&w->out, name);
		buf_text(&w->out, ">");
		err = !s ? -EINVAL : name[3] ? positions(w, s, 3, 100000) : positions(w, s, 1, 1);
		buf_text(&w->out, "</gml:");
		buf_text(&w->out, name);
		buf_text(&w->out, ">");
		free(s);
	}
	buf_text(&w->out, "</gml:LinearRing>");
	return err ? err : geo_close(&w->corners);
}

/* The rings of a gml:Polygon: exterior, interior ... */
static int rings(struct shape *w, const xmlNode *polygon)
{
	const xmlNode *n = xml_child(polygon, NS_GML, "exterior");
	int err;

	if (!n)
		return -EINVAL;
	buf_text(&w->out, "<gml:exterior>");
	err = ring(w, n);
	buf_text(&w->out, "</gml:exterior>");
	for (n = xml_child(polygon, NS_GML, "interior"); n && !err;
		n = xml_next(n, NS_GML, "interior")) {
		buf_text(&w->out, "<gml:interior>");
		err = ring(w, n);
		buf_text(&w->out, "</gml:interior>");
	}
	return err;
}

/* --- One function per kind of shape ----------------------------------------------------------- */

/* Each writes the content of its element, and sets the radius of the circle around the shape. */
static int point(struct shape *w, const xmlNode *n, double *radius)
{
	*radius = 0;
	return pos(w, n);
}

static int circle(struct shape *w, const xmlNode *n, double *radius)
{
	int err = pos(w, n);

	return err ? err : measure(w, n, "radius", false, radius);
}

static int ellipse(struct shape *w, const xmlNode *n, double *radius)
{
	double minor, turn;
	int err = pos(w, n);

	err = err ? err : measure(w, n, "semiMajorAxis", false, radius);
	err = err ? err : measure(w, n, "semiMinorAxis", false, &minor);
	err = err ? err : measure(w, n, "orientation", true, &turn);
	if (!err && minor > *radius)
		*radius = minor;
	return err;
}

static int arc_band(struct shape *w, const xmlNode *n, double *radius)
{
	double inner, angle;
	int err = pos(w, n);

	err = err ? err : measure(w, n, "innerRadius", false, &inner);
	err = err ? err : measure(w, n, "outerRadius", false, radius);
	err = err ? err : measure(w, n, "startAngle", true, &angle);
	err = err ? err : measure(w, n, "openingAngle", true, &angle);
	if (!err && inner > *radius)
		*radius = inner;
	return err;
}

static int polygon(struct shape *w, const xmlNode *n, double *radius)
{
	*radius = -1;
	return rings(w, n);
}

/* The base of a prism is its outline on the map. */
static int prism(struct shape *w, const xmlNode *n, double *radius)
{
	*radius = -1;
	return rings(w, xml_child(xml_child(n, NS_GS, "base"), NS_GML, "Polygon"));
}

static const struct kind {
	const char *ns, *name;
	const char *prefix, *as; /* namespace prefix, and name in LoST */
	int (*write)(struct shape *w, const xmlNode *n, double *radius);
	bool solid; /* always has altitudes */
} KINDS[] = {
	{NS_GML, "Point", "gml", "Point", point, false},
	{NS_GML, "Polygon", "gml", "Polygon", polygon, false},
	{NS_GS, "Circle", "gs", "Circle", circle, false},
	{NS_GS, "Ellipse", "gs", "Ellipse", ellipse, false},
	{NS_GS, "ArcBand", "gs", "ArcBand", arc_band, false},
	{NS_GS, "Sphere", "gs", "Circle", circle, true},
	{NS_GS, "Ellipsoid", "gs", "Ellipse", ellipse, true},
	{NS_GS, "Prism", "gs", "Polygon", prism, true},
};

static const struct kind *kind_of(const xmlNode *n)
{
	for (size_t i = 0; i < sizeof(KINDS) / sizeof(*KINDS); i++)
		if (xml_is(n, KINDS[i].ns, KINDS[i].name))
			return &KINDS[i];
	return NULL;
}

/* Whether positions have an altitude; -EINVAL: a reference system that is not WGS 84. */
static int dimensions(const struct kind *k, const xmlNode *n)
{
	char *srs = xml_attr(n, "srsName");
	int result = !srs              ? k->solid
		: !strcmp(srs, SRS_2D) ? 0
		: !strcmp(srs, SRS_3D) ? 1
				       : -EINVAL;

	free(srs);
	return result;
}

static void element(struct buf *b, const struct kind *k, bool end)
{
	bool gml = !strcmp(k->as, "Point") || !strcmp(k->as, "Polygon");

	buf_text(b, end ? "</" : "<");
	buf_text(b, gml ? "gml:" : "gs:");
	buf_text(b, k->as);
	if (!end) {
		buf_text(b, " xmlns:gml=\"" NS_GML "\"");
		if (!gml)
			buf_text(b, " xmlns:gs=\"" NS_GS "\"");
		buf_text(b, " srsName=\"" SRS_2D "\"");
	}
	buf_text(b, ">");
}

int place_shape(struct place *p, const xmlNode *n)
{
	const struct kind *k = kind_of(n);
	struct shape w = {.corners = {0}};
	double radius = 0;
	int err = k ? dimensions(k, n) : -EINVAL;

	if (err < 0)
		return err;
	w.altitude = err > 0;
	*p = (struct place){.profile = PROFILE_GEODETIC};
	element(&w.out, k, false);
	err = k->write(&w, n, &radius);
	element(&w.out, k, true);
	if (!err && w.out.failed)
		err = -ENOMEM;
	if (!err && radius >= 0) {
		p->known = true;
		p->spot = (struct spot){w.corners.at[0], w.corners.at[1], radius};
	} else if (!err) {
		p->known = geo_around(&w.corners, &p->spot);
	}
	geo_build_free(&w.corners);
	if (err)
		buf_free(&w.out);
	else
		p->xml = buf_take(&w.out);
	return err ? err : p->xml ? 0 : -ENOMEM;
}

/* --- Civic addresses -------------------------------------------------------------------------- */

static void attribute(struct buf *b, const char *name, xmlChar *value)
{
	if (value) {
		buf_text(b, " ");
		buf_text(b, name);
		buf_text(b, "=\"");
		buf_xml(b, (const char *)value);
		buf_text(b, "\"");
	}
	xmlFree(value);
}

static xmlChar *language(const xmlNode *n)
{
	return xmlGetNsProp(n, (const xmlChar *)"lang", XML_XML_NAMESPACE);
}

int place_civic(struct place *p, const xmlNode *address)
{
	struct buf b = {0};
	int n = 0;

	if (!xml_is(address, NS_CIVIC, "civicAddress"))
		return -EINVAL;
	*p = (struct place){.profile = PROFILE_CIVIC};
	buf_text(&b, "<civicAddress xmlns=\"" NS_CIVIC "\"");
	attribute(&b, "xml:lang", language(address));
	buf_text(&b, ">");
	for (const xmlNode *e = xml_first_element(address); e; e = xml_next_element(e)) {
		const char *name = (const char *)e->name;
		char *text = xml_text(e);
		bool own = xml_is(e, NS_CIVIC, name);

		/* Extensions (RFC 6848) have a namespace of their own. */
		if (text && e->ns && !xml_first_element(e)) {
			buf_text(&b, "<");
			buf_text(&b, name);
			if (!own)
				attribute(&b, "xmlns", xmlStrdup(e->ns->href));
			attribute(&b, "xml:lang", language(e));
			buf_text(&b, ">");
			buf_xml(&b, text);
			buf_text(&b, "</");
			buf_text(&b, name);
			buf_text(&b, ">");
			n++;
		}
		free(text);
	}
	buf_text(&b, "</civicAddress>");
	if (!n) {
		buf_free(&b);
		return -EINVAL;
	}
	p->xml = buf_take(&b);
	return p->xml ? 0 : -ENOMEM;
}

/* --- PIDF-LO ---------------------------------------------------------------------------------- */

static void append(struct places *p, struct place *one)
{
	if (p->n < PLACES_MAX)
		p->v[p->n++] = *one;
	else
		free(one->xml);
}

/* The alternatives of one <location-info>: those of the preferred profile first. */
static void read_info(struct places *p, const xmlNode *info, enum profile prefer)
{
	for (int pass = 0; pass < 2; pass++) {
		int n = 0;

		for (const xmlNode *e = xml_first_element(info); e && n < INFO_MAX;
			e = xml_next_element(e), n++) {
			bool civic = xml_is(e, NS_CIVIC, "civicAddress");
			struct place one;

			if ((civic == (prefer == PROFILE_CIVIC)) != (pass == 0))
				continue;
			if (!(civic ? place_civic(&one, e) : place_shape(&one, e)))
				append(p, &one);
		}
	}
}

/* All <geopriv> in elements of this name; those of tuples are in their <status>. */
static void read_holders(struct places *p, const xmlNode *presence, const char *ns,
	const char *name, enum profile prefer)
{
	for (const xmlNode *h = xml_child(presence, ns, name); h && p->n < PLACES_MAX;
		h = xml_next(h, ns, name)) {
		const xmlNode *in = xml_child(h, NS_PIDF, "status");

		for (const xmlNode *g = xml_child(in ? in : h, NS_GP, "geopriv");
			g && p->n < PLACES_MAX; g = xml_next(g, NS_GP, "geopriv"))
			read_info(p, xml_child(g, NS_GP, "location-info"), prefer);
	}
}

int places_read(struct places *p, const char *s, size_t len, enum profile prefer)
{
	xmlDoc *doc = xml_read(s, len);
	const xmlNode *presence = doc ? xmlDocGetRootElement(doc) : NULL;
	int before = p->n;

	if (presence && !xml_is(presence, NS_PIDF, "presence"))
		presence = xml_child(presence, NS_PIDF, "presence"); /* a HELD response */
	if (presence) {
		read_holders(p, presence, NS_DM, "device", prefer);
		read_holders(p, presence, NS_PIDF, "tuple", prefer);
		read_holders(p, presence, NS_DM, "person", prefer);
	}
	xmlFreeDoc(doc);
	return presence ? p->n - before : -EBADMSG;
}

void places_free(struct places *p)
{
	for (int i = 0; i < p->n; i++)
		free(p->v[i].xml);
	p->n = 0;
}

/* --- Service boundaries ----------------------------------------------------------------------- */

static bool read_polygons(struct shape *w, const xmlNode *n, int depth)
{
	if (xml_is(n, NS_GML, "Polygon"))
		return !rings(w, n);
	if (depth > 4)
		return false;
	for (const xmlNode *e = xml_first_element(n); e; e = xml_next_element(e))
		if (!read_polygons(w, e, depth + 1))
			return false;
	return true;
}

struct area *boundary_area(const xmlNode *boundary)
{
	struct shape w = {.corners = {0}};
	struct area *a = NULL;

	/* 2D only, as the profile geodetic-2d says. */
	if (read_polygons(&w, boundary, 0))
		a = geo_area(&w.corners);
	geo_build_free(&w.corners);
	buf_free(&w.out);
	return a;
}
