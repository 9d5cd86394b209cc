#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stages.sh MAKE TARGET...: makes the targets one after the other, ends at the first that fails, and prints for each its duration and
# its processor time. A+B+C: all three in parallel, because some of them wait, or leave a processor idle at their end. The output of A
# appears at once, that of the others when all are done. Output of failed targets comes last.
set -eu

make=$1
shift
took=
work=$(mktemp -d)
used=$work/times
trap 'rm -rf "$work"' EXIT

# Seconds that processors worked for all children until "times" wrote to $used. $(times) would be the times of a subshell.
worked() {
	tail -1 "$used" | tr 'ms' '  ' | awk '{ printf "%d\n", 60 * ($1 + $3) + $2 + $4 }'
}

# Returns 1 if one of the targets failed.
beside() {
	first=$1
	shift
	for t; do
		{ $make "$t" >"$work/$t" 2>&1 && mv "$work/$t" "$work/$t.passed"; } &
	done
	failed=
	$make "$first" || failed=" $first"
	wait
	for t; do
		[ ! -e "$work/$t.passed" ] || { echo "== $t" && cat "$work/$t.passed"; }
	done
	for t; do
		[ -e "$work/$t.passed" ] || { echo "== $t" && cat "$work/$t" && failed="$failed $t"; }
	done
	[ -z "$failed" ] || echo "check: failed:$failed" >&2
	[ -z "$failed" ]
}

stage() {
	case $1 in
	*+*)
		IFS=+
		# shellcheck disable=SC2086 # splits it
		set -- $1
		unset IFS
		beside "$@"
		;;
	*) $make "$1" ;;
	esac
}

for target; do
	start=$(date +%s)
	times >"$used"
	before=$(worked)
	if stage "$target"; then
		times >"$used"
		took="$took, $target $(($(date +%s) - start)) s ($(($(worked) - before)) of a processor)"
	else
		echo "check: $target failed after $(($(date +%s) - start)) s${took:+; before it$took}" >&2
		exit 1
	fi
done
echo "check: all passed${took}"
