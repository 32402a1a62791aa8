#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Java stacks at every instruction of generated code. While methods are called and return, arguments are converted and
# exceptions are thrown, frames are not whole for some instructions, at which few samples would be taken.
# JAVAS: paths of further programs java to run, separated by blanks.
. tests/e2e/lib.sh

steps=${CAIRN_BUILD:-$PWD/build}/tests/e2e/agent/java-steps
[ "$(uname -m)" = x86_64 ] || skip_all "Java frames are read on x86-64"
java=$(command -v java) || skip_all "java is not installed"
command -v javac >/dev/null || skip_all "javac is not installed"

javac -J-XX:TieredStopAtLevel=1 -encoding UTF-8 -g:lines,source --release 8 -d "$tmp" tests/e2e/agent/Calls.java \
        2>"$tmp/javac" ||
        cat "$tmp/javac"

has_worked() { [ "$(awk '{ print $14 + $15 }' "/proc/$program/stat")" -ge $((3 * $(getconf CLK_TCK))) ]; }
value() { awk -v name="$1" '$1 == name { print $2 }' "$tmp/judged"; }

# check_steps WHAT JAVA OPTION...
check_steps() {
        what=$1
        shift
        "$@" -Dsize=1 -cp "$tmp" Calls >"$tmp/java" 2>&1 &
        program=$!
        background_pids=$program
        wait_for "the work" has_worked
        "$steps" "$program" 60000 >"$tmp/stacks"
        python3 tests/e2e/agent/java-stacks.py --steps "$tmp/stacks" tests/e2e/agent/Calls.java >"$tmp/judged"
        sed 's/^/# /' "$tmp/judged"
        is "$(value steps)" 60000 "$what: all instructions were judged"
        is "$(value wrong)" 0 "$what: no frame has a wrong method, line or caller"
        ok "$what: stacks begin at the program's start" test "$(value cut)" -le 600
        ok "$what: methods are readable" test "$(value unreadable)" -le 60
}

for java in $java ${JAVAS:-}; do
        version=$("$java" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p')
        check_steps "$version, interpreted" "$java" -Xint
        check_steps "$version, without inlining" "$java" -XX:-Inline
        check_steps "$version, interpreted methods among those of C1" "$java" -XX:TieredStopAtLevel=1 \
                -XX:CompileCommand=quiet '-XX:CompileCommand=exclude,Calls*.area' \
                -XX:CompileCommand=exclude,Calls.copied
        check_steps "$version, interpreted methods among those of C2" "$java" -XX:-TieredCompilation \
                -XX:CompileCommand=quiet -XX:CompileCommand=exclude,Calls.leaf
done
done_testing
