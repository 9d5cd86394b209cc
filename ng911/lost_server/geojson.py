# SPDX-License-Identifier: GPL-2.0-or-later
"""Mappings in GeoJSON (RFC 7946): a FeatureCollection whose features have these properties.

service   URN, or a list of URNs with the same boundary
sourceId  unique among mappings of a service; default: number of the feature
name      display name, with its language in lang (default en); default: the sourceId, because the module lost of Kamailio 5.6 crashes
          at a mapping without a display name
uris      list
number    service number
ttl       seconds (default 86400), NO-CACHE or NO-EXPIRATION
updated   time of the last change, RFC 3339
default   true: the answer where no boundary fits
civic     list of civic addresses; "HNO": [first, last] is a range of houses

The geometry is a Polygon, a MultiPolygon or null."""
import hashlib
import json
import re
from dataclasses import dataclass

from shapely.geometry import MultiPolygon, shape
from shapely.validation import make_valid

from . import civic, messages


class BadData(Exception):
    """A feature cannot be loaded; the text names it."""


@dataclass(slots=True)
class Feature:
    source_id: str
    service: str
    name: str
    lang: str
    uris: list
    number: str
    ttl: str
    updated: str
    key: str
    default: bool
    wkb: bytes
    civic: list


UPDATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def polygons(geometry):
    """As valid MultiPolygon."""
    found = shape(geometry)
    if not found.is_valid:
        found = make_valid(found)
    parts = [p for g in getattr(found, "geoms", [found]) for p in getattr(g, "geoms", [g]) if p.geom_type == "Polygon"]
    return MultiPolygon(parts) if parts else None


def civic_rows(rows):
    for row in rows:
        unknown = set(row) - set(civic.ORDER)
        if unknown:
            raise BadData(f"unknown civic element {sorted(unknown)[0]}")
        house = row.get(civic.HOUSE)
        first, last = house if isinstance(house, list) else (house, house)
        yield (*(row.get(c) for c in civic.COLUMNS), None if first is None else int(first), None if last is None else int(last))


def checked(name, text, pattern):
    if not re.fullmatch(pattern, text):
        raise BadData(f'{name} "{text}" is not allowed')
    return text


def features_of(number, item):
    p = item.get("properties") or {}
    found = polygons(item["geometry"]) if item.get("geometry") else None
    data = found.wkb if found else None
    if "service" not in p:
        raise BadData("the property service is missing")
    services = p["service"] if isinstance(p["service"], list) else [p["service"]]
    source_id = checked("sourceId", " ".join(str(p.get("sourceId", number)).split()), ".+")
    common = {
        "source_id": source_id, "name": p.get("name") or source_id,
        "lang": checked("lang", p.get("lang", "en"), "[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*"), "uris": list(p.get("uris", [])),
        "number": checked("number", str(p.get("number", "")), "[0-9*#]*"),
        "ttl": checked("ttl", str(p.get("ttl", 86400)), "[0-9]{1,9}|NO-CACHE|NO-EXPIRATION"),
        "updated": checked("updated", p.get("updated", "1970-01-01T00:00:00Z"), UPDATED),
        "key": hashlib.sha256(data).hexdigest()[:32] if data else "", "default": bool(p.get("default", False)), "wkb": data,
        "civic": list(civic_rows(p.get("civic", [])))}
    return [Feature(service=checked("service", s, messages.SERVICE), **common) for s in services]


def load(text):
    """All features of a FeatureCollection, or BadData."""
    try:
        items = json.loads(text)["features"]
    except (ValueError, KeyError, TypeError):
        raise BadData("this is not a FeatureCollection") from None
    found, seen = [], set()
    for number, item in enumerate(items, 1):
        try:
            for feature in features_of(number, item):
                if (feature.service, feature.source_id) in seen:
                    raise BadData(f"{feature.service} has two mappings {feature.source_id}")
                seen.add((feature.service, feature.source_id))
                found.append(feature)
        except BadData as why:
            raise BadData(f"feature {number}: {why}") from None
        except (KeyError, TypeError, ValueError, AttributeError) as why:
            raise BadData(f"feature {number}: {type(why).__name__}: {why}") from None
    return found
