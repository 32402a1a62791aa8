# SPDX-License-Identifier: Apache-2.0
# Malicious queries: regular expressions that take many steps end with their budget or deadline, other clients are
# served in the meantime, and a query is stopped if its client disconnects. Control characters in names never reach a
# terminal.
. tests/e2e/lib.sh

start_server --flush-interval 3600
import() { "$cairn" import --server "$url" --time now "$@" >>"$tmp/import.log" 2>&1; }
cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds
python3 - >"$tmp/long.folded" <<'END'
for i in range(30000):
    print("main;%s_%d %d" % ("name" * 40, i, i + 1))
END
printf 'main;work 5\n' >"$tmp/honest.folded"
ok "many long names are accepted" import --type $cpu "$tmp/long.folded"

# 900 states, most of which are active at every byte.
hostile=$(python3 -c 'from urllib.parse import quote; print(quote("(.{0,30}){0,30}x"))')
for i in 1 2 3 4; do
        curl -sS --max-time 300 -o "$tmp/hostile$i" -w '%{http_code}' "$url/api/v1/query/top?function=$hostile" \
                >"$tmp/code$i" 2>&1 &
        echo $! >"$tmp/pid$i"
done
answers 200 '^ok$' "/healthz answers while four hostile queries run" --max-time 120 "$url/healthz"
ok "ingest continues" import --type $cpu "$tmp/honest.folded"
for i in 1 2 3 4; do
        wait "$(cat "$tmp/pid$i")"
        like "$(cat "$tmp/code$i")" '^(413|504)$' "hostile query $i ends with a limit"
        like "$(cat "$tmp/hostile$i")" 'take more than 1000000000 steps; use|took longer than 60 s; take a shorter' \
                "  the message says which limit ended the query"
done
cancelled() { curl -sS --max-time 60 "$url/metrics" |
        awk '/^cairn_queries_cancelled_total/ { n += $2 } END { print n + 0 }'; }
is "$(cancelled)" 4 "each is counted"
answers 400 'repeats too much: counted out it has more than 2000 parts' "a repetition of repetitions is refused" \
        "$url/api/v1/query/top?function=(a%7B1000%7D)%7B1000%7D"
answers 200 '"function": ?"work"' "an honest expression is answered" "$url/api/v1/query/top?function=wor.*"

# On a busy machine a client may disconnect before it has sent its request.
is_stopped_early() {
        curl -sS --max-time 0.3 -o /dev/null "$url/api/v1/query/top?function=$hostile" 2>/dev/null
        metric_reached 'cairn_queries_cancelled_total{reason="client"}' 1
}
wait_for "a query to be stopped" is_stopped_early
pass "a query is stopped when its client leaves"

# ---- names with terminal control characters ----

controls() { LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" "$1"; }
printf 'ma\033]0;owned\007in;evil\033[2J_\302\233 900000000000000\n' >"$tmp/evil.folded"
ok "control characters in names are accepted" import --format folded --type $cpu "$tmp/evil.folded"
for command in top flame 'debuginfo list'; do
        case $command in
        top | flame) "$cairn" "$command" --server "$url" >"$tmp/out" 2>&1 ;;
        *) "$cairn" debuginfo list --server "$url" >"$tmp/out" 2>&1 ;;
        esac
        if controls "$tmp/out"; then fail "no control character in the output of $command"; \
                else pass "no control character in the output of $command"; fi
done
like "$("$cairn" top --server "$url")" 'evil\\x1b\[2J_\\xc2\\x9b' "they are shown escaped"
"$cairn" top --server "$url" --json >"$tmp/out"
if controls "$tmp/out"; then fail "none in JSON either"; else pass "none in JSON either"; fi
is "$(python3 -c 'import json,sys; print(ascii([r["function"] for r in json.load(open(sys.argv[1]))][0]))' \
        "$tmp/out")" \
        "'evil\\x1b[2J_\\x9b'" "  JSON has the name as it was sent"

stop_server
done_testing
