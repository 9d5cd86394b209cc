# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xcipherd and xcipherctl: the options come from --help, so that they are never out of date.

_xcipher() {
	local cur=${COMP_WORDS[COMP_CWORD]} prog=${COMP_WORDS[0]}
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$("$prog" --help 2>/dev/null | grep -oE -- '--[a-z-]+=?' | sort -u)" -- "$cur")
		[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	elif [[ $prog == *xcipherctl ]]; then
		mapfile -t COMPREPLY < <(compgen -W "ping list query statistics engine offer answer delete" -- "$cur")
	fi
	return 0
}
complete -F _xcipher xcipherd xcipherctl
