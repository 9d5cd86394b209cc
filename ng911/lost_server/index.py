# SPDX-License-Identifier: GPL-2.0-or-later
"""A copy of all mappings in memory, with prepared boundaries. It has the interface of a storage for reading.

It answers with the same GEOS operations as the storages, so its answers are theirs. Front decides when it may answer."""
import gc
import warnings
from collections import Counter

from shapely import wkb
from shapely.prepared import prep
from shapely.strtree import STRtree


class Index:
    name = "memory"

    def __init__(self, mappings, boundaries, civic):
        """civic: rows by service."""
        self.by_id = {m.id: m for m in mappings}
        self.shapes = {number: wkb.loads(data) for number, data in boundaries}
        self.prepared = {number: prep(shape) for number, shape in self.shapes.items()}
        self.civic_rows = civic
        self.by_key = {self.by_id[n].key: n for n in self.shapes}
        self.defaults = {}
        for m in mappings:
            if m.default:
                self.defaults.setdefault(m.service, m)
        self.names = sorted({m.service for m in mappings})
        self.trees = {name: self.tree([n for n in self.shapes if self.by_id[n].service == name]) for name in self.names}
        self.everything = self.tree(list(self.shapes))

    @classmethod
    async def load(cls, storage):
        mappings = await storage.mappings()
        names = {m.service for m in mappings}
        return cls(mappings, await storage.boundaries(), {name: await storage.civic(name) for name in names})

    def tree(self, numbers):
        """A search by bounding box. Shapely 1 and 2 name the method that gives positions differently."""
        if not numbers:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.filterwarnings("ignore", message="STRtree will be changed")
            tree = STRtree([self.shapes[n] for n in numbers])
        return getattr(tree, "query_items", tree.query), numbers

    @staticmethod
    def near(tree, shape):
        if not tree:
            return []
        find, numbers = tree
        return sorted(numbers[i] for i in find(shape))

    async def mappings(self):
        return list(self.by_id.values())

    async def mapping(self, number):
        return self.by_id.get(number)

    async def covering(self, service, shape):
        near = self.near(self.trees.get(service), shape)
        if shape.geom_type == "Point":
            return next((self.by_id[n] for n in near if self.prepared[n].covers(shape)), None)
        if shape.geom_type == "MultiPoint":
            counts = Counter(n for p in shape.geoms for n in self.near(self.trees.get(service), p) if self.prepared[n].covers(p))
            return self.by_id[max(counts, key=lambda n: (counts[n], -n))] if counts else None
        met = [n for n in near if self.prepared[n].intersects(shape)]
        if len(met) > 1:
            met.sort(key=lambda n: (-self.shapes[n].intersection(shape).area, n))
        return self.by_id[met[0]] if met else None

    async def default(self, service):
        return self.defaults.get(service)

    async def services(self, shape=None):
        if shape is None:
            return self.names
        return sorted({self.by_id[n].service for n in self.near(self.everything, shape) if self.prepared[n].intersects(shape)})

    async def civic(self, service):
        return self.civic_rows.get(service, [])

    async def boundary(self, key):
        number = self.by_key.get(key)
        return self.shapes[number].wkb if number is not None else None


class Front:
    """Answers from memory while the storage is unchanged, and from the storage while it loads a change."""

    def __init__(self, storage, spawn):
        self.storage, self.spawn, self.index, self.loading, self.changes = storage, spawn, None, False, 0

    def now(self):
        """The storage or index that answers a request."""
        if self.storage.changed():
            self.index = None
            self.changes += 1
        if self.index:
            return self.index
        if not self.loading:
            self.loading = True
            self.spawn(self.load())
        return self.storage

    async def load(self):
        """A change during the loading makes the copy useless, so it is loaded again at the next request."""
        try:
            if hasattr(self.storage, "refresh"):
                await self.storage.refresh()
                self.storage.changed()
            before = self.changes
            index = await Index.load(self.storage)
            if not self.storage.changed() and self.changes == before:
                self.index = index
                # The collector would walk through the whole index again and again.
                gc.collect()
                gc.freeze()
        finally:
            self.loading = False
