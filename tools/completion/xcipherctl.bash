# SPDX-License-Identifier: GPL-2.0-or-later
# bash completion for xcipherctl: its options come from --help, so that they are never out of date.

# Commands come from --help too, Call-IDs from the daemon, if it answers at once.
_xcipherctl_words() {
	local words="" at
	for ((at = 1; at < COMP_CWORD; at++)); do
		[[ ${COMP_WORDS[at]} == [a-z]* && ${COMP_WORDS[at - 1]} != "=" ]] && break
	done
	if ((at == COMP_CWORD)); then
		words=$("$prog" --help 2>/dev/null | sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' | sort -u)
	elif ((at + 1 == COMP_CWORD)); then
		case ${COMP_WORDS[at]} in
		call | explain | query | kill | terminate | delete | record) words=$("$prog" --timeout=1 list 2>/dev/null) ;;
		limits) words="sessions= cpu= load= bandwidth=" ;;
		drain) words="on off" ;;
		loglevel) words="error warning notice info debug" ;;
		esac
	elif ((at + 2 == COMP_CWORD)) && [[ ${COMP_WORDS[at]} == record ]]; then
		words="start pause stop discard"
	elif ((at + 2 == COMP_CWORD)) && [[ ${COMP_WORDS[at]} == call ]]; then
		words="debug"
	elif ((at + 3 == COMP_CWORD)) && [[ ${COMP_WORDS[at]} == call ]]; then
		words="on off"
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
}

_xcipherctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prog=${COMP_WORDS[0]}
	if [[ $cur != -* ]]; then
		_xcipherctl_words
		return 0
	fi
	mapfile -t COMPREPLY < <(compgen -W "$("$prog" --help 2>/dev/null | grep -oE -- '--[a-z][a-z0-9-]*=?' | sort -r | awk -F= '!seen[$1]++' | sort)" -- "$cur")
	[[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace
	return 0
}
complete -F _xcipherctl xcipherctl
