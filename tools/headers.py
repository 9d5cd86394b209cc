#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks where daemon/ declares its public functions and tables. What X.c defines for other files is
declared in one of these headers of the same folder:

- X.h or X_int.h, the file's own header,
- Y.h or Y_int.h, if X.c is named Y_something.c: it is a part of Y,
- the face of the room: the header that has the room's name,
- the header of an interface, for a table of its operations (struct ..._ops).

Prints every other declaration. Exit status 1 if there are any. The compiler reports definitions
without a declaration (-Wmissing-prototypes)."""
import os
import re
import subprocess
import sys

def bare(text):
    """Code without comments, strings and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    return re.sub(r"^#(.*\\\n)*.*$", "", text, flags=re.M)


ATTRIBUTE = r"(?:__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*)?"
DEFINED = re.compile(r"^(?!static\b|typedef\b|extern\b|_Static)" + ATTRIBUTE + r"[a-z_][\w\s*]*?\b(\w+)\([^;{}]*\)\s*\n\{", re.M)
DECLARED = re.compile(r"^(?!static\b|typedef\b|extern\b)" + ATTRIBUTE + r"[a-z_][\w\s*]*?\b(\w+)\([^;{}]*\)\s*" + ATTRIBUTE + ";", re.M)
TABLE = re.compile(r"^const (?:struct|char|u?int\d+_t)\b([\w\s*]*?)\b(\w+)(?:\[[^\]]*\])* = ", re.M)
EXTERN = re.compile(r"^extern ([^;]*);", re.M)


def main():
    files = [f for f in subprocess.check_output(["git", "ls-files", "daemon"], text=True).split()
             if f.endswith((".c", ".h")) and "/bpf/" not in f and os.path.exists(f)]
    text = {f: bare(open(f, encoding="utf-8").read()) for f in files}
    declared = {}
    for f in files:
        if f.endswith(".h"):
            names = set(DECLARED.findall(text[f]))
            for line in EXTERN.findall(text[f]):
                names.update(re.findall(r"\b(\w+)(?:\[[^\]]*\])*\s*(?:,|$)", line))
            for name in names:
                declared.setdefault(name, set()).add(f)
    bad = 0
    for f in files:
        if not f.endswith(".c"):
            continue
        folder, stem = os.path.split(f[:-2])
        room = f.split("/")[1]
        parts = stem.split("_")
        may = {"%s/%s%s.h" % (folder, "_".join(parts[:n]), end) for n in range(1, len(parts) + 1) for end in ("", "_int")}
        may.add("daemon/%s/%s.h" % (room, room))
        found = {name: False for name in DEFINED.findall(text[f])}
        found.update({name: bool(re.search(r"_ops\b", kind)) for kind, name in TABLE.findall(text[f])})
        for name, is_ops in found.items():
            where = declared.get(name)
            if where and not where & may and not is_ops:
                print("%s: %s is declared in %s" % (f, name, " ".join(sorted(where))))
                bad = 1
    return bad


if __name__ == "__main__":
    sys.exit(main())
