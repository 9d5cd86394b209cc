#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports references to files and tests that are not in the tree: in Markdown, in man pages, and .md files named anywhere.

In Markdown a reference is the target of a link, or a word in backticks that looks like a path of this tree or like a test.
A path counts from the root of the tree, from the page's own folder, or from t/; a bare name may be any file of the tree.
`test_a` is a test file or function, `test_a.test_b` a function of that file; `*` matches any characters."""
import fnmatch
import functools
import os
import re
import subprocess
import sys

TREE = set(subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], check=True, text=True, capture_output=True).stdout.split("\n")) - {""}
TREE = {f for f in TREE if os.path.isfile(f)}
FOLDERS = {f[:i] for f in TREE for i, c in enumerate(f) if c == "/"}
PATHS = TREE | FOLDERS
NAMES = {os.path.basename(f) for f in TREE}
TOP = {f.split("/")[0] for f in FOLDERS} | {f.split("/")[1] for f in FOLDERS if f.startswith("t/")}
ENDINGS = (".c", ".h", ".md", ".py", ".sh", ".cl", ".json", ".mk", ".cfg", ".js")
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)*/?$")
OURS = ("build",)  # created by make


def functions(path):
    with open(path, encoding="utf-8") as f:
        return set(re.findall(r"\b(?:def |void )(test_\w+)", f.read()))


TESTS = {f: functions(f) for f in TREE if re.match(r"t/\w+/test_\w+\.(c|py)$", f)}


@functools.cache
def is_test(word):
    module, _, function = word.partition(".")
    files = [f for f in TESTS if fnmatch.fnmatch(os.path.splitext(os.path.basename(f))[0], module)]
    if function:
        return any(fnmatch.filter(TESTS[f], function) for f in files)
    return bool(files) or any(fnmatch.filter(found, module) for found in TESTS.values())


@functools.cache
def matches(pattern):
    """Whether a file or folder of the tree has this path."""
    return pattern in PATHS or "*" in pattern and bool(fnmatch.filter(PATHS, pattern))


@functools.cache
def is_there(path, folder):
    path = path.rstrip("/")
    for root in ("", folder, "t"):
        full = os.path.normpath(os.path.join(root, path))
        if full == "." or any(matches(full + end) for end in ("", ".c", ".py")):
            return True
    return "/" not in path and (path in NAMES or "*" in path and bool(fnmatch.filter(NAMES, path)))


def is_path(word):
    if not PATH.match(word) or word.split("/")[0] in OURS:
        return False
    return word.endswith(ENDINGS) or "/" in word and word.split("/")[0] in TOP


def markdown(page, line):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", line):
        if "://" not in target and not is_there(target, os.path.dirname(page)):
            yield target
    for span in re.findall(r"`([^`]+)`", line):
        for word in span.split():
            word = word.rstrip(",:;")
            if re.match(r"test_[\w*]+(\.test_[\w*]+)?$", word):
                if not is_test(word):
                    yield word
            elif is_path(word) and not is_there(word, os.path.dirname(page)):
                yield word


def manual(line):
    found = re.match(r"\.Xr (xcipher\S*) (\d)", line)
    if found and f"man/{found[1]}.{found[2]}" not in TREE:
        yield f"{found[1]}({found[2]})"


def main():
    wrong = 0
    for page in sorted(TREE):
        if page.startswith("t/fuzz/corpus/") or page.startswith("t/vectors/"):
            continue
        try:
            with open(page, encoding="utf-8") as f:
                lines = f.read().split("\n")
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            missing = list(markdown(page, line)) if page.endswith(".md") else manual(line) if page.startswith("man/") else []
            words = re.findall(r"[\w./-]*\b\w+\.md\b", line) if ".md" in line and not page.endswith(".md") else []
            missing = [*missing, *(w for w in words if not is_there(w.lstrip("/"), os.path.dirname(page)))]
            for word in missing:
                print(f"{page}:{number}: {word} is not in the tree", file=sys.stderr)
                wrong += 1
    return min(wrong, 1)


sys.exit(main())
