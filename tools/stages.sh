#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stages.sh MAKE TARGET...: makes the targets one after the other, ends at the first that fails, and says how long each took. A+B: B is
# made beside A, which waits and ends on one processor, and its output comes when both are done.
set -eu

make=$1
shift
took=

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
	if stage "$target"; then
		took="$took, $target $(($(date +%s) - start)) s"
	else
		echo "check: $target failed after $(($(date +%s) - start)) s${took:+; before it$took}" >&2
		exit 1
	fi
done
echo "check: all passed${took}"
