# shellcheck shell=sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What the tests in the guest share. Numbers go on from file to file: /tmp/tap-number.

tap_line() {
	n=$(($(cat /tmp/tap-number) + 1))
	echo $n >/tmp/tap-number
	echo "$1 $n - $2"
}

ok() {
	tap_line ok "$1"
}

not_ok() {
	echo "$1" >>/tmp/tap-failed
	tap_line "not ok" "$1"
}

# check NAME COMMAND...: passes if the command succeeds; what it says is shown if not.
check() {
	name=$1
	shift
	if "$@" >/tmp/check-out 2>&1; then
		ok "$name"
	else
		not_ok "$name"
		echo "# $*"
		head -20 /tmp/check-out | sed 's/^/#   /'
	fi
}

# is NAME GOT WANTED
is() {
	if [ "$2" = "$3" ]; then
		ok "$1"
	else
		not_ok "$1: got \"$2\", wanted \"$3\""
	fi
}

# between NAME GOT MIN MAX
between() {
	if [ "${2:--1}" -ge "$3" ] && [ "${2:--1}" -le "$4" ]; then
		ok "$1 ($2)"
	else
		not_ok "$1: got $2, wanted $3 to $4"
	fi
}

fails() {
	if "$@"; then return 1; fi
	return 0
}
