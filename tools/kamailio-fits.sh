#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# kamailio-fits.sh MODULE.so: fails unless the installed Kamailio can load the module: same version and build flags, and every
# symbol that the module needs.
set -eu

kamailio=$(command -v kamailio || echo /usr/sbin/kamailio)
text=$(strings -a "$1")
says=$("$kamailio" -V)

for what in version flags; do
	want=$(echo "$says" | sed -n "s/^$what: *//p" | sed 's/ *$//')
	if ! echo "$text" | sed 's/ *$//' | grep -qxF "$want"; then
		echo "$1: its $what differ from those of $kamailio: $want" >&2
		exit 1
	fi
done

# Symbols from a library have a version suffix.
symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
nm -D --defined-only "$kamailio" | awk '{ print $3 }' | sort >"$symbols"
missing=$(nm -D --undefined-only "$1" | awk '$1 == "U" && $2 !~ /@/ { print $2 }' | sort | comm -23 - "$symbols" | tr '\n' ' ')
if [ -n "$missing" ]; then
	echo "$1: $kamailio lacks $missing" >&2
	exit 1
fi
