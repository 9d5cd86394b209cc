# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests of RFC 5222 as objects, and the parts of responses as text. Nothing here looks up anything.

A request is untrusted: it has a bounded size, no DTD and no entities, and it is UTF-8."""
import re
from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from lxml import etree

from . import shapes

LOST = "urn:ietf:params:xml:ns:lost1"
GML = "http://www.opengis.net/gml"
GS = "http://www.opengis.net/pidflo/1.0"
CIVIC = "urn:ietf:params:xml:ns:pidf:geopriv10:civicAddr"
L, G, S, C = (f"{{{n}}}" for n in (LOST, GML, GS, CIVIC))
CRS = ("urn:ogc:def:crs:EPSG::4326", "EPSG:4326")
CRS_3D = ("urn:ogc:def:crs:EPSG::4979", "EPSG:4979")
METRE, DEGREE, RADIAN = (f"urn:ogc:def:uom:EPSG::{n}" for n in (9001, 9102, 9101))
PROFILES = ("geodetic-2d", "civic")
MAX_LOCATIONS, MAX_VIA, MAX_SERVICE = 8, 32, 256
MAX_ATTRIBUTES = 64
ENCODING = re.compile(rb"""\s*<\?xml[^>]*\sencoding\s*=\s*["']([^"']*)""")
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
DOMAIN = re.compile(r"([a-zA-Z0-9-]+\.)+[a-zA-Z0-9]+")
SERVICE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!-;=?-~]+")
TRUTH = {"true": True, "1": True, "false": False, "0": False}


class LostError(Exception):
    """An <errors> response. kind is the element, for example "notFound"."""

    def __init__(self, kind, message, unsupported=None):
        super().__init__(message)
        self.kind, self.message, self.unsupported = kind, message, unsupported


@dataclass(slots=True)
class Location:
    id: str
    profile: str
    element: object


@dataclass(slots=True)
class Request:
    """kind: name of the root element. An absent service is ""."""
    kind: str
    service: str = ""
    locations: list = field(default_factory=list)
    via: list = field(default_factory=list)
    key: str = ""
    validate: bool = False
    by_value: bool = False


PARSER = etree.XMLParser(encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False,
                         remove_comments=True, remove_pis=True)


def bad(text):
    return LostError("badRequest", text)


def boolean(element, name):
    text = element.get(name, "false").strip()
    if text not in TRUTH:
        raise bad(f"attribute {name} is not a boolean")
    return TRUTH[text]


def token(text):
    return " ".join(text.split())


def parse(body):
    """The request in these octets, or LostError."""
    named = ENCODING.match(body)
    if b"\0" in body or b"<!DOCTYPE" in body or (named and named[1].lower() not in (b"utf-8", b"us-ascii")):
        raise bad("a request has no DTD, and its encoding is UTF-8")
    # libxml2 compares each attribute with all others of its element.
    if any(tag.count(b"=") > MAX_ATTRIBUTES for tag in body.split(b"<")):
        raise bad(f"an element has more than {MAX_ATTRIBUTES} attributes")
    try:
        root = etree.fromstring(body, PARSER)
    except (etree.XMLSyntaxError, ValueError):
        raise bad("the request is not well-formed XML") from None
    reader = READERS.get(root.tag)
    if not reader:
        raise bad("the root element is not a request of LoST")
    request = Request(root.tag[len(L):])
    reader(request, root)
    return request


def read_boundary(request, root):
    request.key = token(root.get("key", ""))
    if not request.key:
        raise bad("attribute key is missing")


def read_common(request, root):
    for child in root:
        tag = child.tag
        if tag == L + "service":
            request.service = (child.text or "").strip()
            if len(request.service) > MAX_SERVICE or not SERVICE.fullmatch(request.service):
                raise bad("the service is not a URN")
        elif tag == L + "location":
            if len(request.locations) == MAX_LOCATIONS:
                raise bad(f"more than {MAX_LOCATIONS} locations")
            request.locations.append(read_location(child))
        elif tag == L + "path":
            request.via = [v.get("source", "") for v in child.iterchildren(L + "via")]
            if len(request.via) > MAX_VIA:
                raise LostError("loop", f"the path has more than {MAX_VIA} elements")
        elif isinstance(tag, str) and tag.startswith(L):
            raise bad("an element is not expected in this request")


def read_location(element):
    name = token(element.get("id", ""))
    if not name:
        raise bad("a location has no id")
    return Location(name, element.get("profile", "").strip(), next(element.iterchildren(etree.Element), None))


def read_by_location(request, root):
    read_common(request, root)
    boolean(root, "recursive")
    if not request.locations:
        raise bad("the location is missing")


def read_find(request, root):
    read_by_location(request, root)
    request.validate = boolean(root, "validateLocation")
    kind = root.get("serviceBoundary", "reference")
    if kind not in ("reference", "value"):
        raise bad("attribute serviceBoundary is neither reference nor value")
    request.by_value = kind == "value"
    if not request.service:
        raise bad("the service is missing")


READERS = {L + "findService": read_find, L + "listServices": read_common, L + "listServicesByLocation": read_by_location,
           L + "getServiceBoundary": read_boundary}


def choose(locations):
    """The first location with a profile that the server has (RFC 5222 8.3.1)."""
    for location in locations:
        if location.profile in PROFILES:
            return location
    raise LostError("locationProfileUnrecognized", "no location has a known profile", [loc.profile for loc in locations])


# --- Shapes ----------------------------------------------------------------------------------------


def coordinates(text, dimension):
    values = shapes.numbers(text)
    if len(values) % dimension:
        raise shapes.BadShape("a position is incomplete")
    return [tuple(values[i:i + 2]) for i in range(0, len(values), dimension)]


def position(shape, dimension, name=G + "pos"):
    found = coordinates(shape.findtext(name), dimension)
    if len(found) != 1:
        raise shapes.BadShape("the shape has no position")
    return found[0]


def measure(shape, name, units):
    """A length or angle, in metres or degrees."""
    element = shape.find(S + name)
    found = shapes.numbers(element.text) if element is not None else []
    if len(found) != 1:
        raise shapes.BadShape(f"{name} is missing")
    unit = element.get("uom")
    if unit not in units:
        raise shapes.BadShape(f"the unit of {name} is unknown")
    return found[0] * (57.29577951308232 if unit == RADIAN else 1)


def ring(shape, dimension):
    line = shape.find(f"{G}exterior/{G}LinearRing")
    if line is None:
        raise shapes.BadShape("the polygon has no exterior")
    listed = line.findtext(G + "posList")
    if listed is not None:
        return coordinates(listed, dimension)
    return [c for pos in line.iter(G + "pos") for c in coordinates(pos.text, dimension)]


def length(shape, name):
    return measure(shape, name, (METRE,))


def angle(shape, name):
    return measure(shape, name, (DEGREE, RADIAN))


SHAPES = {
    G + "Point": lambda s, d: shapes.point(*position(s, d)),
    G + "Polygon": lambda s, d: shapes.polygon(ring(s, d)),
    S + "Circle": lambda s, d: shapes.circle(*position(s, d), length(s, "radius")),
    S + "Ellipse": lambda s, d: shapes.ellipse(*position(s, d), length(s, "semiMajorAxis"), length(s, "semiMinorAxis"), angle(s, "orientation")),
    S + "ArcBand": lambda s, d: shapes.arc_band(*position(s, d), length(s, "innerRadius"), length(s, "outerRadius"), angle(s, "startAngle"),
                                                angle(s, "openingAngle")),
}


def geometry(location):
    """The shape of a geodetic-2d location."""
    shape = location.element
    reader = SHAPES.get(shape.tag) if shape is not None else None
    if not reader:
        raise LostError("locationInvalid", "the location has no shape that geodetic-2d allows")
    name = shape.get("srsName", CRS[0])
    if name not in CRS and name not in CRS_3D:
        raise LostError("locationInvalid", "the coordinates are not those of WGS 84")
    try:
        return shapes.simplest(reader(shape, 3 if name in CRS_3D else 2))
    except shapes.BadShape as why:
        raise LostError("locationInvalid", str(why)) from None


def address(location):
    """The elements of a civic location by name: {"A1": "TX", ...}."""
    element = location.element
    if element is None or element.tag != C + "civicAddress":
        raise LostError("locationInvalid", "the location has no civicAddress")
    found = {e.tag[len(C):]: token(e.text or "") for e in element if isinstance(e.tag, str) and e.tag.startswith(C)}
    if not found.get("country"):
        raise LostError("locationInvalid", "the civic address has no country")
    return found


# --- Responses -------------------------------------------------------------------------------------


def exception(error):
    """An error or warning as element."""
    more = ""
    if error.kind == "locationProfileUnrecognized":
        named = [p for p in error.unsupported if re.fullmatch(r"[\w.:-]+", p, re.ASCII)]
        more = f' unsupportedProfiles="{" ".join(named) or "none"}"'
    return f'<{error.kind}{more} message={quoteattr(error.message)} xml:lang="en"/>'


def errors(source, error):
    return f'{HEAD}<errors xmlns="{LOST}" source="{source}">{exception(error)}</errors>'


def path(source, via):
    earlier = "".join(f'<via source="{v}"/>' for v in via if DOMAIN.fullmatch(v))
    return f'<path>{earlier}<via source="{source}"/></path>'


def tail(source, request, warnings, location=None):
    """The parts that all responses have: warnings, path, location used."""
    text = "".join(f'<warnings source="{source}">{exception(w)}</warnings>' for w in warnings) + path(source, request.via)
    if location:
        text += f"<locationUsed id={quoteattr(location.id)}/>"
    return text


def mapping_parts(mapping, source):
    """A mapping in three parts, so that only expires and the boundary change between responses."""
    name = f"<displayName xml:lang={quoteattr(mapping.lang)}>{escape(mapping.name)}</displayName>" if mapping.name else ""
    start = f'<mapping lastUpdated="{mapping.updated}" source="{source}" sourceId={quoteattr(mapping.source_id)} expires="'
    middle = f'">{name}<service>{escape(mapping.service)}</service>'
    end = "".join(f"<uri>{escape(u)}</uri>" for u in mapping.uris)
    if mapping.number:
        end += f"<serviceNumber>{mapping.number}</serviceNumber>"
    return start, middle, end + "</mapping>"


def boundary_reference(mapping, source):
    return f'<serviceBoundaryReference source="{source}" key="{mapping.key}"/>' if mapping.key else ""


def gml_ring(ring_corners):
    listed = " ".join(f"{lat!r} {lon!r}" for lon, lat, *_ in ring_corners)
    return f"<gml:LinearRing><gml:posList>{listed}</gml:posList></gml:LinearRing>"


def boundary_value(shape):
    """A boundary with all corners: a polygon for each part, holes as interior rings."""
    text = ""
    for part in getattr(shape, "geoms", [shape]):
        holes = "".join(f"<gml:interior>{gml_ring(h.coords)}</gml:interior>" for h in part.interiors)
        text += f'<gml:Polygon srsName="{CRS[0]}"><gml:exterior>{gml_ring(part.exterior.coords)}</gml:exterior>{holes}</gml:Polygon>'
    return f'<serviceBoundary profile="geodetic-2d" xmlns:gml="{GML}">{text}</serviceBoundary>'


def validation(valid, invalid, unchecked):
    """Names of civic elements by outcome (RFC 5222 8.4.2)."""
    lists = "".join(f"<{kind}>{' '.join('ca:' + n for n in names)}</{kind}>" for kind, names in
                    (("valid", valid), ("invalid", invalid), ("unchecked", unchecked)) if names)
    return f'<locationValidation xmlns:ca="{CIVIC}">{lists}</locationValidation>'
