# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests and responses of RFC 5222. Each test asks PostGIS, SpatiaLite and the index in memory, which must answer alike. Every message
is validated by the schema of RFC 5222."""
import json
import random
import tempfile

from shapely.geometry import Polygon, box
from shapely.ops import unary_union

from lost_server import dataset, messages, shapes
from lostrig import L, answer, circle, civic, cluster, find, location, measured, point, polygon, request, said, three, uri, valid

PSAP = "urn:nena:service:sos.psap"
SQUARE = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]


def square(west, south, size=10):
    return {"type": "Polygon", "coordinates": [[[west + x * size / 10, south + y * size / 10] for x, y in SQUARE]]}


def feature(geometry, service, source_id, **more):
    return {"type": "Feature", "geometry": geometry, "properties": {"service": service, "sourceId": source_id, "uris": [f"sips:{source_id}@psap.example"], **more}}


# Two squares side by side at the equator; west has a hole. Longitudes 0 to 10 and 10 to 20.
HOLED = {"type": "MultiPolygon", "coordinates": [[[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]], [[4, 4], [4, 6], [6, 6], [6, 4], [4, 4]]]]}
ADDRESSES = [{"country": "US", "A1": "TX"}, {"country": "US", "A1": "TX", "A3": "Austin", "RD": "Main", "HNO": [1, 99]}]
SMALL = {"type": "FeatureCollection", "features": [
    feature(HOLED, ["urn:service:sos", PSAP], "west", name="West & Co", number="911", ttl=60, civic=ADDRESSES[:1]),
    feature(square(10, 0), "urn:service:sos", "east", ttl="NO-CACHE", civic=ADDRESSES[1:]),
    feature(square(10, 0), "urn:service:sos.police", "east-police", ttl="NO-EXPIRATION", lang="de", name="Polizei Süd"),
    feature(square(170, -10), "urn:service:sos", "edge"),
    feature(None, PSAP, "default", default=True),
]}


async def each(check, data=None):
    """Runs check(storage) for the three, on the same data."""
    with tempfile.TemporaryDirectory(prefix="xcipher-lost-") as folder:
        found = await three(cluster().url, folder, json.dumps(data or SMALL))
        results = [await check(storage) for storage in found]
        for storage in found[:2]:
            await storage.close()
    assert results[0] == results[1] == results[2], results
    return results[0]


SOS = "urn:service:sos"
POLICE = "urn:service:sos.police"
# (request, sourceId of the mapping, errors and warnings)
QUERIES = [
    (find(point(5, 2), SOS), "west", []),
    (find(point(5, 12), SOS), "east", []),
    (find(point(5, 10), SOS), "west", []),                                          # on both borders: the first
    (find(point(5, 5), SOS), None, ["notFound"]),                                  # in the hole
    (find(point(5, 5)), "default", ["defaultMappingReturned"]),
    (find(point(5, 12), POLICE), "east-police", []),
    (find(point(5, 2), POLICE), "west", ["serviceSubstitution"]),
    (find(point(5, 2), POLICE + ".x.y"), "west", ["serviceSubstitution"]),
    (find(point(5, 2), "urn:service:counseling"), None, ["serviceNotImplemented"]),
    (find(circle(2, 9.9, 50000), SOS), "west", []),
    (find(circle(2, 10.1, 50000), SOS), "east", []),
    (find(circle(2, 10.1, 0), SOS), "east", []),
    (find(circle(-1, 5, 200), SOS), None, ["notFound"]),
    (find(circle(0, 179.99, 5000), SOS), "edge", []),                              # beyond the antimeridian
    (find(polygon((1, 9), (1, 10.5), (2, 10.5), (2, 9), (1, 9)), SOS), "west", []),
    (find(polygon((1, 9.6), (1, 11), (2, 11), (2, 9.6), (1, 9.6), listed=True), SOS), "east", []),
    (find(polygon((1, 179), (1, -179.5), (-1, -179.5), (-1, 179), (1, 179)), SOS), "edge", []),
    (find(polygon((1, 9), (2, 10.5), (2, 9), (1, 10.5), (1, 9)), SOS), "west", []),        # crosses itself
    (find(measured("Ellipse", 2, 9.9, semiMajorAxis=60000, semiMinorAxis=1000, orientation=0), SOS), "west", []),
    (find(measured("Ellipse", 2, 10.05, semiMajorAxis=60000, semiMinorAxis=1000, orientation=90), SOS), "east", []),
    (find(measured("ArcBand", 2, 10, innerRadius=1000, outerRadius=20000, startAngle=30, openingAngle=120), SOS), "east", []),
    (find(measured("ArcBand", 2, 10, innerRadius=1000, outerRadius=20000, startAngle=200, openingAngle=120), SOS), "west", []),
    (find(civic(country="us", A1="tx", A3="Dallas"), SOS), "west", []),
    (find(civic(country="US", A1="TX", A3="Austin", RD="main", HNO="17"), SOS), "east", []),
    (find(civic(country="US", A1="TX", A3="Austin", RD="Main", HNO="170"), SOS), "west", []),
    (find(civic(country="DE"), SOS), None, ["notFound"]),
    (find(civic(A1="TX"), SOS), None, ["locationInvalid"]),
    (find(civic(country="US", A1="TX"), POLICE, validateLocation="true"), "west", ["serviceSubstitution"]),
    (find(point(95, 2), SOS), None, ["locationInvalid"]),
    (find(point("NaN", 2), SOS), None, ["locationInvalid"]),
    (find(point("5", ""), SOS), None, ["locationInvalid"]),
    (find(point(5, 2).replace("4326", "3857"), SOS), None, ["locationInvalid"]),
    (find(point("5", "2 17").replace("4326", "4979"), SOS), "west", []),
    (find(circle(5, 2, 9e9), SOS), None, ["locationInvalid"]),
    (find(circle(5, 2, 10).replace("9001", "9999"), SOS), None, ["locationInvalid"]),
    (find(polygon((1, 9), (1, 10.5), (2, 10.5), (2, 9)), SOS), None, ["locationInvalid"]),
    (find(polygon(*[(1, 9)] * 3000), SOS), None, ["locationInvalid"]),
    (request("findService", '<location id="a" profile="x-odd"><x xmlns="y"/></location>', location(point(5, 12)), service=SOS), "east", []),
    (request("findService", '<location id="a" profile="x-odd"><x xmlns="y"/></location>', service=SOS), None, ["locationProfileUnrecognized"]),
    (request("findService", location(point(5, 2)), service=SOS, via=["a.example", "lost.test.example"]), None, ["loop"]),
    (request("getServiceBoundary", key="nobody"), None, ["notFound"]),
]


async def test_queries_have_their_answers():
    async def check(storage):
        texts = []
        for text, mapping, kinds in QUERIES:
            reply = await answer(storage, text)
            assert said(reply) == (mapping, kinds), (storage.name, text, reply)
            texts.append(reply)
        return texts
    await each(check)


async def test_parts_of_a_response():
    async def check(storage):
        reply = valid(await answer(storage, request("findService", location(point(5, 2), "a&amp;b"), service=SOS, via=["resolver.example"])))
        mapping = reply.find(L + "mapping")
        assert mapping.get("expires") == "2027-01-15T08:01:00Z" and mapping.get("source") == "lost.test.example"
        assert mapping.findtext(L + "displayName") == "West & Co" and mapping.findtext(L + "serviceNumber") == "911"
        assert [v.get("source") for v in reply.iter(L + "via")] == ["resolver.example", "lost.test.example"]
        assert reply.find(L + "locationUsed").get("id") == "a&b"
        key = mapping.find(L + "serviceBoundaryReference").get("key")
        boundary = await answer(storage, request("getServiceBoundary", key=key))
        by_value = await answer(storage, find(point(5, 2), SOS, serviceBoundary="value"))
        part = boundary[boundary.index("<serviceBoundary "):boundary.index("</serviceBoundary>")]
        assert part in by_value and "<gml:interior>" in part and "0.0 10.0" in part, part
        german = await answer(storage, find(point(5, 12), POLICE))
        assert 'expires="NO-EXPIRATION"' in german and '<displayName xml:lang="de">Polizei Süd' in german
        assert 'expires="NO-CACHE"' in await answer(storage, find(point(5, 12), SOS))
    await each(check)


async def test_services_are_listed():
    async def check(storage):
        async def listed(*parts, **more):
            return valid(await answer(storage, request(*parts, **more))).findtext(L + "serviceList").split()
        assert await listed("listServices") == ["urn:nena:service:sos", SOS]
        assert await listed("listServices", service=SOS) == [POLICE]
        assert await listed("listServicesByLocation", location(point(5, 12))) == [SOS]
        assert await listed("listServicesByLocation", location(point(5, 12)), service=SOS) == [POLICE]
        assert await listed("listServicesByLocation", location(point(5, 2)), service=SOS) == []
        assert await listed("listServicesByLocation", location(circle(5, 9.99, 9000)), service=SOS) == [POLICE]
        assert await listed("listServicesByLocation", location(civic(country="US", A1="TX"))) == ["urn:nena:service:sos", SOS]
    await each(check)


async def test_civic_addresses_are_validated():
    async def check(storage):
        async def checked(**elements):
            reply = valid(await answer(storage, find(civic(**elements), SOS, validateLocation="true")))
            v = reply.find(L + "locationValidation")
            return [(v.findtext(L + kind) or "").replace("ca:", "").split() for kind in ("valid", "invalid", "unchecked")]
        assert await checked(country="US", A1="TX", A3="Austin", RD="Main", HNO="5") == [["country", "A1", "A3", "RD", "HNO"], [], []]
        assert await checked(country="US", A1="TX", A3="Austin", RD="Main", HNO="500", LMK="Gate") == [["country", "A1", "A3", "RD"], ["HNO"], ["LMK"]]
        assert await checked(country="US", A1="TX", A3="Nowhere", RD="Main") == [["country", "A1"], ["A3"], ["RD"]]
        reply = await answer(storage, find(civic(country="US", A1="TX"), POLICE, validateLocation="true"))
        return reply
    await each(check)


async def test_random_places_of_the_study():
    """On 60 boundaries with rough borders. Circles of 5 km near borders decide by small differences."""
    noise = random.Random(5)
    data = dataset.collection(count=60)

    async def check(storage):
        found = []
        for _ in range(150):
            lat, lon = round(noise.uniform(26, 36.4), 5), round(noise.uniform(-106.5, -93.6), 5)
            for shape in (point(lat, lon), circle(lat, lon, 5000)):
                reply = await answer(storage, find(shape))
                assert len(uri(reply)) == 1, reply
                found.append(reply)
        found.append(await answer(storage, find(civic(country="US", A1="TX", A2="County 7"))))
        noise.seed(5)
        return found
    noise.seed(5)
    replies = await each(check, data)
    assert len({uri(r)[0] for r in replies}) > 40


BAD = [b"", b"\xff\xfe<\0f\0", b"<findService", b"<a/>", b'<findServiceResponse xmlns="urn:ietf:params:xml:ns:lost1"/>',
       find(point(1, 2)).encode("utf-16"), find(point(1, 2)).replace("<service>", "<service>%20").encode(),
       find(point(1, 2)).replace("<location id", "<location di").encode(), find(point(1, 2), serviceBoundary="both").encode(),
       find(point(1, 2), validateLocation="perhaps").encode(), request("findService", service=SOS).encode(),
       request("findService", *[location(point(1, 2))] * 20, service=SOS).encode(), request("findService", location(point(1, 2))).encode(),
       request("getServiceBoundary").encode(), find(point(1, 2)).replace("<service>", "<odd/><service>").encode()]
BOMB = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{("&" + chr(97 + i) + ";") * 10}">' for i in range(9)) + "]>"
BAD += [(BOMB + find(point(1, 2)).partition("?>")[2].replace("sos.psap", "sos.&j;")).encode(),
        b'<!DOCTYPE x SYSTEM "file:///etc/passwd">' + find(point(1, 2)).partition("?>")[2].encode(),
        b'<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE x+AD4-', b"<a>" * 20000]


async def test_bad_requests():
    async def check(storage):
        for octets in BAD:
            reply = await answer(storage, octets, check=False)
            assert said(reply) == (None, ["badRequest"]), (octets[:200], reply)
    await each(check)


def test_shapes_have_their_area():
    """Areas in square metres, at a latitude where a degree of longitude is half as long as at the equator."""
    east, north = shapes.metres_per_degree(60)
    assert abs(east - 55800) < 10 and abs(north - 111412) < 10, (east, north)
    area = shapes.circle(60, 10, 1000).area * east * north
    assert abs(area / 3.14159e6 - 1) < 0.01, area
    area = shapes.arc_band(60, 10, 1000, 2000, 10, 90).area * east * north
    assert abs(area / (3.14159e6 * 3 / 4) - 1) < 0.01, area
    west, south, e, n = shapes.ellipse(60, 10, 2000, 500, 90).bounds
    assert abs((e - west) * east - 4000) < 20 and abs((n - south) * north - 1000) < 20


async def test_a_polygon_that_crosses_itself_costs_little():
    """Its lines meet in half a million points. To compute these took minutes, in which the server answered nobody."""
    chance = random.Random(7)
    corners = [(chance.uniform(0, 10), chance.uniform(0, 8)) for _ in range(shapes.MAX_CORNERS - 1)]
    shape = shapes.polygon([*corners[:150], corners[0]])
    assert shape.geom_type == "Polygon" and len(shape.exterior.coords) < 100, "not the convex hull"

    async def check(storage):
        return said(await answer(storage, find(polygon(*corners, corners[0]), SOS)))
    assert await each(check) == ("west", [])


async def test_many_attributes_are_refused_unread():
    """libxml2 compares each with all others: 64 KB took 0.1 s."""
    def kind(octets):
        try:
            return messages.parse(octets).kind
        except messages.LostError as why:
            return why.message

    plain = request("listServices")
    many = plain.replace("<listServices", "<listServices" + "".join(f" a{i}='>'" for i in range(100)))
    assert kind(plain.encode()) == "listServices" and "attributes" in kind(many.encode()), kind(many.encode())
    assert "UTF-8" in kind(plain.replace("UTF-8", "IBM037").encode())


async def test_a_very_large_shape_counts_as_many_points():
    """Its overlap with each boundary that it meets would be computed. Of its points most lie in the boundary with the greatest overlap."""
    large, split = (box(1, 1, 8, 3), True), (box(178, -1, 180, 1).union(box(-180, -1, -178, 1)), False)
    for shape, many in (large, split):
        assert (shapes.simplest(shape).geom_type == "MultiPoint") == many, shape
    diagonal = Polygon([(0, 0), (50, 50), (50.001, 50), (0.001, 0)])
    parts = unary_union([box(i, 0, i + 0.5, 1) for i in range(0, 178, 2)] + [box(0, 2, 9, 9)])
    for shape in (diagonal, parts):
        points = shapes.simplest(shape)
        assert points.geom_type == "MultiPoint" and shapes.SAMPLES / 2 < len(points.geoms) < shapes.SAMPLES * 2, len(points.geoms)
        assert all(p.distance(shape) < 1e-9 for p in points.geoms)
    share = sum(p.y >= 2 for p in shapes.simplest(parts).geoms) / len(shapes.simplest(parts).geoms)
    assert abs(share - 63 / parts.area) < 0.05, share
    beside = (2.9, .5), (2.9, 10), (.5, 10), (.5, 13), (5.5, 13), (5.5, 10), (3.1, 10), (3.1, .5), (2.9, .5)

    async def check(storage):
        return [said(await answer(storage, find(polygon(*corners), SOS))) for corners in (
            ((1, 1), (1, 8), (3, 8), (3, 1), (1, 1)), ((-80, -170), (-80, 170), (80, 170), (80, -170), (-80, -170)), beside)]
    found = await each(check)
    assert found[0] == ("west", []) and found[2] == ("east", []), found
