#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# deb.sh DIR: the Debian packages, source package included, from the committed tree into DIR. Needs no root; what it needs besides the
# packages of "deps-deb" are the archives this machine's apt uses, for Kamailio's headers. As root it builds as nobody.
# The maintainer is the publisher: DEBFULLNAME and DEBEMAIL as for Debian's tools, else the author of the commit.
set -eu
# make's variables must not reach the builds of the packages.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL CC

dir=${1:?usage: deb.sh DIR}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
version=$(dpkg-parsechangelog -S Version)
work=$dir/xcipher-$version
[ "$version" = "$(cat VERSION)" ] || { echo "deb.sh: debian/changelog says $version, VERSION $(cat VERSION)" >&2; exit 1; }
rm -rf "$work" "$dir"/*.deb "$dir"/*.changes "$dir"/*.buildinfo "$dir"/*.dsc "$dir"/*.tar.xz
mkdir "$work"
if git rev-parse --git-dir >/dev/null 2>&1; then
	git archive HEAD | tar -C "$work" -xf -
	git diff --quiet HEAD || echo "deb.sh: uncommitted changes are not packaged" >&2
else
	tar --exclude=./build -cf - . | tar -C "$work" -xf -
fi

maintainer=${DEBEMAIL:+${DEBFULLNAME:-xcipher} <$DEBEMAIL>}
[ -n "$maintainer" ] || maintainer=$(git log -1 --format='%an <%ae>' 2>/dev/null || true)
[ -z "$maintainer" ] || python3 - "$maintainer" "$work/debian" <<'END'
import re
import sys

who, folder = sys.argv[1:]
for name, line in (("control", r"(?m)^Maintainer: .*$"), ("changelog", r"(?m)^ -- .*>")):
    with open(f"{folder}/{name}", encoding="utf-8") as f:
        text = f.read()
    start = "Maintainer: " if name == "control" else " -- "
    with open(f"{folder}/{name}", "w", encoding="utf-8") as f:
        f.write(re.sub(line, lambda _: start + who, text, count=1))
END

echo "building packages of xcipher $version, log in $dir/build.log ..."
as_builder=
if [ "$(id -u)" = 0 ]; then
	home=$(mktemp -d "$dir/home.XXXXXX")
	trap 'rm -rf "$home"' EXIT
	trap "exit 1" INT TERM
	chown -R nobody:nogroup "$dir"
	as_builder="setpriv --reuid=nobody --regid=nogroup --clear-groups env HOME=$home"
fi
# shellcheck disable=SC2086 # words
if ! (cd "$work" && $as_builder dpkg-buildpackage -us -uc -F "-j$(nproc)") >"$dir/build.log" 2>&1; then
	tail -30 "$dir/build.log" >&2
	exit 1
fi
rm -rf "$work"
ls -l "$dir"/*.deb
# shellcheck disable=SC2086 # words
$as_builder lintian --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs "$dir"/xcipher_*.changes
echo "lintian has nothing to say"
