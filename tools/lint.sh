#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Formatting, static analysis, shell scripts, and the rules of the house that a machine can check.
set -u
cd "$(dirname "$0")/.." || exit 1
failed=0

complain() {
	echo "lint: $1" >&2
	failed=1
}

files() {
	git ls-files -- "$@" | while read -r f; do [ -e "$f" ] && echo "$f"; done
}

mapfile -t c_files < <(files 'daemon/*.c' 'daemon/*.h' 'module/*.c' 'module/*.h' 't/*.c' 't/*.h' 'codecs/*.c' 'codecs/*.h' 'include/*.h' 'kernels/layout.h')
mapfile -t kernel_files < <(files 'kernel-module/*.c' 'kernel-module/*.h') # in the kernel's format
mapfile -t sh_files < <(files 'tools/*.sh' 't/*.sh' '.ci/run' 'tools/completion/*.bash' packaging/xcipher-demo debian/tests/relay debian/tests/module debian/tests/demo)
mapfile -t py_files < <(files '*.py' packaging/xcipher-migrate ng911/xcipher-lost ng911/xcipher-border)

# cppcheck takes most of the time. The other checks run beside it, on the processor that it leaves idle at its end. Without -U it checks each
# file as OpenCL C and as C++, too, because kernels/layout.h and include/xcipher_codec.h test these macros.
cppcheck --quiet --std=c11 --enable=warning,portability --inline-suppr --suppress=missingIncludeSystem --suppress=unknownMacro \
	--suppress=normalCheckLevelMaxBranches --suppress=duplicateAssignExpression --error-exitcode=1 -j2 -Idaemon -Ikernels -Imodule -Iinclude -U__OPENCL_C_VERSION__ -U__cplusplus daemon module codecs &
cppcheck=$!

printf '%s\0' "${c_files[@]}" | xargs -0 -P2 -n100 clang-format-14 --dry-run -Werror 2>&1 | grep -E 'error:' | cut -d: -f1 | sort | uniq -c | head -20
[ "${PIPESTATUS[1]}" = 0 ] || complain "formatting differs: clang-format-14 -i FILE mends it"

[ ${#sh_files[@]} = 0 ] || shellcheck "${sh_files[@]}" || complain "shellcheck"
/usr/bin/python3 -m pyflakes "${py_files[@]}" || complain "python: syntax or names"
mandoc -Tlint -W warning man/*.[1-8] | grep -vE "new sentence|conventional order" && complain "man pages"

python3 tools/parameters.py || complain "functions with more than six parameters"
python3 tools/references.py || complain "references to files or tests that are not in the tree"

# Commit subjects are "area: imperative", up to 72 characters. Commits up to this one are older than the rule.
before_rule=17cc193c26fe
if git merge-base --is-ancestor $before_rule HEAD 2>/dev/null; then
	area='[A-Za-z0-9_./-]+'
	while read -r commit subject; do
		# Six that were merged unchecked, and that others build on.
		[[ ${commit:0:8} == @(3fe12deb|a05baf87|56c8a25c|679f82a8|8dfc63d3|06b216e6) ]] && continue
		[ ${#subject} -le 72 ] || complain "$commit: subject has ${#subject} characters, at most 72: $subject"
		[[ $subject =~ ^$area(,\ $area)*:\ [^\ ] ]] || complain "$commit: subject is not 'area: imperative': $subject"
		[[ $subject =~ :\ (the|a|an|what|who|which|where|when|if|no|this|that|it|its|there)\  ]] &&
			complain "$commit: subject does not begin with a verb: $subject"
	done < <(git log --no-merges --format='%h %s' $before_rule..HEAD)
fi

# shellcheck disable=SC2046 # no file of the tree has a space in its name
awk '
	function ended() { if (file != "" && !found) { print file ": no SPDX line"; bad = 1 } }
	FNR == 1 {
		ended()
		file = FILENAME; found = 0
		want = "SPDX-License-Identifier: GPL-2[.]0-or-later"
		if (file ~ /^kernel-module\/.*[.][ch]$/)
			want = "SPDX-License-Identifier: GPL-2[.]0" # as the kernel
	}
	FNR <= 3 && $0 ~ want { found = 1 }
	FNR > 3 { nextfile }
	END { ended(); exit bad }' $(files '*.c' '*.h' '*.cl' '*.py' '*.sh' '*.mk' '*.cfg' '*.bash' Makefile .ci/run 'man/*') ||
	complain "files without the licence"

# Comments and code have at most 100 columns, except long strings and rows of macros and arrays.
awk '
	length <= 12 || /"/ || /\\$/ { next }
	{
		columns = 0
		n = split($0, part, "\t")
		for (i = 1; i <= n; i++)
			columns += length(part[i]) + (i < n ? 8 - (columns + length(part[i])) % 8 : 0)
	}
	columns > 100 && !/^[ \t]+[{]/ { print FILENAME ":" FNR ": " columns " columns"; bad = 1 }
	END { exit bad }' "${c_files[@]}" "${kernel_files[@]}" || complain "lines over 100 columns"

# Which rooms each room may include (daemon/README.md has the same table). Every room may include
# base and itself.
declare -A may=(
	[base]="" [host]="" [srtp]="" [packet]="srtp" [codec]=""
	[proto]="srtp"
	[batch]="srtp packet codec"
	[media]="proto srtp packet batch"
	[steer]="host packet"
	[worker]="host packet batch media steer"
	[ice]="proto srtp"
	[keying]="proto srtp"
	[call]="proto srtp packet media keying codec audio"
	[audio]="srtp packet proto codec"
	[side]="srtp packet proto ice keying"
	[offer]="proto srtp call keying codec audio"
	[persist]="proto srtp call keying codec audio"
	[bridge]="host srtp packet proto batch media steer worker keying call side codec audio"
	[record]="proto packet batch worker call audio codec"
	[control]="host proto srtp call offer codec audio"
	[observe]="proto srtp packet batch media worker keying call persist bridge record control codec audio"
	[app]="host proto srtp packet batch media steer worker call keying offer persist bridge record control observe codec audio"
	[av]="codec audio"
	[ctl]="proto srtp"
	[web]="proto"
)
for folder in daemon/*/; do
	room=$(basename "$folder")
	[ -n "${may[$room]+known}" ] || complain "daemon/$room: not in the table of rooms"
	grep -qF "| \`$room\` | ${may[$room]:-nothing} |" daemon/README.md || complain "daemon/README.md: what $room may include is not \"${may[$room]:-nothing}\""
	while IFS=: read -r file included; do
		[ "$included" = base ] || [ "$included" = "$room" ] && continue
		[[ " ${may[$room]:-} " == *" $included "* ]] || complain "$file includes $included/: not allowed from $room/"
	done < <(grep -roE --include='*.[ch]' '^#include "[a-z]+/' "$folder" | sed -E 's/#include "([a-z]+)\//\1/')
done
python3 tools/circles.py || complain "circles between files of daemon/"
python3 tools/headers.py || complain "declarations in the header of another file"

# Reasons of ng errors are rows of proto/ng_errors.h.
grep -nE '(->|\.|\*)error = (.* )?"[^n]|plan_fail\([^"]*, *"[A-Z]' daemon/call/*.c daemon/offer/*.c daemon/keying/*.c daemon/control/*.c daemon/app/*.c && complain "a reason that is not in proto/ng_errors.h"
# Only keying/ knows the keying of a leg; persist/ lists what is saved.
grep -nE '\bKEYING_(SDES|PASS|DTLS|ZRTP|MIKEY)\b|keying(\.|->)(sdes|pass|dtls|zrtp|mikey)\b|#include "keying/(rows|sdes_)' daemon/*/*.[ch] | grep -vE '^daemon/(keying|persist)/' && complain "a keying's own state outside of keying/"
tools/fields.sh || complain "media/fields.h: a row without a column compiles"

# Pure rooms get time, randomness and sockets as parameters.
grep -nE '\b(clock_gettime|time|getrandom|secmem_random|socket|sendmsg|recvmsg|printf|log_write|log_(err|warn|info|debug))\(' \
	daemon/proto/*.c daemon/srtp/*.c daemon/ice/*.c | grep -v '/\*' && complain "proto/, srtp/ and ice/ are pure"

wait "$cppcheck" || complain "cppcheck"
exit $failed
