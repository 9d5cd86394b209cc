#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Names functions in C with more than six parameters: they take a struct. Functions whose parameters
a library prescribes are exempt. Exit status 1 if there are any others."""
import re
import subprocess
import sys

MOST = 6
# FILE:FUNCTION whose parameters a library prescribes: replacements of OpenCL's functions, and
# callbacks of libxml2.
PRESCRIBED = re.compile(r"t/.*:clEnqueue\w+|module/lost/xml\.c:on_element")
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
            if count(m.group(2)) > MOST and not PRESCRIBED.fullmatch(f"{path}:{m.group(1)}"):
                line = code.count("\n", 0, m.start()) + 1
                print(f"{path}:{line}: {m.group(1)}() has {count(m.group(2))} parameters; use a struct")
                found = 1
    return found


if __name__ == "__main__":
    sys.exit(main())
