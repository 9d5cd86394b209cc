#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# docs.sh BUILD: every option that a program's --help names is in its man page, and the other way round.
set -eu

# check PROGRAM PAGE [COMMAND...]: with commands, the options of all of them together.
check() {
	program=$1
	page=$2
	shift 2
	in_help=$(for command in "${@:-}"; do "$program" ${command:+"$command"} --help; done | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u)
	in_page=$(sed 's/\\&//g' "$page" | grep -oE '(Fl|,) -[a-z][a-z0-9-]*' | sed -E 's/^(Fl|,) -/--/' | grep -v -- '--option$' | sort -u)
	if [ "$in_help" != "$in_page" ]; then
		echo "$program --help and $page disagree:" >&2
		printf '%s\n%s\n' "$in_help" "$in_page" | sort | uniq -u >&2
		exit 1
	fi
}

check "$1/xcipherd" man/xcipherd.8

# Options that a running daemon reloads.
live=$(grep -oE 'X\("[a-z0-9-]+", LIVE' daemon/app/options.h | cut -d'"' -f2 | sort)
listed=$(sed -n '/without touching a call: /,/change at once\./p' man/xcipherd.8 | sed -E 's/.*without touching a call: //; s/change at once\..*//' |
	tr ',' '\n' | sed 's/ and /\n/' | tr -d ' ' | grep . | sort)
[ "$live" = "$listed" ] || {
	echo "LIVE rows of options.h and the list in man/xcipherd.8 disagree:" >&2
	printf '%s\n%s\n' "$live" "$listed" | sort | uniq -u >&2
	exit 1
}
# The reasons of ng errors, with their remedies.
sed -n 's/^\tX([A-Z_]*, "\(.*\)", \\$/.It Sy "\1"/p; s/^\t\t"\(.*\)").*/\1/p' daemon/proto/ng_errors.h |
	sed "s/\\\\\"/\\\\(dq/g; s/'/\\\\(aq/g; s/--/\\\\-\\\\-/g" > "$1/ng-errors"
[ -s "$1/ng-errors" ] || exit 1
sed -n '/^These are the texts of error-reason/,/^\.El/p' man/xcipher-ng.7 | sed '1,/^\.Bl/d; $d' | diff - "$1/ng-errors" >&2 || {
	echo "daemon/proto/ng_errors.h and man/xcipher-ng.7 disagree" >&2
	exit 1
}
check "$1/xcipherctl" man/xcipherctl.1
check "$1/xcipher-web" man/xcipher-web.8
check packaging/xcipher-migrate man/xcipher-migrate.7
packaging/xcipher-migrate --table | cut -c7- | awk '{ print $1 }' > "$1/migrate-table"
sed -n '/^\.Sh OPTIONS OF/,/^\.El/s/^\.It //p' man/xcipher-migrate.7 | diff - "$1/migrate-table" >&2 || {
	echo "xcipher-migrate --table and man/xcipher-migrate.7 disagree" >&2
	exit 1
}
check "$1/xcipher-codec-test" man/xcipher-codec-test.1
# Macros that mdoc prints as text, because their line does not begin with one.
if grep -nE '^[^.].*(^| )(Ar|Cm|Dq|Fl|Li|Ns|Pa|Pq|Xr) ' man/*; then
	echo "a line with these macros must begin with a macro" >&2
	exit 1
fi
check "$1/xcipher-bench" man/xcipher-bench.1 cipher codec gpu path dtls ice mikey zrtp
echo "help and man pages agree"
