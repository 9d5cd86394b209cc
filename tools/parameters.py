#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names functions in C with more than six parameters: they take a struct. The replacements of
OpenCL's own functions keep theirs. Exit status 1 if there are any."""
import re
import subprocess
import sys

MOST = 6
DEFINITION = re.compile(r"^(?:[A-Za-z_][\w *]*?)\b(\w+)\(([^;{}]*?)\)\s*\n\{", re.M)


def count(parameters):
    """Commas outside parentheses, plus one."""
    depth, n = 0, 1
    for c in parameters:
        depth += c in "(["
        depth -= c in ")]"
        n += c == "," and not depth
    return n


def main():
    found = 0
    files = subprocess.run(["git", "ls-files", "*.c", "*.h"], check=True, capture_output=True, text=True).stdout
    for path in files.split():
        with open(path, encoding="utf-8") as f:
            text = f.read()
        code = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
        for m in DEFINITION.finditer(code):
            if count(m.group(2)) > MOST and not m.group(1).startswith("clEnqueue"):
                line = code.count("\n", 0, m.start()) + 1
                print(f"{path}:{line}: {m.group(1)}() has {count(m.group(2))} parameters; use a struct")
                found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
