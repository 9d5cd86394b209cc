# SPDX-License-Identifier: GPL-2.0-or-later
"""What a server knows, behind one interface: PostgreSQL with PostGIS, or SQLite with SpatiaLite.

Both execute the queries of QUERIES, which differ only in the boundary's pre-filter and in the form of parameters. Both use GEOS, so
their answers are alike. Overlaps are compared as areas in degrees: in a shape of some kilometres a degree has the same area everywhere. shapes.py
replaces a very large shape by many points, and the storages count these.

class Storage:
    async open()                     creates missing tables
    async close()
    async mappings()                 all, as Mapping
    async mapping(id)                one of them, or None
    async boundaries()               (id, WKB) of all that have a boundary
    async covering(service, shape)   Mapping with the greatest overlap, or None; shape: of shapes.simplest()
    async default(service)           Mapping, or None
    async services(shape=None)       names of all services, or of those at a shape
    async civic(service)             rows for civic.py
    async boundary(key)              WKB, or None
    async replace(features)          replaces everything by these features of geojson.py, in one transaction
    changed()                        True if data may have changed since the last call"""
import json
from dataclasses import dataclass

from . import civic


class StorageError(Exception):
    """The storage cannot answer now."""


@dataclass(slots=True, frozen=True)
class Mapping:
    """ttl: seconds, or NO-CACHE, or NO-EXPIRATION. key: of the boundary, "" if there is none."""
    id: int
    source_id: str
    service: str
    name: str
    lang: str
    uris: tuple
    number: str
    ttl: str
    updated: str
    key: str
    default: bool


MAPPING_COLUMNS = "id, source_id, service, name, lang, uris, number, ttl, updated, boundary_key, is_default"
CIVIC_COLUMNS = ", ".join(c.lower() for c in civic.COLUMNS)


def mapping_of(row):
    values = list(row)
    values[5] = tuple(json.loads(values[5]))
    values[10] = bool(values[10])
    return Mapping(*values)


def values_of(number, feature):
    """The columns of a mapping, in the order of MAPPING_COLUMNS."""
    return (number, feature.source_id, feature.service, feature.name, feature.lang, json.dumps(feature.uris), feature.number, feature.ttl,
            feature.updated, feature.key, int(feature.default))


TABLES = {
    "mapping": "id INTEGER PRIMARY KEY, source_id TEXT NOT NULL, service TEXT NOT NULL, name TEXT NOT NULL, lang TEXT NOT NULL, uris TEXT NOT NULL,"
               " number TEXT NOT NULL, ttl TEXT NOT NULL, updated TEXT NOT NULL, boundary_key TEXT NOT NULL, is_default INTEGER NOT NULL,"
               " UNIQUE (service, source_id)",
    "civic": "mapping_id INTEGER NOT NULL REFERENCES mapping (id), " + ", ".join(c.lower() + " TEXT" for c in civic.COLUMNS) +
             ", first_house INTEGER, last_house INTEGER",
}
INDEXES = ("CREATE INDEX IF NOT EXISTS mapping_service ON mapping (service)",
           "CREATE INDEX IF NOT EXISTS mapping_key ON mapping (boundary_key)",
           "CREATE INDEX IF NOT EXISTS civic_mapping ON civic (mapping_id)")

# {near}: mappings whose bounding box meets that of ?1. ?1 is a geometry in WKB.
SHAPE = "ST_GeomFromWKB(?1, 4326)"
QUERIES = {
    "mappings": f"SELECT {MAPPING_COLUMNS} FROM mapping ORDER BY id",
    "mapping": f"SELECT {MAPPING_COLUMNS} FROM mapping WHERE id = ?1",
    "boundaries": "SELECT id, ST_AsBinary(geom) FROM mapping WHERE geom IS NOT NULL ORDER BY id",
    "at_point": f"SELECT {MAPPING_COLUMNS} FROM mapping m WHERE service = ?2 AND {{near}} AND ST_Covers(geom, {SHAPE}) ORDER BY id LIMIT 1",
    "at_area": f"SELECT {MAPPING_COLUMNS} FROM mapping m WHERE service = ?2 AND {{near}} AND ST_Intersects(geom, {SHAPE})"
               f" ORDER BY ST_Area(ST_Intersection(geom, {SHAPE})) DESC, id LIMIT 1",
    "at_points": f"SELECT {MAPPING_COLUMNS} FROM mapping m WHERE service = ?2 AND {{near}} AND ST_Intersects(geom, {SHAPE})"
                 f" ORDER BY ST_NPoints(ST_Intersection(geom, {SHAPE})) DESC, id LIMIT 1",
    "default": f"SELECT {MAPPING_COLUMNS} FROM mapping WHERE service = ?1 AND is_default = 1 ORDER BY id LIMIT 1",
    "services": "SELECT DISTINCT service FROM mapping ORDER BY service",
    "services_at": f"SELECT DISTINCT service FROM mapping m WHERE {{near}} AND ST_Intersects(geom, {SHAPE}) ORDER BY service",
    "civic": f"SELECT mapping_id, {CIVIC_COLUMNS}, first_house, last_house FROM civic c JOIN mapping m ON m.id = c.mapping_id WHERE m.service = ?1",
    "boundary": "SELECT ST_AsBinary(geom) FROM mapping WHERE boundary_key = ?1 LIMIT 1",
    "insert_mapping": f"INSERT INTO mapping ({MAPPING_COLUMNS}, geom) VALUES (?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, {SHAPE})",
    "insert_civic": f"INSERT INTO civic (mapping_id, {CIVIC_COLUMNS}, first_house, last_house) VALUES ("
                    + ", ".join(f"?{i}" for i in range(1, len(civic.COLUMNS) + 4)) + ")",
}


def civic_row(row):
    return row[0], dict(zip(civic.COLUMNS, row[1:-2])), row[-2], row[-1]


class Storage:
    """The part that both storages share. They add fetch(name, *values), which executes a query of QUERIES, and the rest of the interface."""

    async def fetch(self, name, *values):
        raise NotImplementedError

    async def one(self, name, *values):
        rows = await self.fetch(name, *values)
        return rows[0] if rows else None

    async def mappings(self):
        return [mapping_of(r) for r in await self.fetch("mappings")]

    async def mapping(self, number):
        row = await self.one("mapping", number)
        return mapping_of(row) if row else None

    async def boundaries(self):
        return [(r[0], bytes(r[1])) for r in await self.fetch("boundaries")]

    async def covering(self, service, shape):
        row = await self.one({"Point": "at_point", "MultiPoint": "at_points"}.get(shape.geom_type, "at_area"), shape.wkb, service)
        return mapping_of(row) if row else None

    async def default(self, service):
        row = await self.one("default", service)
        return mapping_of(row) if row else None

    async def services(self, shape=None):
        return [r[0] for r in await (self.fetch("services_at", shape.wkb) if shape is not None else self.fetch("services"))]

    async def civic(self, service):
        return [civic_row(r) for r in await self.fetch("civic", service)]

    async def boundary(self, key):
        row = await self.one("boundary", key)
        return bytes(row[0]) if row and row[0] else None


def open_storage(url):
    """postgresql://... or the path of a SpatiaLite file."""
    if url.startswith(("postgresql://", "postgres://")):
        try:
            from .postgis import PostGIS
        except ModuleNotFoundError as why:
            raise StorageError(f"{why}. A database in PostgreSQL needs the package python3-asyncpg") from None
        return PostGIS(url)
    from .spatialite import SpatiaLite
    return SpatiaLite(url.removeprefix("sqlite:"))
