#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Workers that crash, hang, or are killed for lack of memory: the service continues, and reports why an object has no
# symbols.
. tests/e2e/lib.sh
for tool in python3 gcc; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

# Large enough that its worker can be stopped, and that others are indexed in the meantime.
awk 'BEGIN { for (i = 0; i < 20000; i++) printf "int f%d(int a) { return a + %d; }\n", i, i; print "int main(void) { return f0(1); }" }' \
        >"$tmp/large.c"
printf 'int answer(int n) { return n * 2; }\nint main(void) { return answer(0); }\n' >"$tmp/small.c"
id_of() { printf 'c0ffeec0ffee%028d' "$1"; }
n=0
build() { n=$((n + 1)); gcc -g -O0 -Wl,--build-id=0x"$(id_of $n)" -o "$tmp/$2" "$1"; }
build "$tmp/large.c" large

reason_of() { "$cairn" debuginfo show --server "$url" "$1"; }
is_marked() { reason_of "$1" | grep -q "$2"; }

# renamed FILE BUILD-ID: a copy of the large object.
renamed() {
        python3 - "$tmp/large" "$1" "$2" <<'PY'
import sys
path, to, want = sys.argv[1], sys.argv[2], bytes.fromhex(sys.argv[3])
data = open(path, "rb").read()
old = bytes.fromhex("c0ffee" * 2 + "0" * 27 + "1")
assert data.count(old) == 1
open(to, "wb").write(data.replace(old, want))
PY
}
is_caught() { [ "$(wc -l <"$tmp/caught")" -ge 2 ]; }
is_caught_or_gone() { is_caught || is_marked "$id" indexed; }

# catch: uploads the large object again under a new build-id, and stops its worker; sets $worker and $id. On a busy host
# a worker may start and end between two checks; then another is tried.
catch() {
        for attempt in 1 2 3 4 5 6 7 8; do
                n=$((n + 1))
                id=$(id_of $n)
                renamed "$tmp/large-$n" "$id"
                python3 tests/e2e/catch-worker.py "$server_pid" symbols >"$tmp/caught" &
                catcher=$!
                background_pids="${background_pids:-} $catcher"
                wait_for 'somebody to look for workers' grep -q ready "$tmp/caught"
                put_object debuginfo "$tmp/large-$n"
                [ "$code" = 200 ] || [ "$code" = 201 ] || diag "the upload answered $code $body"
                wait_for 'a worker to be caught, or its work to be done' is_caught_or_gone
                if is_caught; then
                        worker=$(tail -1 "$tmp/caught")
                        background_pids="$background_pids $worker"
                        return
                fi
                kill $catcher
                diag "attempt $attempt: the worker was quicker"
        done
        bail_out 'no worker was caught'
}

start_server

catch
kill -ABRT "$worker"
kill -CONT "$worker"
wait_for 'the crash to be noticed' is_marked "$id" 'killed by signal 6'
pass 'a crash is the reason that the object shows'
ok 'the service answers' healthy
wait_metric cairn_objects_failed_total 1
is "$(metric cairn_objects_failed_total)" 1 'it is counted'

catch
build "$tmp/small.c" small
put_object debuginfo "$tmp/small"
wait_for 'another object to be indexed beside a worker that hangs' \
        sh -c "'$cairn' symbolize --server '$url' --build-id '$(build_id_of "$tmp/small")' 0x$(nm "$tmp/small" |
        awk '$3 == "answer" { print $1 }') | grep -q answer"
pass 'a worker that hangs stands in nobody else'\''s way'
ok 'the service answers' healthy
kill -XCPU "$worker" # like the kernel at the limit
kill -CONT "$worker"
wait_for 'the limit to be noticed' is_marked "$id" 'of processor time'
pass 'a worker that took too long is the reason that the object shows'

catch
kill -KILL "$worker" # like the kernel when memory is exhausted
wait_for 'the end to be noticed' is_marked "$id" 'killed by signal 9'
pass 'so is one that was killed'
ok 'the service answers' healthy

stop_server
start_server
ok 'the reasons persist across a restart' is_marked "$id" 'killed by signal 9'

# Another content of an object is uploaded while the first is being read, and the service is killed when only the
# first is done.
catch
first=$worker
printf 'more' >>"$tmp/large-$n"
put_object debuginfo "$tmp/large-$n" --url-query force=1
is "$code" 201 'another content is stored while the first is read'
python3 tests/e2e/catch-worker.py "$server_pid" symbols "$first" >"$tmp/caught" &
background_pids="$background_pids $!"
wait_for 'somebody to look for its worker' grep -q ready "$tmp/caught"
indexed=$(metric cairn_objects_indexed_total)
kill -CONT "$first"
both_read() { is_caught || metric_reached cairn_objects_indexed_total $((indexed + 2)); }
wait_for 'its worker to be caught' both_read
unread=0 # to be read at the next start
if is_caught; then
        background_pids="$background_pids $(tail -1 "$tmp/caught")"
        unread=1
else
        diag 'the worker was quicker'
fi
wait_metric cairn_objects_indexed_total $((indexed + 1))
kill_server
start_server
wait_metric cairn_objects_indexed_total $unread
ok 'it is read at the next start' is_marked "$id" indexed
stop_server
left=$(grep -c 'are not indexed yet' "$server_log")
start_server
is "$(grep -c 'are not indexed yet' "$server_log")" "$left" 'and not again, and neither are failed ones'
stop_server
done_testing
