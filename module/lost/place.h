/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locations: from PIDF-LO (RFC 4119, 5139, 5491) to the content of LoST's <location> (RFC 5222
 * section 12). Numbers keep their text, so they arrive exactly as they came. */
#ifndef LOST_PLACE_H
#define LOST_PLACE_H

#include "geo.h"

#include <libxml/tree.h>

#define PLACES_MAX 4

/* X(id, LoST's name of the profile) */
#define PROFILES(X)                \
	X(GEODETIC, "geodetic-2d") \
	X(CIVIC, "civic")

enum profile {
#define X(id, name) PROFILE_##id,
	PROFILES(X)
#undef X
		PROFILE_COUNT
};

struct place {
	enum profile profile;
	char *xml;  /* the shape or the address, as XML; free() */
	bool known; /* spot is the place, or a circle around all of it */
	struct spot spot;
};

struct places {
	struct place v[PLACES_MAX];
	int n;
};

const char *profile_name(enum profile p);

/* Reads one shape: Point, Circle, Ellipse, Polygon, ArcBand; Sphere, Ellipsoid and Prism become
 * their two-dimensional counterparts, because LoST has no others. 0; -EINVAL: none of these, or
 * with improper numbers; -ENOMEM. */
int place_shape(struct place *p, const xmlNode *shape);
/* Reads a civic address. The caller frees p->xml. */
int place_civic(struct place *p, const xmlNode *address);

/* Appends the locations of a PIDF-LO, best first (RFC 5491 section 3.4, rule 8): those of devices,
 * of tuples, of persons. Of one <location-info> the preferred profile comes first. Returns their
 * number, or -EBADMSG: not PIDF. */
int places_read(struct places *p, const char *s, size_t len, enum profile prefer);
void places_free(struct places *p);

/* Reads the polygons of a <serviceBoundary> element: gml:Polygon, also in MultiSurface or
 * MultiPolygon, with holes. NULL: none that can be judged. The caller frees it. */
struct area *boundary_area(const xmlNode *boundary);

#endif
