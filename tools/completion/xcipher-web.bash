# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xcipher-web: its options come from --help, so that they are never out of date.

_xcipher_web() {
	local cur=${COMP_WORDS[COMP_CWORD]} prog=${COMP_WORDS[0]}
	mapfile -t COMPREPLY < <(compgen -W "$("$prog" --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]*=?' | sort -r | awk -F= '!seen[$1]++' | sort)" -- "$cur")
	[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	return 0
}
complete -F _xcipher_web xcipher-web
