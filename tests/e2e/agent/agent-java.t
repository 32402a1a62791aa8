#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Java and native frames in the order of their calls, with names, files and lines, of unmodified programs.
# JAVAS: paths of further programs java to run, separated by blanks.
. tests/e2e/lib.sh
. tests/e2e/agent/profile-program.sh

agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
[ "$(uname -m)" = x86_64 ] || skip_all "Java frames are read on x86-64"
java=$(command -v java) || skip_all "java is not installed"
command -v javac >/dev/null || skip_all "javac is not installed"
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

mkdir "$tmp/src"
javac -J-XX:TieredStopAtLevel=1 -encoding UTF-8 -g:lines,source --release 8 -d "$tmp/src" tests/e2e/agent/Calls.java \
        2>"$tmp/javac" ||
        cat "$tmp/javac"

start_java() {
        "$@" &
        program=$!
        background_pids=$program
}

# check_java WHAT JAVA OPTION...: the options end with the class and its arguments.
check_java() {
        what=$1
        shift
        start_java "$@"
        profile named
        kill "$program"
        python3 tests/e2e/agent/java-stacks.py "$tmp/named.otlp" tests/e2e/agent/Calls.java >"$tmp/stacks"
        sed 's/^/# /' "$tmp/stacks"
        ok "$what: samples have frames of the program" test "$(value samples)" -ge 100
        is "$(value wrong)" 0 "$what: no frame has a wrong method, line or caller"
        ok "$what: stacks begin at the program's start" test "$(value whole)" -ge $(($(value samples) * 99 / 100))
        ok "$what: callers have lines" test "$(value without_line)" -le $(($(value callers) / 50))
        ok "$what: methods are readable" test "$(value unreadable)" -le $(($(value samples) / 100))
        is "$(count 'cairn_agent_java_processes_total{result="read"}')" 1 "$what: the process is counted"
        ok "$what: frames are counted" test "$(count 'cairn_agent_java_frames_total{result="named"}')" -gt 100
        complete=$(count 'cairn_agent_user_stacks_ended_total{end="complete"}')
        all=$(awk '/^cairn_agent_user_stacks_ended_total/ { n += $2 } END { print n }' "$tmp/metrics")
        ok "$what: stacks are whole, those before the process was known aside" test "$complete" -ge $((all * 95 / 100))
}

# check_version JAVA
check_version() {
        version=$("$1" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p')
        check_java "$version, interpreted" "$1" -Xint -XX:+UseParallelGC -cp "$tmp/src" Calls
        check_java "$version, compiled by C1" "$1" -XX:TieredStopAtLevel=1 -XX:+UseG1GC -cp "$tmp/src" Calls
        check_java "$version, compiled by C2" "$1" -XX:-TieredCompilation -XX:+UseSerialGC -cp "$tmp/src" Calls
        check_java "$version, without inlining" "$1" -XX:-Inline -cp "$tmp/src" Calls
        case $version in
        1.8.* | 11.*) ;;
        *) check_java "$version, by default, with ZGC" "$1" -XX:+UseZGC -cp "$tmp/src" Calls ;;
        esac
        case $version in
        21.* | 2[2-9]*) check_java "$version, in a virtual thread" "$1" -cp "$tmp/src" Calls virtual ;;
        esac
}

check_version "$java"
for other in ${JAVAS:-}; do
        check_version "$other"
done

start_java "$java" -cp "$tmp/src" Calls
profile none --runtimes python
unlike "$(cat "$tmp/none.dump")" 'Calls\.' "--runtimes python leaves the native frames"
profile hidden --no-source-paths --runtimes java
like "$(cat "$tmp/hidden.dump")" 'Calls\.main' "--no-source-paths keeps names"
unlike "$(strings -a "$tmp/hidden.otlp")" '[a-z][.]java' "--no-source-paths leaves out files"
kill "$program"

# A program that looks like one with HotSpot whose tables have another form.
cat >"$tmp/other.c" <<'C'
static char *table[16];
void *gHotSpotVMStructs = table, *gHotSpotVMTypes = table;
unsigned long gHotSpotVMStructEntryArrayStride = 56, gHotSpotVMTypeEntryArrayStride = 40;
int main(void)
{
        for (volatile int i = 0;; i++)
                ;
}
C
${CC:-cc} -rdynamic -o "$tmp/other" "$tmp/other.c"
start_java "$tmp/other"
profile refused
"$agent" --doctor >"$tmp/doctor"
kill "$program"
is "$(count 'cairn_agent_runtimes_refused_total{runtime="java",reason="build"}')" 1 \
        "tables of another form are refused, and counted with the reason"
like "$(cat "$tmp/doctor")" "process $program .other.: Java is not read: its tables for debuggers" \
        "--doctor names the process with the reason"
done_testing
