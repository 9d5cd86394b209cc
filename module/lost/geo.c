/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "geo.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX    100000
#define RINGS_MAX     4096
#define LAT_MAX       85.0     /* degrees; closer to a pole nothing is judged */
#define RADIUS_MAX    100000.0 /* metres */
#define METRES_DEGREE 111700.0 /* of latitude, not less than the true length anywhere */
#define SHORT_DEGREE  110500.0 /* not more than the true length anywhere */
#define RADIAN        (3.14159265358979323846 / 180.0)
#define NEAR          0.1 /* metres: so close to an edge it is uncertain which side it is */

bool geo_number(const char **s, double *out)
{
	const char *p = *s;
	char copy[64], *end;
	size_t n;

	while (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n')
		p++;
	n = strspn(p, "0123456789+-.eE");
	if (!n || n >= sizeof(copy))
		return false;
	memcpy(copy, p, n);
	copy[n] = 0;
	*out = strtod(copy, &end);
	if (*end || !isfinite(*out))
		return false;
	*s = p + n;
	return true;
}

bool geo_position(const char **s, double *lat, double *lon)
{
	return geo_number(s, lat) && geo_number(s, lon) && *lat >= -90 && *lat <= 90 &&
		*lon >= -180 && *lon <= 180;
}

int geo_add(struct geo_build *b, double lat, double lon)
{
	uint32_t max = b->points_max ? b->points_max : POINTS_MAX;

	if (b->points >= max)
		return -E2BIG;
	if (b->points == b->points_size) {
		uint32_t size = b->points_size ? b->points_size * 2 : 64;
		double *p = realloc(b->at, size * 2 * sizeof(*p));

		if (!p)
			return -ENOMEM;
		b->at = p;
		b->points_size = size;
	}
	b->at[2 * b->points] = lat;
	b->at[2 * b->points + 1] = lon;
	b->points++;
	return 0;
}

int geo_close(struct geo_build *b)
{
	uint32_t begin = b->rings ? b->end[b->rings - 1] : 0, n = b->points - begin;

	if (n > 1) {
		const double *first = b->at + 2 * begin, *last = b->at + 2 * (b->points - 1);

		/* GML repeats the first corner at the end. */
		if (first[0] == last[0] && first[1] == last[1]) {
			b->points--;
			n--;
		}
	}
	if (n < 3)
		return -EINVAL;
	if (b->rings >= RINGS_MAX)
		return -E2BIG;
	if (b->rings == b->rings_size) {
		uint32_t size = b->rings_size ? b->rings_size * 2 : 8;
		uint32_t *p = realloc(b->end, size * sizeof(*p));

		if (!p)
			return -ENOMEM;
		b->end = p;
		b->rings_size = size;
	}
	b->end[b->rings++] = b->points;
	return 0;
}

void geo_build_free(struct geo_build *b)
{
	free(b->at);
	free(b->end);
	*b = (struct geo_build){0};
}

static double *corners(struct area *a)
{
	return (double *)(a + 1);
}

static const double *corners_of(const struct area *a)
{
	return (const double *)(a + 1);
}

static const uint32_t *ends_of(const struct area *a)
{
	const void *end = corners_of(a) + 2 * (size_t)a->points;

	return end;
}

struct area *geo_area(const struct geo_build *b)
{
	size_t size = sizeof(struct area) + (size_t)b->points * 2 * sizeof(double) +
		(size_t)b->rings * sizeof(uint32_t);
	struct area *a = b->rings && b->end[b->rings - 1] == b->points ? malloc(size) : NULL;

	if (!a)
		return NULL;
	*a = (struct area){.south = 90, .north = -90, .west = 180, .east = -180};
	a->rings = b->rings;
	a->points = b->points;
	a->size = (uint32_t)size;
	memcpy(corners(a), b->at, (size_t)b->points * 2 * sizeof(double));
	memcpy(corners(a) + 2 * (size_t)b->points, b->end, (size_t)b->rings * sizeof(uint32_t));
	for (uint32_t i = 0; i < b->points; i++) {
		a->south = fmin(a->south, b->at[2 * i]);
		a->north = fmax(a->north, b->at[2 * i]);
		a->west = fmin(a->west, b->at[2 * i + 1]);
		a->east = fmax(a->east, b->at[2 * i + 1]);
	}
	if (a->south < -LAT_MAX || a->north > LAT_MAX || a->east - a->west >= 180) {
		free(a);
		return NULL;
	}
	return a;
}

/* The edge from p to q is too close to s to be sure of the side. All in degrees; distances in a
 * plane around s, whose errors the margins cover. */
static bool near_edge(const double *p, const double *q, const struct spot *s, double cos_lat)
{
	double span = (q[1] - p[1]) * RADIAN;
	/* A geodesic departs at most so far from the straight line on the map. */
	double bend = span * span / 8 * METRES_DEGREE / RADIAN;
	double reach = s->radius * 1.02 + bend + NEAR;
	double kx = SHORT_DEGREE * cos_lat, ky = SHORT_DEGREE;
	double px = (p[1] - s->lon) * kx, py = (p[0] - s->lat) * ky;
	double qx = (q[1] - s->lon) * kx, qy = (q[0] - s->lat) * ky;
	double dx = qx - px, dy = qy - py, len = dx * dx + dy * dy, t;

	if (fmin(px, qx) > reach || fmax(px, qx) < -reach || fmin(py, qy) > reach ||
		fmax(py, qy) < -reach)
		return false;
	t = len > 0 ? -(px * dx + py * dy) / len : 0;
	t = fmin(1, fmax(0, t));
	px += t * dx;
	py += t * dy;
	return px * px + py * py <= reach * reach;
}

bool geo_covers(const struct area *a, const struct spot *s)
{
	const double *at = corners_of(a);
	const uint32_t *end = ends_of(a);
	double cos_lat;
	bool inside = false;
	uint32_t begin = 0;

	if (!(s->lat > a->south && s->lat < a->north && s->lon > a->west && s->lon < a->east))
		return false;
	if (s->radius > RADIUS_MAX)
		return false;
	/* The smallest scale within reach of the spot. */
	cos_lat = cos(fmin(89, fabs(s->lat) + s->radius / SHORT_DEGREE) * RADIAN);
	for (uint32_t r = 0; r < a->rings; begin = end[r++]) {
		const double *p = at + 2 * (size_t)(end[r] - 1);

		for (uint32_t i = begin; i < end[r]; i++) {
			const double *q = at + 2 * (size_t)i;

			if (near_edge(p, q, s, cos_lat))
				return false;
			if ((p[0] > s->lat) != (q[0] > s->lat) &&
				s->lon < (q[1] - p[1]) * (s->lat - p[0]) / (q[0] - p[0]) + p[1])
				inside = !inside;
			p = q;
		}
	}
	return inside;
}

bool geo_around(const struct geo_build *b, struct spot *s)
{
	double south = 90, north = -90, west = 180, east = -180, x, y;

	for (uint32_t i = 0; i < b->points; i++) {
		south = fmin(south, b->at[2 * i]);
		north = fmax(north, b->at[2 * i]);
		west = fmin(west, b->at[2 * i + 1]);
		east = fmax(east, b->at[2 * i + 1]);
	}
	if (!b->points || north > LAT_MAX || south < -LAT_MAX || east - west > 5)
		return false;
	s->lat = (south + north) / 2;
	s->lon = (west + east) / 2;
	y = (north - south) / 2 * METRES_DEGREE;
	x = (east - west) / 2 * METRES_DEGREE *
		cos((south > 0                  ? south
				    : north < 0 ? north
						: 0) *
			RADIAN);
	s->radius = sqrt(x * x + y * y);
	return s->radius <= RADIUS_MAX;
}

uint32_t area_points(const struct area *a)
{
	return a->points;
}
