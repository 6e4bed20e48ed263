# bash completion for nbox and nboxd. The words come from the programs' own --help and from `nbox models`, so they are those of the
# program that is completed, with the plug-ins of NBOX_MODEL_PATH.
# shellcheck shell=bash

# The long options of `PROGRAM [COMMAND]`.
_nbox_options() {
	"$@" --help 2>/dev/null | awk '/^usage:/ { usage = 1 } /^$/ { usage = 0 } usage || /^ +-/' | grep -oE -e '--[a-z][a-z-]*' | sort -u
}
_nbox_commands() { "$1" --help 2>/dev/null | sed -nE 's/^  ([a-z]+)  .*/\1/p'; }
# OPTION PROGRAM [COMMAND]: what OPTION takes, where its line of --help ends in a list: "...: none, messages, payload [none]".
_nbox_choices() {
	local option=$1; shift
	"$@" --help 2>/dev/null | sed -nE "s/^ +$option [A-Z]+ +(.*: )?(([a-zA-Z]+, )+[a-zA-Z]+)( \[.*\])?\$/\2/p" | tr -d ,
}
# PROGRAM OPTION: the names of those that OPTION takes, with a colon where parameters follow.
_nbox_models() {
	"$1" models 2>/dev/null | awk -v heading="$2" '
		/^[a-z]/ { on = match($0, heading "[,)]") }
		/^  [a-z]/ && on { names[++n] = $1 }
		/^      [a-z_]+=/ && on { sub(/:?$/, ":", names[n]) }
		END { for (i = 1; i <= n; i++) print names[i] }'
}
_nbox_parameters() { "$1" models "$2" 2>/dev/null | sed -nE 's/^      ([a-z_]+=).*/\1/p' | awk '!seen[$0]++'; }

_nbox() {
	local program=$1 text=${COMP_LINE:0:COMP_POINT} words word option='' list='' kept i
	local line=("$program")

	COMPREPLY=()
	read -ra words <<<"$text" # COMP_WORDS are cut at = and :
	[[ $text != *[[:space:]] ]] || words+=('')
	word=${words[-1]}
	kept=${word%"$2"} # bash replaces $2, what stands behind the last = or : of it
	if [[ ${program##*/} != nboxd ]]; then
		if [ ${#words[@]} -le 2 ]; then
			mapfile -t COMPREPLY < <(compgen -W "$(_nbox_commands "$program")" -- "$word")
			return
		fi
		line+=("${words[1]}")
	fi
	for ((i = 1; i < ${#words[@]} - 1; i++)); do
		[ "${words[i]}" != -- ] || { compopt -o default 2>/dev/null; return; } # the job's own line
	done
	case $word in
	--*=*) option=${word%%=*} word=${word#*=} ;;
	-*) list=$(_nbox_options "${line[@]}") ;;
	*) [[ ${words[-2]} != --* || ${words[-2]} == *=* || ${words[-2]} == --live ]] || option=${words[-2]} ;;
	esac
	case $option in
	--model | --links | --what-if)
		if [[ $word == *:* ]]; then
			list=$(_nbox_parameters "$program" "${word%%:*}" | grep -vxF "$(grep -oE '[a-z_]+=' <<<"${word#*:}")")
			word=${word##*[:,]}
		else
			list=$(_nbox_models "$program" "$option")
		fi
		compopt -o nospace 2>/dev/null
		;;
	--*) list=$(_nbox_choices "$option" "${line[@]}") ;;
	*)
		case ${line[1]:-} in
		perf | explain) [[ $word == -* ]] || [ ${#words[@]} -gt "$([[ ${words[2]:-} == --live ]] && echo 4 || echo 3)" ] || list=$("$program" perf --help 2>/dev/null | sed -nE 's/.*COLLECTIVE: (.*)\.$/\1/p' | tr -d ,) ;;
		models) list=$({ _nbox_models "$program" --model; _nbox_models "$program" --what-if; } | tr -d :) ;;
		help) list=$(_nbox_commands "$program") ;;
		esac
		;;
	esac
	[ -n "$list" ] || [[ $word == -* ]] || compopt -o default 2>/dev/null
	mapfile -t COMPREPLY < <(compgen -P "${words[-1]%"$word"}" -W "$list" -- "$word")
	COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}
complete -F _nbox nbox nboxd
