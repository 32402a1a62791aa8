#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes completions for bash, zsh and fish from the programs' --help, which is generated from their option tables.
#   scripts/completions.sh BUILD TARGET   TARGET/bash/cairn, TARGET/zsh/_cairn, TARGET/fish/cairn.fish and so on
set -eu
build=$1 target=$2
mkdir -p "$target/bash" "$target/zsh" "$target/fish"

# list_options COMMAND...: lines of SHORT|LONG|VALUE|HELP; SHORT and VALUE may be empty.
list_options() {
        "$@" --help | awk '
                function flush() { if (long != "") print short "|" long "|" value "|" help; long = "" }
                /^Examples:/ { exit }
                match($0, /^  (-[A-Za-z], |    )--?[a-z][a-z-]*/) {
                        flush()
                        short = substr($0, 3, 1) == "-" ? substr($0, 4, 1) : ""
                        rest = substr($0, 7)
                        match(rest, /^--[a-z-]+/); long = substr(rest, 3, RLENGTH - 2)
                        rest = substr(rest, RLENGTH + 1)
                        value = ""
                        if (match(rest, /^ [^ ]+/)) { value = substr(rest, 2, RLENGTH - 1); rest = substr(rest, RLENGTH + 1) }
                        sub(/^ \.\.\./, "", rest); sub(/^ +/, "", rest)
                        help = rest
                        next
                }
                long != "" && /^ +[^ ]/ { sub(/^ +/, ""); help = help == "" ? $0 : help " " $0; next }
                END { flush() }'
}

# list_commands: lines of NAME|HELP of the program `cairn`.
list_commands() {
        "$build/cairn" --help | awk '/^Commands:/ { on = 1; next } on && /^  / { name = $1; $1 = ""; sub(/^ /, ""); print name "|" $0; next } on { exit }'
}

takes_path() {
        case $1 in
        *FILE* | *DIR* | *PATH* | OLD=NEW) return 0 ;;
        esac
        return 1
}

# ---- bash ----

# put_bash_options: for the lines on stdin: the option words, grouped by the kind of their value.
put_bash_options() {
        words='' paths='' others=''
        while IFS='|' read -r short long value help; do
                words="$words --$long${short:+ -$short}"
                [ -n "$value" ] || continue
                if takes_path "$value"; then
                        paths="$paths|--$long${short:+|-$short}"
                else
                        others="$others|--$long${short:+|-$short}"
                fi
        done
        echo "                options='${words# }' with_path='${paths#|}' with_other='${others#|}'"
}

put_bash() { # PROGRAM
        name=_$(echo "$1" | tr - _)
        echo "# bash completion of $1"
        echo "$name() {"
        echo "        local current=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]}"
        echo "        local options='' with_path='' with_other='' command=''"
        if [ "$1" = cairn ]; then
                echo "        [[ \$COMP_CWORD -eq 1 ]] || command=\${COMP_WORDS[1]}"
                echo "        case \$command in"
                echo "        '')"
                echo "                COMPREPLY=(\$(compgen -W '$(list_commands | cut -d'|' -f1 | tr '\n' ' ')--help --version' -- \"\$current\"))"
                echo "                return ;;"
                list_commands | cut -d'|' -f1 | while read -r command; do
                        echo "        $command)"
                        list_options "$build/cairn" "$command" | put_bash_options
                        echo "                ;;"
                done
                echo "        esac"
        else
                list_options "$build/$1" | put_bash_options
        fi
        cat <<'END'
        if [[ -n $with_path && "|$with_path|" == *"|$before|"* ]]; then
                compopt -o filenames
                COMPREPLY=($(compgen -f -- "$current"))
        elif [[ -n $with_other && "|$with_other|" == *"|$before|"* ]]; then
                COMPREPLY=()
        elif [[ $current == -* ]]; then
                COMPREPLY=($(compgen -W "$options" -- "$current"))
        else
                compopt -o filenames
                COMPREPLY=($(compgen -f -- "$current"))
        fi
}
END
        echo "complete -F $name $1"
}

# ---- zsh ----

# put_zsh_options: an argument of _arguments for each line on stdin.
put_zsh_options() {
        while IFS='|' read -r short long value help; do
                text=$(printf '%s' "$help" | sed "s/'/'\\\\''/g; s/[]:[]/\\\\&/g")
                label=$(printf '%s' "$value" | sed 's/[]:[]/\\&/g')
                action=
                [ -z "$value" ] || { action=":$label:"; takes_path "$value" && action=":$label:_files"; }
                if [ -n "$short" ]; then
                        echo "                '(-$short --$long)'{-$short,--$long}'[$text]$action' \\"
                else
                        echo "                '--${long}[$text]$action' \\"
                fi
        done
        echo "                '*:file:_files'"
}

put_zsh() { # PROGRAM
        echo "#compdef $1"
        if [ "$1" != cairn ]; then
                echo "_arguments \\"
                list_options "$build/$1" | put_zsh_options
                return
        fi
        echo "if (( CURRENT == 2 )); then"
        echo "        local -a commands=("
        list_commands | sed "s/'/'\\\\''/g; s/:/\\\\:/g" | while IFS='|' read -r command help; do
                echo "                '$command:$help'"
        done
        echo "        )"
        echo "        _describe command commands"
        echo "        return"
        echo "fi"
        echo "local command=\$words[2]"
        echo "shift words; (( CURRENT-- ))"
        echo "case \$command in"
        list_commands | cut -d'|' -f1 | while read -r command; do
                echo "$command)"
                echo "        _arguments \\"
                list_options "$build/cairn" "$command" | put_zsh_options
                echo "        ;;"
        done
        echo "esac"
}

# ---- fish ----

# put_fish_options CONDITION PROGRAM
put_fish_options() {
        while IFS='|' read -r short long value help; do
                text=$(printf '%s' "$help" | sed "s/'/\\\\'/g")
                how=
                [ -z "$value" ] || { how=' -x'; takes_path "$value" && how=' -r -F'; }
                echo "complete -c $2$1 -l $long${short:+ -s $short}$how -d '$text'"
        done
}

put_fish() { # PROGRAM
        if [ "$1" != cairn ]; then
                list_options "$build/$1" | put_fish_options '' "$1"
                return
        fi
        list_commands | sed "s/'/\\\\'/g" | while IFS='|' read -r command help; do
                echo "complete -c cairn -n __fish_use_subcommand -f -a $command -d '$help'"
                list_options "$build/cairn" "$command" | put_fish_options " -n '__fish_seen_subcommand_from $command'" cairn
        done
}

for program in cairn cairn-agent cairn-upload; do
        put_bash "$program" >"$target/bash/$program"
        put_zsh "$program" >"$target/zsh/_$program"
        put_fish "$program" >"$target/fish/$program.fish"
done
