# SPDX-License-Identifier: GPL-2.0-or-later
"""The storage in PostgreSQL with PostGIS: pooled connections with prepared statements.

A trigger sends a notification after every change. changed() also reports a lost connection of the listener, because notifications may
have been lost with it."""
import asyncio
import re
from urllib.parse import urlsplit

import asyncpg

from .storage import INDEXES, QUERIES, TABLES, Storage, StorageError, values_of

NEAR = "geom && ST_GeomFromWKB(?1, 4326)"
CHANNEL = "xcipher_lost"
NOTIFY = (f"CREATE OR REPLACE FUNCTION lost_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY {CHANNEL}; RETURN NULL; END $$",
          *(f"CREATE OR REPLACE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT"
            " EXECUTE FUNCTION lost_changed()" for table in TABLES))
SECONDS = 2.0  # for one query


def statement(name):
    text = QUERIES[name].replace("{near}", NEAR)
    return re.sub(r"\?(\d+)", r"$\1", text)


STATEMENTS = {name: statement(name) for name in QUERIES}
FAULTS = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, asyncio.TimeoutError)


class PostGIS(Storage):
    name = "postgis"

    def __init__(self, url, pool=8):
        self.url, self.size, self.pool, self.listener, self.dirty = url, pool, None, None, True

    async def open(self):
        """The pool grows on demand, so the server starts without a database only if tables are there already."""
        try:
            self.pool = await asyncpg.create_pool(self.url, min_size=1, max_size=self.size, command_timeout=SECONDS, statement_cache_size=64)
            async with self.pool.acquire() as db, db.transaction():
                if await db.fetchval("SELECT to_regclass('mapping')") is None:
                    await self.create(db)
        except FAULTS as why:
            raise StorageError(f"PostgreSQL at {urlsplit(self.url).hostname}: {str(why) or type(why).__name__}") from None
        await self.listen()

    @staticmethod
    async def create(db):
        await db.execute("CREATE EXTENSION IF NOT EXISTS postgis")
        for table, columns in TABLES.items():
            await db.execute(f"CREATE TABLE {table} ({columns})")
        await db.execute("ALTER TABLE mapping ADD COLUMN geom geometry(MultiPolygon, 4326)")
        await db.execute("CREATE INDEX mapping_geom ON mapping USING gist (geom)")
        for text in (*INDEXES, *NOTIFY):
            await db.execute(text)

    async def listen(self):
        try:
            self.listener = await asyncpg.connect(self.url, timeout=SECONDS)
            await self.listener.add_listener(CHANNEL, self.heard)
            self.dirty = True
        except FAULTS:
            self.listener = None

    def heard(self, *_):
        self.dirty = True

    def changed(self):
        if not self.listener or self.listener.is_closed():
            return True
        was, self.dirty = self.dirty, False
        return was

    async def refresh(self):
        """Connects the listener again. The caller repeats this while changed() is True."""
        if not self.listener or self.listener.is_closed():
            await self.listen()

    async def close(self):
        if self.listener and not self.listener.is_closed():
            await self.listener.close()
        if self.pool:
            await self.pool.close()

    async def fetch(self, name, *values):
        try:
            async with self.pool.acquire(timeout=SECONDS) as db:
                return await db.fetch(STATEMENTS[name], *values)
        except FAULTS as why:
            raise StorageError(str(why) or type(why).__name__) from None

    async def replace(self, features):
        rows = [(f.wkb, *values_of(i, f)) for i, f in enumerate(features, 1)]
        civic = [(i, *row) for i, f in enumerate(features, 1) for row in f.civic]
        async with self.pool.acquire() as db, db.transaction():
            await db.execute("DELETE FROM civic")
            await db.execute("DELETE FROM mapping")
            await db.executemany(STATEMENTS["insert_mapping"], rows, timeout=600)
            await db.executemany(STATEMENTS["insert_civic"], civic, timeout=600)
            await db.execute("ANALYZE mapping")
