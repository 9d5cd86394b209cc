#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# docs.sh BUILD: every option that a program's --help names is in its man page, and the other way round.
set -eu

check() {
	in_help=$("$1" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u)
	in_page=$(sed 's/\\&//g' "$2" | grep -oE '(Fl|,) -[a-z][a-z-]+' | sed -E 's/^(Fl|,) -/--/' | grep -v -- '--option$' | sort -u)
	if [ "$in_help" != "$in_page" ]; then
		echo "$1 --help and $2 disagree:" >&2
		printf '%s\n%s\n' "$in_help" "$in_page" | sort | uniq -u >&2
		exit 1
	fi
}

check "$1/xcipherd" man/xcipherd.8
check "$1/xcipherctl" man/xcipherctl.1
echo "help and man pages agree"
