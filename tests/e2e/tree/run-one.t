#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/run-one itself: the time limit, processes that a test leaves running, and tests that pass or fail.
. tests/e2e/lib.sh
export CAIRN_TEST_LOGS="$tmp/logs" CAIRN_TEST_GRACE=1

# make_test NAME: a test from stdin. run_test NAME [LIMIT]: sets $status and $out.
make_test() { cat >"$tmp/$1.t"; }
run_test() {
        out=$(CAIRN_TEST_LIMIT=${2:-60} tests/run-one "$tmp/$1.t" 2>&1)
        status=$?
}
log_of() { cat "$CAIRN_TEST_LOGS/$(printf %s "$tmp/$1.t" | tr / %).$2"; }
# ended PID-FILE: the process has exited, or is a zombie.
ended() { ! grep -qs '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$(cat "$1")/status"; }

make_test passes <<'END'
echo 'ok 1 - first'
echo 'to the log' >&2
(sleep 0.2) &
printf '1..1'
END
run_test passes
is "$status:$out" "0:ok 1 - first
1..1" "a test that passes: its stdout alone, and a process that ends soon after it is no error"
is "$(log_of passes err)" 'to the log' "its stderr is in the log"
is "$(log_of passes out)" "$out" "the stdout of a test is in the log too"

make_test fails <<'END'
echo 'not ok 1 - first'
exit 7
END
run_test fails
is "$status" 7 "the exit status of a test is passed on"
like "$(tests/failed)" 'fails.t failed, exit status 7' "tests/failed names the test with its exit status"

printf 'kill -SEGV $$\n' | make_test crashes
run_test crashes
is "$status" 139 "a test killed by a signal fails"

make_test bails <<'END'
echo 'Bail out! no service'
exit 1
END
run_test bails
is "$status:$out" "1:not ok - bailed out: no service" "a test that bails out does not stop other tests"

# The test's shell, a child in its process group and one that ignores SIGTERM; none may block the runner.
make_test hangs <<END
echo 'ok 1 - first'
sleep 1001 & echo \$! >"$tmp/child"
sh -c 'trap "" TERM; echo \$\$ >"$tmp/stubborn"; while :; do sleep 1002; done' &
sleep 1003
END
run_test hangs 5 # time for its processes to start, also on a busy machine
is "$status" 124 "a test that hangs is killed at its time limit"
like "$out" '^not ok - took longer than its time limit of 5 s' "the time limit is reported as a failure"
like "$out" '^#   sleep 1001$' "the processes that ran are listed"
like "$out" '^#   sh -c trap "" TERM' "all of them"
like "$out" '^ok 1 - first$' "its output so far is printed"
ok "its child is gone" ended "$tmp/child"
ok "and the one that ignores SIGTERM" ended "$tmp/stubborn"

# A daemon: a session of its own, another parent, no environment, and the test's stdout held open.
make_test leaves <<END
echo 'ok 1 - first'
(env -i /usr/bin/setsid sh -c 'echo \$\$ >"$tmp/daemon"; exec sleep 1004' &)
until [ -s "$tmp/daemon" ]; do sleep 0.01; done
echo 1..1
END
run_test leaves
is "$status" 1 "a test that leaves a daemon running fails, although its checks passed"
like "$out" '^not ok - left processes behind' "the processes left behind are reported as a failure"
like "$out" '^#   sleep 1004$' "the command line of the daemon is listed"
ok "the daemon is gone" ended "$tmp/daemon"

make_test stopped <<END
sleep 1005 & echo \$! >"$tmp/stopped"
kill -STOP \$!
echo 1..0
END
run_test stopped
is "$status" 1 "a stopped process is found"
ok "and killed" ended "$tmp/stopped"

make_test limited <<'END'
# Time limit: 1 s.
sleep 1006
END
out=$(env -u CAIRN_TEST_LIMIT tests/run-one "$tmp/limited.t")
is "$?" 124 "a test may set its time limit"

# Interrupted, as by Ctrl-C: the test is in another session and gets no signal from the terminal.
make_test interrupted <<END
echo \$\$ >"$tmp/interrupted"
sleep 1007
END
tests/run-one "$tmp/interrupted.t" >"$tmp/out" &
runner=$!
wait_for "the test" test -s "$tmp/interrupted"
kill -TERM $runner
wait $runner
is "$?" 143 "an interrupted runner reports it"
ok "and kills the test" ended "$tmp/interrupted"

# The shell library: a test that fails early leaves no processes.
make_test library <<END
. tests/e2e/lib.sh
wrapped() { sleep 1008; true; }
wrapped &
sh -c 'sleep 1009; true' &
server_pid=
wait_for "the children" sh -c 'pgrep -P \$0 >/dev/null' \$!
exit 3
END
run_test library
is "$status:$out" "3:" "a failing test that uses lib.sh leaves no process behind"
done_testing
