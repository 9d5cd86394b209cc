#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# globals.sh LIBRARY: no writable global outside app/ and the log, or some packet's thread will share it one day.
# Tables of constants that hold pointers are in .data.rel.ro: read-only once the program is loaded.
set -eu

found=$(objdump -t "$1" | awk '
	/file format/ { file = $1; sub(":$", "", file) }
	$0 ~ / O \.(data|bss|tdata|tbss)(\.[a-z_.0-9]*)?\t/ && $0 !~ /\.data\.rel\.ro/ && $0 !~ /\*COM\*/ { print file ":" $NF }
	/\*COM\*/ { print file ":" $NF }' | grep -vE '^log\.o:|__compound_literal|^main\.o:' || true)
if [ -n "$found" ]; then
	echo "writable globals:" >&2
	echo "$found" >&2
	exit 1
fi
echo "no writable globals in $(basename "$1")"
