# SPDX-License-Identifier: GPL-2.0-or-later
"""Location shapes (RFC 5491 5.2, RFC 5222 12.2) as geometries in longitude and latitude.

Curved shapes become polygons with CORNERS corners per full circle. Distances use the ellipsoid of WGS 84 at the shape's centre. All
storages get the same polygon, so that they agree about overlaps."""
import math

from shapely import affinity
from shapely.geometry import LineString, MultiLineString, MultiPoint, Point, Polygon, box
from shapely.ops import unary_union
from shapely.validation import make_valid

CORNERS = 64
MAX_CORNERS = 2000  # of a polygon in a request
MAX_RADIUS = 1e6  # m; beyond it the approximation at the centre is too coarse
MAX_SPAN = 4.0  # degrees; larger shapes are replaced by about SAMPLES points in them
SAMPLES, LINES = 400, 40
SEMI_MAJOR, ECCENTRICITY2 = 6378137.0, 0.00669437999014
WORLD = box(-180, -90, 180, 90)


class BadShape(Exception):
    """The location cannot be used; the text goes into <locationInvalid>."""


def check(lat, lon):
    if not (-90 <= lat <= 90 and -180 <= lon <= 180):
        raise BadShape("a latitude or longitude is out of range")


def numbers(text, limit=3 * MAX_CORNERS):
    parts = (text or "").split(None, limit)
    if len(parts) > limit:
        raise BadShape("the shape has too many corners")
    try:
        values = [float(p) for p in parts]
    except ValueError:
        raise BadShape("a coordinate is not a number") from None
    if not all(map(math.isfinite, values)):
        raise BadShape("a coordinate is not a number")
    return values


def metres_per_degree(lat):
    """Length of a degree of longitude and of latitude."""
    sine = math.sin(math.radians(lat))
    w = 1 - ECCENTRICITY2 * sine * sine
    north = SEMI_MAJOR * (1 - ECCENTRICITY2) / w ** 1.5
    east = SEMI_MAJOR / math.sqrt(w) * math.cos(math.radians(lat))
    return math.radians(max(east, 1.0)), math.radians(north)


def placed(lat, lon, offsets):
    """Corners at these offsets (east, north) in metres from the centre, as a valid geometry within the world."""
    east, north = metres_per_degree(lat)
    return wrapped([(lon + x / east, lat + y / north) for x, y in offsets])


def wrapped(corners):
    """A ring of few corners that may cross the antimeridian or a pole, cut at them."""
    shape = Polygon(corners)
    return within_world(shape if shape.is_valid else make_valid(shape))


def within_world(shape):
    """A shape cut at the antimeridian and the poles."""
    low, _, high, _ = shape.bounds
    if low < -180 or high > 180:
        shape = unary_union([affinity.translate(shape, xoff=x) for x in (-360, 0, 360)])
    return shape.intersection(WORLD)


def point(lat, lon):
    check(lat, lon)
    return Point(lon, lat)


def polygon(corners):
    """corners: (latitude, longitude), the first one repeated at the end. Of a ring that crosses itself the convex hull counts: MAX_CORNERS
    lines can meet in a million points, and to compute these takes minutes."""
    if len(corners) < 4 or corners[0] != corners[-1]:
        raise BadShape("the ring of a polygon is not closed")
    if len(corners) > MAX_CORNERS:
        raise BadShape("the shape has too many corners")
    for lat, lon in corners:
        check(lat, lon)
    lons = [corners[0][1]]
    for _, lon in corners[1:]:  # the shorter way around the world
        lons.append(lon + 360 * round((lons[-1] - lon) / 360))
    ring = [(lon, lat) for lon, (lat, _) in zip(lons, corners)]
    if ring[0] != ring[-1]:
        raise BadShape("the polygon contains a pole")
    shape = Polygon(ring)
    return within_world(shape if shape.is_valid else shape.convex_hull)


def bounded(name, metres, least=0.0):
    if not least <= metres <= MAX_RADIUS:
        raise BadShape(f"the {name} is out of range")
    return metres


def ellipse(lat, lon, major, minor, orientation):
    """Semi-axes in metres; orientation of the major one in degrees clockwise from north."""
    check(lat, lon)
    bounded("semi-major axis", major)
    bounded("semi-minor axis", minor)
    if not major or not minor:
        return Point(lon, lat)
    turn = math.radians(orientation)
    offsets = []
    for i in range(CORNERS):
        angle = 2 * math.pi * i / CORNERS
        along, across = major * math.cos(angle), minor * math.sin(angle)
        offsets.append((along * math.sin(turn) + across * math.cos(turn), along * math.cos(turn) - across * math.sin(turn)))
    return placed(lat, lon, offsets)


def circle(lat, lon, radius):
    return ellipse(lat, lon, radius, radius, 0)


def arc_band(lat, lon, inner, outer, start, opening):
    """Between two radii in metres, from the start angle on, clockwise from north, in degrees."""
    check(lat, lon)
    bounded("outer radius", outer)
    bounded("inner radius", inner)
    if inner > outer or not 0 <= opening <= 360:
        raise BadShape("the arc band has no area")
    if not outer or not opening:
        return Point(lon, lat)
    steps = max(2, math.ceil(CORNERS * opening / 360))
    angles = [math.radians(start + opening * i / steps) for i in range(steps + 1)]
    far = [(outer * math.sin(a), outer * math.cos(a)) for a in angles]
    near = [(inner * math.sin(a), inner * math.cos(a)) for a in reversed(angles)] if inner else [(0.0, 0.0)]
    return placed(lat, lon, far + near)


def span(shape):
    """Width or height in degrees, of the largest part."""
    return max(max(high - low, north - south) for low, south, high, north in (p.bounds for p in getattr(shape, "geoms", [shape])))


def samples(part, count):
    """Points of a polygon, evenly distributed: on lines across its longer side, at equal distances along them."""
    low, south, high, north = part.bounds
    places = [(i + 0.5) / LINES for i in range(LINES)]
    if high - low > north - south:
        lines = [((low + p * (high - low), south), (low + p * (high - low), north)) for p in places]
    else:
        lines = [((low, south + p * (north - south)), (high, south + p * (north - south))) for p in places]
    cuts = [c for c in getattr(part.intersection(MultiLineString(lines)), "geoms", []) if c.length]
    step = sum(c.length for c in cuts) / count
    found, place = [], step / 2
    for cut in cuts:
        while place < cut.length:
            found.append(cut.interpolate(place))
            place += step
        place -= cut.length
    return found or [part.representative_point()]


def many_points(shape):
    """Replaces a large shape by about SAMPLES points, spread over its parts by area."""
    parts = sorted(getattr(shape, "geoms", [shape]), key=lambda p: -p.area)[:SAMPLES]
    whole = sum(p.area for p in parts)
    if not whole:
        return shape.representative_point()
    return MultiPoint([p for part in parts for p in samples(part, max(1, round(SAMPLES * part.area / whole)))])


def simplest(shape):
    """Replaces a shape without area by a point, so that it still has an answer, and a very large one by many points. Overlaps with all
    boundaries took a second for the outline of a state. The boundary with most of the points has the greatest overlap, or nearly so."""
    if shape.is_empty:
        raise BadShape("the shape is empty")
    if span(shape) > MAX_SPAN:
        return many_points(shape)
    if shape.geom_type != "Point" and shape.area == 0:
        return shape.interpolate(0.5, normalized=True) if isinstance(shape, LineString) else shape.representative_point()
    return shape
