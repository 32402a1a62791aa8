#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The service has few file descriptors left, or none: an upload or a batch is answered with 503 and the time of a retry,
# whichever step lacks one, since nothing is wrong with what was sent. With descriptors again both are taken.
. tests/e2e/lib.sh
for tool in gcc curl jq prlimit python3 ss; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
gcc -g -Wl,--build-id=0x00000000000000000000000000000000000000aa -o "$tmp/program" "$tmp/program.c"
id=00000000000000000000000000000000000000aa
put() {
        request -D "$tmp/headers" -T "$tmp/program" -H "X-Cairn-Size: $(stat -c %s "$tmp/program")" \
                -H "X-Cairn-SHA256: $(sha256sum "$tmp/program" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$id/debuginfo"
}
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" service=few values=7 names=leaf,main
send() {
        request -D "$tmp/headers" -H 'Content-Type: application/x-protobuf' -H "X-Cairn-Batch: $(printf '%032x' 7)" \
                --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
# leave COUNT: lowers the limit so that the service can open this many more.
leave() {
        prlimit --pid "$server_pid" --nofile="$(python3 - "$server_pid" "$1" <<'END'
import itertools, os, sys
used = {int(fd) for fd in os.listdir(f"/proc/{sys.argv[1]}/fd")}
print(next(itertools.islice((n for n in itertools.count() if n not in used), int(sys.argv[2]), None)))
END
        ):"
}

start_server --flush-interval 1
limit=$(prlimit --pid "$server_pid" --nofile --output SOFT --noheadings | tr -d ' ')
refused=0
for count in $(seq 64); do # one is the connection's
        leave "$count"
        put
        [ "$code" != 503 ] && break
        grep -qi '^retry-after: [1-9]' "$tmp/headers" || break
        refused=$((refused + 1))
done
ok "uploads were refused for lack of descriptors" test "$refused" -ge 3
is "$code" 201 "  each with 503 and Retry-After, until there were enough ($body)"
leave 1
send
case $code in # the queue's file may be open
503) ok "a batch is refused with the time of a retry" grep -qi '^retry-after: [1-9]' "$tmp/headers" ;;
*) is "$code" 200 "a batch is accepted" ;;
esac
ok "the service is healthy" healthy

# A connection that cannot be accepted waits for a descriptor.
leave 0
curl -sS --max-time 120 "$url/healthz" >"$tmp/late" &
late=$!
background_pids="${background_pids:-} $late"
in_backlog() { ss -Hltn "sport = :${url##*:}" | awk '$2 == 1 { found = 1 } END { exit !found }'; }
wait_for "the connection to wait" in_backlog
prlimit --pid "$server_pid" --nofile="$limit:"
wait $late
is "$(cat "$tmp/late")" ok "a connection that arrived meanwhile is answered"
taken() { send; [ "$code" = 200 ]; }
wait_for "the queue to recover" taken
pass "with descriptors again the batch is taken"
sum() { "$cairn" top --server "$url" --json '{service_name="few"}' | jq 'map(.flat) | add // 0'; }
has_samples() { [ "$(sum)" = 7 ]; }
wait_for "its samples" has_samples
pass "  and counts once"
answers 200 . "the object is served" "$url/buildid/$id/debuginfo"
stop_server
done_testing
