#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds circular dependencies between the files of daemon/, and prints each with its cause. Exit
status 1 if one has no reason below.

Headers: none may include itself through others. Sources: if a.c calls a function of b.c, the
calls of b.c must not lead back to a.c. Files that share an X_int.h count as one file, X."""
import re
import subprocess
import sys

# Circles with a reason.
ALLOWED = {
    "offer/mline_map offer/osrtp_legacy": "hidden and doubled m-lines of a side are numbered together",
    "web/client web/http web/page web/ws": "events of libwebsockets reach http, page and ws by client.c, and each may end the client",
    "steer/xdp/xdp_back steer/xdp/xdp_hub": "the hub starts the thread that tells it of interfaces",
}


def circles(graph):
    """Strongly connected components with more than one file (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(x):
        index[x] = low[x] = len(index)
        stack.append(x)
        for y in sorted(graph.get(x, ())):
            if y not in index:
                visit(y)
                low[x] = min(low[x], low[y])
            elif y in stack:
                low[x] = min(low[x], index[y])
        if low[x] == index[x]:
            part = [stack.pop()]
            while part[-1] != x:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for x in sorted(graph):
        if x not in index:
            visit(x)
    return found


def bare(text):
    """Code without comments and strings."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r'"(\\.|[^"\\])*"', '""', text)


def main():
    files = subprocess.check_output(["git", "ls-files", "daemon"], text=True).split()
    text = {}
    for f in files:
        if f.endswith((".c", ".h")) and "/bpf/" not in f:
            with open(f, encoding="utf-8") as t:
                text[f[len("daemon/"):]] = t.read()
    headers = {f: {n: "include" for n in re.findall(r'^#include "([^"]+\.h)"', t, re.M) if n in text}
               for f, t in text.items() if f.endswith(".h")}
    families = [f[:-len("_int.h")] for f in text if f.endswith("_int.h")]

    def family(f):
        stem = f[:-2]
        return next((x for x in families if stem == x or stem.startswith(x + "_")), stem)

    defined = {}
    for f, t in text.items():
        if f.endswith(".c"):
            for m in re.finditer(r"^(?!static|typedef|enum|extern)[a-z][^;{}=]*?\b(\w+)\([^;{}]*\)\n\{", bare(t), re.M):
                if m.group(1) != "main":
                    defined[m.group(1)] = (f.split("/")[0], family(f))
    sources = {}
    for f, t in text.items():
        if f.endswith(".c"):
            code = bare(t)
            mine = set(re.findall(r"^static [^;{}=]*?\b(\w+)\(", code, re.M))
            for name in set(re.findall(r"(?<!struct )\b(?:\w+(?=\()|\w+_\w+)\b", code)) - mine:
                other = defined.get(name)
                if other and other[1] != family(f) and (other[0] != "ctl") == (not f.startswith("ctl/")):
                    sources.setdefault(family(f), {}).setdefault(other[1], name)
    bad = 0
    for graph in headers, sources:
        for found in circles(graph):
            if any(set(found) <= set(line.split()) for line in ALLOWED):
                continue
            print("circle: " + " ".join(found))
            for x in found:
                for y in sorted(set(graph[x]) & set(found)):
                    print("\t%s -> %s (%s)" % (x, y, graph[x][y]))
            bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
