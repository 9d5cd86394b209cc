# SPDX-License-Identifier: GPL-2.0-or-later
"""An initramfs as a file: cpio's newc format, written directly, so that device nodes need no root. Uncompressed: an emulated
processor unpacks slowly."""
import os
import re
import subprocess

DIR, FILE, LINK, CHAR = 0o040000, 0o100000, 0o120000, 0o020000


class Initramfs:
    def __init__(self):
        self.entries = {}

    def put(self, path, data, mode, mtime=0):
        path = path.strip("/")
        parent = os.path.dirname(path)
        if parent and parent not in self.entries:
            self.put(parent, b"", DIR | 0o755)
        self.entries.setdefault(path, (data, mode, (0, 0), mtime))

    def dir(self, path):
        self.put(path, b"", DIR | 0o755)

    def char(self, path, major, minor):
        self.put(path, b"", CHAR | 0o600)
        self.entries[path.strip("/")] = (b"", CHAR | 0o600, (major, minor), 0)

    def link(self, path, target):
        self.put(path, target.encode(), LINK | 0o777)

    def text(self, path, text, mode=0o644):
        self.put(path, text.encode(), FILE | mode)

    def file(self, path, source):
        with open(source, "rb") as f:
            data = f.read()
        # Python uses a compiled file only if it has the source's time.
        self.put(path, data, FILE | (0o755 if os.access(source, os.X_OK) else 0o644), int(os.path.getmtime(source)))

    def program(self, path, source):
        """Adds a program with its libraries, each where the loader expects it."""
        self.file(path, os.path.realpath(source))
        said = subprocess.run(["ldd", source], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        for library in re.findall(r"(/\S+\.so[.0-9]*)\s+\(0x", said):
            self.file(library, os.path.realpath(library))
        if "not found" in said:
            raise RuntimeError(f"{source}: {said}")

    def python(self, top, folders, names):
        """Adds the interpreter and everything these modules import, each at its place. Files below
        top go to /tree."""
        code = ("import sys; sys.dont_write_bytecode = True; sys.path[:0] = " + repr(folders) + "; import encodings.ascii, encodings.idna, encodings.latin_1, " + ", ".join(names) +
                "; print(*{f for m in list(sys.modules.values()) for f in (getattr(m, '__file__', None), getattr(m, '__cached__', None)) if f}, sep=chr(10))")
        said = subprocess.run(["/usr/bin/python3", "-c", code], check=True, text=True, stdout=subprocess.PIPE).stdout
        self.program("usr/bin/python3", "/usr/bin/python3")
        for path in said.split():
            if path.endswith(".so"):
                self.program(path, path)
            elif os.path.exists(path):
                self.file(path.replace(top, "tree", 1) if path.startswith(top) else path, path)

    def write(self, path):
        with open(path, "wb") as out:
            def record(number, name, data, mode, device, mtime):
                head = [number, mode, 0, 0, 1, mtime, len(data), 0, 0, device[0], device[1], len(name) + 1, 0]
                text = b"070701" + "".join(f"{v:08X}" for v in head).encode() + name.encode() + b"\0"
                out.write(text + b"\0" * (-len(text) % 4) + data + b"\0" * (-len(data) % 4))

            for number, (name, entry) in enumerate(sorted(self.entries.items()), 1):
                record(number, name, *entry)
            record(0, "TRAILER!!!", b"", 0, (0, 0), 0)
