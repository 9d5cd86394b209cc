#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# run.sh CT_CHECK: constant time, under valgrind's memcheck (t/ct/ct_check.c). What is leaky on purpose has to be reported,
# nothing else may be. Kernels are compiled first, outside valgrind, into a cache beside the program.
set -u

program=$1
dir=$(dirname "$program")
here=$(dirname "$0")
POCL_CACHE_DIR=$(cd "$dir" && pwd)/pocl-cache
export POCL_CACHE_DIR
mkdir -p "$POCL_CACHE_DIR"
failed=0

# check NAME WANTED: 0 = memcheck is silent, 9 = it reports. The time limit is for hangs; a check usually takes half a minute.
check() {
	start=$(date +%s)
	timeout 1800 valgrind -q --error-exitcode=9 --suppressions="$here/ct.supp" "$program" "$1" >"$dir/$1.log" 2>&1
	got=$?
	if [ "$got" = "$2" ]; then
		echo "ok $1 ($(($(date +%s) - start)) s)$(sed -n 's/^\([0-9]* pairs.*\)/: \1/p' "$dir/$1.log")"
	elif [ "$2" = 9 ]; then
		echo "NOT OK $1: leaks, and nothing was reported ($got): the checker is blind"
		failed=1
	else
		echo "NOT OK $1 ($got):"
		head -30 "$dir/$1.log"
		failed=1
	fi
}

compile() {
	if ! "$program" "$1" >"$dir/$1.log" 2>&1; then
		echo "NOT OK $1: does not run outside valgrind either:"
		head -20 "$dir/$1.log"
		failed=1
	fi
}

for name in leaky-branch leaky-table; do
	check $name 9
done
for name in kdf mikey reference serial serial-libcrypto; do
	check $name 0
done
compile leaky-kernel
check leaky-kernel 9
for name in opencl opencl-portable opencl-scalar; do
	compile $name
	check $name 0
done
exit $failed
