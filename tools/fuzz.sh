#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# fuzz.sh FUZZER SECONDS: runs one fuzz target over its corpus (t/fuzz/corpus/NAME) for that long. What it finds on the way is
# kept beside the program, not in the tree; a crash is reported with the file that causes it.
set -eu

fuzzer=$1
seconds=$2
name=$(basename "$fuzzer" | sed 's/^fuzz_//')
work=$fuzzer.work
mkdir -p "$work/corpus"
[ ! -d "t/fuzz/corpus/$name" ] || cp -n "t/fuzz/corpus/$name"/* "$work/corpus/" 2>/dev/null || true
if ! "$fuzzer" -max_total_time="$seconds" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 -artifact_prefix="$work/" \
	"$work/corpus" >"$work/log" 2>&1; then
	tail -40 "$work/log" >&2
	echo "fuzz $name: FAILED, the input is in $work" >&2
	exit 1
fi
echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") runs in ${seconds} s, nothing found"
