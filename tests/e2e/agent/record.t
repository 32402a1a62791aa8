#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn record: known programs, recorded from their first instruction to a table, a page, pprof, folded stacks and a
# service.
. tests/e2e/lib.sh
for tool in gcc python3 jq nm objcopy; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
"$CAIRN_BUILD/cairn-agent" --doctor --sampler perf >"$tmp/doctor" ||
        skip_all "no perf events here: $(grep '^error' "$tmp/doctor" | head -1)"
upload=$CAIRN_BUILD/cairn-upload
export CAIRN_CACHE_DIR="$tmp/cache"
mkdir "$CAIRN_CACHE_DIR"

cat >"$tmp/work.c" <<'END'
#include <stdlib.h>
volatile unsigned long sink;
#define FUNCTION __attribute__((noinline, noclone, noipa))
static inline __attribute__((always_inline)) void spin(int n) { for (int i = 0; i < n; i++) sink += i; }
FUNCTION void burn(int n) { spin(n); }
FUNCTION int down(int n) { if (!n) { burn(10000000); return 1; } int r = down(n - 1); sink += r; return r + 1; }
#include <time.h>
int main(int argc, char **argv)
{
        clock_t end = argc > 1 ? atoi(argv[1]) * (CLOCKS_PER_SEC / 1000) : 0;

        while (!end || clock() < end)
                down(5);
        return 7;
}
END
gcc -O2 -g -fomit-frame-pointer -Wl,--build-id -o "$tmp/work" "$tmp/work.c"
work_ms=400 # of CPU time, however fast the machine is

# record ARGUMENT...: sets $code; standard output and error are in $tmp/out and $tmp/err.
record() { "$cairn" record "$@" >"$tmp/out" 2>"$tmp/err"; code=$?; }

# ---- a table in the terminal ----

record -- "$tmp/work" $work_ms
is "$code" 7 "the command's exit status is passed on"
like "$(cat "$tmp/out")" "spin +.*/work\.c:4$" "the table has an inlined function with its line"
like "$(cat "$tmp/out")" " 0 +0\.00% .* main +.*/work\.c:" "the table has the function that called it"
like "$(cat "$tmp/err")" "^recorded .* at 99 Hz by (bpf|perf): [1-9][0-9]* samples, 0 lost$" "the amount recorded"
like "$(cat "$tmp/err")" "^names: (100\.0|9[0-9]\.[0-9])% of frames" "the share of frames with names"
record -F 999 -- "$tmp/work" $work_ms # one in a few hundred may be truncated
like "$(cat "$tmp/err")" "^stacks: (100\.0|9[5-9]\.[0-9])% complete" "the share of complete stacks"

record --json -n 1 "$tmp/work" $work_ms
is "$(jq -r '.[0] | "\(.function) \(.line) \(.flat > 0)"' "$tmp/out")" "spin 4 true" \
        "the table as JSON; -- can be left out"
record --format folded -- sh -c "'$tmp/work' $work_ms & wait"
folded='^work;_start;.*main;down;down;down;down;down;down;burn;spin [1-9]'
like "$(cat "$tmp/out")" "$folded" "a child of the command is recorded, under its name"

# ---- interpreted functions ----

python=/usr/bin/python3.11
if [ "$(uname -m)" = x86_64 ] && [ -x $python ] &&
        "$CAIRN_BUILD/cairn-agent" --doctor --sampler bpf >"$tmp/doctor"; then
        cat >"$tmp/loop.py" <<'END'
import time
def count(n):
    return n if n < 2 else count(n - 1) + count(n - 2)
while time.process_time() < 2:
    count(15)
END
        record --json -n 100 -- $python "$tmp/loop.py"
        is "$(jq -r '.[0] | "\(.function) \(.line)"' "$tmp/out")" "count 3" \
                "a Python program that has ended has functions"
        flat() { jq "map(select(.function == \"$1\").flat) | add // 0" "$tmp/out"; }
        ok "  nearly all of them" test "$(flat count)" -gt $((5 * $(flat '[python: exited]')))
else
        pass "Python functions are read with BPF, which is not available # SKIP"
fi

# ---- files ----

record -o "$tmp/a.html" -o "$tmp/a.pb.gz" -o "$tmp/a.folded" -o "$tmp/a.otlp" -o "$tmp/a.txt" -- "$tmp/work" $work_ms
is "$code $(cat "$tmp/out")" "7 " "nothing is on standard output if there are files"
like "$(grep -o '<title>[^<]*' "$tmp/a.html")" "Flame graph" "the page is a flame graph"
for name in main down burn spin work.c; do
        like "$(cat "$tmp/a.html")" "[\"/]$name\"" "the page has $name"
done
python3 tests/e2e/pprof.py frames "$tmp/a.pb.gz" >"$tmp/frames"
like "$(grep -A1 '^spin ' "$tmp/frames")" "^burn burn .*/work\.c:5$" \
        "pprof has the inlined function in its caller, with lines"
python3 tests/e2e/pprof.py rest "$tmp/a.pb.gz" >"$tmp/rest"
like "$(cat "$tmp/rest")" "$(build_id_of "$tmp/work")" "pprof has the mapping with its build-id"
like "$(cat "$tmp/rest")" "process.executable.name" "pprof has the labels of the process"
like "$(cat "$tmp/a.folded")" "^work;" "folded stacks begin with the program"
if command -v go >/dev/null && go tool pprof -top "$tmp/a.pb.gz" >"$tmp/go" 2>&1; then
        like "$(cat "$tmp/go")" "spin \(inline\)" "go tool pprof reads it"
fi

# ---- a recording is opened again, and compared ----

like "$("$cairn" top --profile "$tmp/a.otlp" 2>"$tmp/err")" "spin +.*/work\.c:4$" \
        "raw samples are symbolized when they are shown"
like "$("$cairn" flame --profile "$tmp/a.pb.gz" 2>/dev/null)" "burn;spin [1-9]" "pprof has its names"
sed 's/FUNCTION void burn(int n) {/& for (int i = 0; i < 3 * n; i++) sink ^= i;/' "$tmp/work.c" >"$tmp/slower.c"
gcc -O2 -g -fomit-frame-pointer -o "$tmp/slower" "$tmp/slower.c"
record -o "$tmp/b.otlp" -- "$tmp/slower" $work_ms
"$cairn" diff --json "$tmp/a.otlp" "$tmp/b.otlp" >"$tmp/out" 2>"$tmp/err"
is "$(jq 'any(.[]; .function == "burn" and .flat == 0 and .flat_after > 0)' "$tmp/out")" true \
        "two recordings are compared"
"$cairn" diff --base '{a="b"}' "$tmp/a.otlp" "$tmp/b.otlp" >"$tmp/out" 2>&1
is $? 64 "whole, without selectors"

# ---- errors are reported before anything runs ----

record -- "$tmp/nothing"
is "$code $(cat "$tmp/err")" "127 cairn record: cannot run '$tmp/nothing': No such file or directory" "no such command"
record -- "$tmp/work.c"
is "$code" 126 "a file that is not a program ends in 126"
record -p 2147483647
is "$code $(cat "$tmp/err")" "1 cairn record: no such process: 2147483647" "no such process"
record -o "$tmp/none/a.html" -- touch "$tmp/ran"
is "$code" 1 "the file cannot be written"
record -o "$tmp/a.what" -- touch "$tmp/ran"
is "$code" 64 "what to write is not known"
record -p 1 -- touch "$tmp/ran"
is "$code" 64 "processes and a command"
record
is "$code" 64 "nothing to record"
ok "the command did not run in any of these" test ! -e "$tmp/ran"
record -o /dev/null --format folded -- true
ok "a device stays one" test -c /dev/null

# ---- stopping ----

# start_record ARGUMENT...: in the background, returns once it samples; sets $record_pid.
start_record() {
        : >"$tmp/err"
        "$cairn" record "$@" >"$tmp/out" 2>"$tmp/err" &
        record_pid=$!
        background_pids="${background_pids:-} $record_pid"
}
# The event descriptor belongs to the unwind table builder, which is set up after all processes are sampled.
is_sampling() {
        record_fds=$(find "/proc/$record_pid/fd" -lname 'anon_inode:*' -printf '%l\n')
        case $record_fds in *perf_event*) ;; *) return 1 ;; esac
        case $record_fds in *eventfd*) ;; *) return 1 ;; esac
}

start_record -o "$tmp/c.folded" -- sh -c "echo >'$tmp/began'; exec '$tmp/work'"
wait_for "the command to begin" test -s "$tmp/began"
wait_for "the command to do its work" grep -q '(work)' \
        "/proc/$(cat "/proc/$record_pid/task/$record_pid/children" | awk '{ print $1 }')/stat"
kill -TERM "$record_pid"
wait "$record_pid"
is $? 143 "a signal reaches the command too"
ok "and the samples so far were written" test -f "$tmp/c.folded"

holds_signals() { grep -q '^SigBlk:.*4003$' "/proc/$record_pid/status"; } # SIGHUP, SIGINT, SIGTERM
start_record -d 1 -o "$tmp/d.folded" -- "$tmp/work" 60000
wait_for "the recording to be written" grep -q '^wrote ' "$tmp/err"
wait_for "it to wait for the command" holds_signals
kill -TERM "$record_pid"
wait "$record_pid"
is $? 143 "a signal ends the command when the recording is over"

"$tmp/work" &
work_pid=$!
background_pids="$background_pids $work_pid"
start_record -p $work_pid -o "$tmp/p.folded" -F 999
wait_for "recording" is_sampling
ticks() { awk '{ print $14 }' /proc/$work_pid/stat; }
first=$(ticks)
worked() { [ "$(ticks)" -gt $((first + 20)) ]; }
wait_for "some ticks" worked
kill -INT "$record_pid"
wait "$record_pid"
is $? 0 "a recorded process is left alone"
like "$(cat "$tmp/p.folded")" "burn;spin [1-9]" "until a signal"
kill -0 $work_pid && pass "it still runs"
record -p $work_pid -d 1
is "$code" 0 "for some time"
like "$(cat "$tmp/out")" "spin" "it has the functions"
start_record -p $work_pid
wait_for "recording" is_sampling
kill -9 $work_pid
wait "$record_pid"
is $? 0 "until the process ends"

# ---- files that were removed or are not visible ----

mkdir "$tmp/gone"
cp "$tmp/work" "$tmp/gone/work"
record -- sh -c "'$tmp/gone/work' 600 & until [ \$(awk '{ print \$14 }' /proc/\$!/stat) -gt 10 ]; do :; done; rm '$tmp/gone/work'; wait"
like "$(cat "$tmp/out")" "spin +.*work\.c:4$" "a program removed during the recording has its names"
if [ "$(id -u)" = 0 ] && gcc -static -O2 -g -o "$tmp/static" "$tmp/work.c" 2>/dev/null; then
        mkdir "$tmp/root"
        mv "$tmp/static" "$tmp/root/inside"
        record -- chroot "$tmp/root" /inside $work_ms
        like "$(cat "$tmp/out")" "spin +.*work\.c:4$" "a program of another root directory too"
fi

if unshare --pid --fork --mount-proc true 2>/dev/null; then
        unshare --pid --fork --mount-proc "$cairn" record -- "$tmp/work" $work_ms >"$tmp/out" 2>"$tmp/err"
        is $? 7 "record works in a pid namespace of its own"
        like "$(cat "$tmp/out")" "spin +.*/work\.c:4$" "in another pid namespace the functions are found"
        like "$(cat "$tmp/err")" "^without BPF: this is not the host's pid namespace" \
                "the message names the other pid namespace"
fi

# ---- without privileges ----

record --sampler perf -F 999 --format folded -- "$tmp/work" $work_ms
is "$code" 7 "record works with perf events"
like "$(cat "$tmp/err")" "^recorded .* by perf: " "the message says that perf events were used"
like "$(cat "$tmp/out")" "$folded" "stacks without frame pointers are complete"
like "$(cat "$tmp/err")" "^stacks: (100\.0|9[5-9]\.[0-9])% complete" "all of them"
if [ "$(id -u)" = 0 ] && [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ] && chmod 755 "$tmp" &&
        setpriv --reuid=65534 --clear-groups test -x "$cairn" &&
        setpriv --reuid=65534 --clear-groups test -x "$tmp/work"; then
        CAIRN_CACHE_DIR='' setpriv --reuid=65534 --regid=65534 --clear-groups "$cairn" record -- "$tmp/work" $work_ms \
                >"$tmp/out" 2>"$tmp/err"
        is $? 7 "a user records an own program"
        like "$(cat "$tmp/out")" "spin +.*/work\.c:4$" "the user's own program has its names"
        like "$(cat "$tmp/err")" "^not as root, so not covered: other users' processes" \
                "missing privileges are reported"
        CAIRN_CACHE_DIR='' setpriv --reuid=65534 --regid=65534 --clear-groups "$cairn" record -p $$ -d 1 >"$tmp/out" \
                2>"$tmp/err"
        is $? 1 "a user cannot record another user's program"
        like "$(cat "$tmp/err")" "run it as root" "the refusal has a remedy"
fi

# ---- on a terminal ----

cp "$tmp/work" "$tmp/work-$$" # a name that no program of another test has
"$tmp/work-$$" & busy=$!
background_pids="${background_pids:-} $busy"
cat >"$tmp/terminal.py" <<'END'
import pty, sys
sys.exit(pty.spawn(sys.argv[1:]) >> 8)
END
on_terminal() { python3 "$tmp/terminal.py" "$cairn" record --no-debuginfod -o "$tmp/terminal.folded" "$@" >"$tmp/tty" \
        </dev/null; }
on_terminal -p $busy -d 2
is $? 0 "record on a terminal"
for line in 'preparing: building the unwind tables' 'recording: [01] of 2 s; Ctrl-C stops it' 'resolving symbols'; do
        like "$(cat "$tmp/tty")" "$line" "the terminal shows '$line'"
done
on_terminal -d 1 -- sh -c "'$tmp/work' $work_ms"
like "$(cat "$tmp/tty")" "recording sh for 1 s; Ctrl-C ends it" "a command is announced"
record -p $busy -d 1
like "$(cat "$tmp/err")" "^recorded (0\.9|1\.[0-9]) s at" "the preparation is not part of the time"
unlike "$(cat "$tmp/err")" "preparing|recording" "without a terminal there is no progress"
unlike "$(cat "$tmp/err")" "new_process" "a running process is known from the first sample on"
record -a -F 999 -d 1 --format folded
is $? 0 "all processes are recorded"
ok "a program that runs before has whole stacks, from the first sample on" sh -c \
        "grep -q '^work-$$;.*;spin ' '$tmp/out' && ! grep '^work-$$;' '$tmp/out' | grep -v '^work-$$;_start;'"
kill $busy

(while :; do cp "$tmp/work" "$tmp/new" && "$tmp/new" 20; rm -f "$tmp/new"; done) & starting=$!
background_pids="$background_pids $starting"
counts_new() {
        record -a -F 999 -d 2 -o "$tmp/new.otlp"
        grep -qE '^stacks: .*; cut: .*new_process [1-9]' "$tmp/err"
}
wait_for "a sample of a process that begins to be counted" counts_new
kill $starting
like "$(cat "$tmp/err")" "^new_process: these processes began during the recording, and were sampled before" \
        "  the reason new_process is explained"

cat >"$tmp/deep.c" <<'END'
volatile unsigned long sink;
__attribute__((noinline, noclone, noipa)) int deep(int n)
{
        for (int i = 0; !n && i < 300000000; i++)
                sink++;
        return n ? deep(n - 1) + (int)sink : 1;
}
int main(void) { return !deep(2000); }
END
gcc -O1 -fno-optimize-sibling-calls -o "$tmp/deep" "$tmp/deep.c"
record -F 999 -- "$tmp/deep"
like "$(cat "$tmp/err")" "^stacks: .*; cut: .*too_deep [1-9]" "stacks that are too deep are counted"
like "$(cat "$tmp/err")" "^too_deep: these stacks have more than 512 frames, and lack the callers of the outermost" \
        "  the reason too_deep is explained"

# ---- debuginfod, and a service ----

cp "$tmp/work" "$tmp/full"
mkdir "$tmp/elsewhere"
objcopy --only-keep-debug "$tmp/full" "$tmp/elsewhere/work.debug"
strip "$tmp/work"
start_server
record --no-debuginfod -- "$tmp/work" $work_ms
unlike "$(cat "$tmp/out")" "(^|[; ])spin([; ]|\$)" "a stripped program has no names"
like "$(cat "$tmp/err")" "boundaries [0-9.]+%.*; most in work$" "the share without names is reported with its object"
like "$(cat "$tmp/err")" "^next: '$tmp/work' has no debug information: build it with -g, or put work.debug beside it" \
        "the remedy for a program of one's own is reported"
unlike "$(cat "$tmp/err")" "install the debug packages" "no package is advised for a program that is in none"
cp "$tmp/elsewhere/work.debug" "$tmp/work.debug"
record --no-debuginfod -- "$tmp/work" $work_ms
like "$(cat "$tmp/out")" "spin +.*/work\.c:4$" "the remedy works: a debug file beside the program"
objcopy --only-keep-debug "$CAIRN_BUILD/cairn" "$tmp/work.debug"
record --no-debuginfod -- "$tmp/work" $work_ms
unlike "$(cat "$tmp/out")" "(^|[; ])spin([; ]|\$)" "unless it is of another build"
rm "$tmp/work.debug"
"$upload" --server "$url" "$tmp/elsewhere/work.debug" "$tmp/work" >/dev/null 2>"$tmp/upload.err" ||
        diag "$(cat "$tmp/upload.err")"

cat >"$tmp/silent.py" <<'END'
import signal, socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(64)
print(s.getsockname()[1], flush=True)
signal.pause()
END
python3 "$tmp/silent.py" >"$tmp/silent.port" &
background_pids="${background_pids:-} $!"
wait_for "a server that says nothing" test -s "$tmp/silent.port"
DEBUGINFOD_URLS=http://127.0.0.1:$(cat "$tmp/silent.port") DEBUGINFOD_CACHE_PATH=$tmp/debuginfod DEBUGINFOD_PROGRESS=1
export DEBUGINFOD_URLS DEBUGINFOD_CACHE_PATH DEBUGINFOD_PROGRESS
start_record -d 1 -o "$tmp/e.folded" -- "$tmp/work" 60000
wait_for "the download to begin" grep -q '^downloading debuginfo of work' "$tmp/err"
kill -TERM "$record_pid"
wait "$record_pid"
is $? 143 "a signal that ends the search for names reaches the command too"
ok "after the samples were written" test -f "$tmp/e.folded"

DEBUGINFOD_URLS=http://127.0.0.1:1 DEBUGINFOD_CACHE_PATH=$tmp/debuginfod.1
record -- "$tmp/work" $work_ms
like "$(cat "$tmp/err")" "^debuginfod: cannot .*127\.0\.0\.1:1" "a server that cannot be reached is reported"
DEBUGINFOD_URLS="http://127.0.0.1:1 $url" DEBUGINFOD_CACHE_PATH=$tmp/debuginfod.2
record -o "$tmp/raw.otlp" -o "$tmp/fetched.txt" -- "$tmp/work" $work_ms
like "$(cat "$tmp/fetched.txt")" "spin +.*/work\.c:4$" "a debuginfod server provides them"
like "$(cat "$tmp/err")" "^downloading debuginfo of work" "the download of debuginfo is shown"

record -F 999 -- dd if=/dev/zero of=/dev/null bs=1 count=600000
if grep -Eq '^not (covered|as root).*kernel|^kernel frames have no lines|by perf' "$tmp/err" ||
        ! [ -s /sys/kernel/notes ]; then
        pass "the kernel's debuginfo # SKIP $(grep -E 'kernel' "$tmp/err" | head -1)"
else
        # libdebuginfod caches the miss in a directory named by the build-id.
        kernel_notes=$(od -An -v -tx1 /sys/kernel/notes | tr -d ' \n') kernel_asked=
        for asked in "$DEBUGINFOD_CACHE_PATH"/*/; do
                case $kernel_notes in *"$(basename "$asked")"*) kernel_asked=yes ;; esac
        done
        is "$kernel_asked" yes "the kernel's debuginfo is requested too"
fi

ok "raw samples go to the service" "$cairn" import --server "$url" "$tmp/raw.otlp"
wait_for "the symbols to be indexed" sh -c "'$cairn' top --server '$url' --from now-1h | grep -q spin"
like "$("$cairn" top --server "$url" --from now-1h)" "spin +.*/work\.c:4$" "the service symbolizes the imported samples"
stop_server
record -- "$tmp/work" $work_ms
like "$(cat "$tmp/out")" "spin +.*/work\.c:4$" "downloaded files are cached"
unlike "$(cat "$tmp/err")" "downloading debuginfo of work from" "cached files are not fetched again"

done_testing
