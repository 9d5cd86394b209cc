# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the data of the study in shared form: a state divided into 500 boundaries, some with thousands of corners.

The boundaries are the cells of random points. Their borders are roughened like rivers and roads: a border is divided again and again,
and each new corner moves aside. Both neighbours of a border get the same corners. The same seed makes the same data."""
import json
import logging
import random

from shapely.geometry import MultiPoint, Polygon, box, mapping
from shapely.ops import voronoi_diagram

STATE = (-106.65, 25.84, -93.51, 36.50)  # west, south, east, north: the box around Texas
DIGITS = 6
# is_valid logs each fault that it finds; cells() mends them.
logging.getLogger("shapely.geos").setLevel(logging.ERROR)
UPDATED = "2026-01-01T00:00:00Z"


def point(x, y):
    return round(x, DIGITS), round(y, DIGITS)


def rough(a, b, depth, amplitude, noise):
    """Corners from a to b, without b."""
    if depth == 0:
        return [a]
    (ax, ay), (bx, by) = a, b
    shift = noise.uniform(-amplitude, amplitude)
    middle = point((ax + bx) / 2 - (by - ay) * shift, (ay + by) / 2 + (bx - ax) * shift)
    return rough(a, middle, depth - 1, amplitude, noise) + rough(middle, b, depth - 1, amplitude, noise)


class Borders:
    """Remembers each border, because two cells share it."""

    def __init__(self, seed, straight=()):
        self.seed, self.lines, self.straight = seed, {}, straight

    def line(self, a, b):
        first, last = min(a, b), max(a, b)
        if (first, last) not in self.lines:
            noise = random.Random(f"{self.seed} {first} {last}")
            # Few borders are very detailed.
            depth = min(11, 3 + int(noise.paretovariate(1.6)))
            outer = any(first[i] == last[i] and first[i] in (STATE[i], STATE[i + 2]) for i in (0, 1))
            amplitude = 0.0 if outer or (first, last) in self.straight else 0.12
            self.lines[first, last] = [*rough(first, last, depth, amplitude, noise), last]
        found = self.lines[first, last]
        return found[:-1] if a == first else found[:0:-1]


def rings(count, seed):
    noise = random.Random(seed)
    sites = MultiPoint([(noise.uniform(STATE[0], STATE[2]), noise.uniform(STATE[1], STATE[3])) for _ in range(count)])
    frame = box(*STATE)
    cells = [cell.intersection(frame) for cell in voronoi_diagram(sites, envelope=frame).geoms]
    return sorted([point(x, y) for x, y in cell.exterior.coords] for cell in cells)


def cells(count, seed):
    """Polygons that do not overlap and leave no gap. A cell whose rough borders cross gets straight ones."""
    straight, frames = set(), rings(count, seed)
    while True:
        borders = Borders(seed, straight)
        made = [Polygon([c for a, b in zip(ring, ring[1:]) if a != b for c in borders.line(a, b)]) for ring in frames]
        wrong = [ring for ring, cell in zip(frames, made) if not cell.is_valid]
        if not wrong:
            return made
        straight |= {(min(a, b), max(a, b)) for ring in wrong for a, b in zip(ring, ring[1:])}


def feature(geometry, **properties):
    return {"type": "Feature", "geometry": geometry, "properties": {"updated": UPDATED, **properties}}


def collection(count=500, seed=911, esrp="sips:sos@esrp.example:5061", psap="sips:psap{number}@psap.example:5061",
               default="sips:default@psap.example:5061"):
    """A FeatureCollection: the state for urn:service:sos (to the ESRP), the boundaries for urn:nena:service:sos.psap."""
    made = cells(count, seed)
    state = {"ttl": 86400, "uris": [esrp], "number": "911"}
    found = [feature(mapping(box(*STATE)), service=["urn:service:sos", "urn:service:test.sos"], sourceId="state", name="Texas, emergency services", **state)]
    for number, cell in enumerate(made, 1):
        # One address in each area, for civic locations.
        civic = [{"country": "US", "A1": "TX", "A2": f"County {number}"},
                 {"country": "US", "A1": "TX", "A2": f"County {number}", "RD": "Main", "STS": "St", "HNO": [1, 999]}]
        found.append(feature(mapping(cell), service="urn:nena:service:sos.psap", sourceId=f"psap-{number}", name=f"PSAP of County {number}",
                             uris=[psap.format(number=number)], number="911", ttl=3600, civic=civic))
    found.append(feature(None, service="urn:nena:service:sos.psap", sourceId="default", name="Default PSAP", uris=[default], default=True, ttl=300))
    return {"type": "FeatureCollection", "features": found}


def text(**options):
    return json.dumps(collection(**options), separators=(",", ":"))
