#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests tools/soak.sh with a tree whose stages only print something: lines of runs, counts, conditions, resuming after an interruption.
set -euo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset GIT_DIR GIT_WORK_TREE MAKEFLAGS MFLAGS MAKELEVEL

fail() {
	echo "NOT OK soak: $1" >&2
	cat "$work"/runs "$work"/said >&2 2>/dev/null
	exit 1
}

# commit STAGE-A: a tree whose stage a prints and returns this.
commit() {
	mkdir -p "$work/source/tools"
	cp "$top/tools/soak.sh" "$work/source/tools/"
	cat >"$work/source/Makefile" <<END
check-deps check-build:
a:
	@$1
b:
	@echo "ok test_x: 7 passed (0 s)"; echo "2 passed, 0 failed"
	@echo "processors \$\$(taskset -cp \$\$\$\$ | sed 's/.*: //')" >>$work/saw
	@echo "children \$\$(pgrep -c -P \$\$(ps -o ppid= -p \$\$PPID))" >>$work/saw
END
	git -C "$work/source" init -q 2>/dev/null
	git -C "$work/source" add -A
	git -C "$work/source" -c user.name=x -c user.email=x@localhost commit -qm "$1"
}

# soak WANTED-STATUS [VARIABLE=VALUE...]
soak() {
	local wanted=$1 got=0
	shift
	env SOAK_RUNS=2 SOAK_STAGES="a b" "$@" "$work/source/tools/soak.sh" "$work/runs" "$work/tree" >"$work/said" 2>&1 || got=$?
	[ "$got" = "$wanted" ] || fail "status $got, not $wanted"
}

lines() {
	[ "$(grep -c "$1" "$work/runs")" = "$2" ] || fail "not $2 lines with $1"
}

commit 'echo "3 passed, 0 failed, 1 skipped"'
soak 2 SOAK_CONDITIONS="idle bussy"
grep -q '"bussy"' "$work/said" || fail "an unknown condition is not named"
soak 0 SOAK_SECONDS=0
[ ! -s "$work/runs" ] || fail "a run began after SOAK_SECONDS"
soak 0
lines " good stages=a,b passed=12 failed=0 unsteady=0 " 6
for condition in idle busy pinned; do
	lines " $condition good " 2
	grep -q " $condition stages=a,b: 2 of 2 good, 0 unsteady" "$work/said" || fail "no sum of $condition"
done
[ "$(grep -c "^processors [0-9]*$" "$work/saw")" -ge 2 ] || fail "no run was on one processor"
[ "$(sort "$work/saw" | uniq -c | awk '/children 3/ { print $1 }')" = 2 ] || fail "not two runs were beside two busy loops"
soak 0
lines good 6

commit 'echo "3 passed, 0 failed, 1 skipped, 2 unsteady"'
soak 1 SOAK_CONDITIONS=idle SOAK_RUNS=1
lines " idle bad stages=a,b passed=12 failed=0 unsteady=2 " 1
[ "$(find "$work/runs.d" -type f | wc -l)" = 1 ] || fail "the output of the bad run is not there, or others are"

commit 'echo "3 passed, 1 failed"; false'
soak 1 SOAK_CONDITIONS=pinned SOAK_RUNS=1
lines " pinned bad stages=a,b passed=12 failed=1 unsteady=0 .* failed-stages=a$" 1

# An interrupted run leaves no line, no busy loop and no stage; the next call makes the run.
commit "touch $work/begun; test -e $work/go || exec sleep 1000"
SOAK_RUNS=1 SOAK_STAGES="a b" SOAK_CONDITIONS=busy "$work/source/tools/soak.sh" "$work/runs" "$work/tree" >"$work/said" 2>&1 &
pid=$!
until [ -e "$work/begun" ]; do sleep 0.05; done
soak 2
children=$(pgrep -P $pid)
kill $pid
wait $pid && fail "an interrupted call succeeded"
for child in $children; do
	while kill -0 "$child" 2>/dev/null; do sleep 0.05; done
done
lines "stages=" 8
touch "$work/go"
soak 1 SOAK_CONDITIONS=busy SOAK_RUNS=1
lines " busy good " 3
echo "ok soak: lines, counts, conditions, interruptions"
