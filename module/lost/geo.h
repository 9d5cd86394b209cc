/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Areas of WGS 84 latitudes and longitudes, in degrees, and whether they certainly contain a place.
 * "Certainly": a server may take an edge for a straight line on the map or for a geodesic. Where
 * these differ, the answer is no. */
#ifndef LOST_GEO_H
#define LOST_GEO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place, or the circle around an uncertain one. */
struct spot {
	double lat, lon;
	double radius; /* metres; 0: a point */
};

/* One block of memory: the arrays follow the struct. Rings of several polygons and holes may be
 * mixed: a spot is inside if it is inside an odd number of rings. */
struct area {
	double south, north, west, east;
	uint32_t rings, points;
	uint32_t size; /* bytes of the block */
	uint32_t unused;
};

/* Collects rings. Zero-initialise it; free it with geo_build_free(). */
struct geo_build {
	double *at; /* latitude, longitude, ... */
	uint32_t *end;
	uint32_t points, rings, points_size, rings_size, points_max;
};

/* Reads the next number (XML double without INF and NaN) at *s, and moves *s past it. */
bool geo_number(const char **s, double *out);
/* Reads a latitude and a longitude; blanks precede. */
bool geo_position(const char **s, double *lat, double *lon);

/* Both: 0 or negative errno. points_max of the builder bounds the sum; 0: 100000. */
int geo_add(struct geo_build *b, double lat, double lon);
/* Ends the ring. -EINVAL: fewer than three corners. */
int geo_close(struct geo_build *b);
void geo_build_free(struct geo_build *b);
/* The area, which the caller frees; NULL: no ring, no memory, an edge over the antimeridian, or an
 * area close to a pole. */
struct area *geo_area(const struct geo_build *b);

bool geo_covers(const struct area *a, const struct spot *s);
/* The smallest latitude-longitude box's circumscribed circle; false: too large, or no corner. */
bool geo_around(const struct geo_build *b, struct spot *s);
uint32_t area_points(const struct area *a);

#endif
