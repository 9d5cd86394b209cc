#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# example-conf.sh XCIPHERD: a configuration file with every option commented, from the program's own --help.
set -eu

cat <<'TEXT'
# xcipherd: options of the media relay. Each is also a long option of the command line, which takes precedence; see xcipherd(8).
# Lines that begin with # are comments. They show the default, or the form of the value.

[xcipher]
TEXT
"${1:?usage: example-conf.sh XCIPHERD}" --help | awk '
	/^  --(help|version|config-file|foreground|pidfile)([ =]|$)/ { next }
	/^  --/ {
		spec = substr($1, 3)
		text = $0
		sub(/^ *[^ ]+ +/, "", text)
		name = form = spec
		sub(/=.*/, "", name)
		value = (spec ~ /=/) ? substr(spec, index(spec, "=") + 1) : "yes"
		if (match(text, / \([^()]*\)$/)) {
			def = substr(text, RSTART + 2, RLENGTH - 3)
			text = substr(text, 1, RSTART - 1)
			form = value
		} else {
			def = (spec ~ /=/) ? "" : "no"
			form = value
		}
		printf "\n# %s: %s\n", form, text
		printf "#%s = %s\n", name, def
	}'
