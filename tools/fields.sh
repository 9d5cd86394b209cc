#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Whether a row of daemon/media/fields.h that lacks a column, or has an empty or unknown one, is an
# error of the compiler: tries each on one row, and the row itself as a control. Status 0: all as
# expected.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/media"

# Compiles the lists with one more row.
compiles() { # row
	sed 's/define STREAM_FIELDS(X)/define OTHER_FIELDS(X)/' daemon/media/fields.h >"$dir/media/fields.h"
	echo "#define STREAM_FIELDS(X) OTHER_FIELDS(X) $1" >>"$dir/media/fields.h"
	cat daemon/media/{fields,fast_path}.c daemon/persist/save_tables.c >"$dir/all.c"
	${CC:-gcc} -std=gnu17 -Werror=implicit-function-declaration -fsyntax-only \
		-I"$dir" -Idaemon -Ikernels -Imodule "$dir/all.c" 2>/dev/null
}

column=(BY_VALUE ANY ANY NOT_SAVED)
join() {
	local IFS=,
	echo "X(bool, tried, , $*)"
}

compiles "$(join "${column[@]}")" || {
	echo "fields.sh: a row with all columns does not compile" >&2
	exit 1
}
for i in "${!column[@]}"; do
	for value in missing "" FORGOTTEN; do
		try=("${column[@]}")
		try[i]=$value
		[ "$value" = missing ] && unset "try[i]"
		if compiles "$(join "${try[@]}")"; then
			echo "fields.sh: a row compiles with column $((i + 1)) '$value'" >&2
			exit 1
		fi
	done
done
