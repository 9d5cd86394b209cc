#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stages.sh MAKE TARGET...: makes the targets one after the other, ends at the first that fails, and prints for each its duration and
# its processor time. A+B: B is made in parallel to A, because one of them mostly waits. Its output comes when both are done.
set -eu

make=$1
shift
took=
used=$(mktemp)
trap 'rm -f "$used"' EXIT

# Seconds that processors worked for all children until "times" wrote to $used. $(times) would be the times of a subshell.
worked() {
	tail -1 "$used" | tr 'ms' '  ' | awk '{ printf "%d\n", 60 * ($1 + $3) + $2 + $4 }'
}

beside() {
	log=$(mktemp)
	$make "$2" >"$log" 2>&1 &
	other=$!
	failed=0
	$make "$1" || failed=1
	wait "$other" || failed=1
	cat "$log"
	rm -f "$log"
	return $failed
}

stage() {
	case $1 in
	*+*) beside "${1%%+*}" "${1#*+}" ;;
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
