#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# example-conf.sh PROGRAM: a configuration file of xcipherd or xcipher-web with every option commented, from the program's own --help.
set -eu

program=${1:?usage: example-conf.sh PROGRAM}
name=$(basename "$program")
case $name in
xcipherd) section=xcipher ;;
*) section=$name ;;
esac
cat <<TEXT
# Options of $name. Each is also a long option of the command line, which takes precedence; see $name(8).
# Lines that begin with # are comments. They show the default, or the form of the value.

[$section]
TEXT
"$program" --help | awk '
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
