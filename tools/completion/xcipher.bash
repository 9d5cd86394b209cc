# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xcipherd, xcipherctl and xcipher-bench: the options come from --help, so that they are never out of date.

_xcipher() {
	local cur=${COMP_WORDS[COMP_CWORD]} prog=${COMP_WORDS[0]} command=()
	[[ $prog == *xcipher-bench && $COMP_CWORD -gt 1 ]] && command=("${COMP_WORDS[1]}")
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$prog" "${command[@]}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*=?' | sort -u)" -- "$cur")
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	elif [[ $prog == *xcipherctl ]]; then
		mapfile -t COMPREPLY < <(compgen -W "ping list query statistics engine offer answer delete" -- "$cur")
	elif [[ $prog == *xcipher-bench && $COMP_CWORD -eq 1 ]]; then
		mapfile -t COMPREPLY < <(compgen -W "cipher gpu path" -- "$cur")
	fi
	return 0
}
complete -F _xcipher xcipherd xcipherctl xcipher-bench
