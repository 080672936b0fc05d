# bash completion for vaultd. It needs bash 4.4 or newer, and no other script.

# Puts the words of a line into the array "words" as the program would get them: without quotes and backslashes. A quote
# that is still open ends with the line.
__vaultd_words() {
    local line=$1 quote='' word='' begun='' c i
    words=()
    for ((i = 0; i < ${#line}; i++)); do
        c=${line:i:1}
        case $quote$c in
            "''" | '""') quote='' ;;
            "'"?) word+=$c ;;
            '"\') ((++i)) && word+=${line:i:1} ;;
            '"'?) word+=$c ;;
            "'" | '"') quote=$c begun=1 ;;
            \\) ((++i)) && word+=${line:i:1} begun=1 ;;
            [[:blank:]])
                [[ $begun ]] && words+=("$word")
                word='' begun=''
                ;;
            *) word+=$c begun=1 ;;
        esac
    done
    words+=("$word")
}

__vaultd_complete() {
    local program=${1/#\~\//$HOME/} words=() args typed piece out directive found=() f
    __vaultd_words "${COMP_LINE:0:COMP_POINT}"
    args=("${words[@]:1}") typed=${words[-1]}
    out=$("$program" __completeNoDesc "${args[@]}" 2>/dev/null)
    directive=${out##*:} COMPREPLY=()
    [[ $directive =~ ^[0-9]+$ ]] || return 0

    # Bash completes the piece behind the last "=" or ":" alone.
    [[ $typed == -*=* ]] && typed=${typed#*=}
    piece=${COMP_WORDS[COMP_CWORD]}
    [[ $piece == [=:] ]] && piece=''
    __vaultd_words "$piece"
    piece=${words[-1]}
    mapfile -t found <<<"${out%:*}"
    for f in "${found[@]}"; do
        [[ $f && $f == "$typed"* ]] && COMPREPLY+=("${f#"${typed%"$piece"}"}")
    done

    ((directive & 2)) && compopt -o nospace
    ((directive & 4)) && compopt +o default
    ((directive & 32)) && compopt -o nosort
    # A name alone is quoted here, and bash quotes what is inside of an open quote or what several have in common.
    local IFS=,
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMP_WORDS[COMP_CWORD]} != [\"\']* ]]; then
        printf -v 'COMPREPLY[0]' %q "${COMPREPLY[0]}"
    elif [[ ${COMPREPLY[*]} == *[^[:alnum:]_./,=:@%+-]* ]]; then
        compopt -o filenames
    fi
    return 0
}

complete -o default -F __vaultd_complete vaultd
