#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# fuzz.sh FUZZER SECONDS [SEED [RUNS]]: runs one fuzz target over its corpus (t/fuzz/corpus/NAME) for that long, or until it has
# tried RUNS inputs. With a seed it starts from the corpus alone, at fixed addresses, so a second run tries the same inputs. Without
# one, what earlier runs found is kept beside the program, not in the tree. A crash is reported with the file that causes it.
set -eu

fuzzer=$1
seconds=$2
seed=${3:-0} # 0: libFuzzer draws one
runs=${4:--1}
name=$(basename "$fuzzer" | sed 's/^fuzz_//')
work=$fuzzer.work
fixed=
if [ "$seed" != 0 ]; then
	rm -rf "$work/corpus"
	! setarch -R true 2>/dev/null || fixed="setarch -R" # libFuzzer learns from the values of pointers, too
fi
mkdir -p "$work/corpus"
[ ! -d "t/fuzz/corpus/$name" ] || cp -n "t/fuzz/corpus/$name"/* "$work/corpus/" 2>/dev/null || true
if ! $fixed "$fuzzer" -seed="$seed" -max_total_time="$seconds" -runs="$runs" -rss_limit_mb=2048 -timeout=10 -print_final_stats=1 \
	-artifact_prefix="$work/" "$work/corpus" >"$work/log" 2>&1; then
	tail -40 "$work/log" >&2
	echo "fuzz $name: FAILED, the input is in $work" >&2
	exit 1
fi
echo "fuzz $name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log") runs in at most ${seconds} s, nothing found"
