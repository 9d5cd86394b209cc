#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# unit.sh PROGRAM: runs one program of unit tests. Several run in parallel, so its output is printed at the end, and only if it failed.
set -u

name=$(basename "$1")
log=$1.log
start=$(date +%s)
if "$1" >"$log" 2>&1; then
	passed=$(awk '/^\[  PASSED  \] [0-9]/ { n += $4 } END { print n + 0 }' "$log")
	skipped=$(awk '/^\[  SKIPPED \] [a-z_0-9]+$/ { n = n " " $4 } END { print n }' "$log")
	echo "ok $name: $passed passed${skipped:+, skipped:$skipped} ($(($(date +%s) - start)) s)"
else
	cat "$log"
	echo "NOT OK $name" >&2
	exit 1
fi
