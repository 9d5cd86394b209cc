#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# soak.sh FILE TREE: runs the test stages of make check SOAK_RUNS times (20) in each of three conditions: idle, beside two busy loops
# (busy), and on one processor (pinned). TREE is a clean clone of the commit, built once. Each run adds a line to FILE; lines of several
# machines can be joined. An interrupted run leaves no line, and the next call repeats it. Unsteady tests count as failures. The output of
# a bad run stays in FILE.d. The sums come last. Status 1: a run was bad, also an earlier one in FILE.
#
# SOAK_COMMIT (HEAD), SOAK_RUNS (20), SOAK_CONDITIONS, SOAK_STAGES (all of the list below), SOAK_SECONDS (no run begins after this time).
set -euo pipefail

[ $# = 2 ] || { echo "usage: soak.sh FILE TREE (or: make check-soak)" >&2; exit 2; }
file=$(realpath "$1")
tree=$(realpath -m "$2")
source=$(cd "$(dirname "$0")/.." && pwd)
all="check-unit check-fuzz check-ng911 check-compat check-e2e check-calls check-attack check-threads check-kernel check-ct"
stages=${SOAK_STAGES:-$all}
conditions=${SOAK_CONDITIONS:-idle busy pinned}
runs=${SOAK_RUNS:-20}
for word in $conditions; do
	case $word in
	idle | busy | pinned) ;;
	*) echo "soak: SOAK_CONDITIONS has \"$word\"; it can have idle, busy, pinned" >&2; exit 2 ;;
	esac
done
whole=$(git -C "$source" rev-parse "${SOAK_COMMIT:-HEAD}^{commit}")
commit=${whole:0:12}
which=all
[ "$stages" = "$all" ] || which=${stages// /,}
begun=$SECONDS
busy=()
job=

exec 9>>"$file"
flock -n 9 || { echo "soak: another call writes to $file: wait for its end" >&2; exit 2; }
mkdir -p "$file.d"

unbusy() {
	[ ${#busy[@]} = 0 ] || kill "${busy[@]}" 2>/dev/null || true
	busy=()
}
trap 'unbusy; [ -z "$job" ] || kill "$job" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM HUP

# done_in CONDITION: how many runs of this commit and these stages have a line.
done_in() {
	awk -v c="$commit" -v k="$1" -v s="stages=$which" '$2 == c && $3 == k && $5 == s { n++ } END { print n + 0 }' "$file"
}

# next: the condition with the fewest runs, so that a part of the runs says something about all three.
next() {
	local best="" least=$runs k n
	for k in $conditions; do
		n=$(done_in "$k")
		[ "$n" -ge "$least" ] || { best=$k least=$n; }
	done
	echo "$best"
}

# counts LOG: passed, failed, unsteady, as the runners of the stages print them.
counts() {
	awk '
		match($0, /^[0-9]+ passed, [0-9]+ failed/) { p += $1; f += $3 }
		match($0, /^[0-9]+ passed, .* unsteady/) { sub(/ unsteady.*/, ""); sub(/.* /, ""); u += $0; next }
		/^ok [a-z_0-9]+: [0-9]+ passed/ { p += $3 }
		/^ok [0-9]+ - / || /^[a-z0-9]+ +[0-9.]+ ok [0-9]+/ || /^ok seed / { p++ }
		/^NOT OK test_[a-z_0-9]+$/ || /^NOT OK seed / || /^[a-z0-9]+ +[0-9.]+ not ok [0-9]+/ { f++ }
		/^check-kernel: UNSTEADY/ { u += NF - 2 }
		END { print "passed=" p + 0, "failed=" f + 0, "unsteady=" u + 0 }' "$1"
}

prepare() {
	if [ ! -d "$tree/.git" ]; then
		git clone -q "$source" "$tree"
	fi
	git -C "$tree" cat-file -e "$whole" 2>/dev/null || git -C "$tree" fetch -q "$source" "$whole"
	git -C "$tree" checkout -q --detach "$whole"
	[ -z "$(git -C "$tree" status --porcelain)" ] || { echo "soak: $tree has changed files: remove it" >&2; exit 2; }
	make -C "$tree" check-deps check-build
}

# run CONDITION: one line.
run() {
	local pin=() bad="" log start load stage counted unsteady good
	log="$file.d/$commit-$1-$(date +%Y%m%dT%H%M%S)"
	load=$(cut -d' ' -f1 /proc/loadavg)
	case $1 in
	busy) for _ in 1 2; do
		(exec 9>&-; while :; do :; done) &
		busy+=($!)
	done ;;
	pinned) pin=(taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')") ;;
	esac
	start=$SECONDS
	for stage in $stages; do
		"${pin[@]}" make -C "$tree" "$stage" >>"$log" 2>&1 9>&- &
		job=$!
		wait "$job" || bad+=",$stage"
		job=
	done
	unbusy
	counted=$(counts "$log")
	unsteady=${counted##*=}
	good=good
	[ -z "$bad" ] && [ "$unsteady" = 0 ] || good=bad
	echo "$(date +%Y-%m-%dT%H:%M:%S) $commit $1 $good stages=$which $counted seconds=$((SECONDS - start)) load=$load cpus=$(nproc)${bad:+ failed-stages=${bad#,}}" >>"$file"
	tail -1 "$file"
	[ $good = bad ] || rm -f "$log"
}

sums() {
	awk '
		{ n[$2 " " $3 " " $5]++; good[$2 " " $3 " " $5] += $4 == "good"; split($8, u, "="); unsteady[$2 " " $3 " " $5] += u[2]; bad += $4 != "good" }
		END {
			for (k in n)
				printf "%s: %d of %d good, %d unsteady\n", k, good[k], n[k], unsteady[k] | "sort"
			close("sort")
			exit bad > 0
		}' "$file"
}

if [ -n "$(next)" ]; then
	prepare
fi
while condition=$(next) && [ -n "$condition" ]; do
	if [ -n "${SOAK_SECONDS:-}" ] && [ $((SECONDS - begun)) -ge "$SOAK_SECONDS" ]; then
		echo "soak: SOAK_SECONDS are over; call again to resume"
		break
	fi
	run "$condition"
done
sums
