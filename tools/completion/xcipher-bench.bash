# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xcipher-bench: its options come from --help, so that they are never out of date.

_xcipher_bench() {
	local cur=${COMP_WORDS[COMP_CWORD]} prog=${COMP_WORDS[0]} command=()
	if [[ $cur != -* ]]; then
		((COMP_CWORD == 1)) && mapfile -t COMPREPLY < <(compgen -W "cipher codec dtls gpu ice mikey path preauth zrtp" -- "$cur")
		return 0
	fi
	((COMP_CWORD > 1)) && command=("${COMP_WORDS[1]}")
	mapfile -t COMPREPLY < <(compgen -W "$("$prog" "${command[@]}" --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]*=?' | sort -r | awk -F= '!seen[$1]++' | sort)" -- "$cur")
	[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	return 0
}
complete -F _xcipher_bench xcipher-bench
