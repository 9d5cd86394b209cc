# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions per packet by function, of run.py cost --exact. A plugin of qemu (count.c) counts how often each block of code runs during
each load; the guest tells where programs and symbols are. The same load over one link is subtracted."""
import base64
import bisect
import collections
import json
import os
import re
import subprocess
import sys
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(f"{HERE}/guest")
import sample  # noqa: E402

LEAST = 10  # instructions per packet; what has less is summed up as "other"


def plugin(base):
    """qemu's options, and the file that it writes."""
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", f"{base}/count.so", f"{HERE}/count.c"], check=True)
    return ["-plugin", f"{base}/count.so,out={base}/counts"], f"{base}/counts"


def sections_of(path):
    """[[(address, instructions, executions)]], in the order of the loads."""
    sections = []
    with open(path, encoding="ascii") as f:
        for line in f:
            if line.startswith("END"):
                sections.append([])
            else:
                at, n, count = line.split()
                sections[-1].append((int(at, 16), int(n), int(count)))
    return sections


class Places:
    """Names of addresses while a relay ran."""

    def __init__(self, told, own, base):
        self.own = own
        self.maps = sorted(told["maps"])
        path = f"{base}/kallsyms"
        with open(path, "wb") as f:
            f.write(zlib.decompress(base64.b64decode(told["symbols"])))
        self.kernel = sample.Table(path)

    def name(self, address):
        if address >> 63:
            return self.kernel.name(address)
        i = bisect.bisect_right(self.maps, [address, 1 << 64]) - 1
        if i < 0 or address >= self.maps[i][1]:
            return "load"
        begin, _, offset, file = self.maps[i]
        file = os.path.basename(file)
        return f"{file}: {self.own.name(address - begin + offset)}" if file == "xcipherd" else file

    def sums(self, section):
        sums = collections.Counter()
        for at, n, count in section:
            sums[self.name(at)] += n * count
        for name in sample.IDLE:
            sums.pop(name, None)
        return sums


def tables(log, counts, symbols, base):
    """Markdown: a table for each relay, media and load."""
    with open(log, errors="replace", encoding="utf-8") as f:
        text = f.read()
    cells = [json.loads(x) for x in re.findall(r"# cost \| (\{.*\})", text)]
    direct = {(c["media"], c["load"]): c for c in cells if c["row"] == "direct"}
    places = {}
    for x in re.findall(r"# places \| (\{.*\})", text):
        told = json.loads(x)
        told["symbols"] = "".join(re.findall(rf"# symbols {told['number']} \| (\S+)", text))
        places[told["row"], told["media"]] = told
    own, sections = sample.Table(symbols), sections_of(counts)
    for c in cells:
        if c["row"] == "direct":
            continue
        where, base_cell = Places(places[c["row"], c["media"]], own, base), direct[c["media"], c["load"]]
        mine, theirs = (where.sums(sections[x["section"] - 1]) for x in (c, base_cell))
        per_packet = {n: mine[n] / c["packets"] - theirs[n] / base_cell["packets"] for n in mine.keys() | theirs.keys()}
        small = sum(v for v in per_packet.values() if abs(v) < LEAST)
        yield f"\n{c['row']}, {c['media']}, {c['load']} together: {sum(per_packet.values()):.0f} instructions per packet\n"
        for name, v in sorted(per_packet.items(), key=lambda x: -x[1]):
            if abs(v) >= LEAST:
                yield f"| {name} | {v:.0f} |"
        yield f"| other | {small:.0f} |"
