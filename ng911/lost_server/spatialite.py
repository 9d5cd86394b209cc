# SPDX-License-Identifier: GPL-2.0-or-later
"""The storage in one file: SQLite with SpatiaLite. Its queries run in a thread of their own, because they may take milliseconds."""
import asyncio
import sqlite3
from concurrent.futures import ThreadPoolExecutor

from .storage import INDEXES, QUERIES, TABLES, Storage, StorageError, values_of

NEAR = ("id IN (SELECT pkid FROM idx_mapping_geom WHERE xmin <= MbrMaxX({0}) AND xmax >= MbrMinX({0}) AND ymin <= MbrMaxY({0})"
        " AND ymax >= MbrMinY({0}))").format("ST_GeomFromWKB(?1, 4326)")


def connect(path):
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=64)
    db.enable_load_extension(True)
    db.execute("SELECT load_extension('mod_spatialite')")
    db.enable_load_extension(False)
    db.execute("PRAGMA busy_timeout = 2000")
    return db


class SpatiaLite(Storage):
    name = "spatialite"

    def __init__(self, path):
        self.path, self.db, self.watch, self.version = path, None, None, None
        self.thread = ThreadPoolExecutor(1, "spatialite")

    def run(self, function, *args):
        return asyncio.get_running_loop().run_in_executor(self.thread, function, *args)

    async def open(self):
        try:
            await self.run(self.create)
            # A connection of the event loop's thread, which only reads the number that SQLite changes with every commit.
            self.watch = sqlite3.connect(self.path, isolation_level=None)
        except sqlite3.Error as why:
            hint = ". Its folder must exist, and this user must be allowed to write to it" if "unable to open" in str(why) else ""
            raise StorageError(f"{self.path}: {why}{hint}") from None

    def create(self):
        self.db = connect(self.path)
        self.db.execute("PRAGMA journal_mode = WAL")
        if self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'idx_mapping_geom'").fetchone():
            return
        self.db.execute("BEGIN IMMEDIATE")
        self.db.execute("SELECT InitSpatialMetaData(0, 'WGS84')")
        for table, columns in TABLES.items():
            self.db.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
        self.db.execute("SELECT AddGeometryColumn('mapping', 'geom', 4326, 'MULTIPOLYGON', 'XY')")
        self.db.execute("SELECT CreateSpatialIndex('mapping', 'geom')")
        for statement in INDEXES:
            self.db.execute(statement)
        self.db.execute("COMMIT")

    async def close(self):
        if self.watch:
            self.watch.close()
        if self.db:
            await self.run(self.db.close)
        self.thread.shutdown()

    def changed(self):
        now = self.watch.execute("PRAGMA data_version").fetchone()[0]
        before, self.version = self.version, now
        return before != now

    async def fetch(self, name, *values):
        try:
            return await self.run(self.query, name, values)
        except sqlite3.Error as why:
            raise StorageError(str(why)) from None

    def query(self, name, values):
        return self.db.execute(QUERIES[name].replace("{near}", NEAR), values).fetchall()

    async def replace(self, features):
        try:
            await self.run(self.write, features)
        except sqlite3.Error as why:
            raise StorageError(f"{self.path}: {why}") from None

    def write(self, features):
        self.db.execute("BEGIN IMMEDIATE")
        try:
            self.db.execute("DELETE FROM civic")
            self.db.execute("DELETE FROM mapping")
            for number, feature in enumerate(features, 1):
                self.db.execute(QUERIES["insert_mapping"], (feature.wkb, *values_of(number, feature)))
                self.db.executemany(QUERIES["insert_civic"], [(number, *row) for row in feature.civic])
            self.db.execute("COMMIT")
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
