#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# stages.sh MAKE TARGET...: makes the targets one after the other, ends at the first that fails, and says how long each took.
set -eu

make=$1
shift
took=
for target; do
	start=$(date +%s)
	if $make "$target"; then
		took="$took, $target $(($(date +%s) - start)) s"
	else
		echo "check: $target failed after $(($(date +%s) - start)) s${took:+; before it$took}" >&2
		exit 1
	fi
done
echo "check: all passed${took}"
