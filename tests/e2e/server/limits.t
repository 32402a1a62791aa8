#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Limits by token and address, and that Cairn's clients respect them.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload

cat >"$tmp/tokens" <<'EOT'
token-of-ci      upload name=ci bytes=256K
token-of-grafana read   rate=1 name=grafana
token-of-root    admin
EOT
as() { printf 'Authorization: Bearer token-of-%s' "$1"; }
metric_as_root() { curl -sS -H "$(as root)" "$url/metrics" |
        awk -v name="$1" '$1 == name { print $2; f = 1 } END { if (!f) print 0 }'; }

# ask N PATH CURL-ARGUMENT...: N requests over one connection, so that they arrive faster than permitted. The responses
# are in $tmp/answers, each followed by a line "STATUS RETRY-AFTER"; all took less than $seconds.
ask() {
        asked=$1; ask_path=$2; shift 2
        seconds=$(date +%s)
        # shellcheck disable=SC2046
        curl -sS -w '\n%{http_code} %header{retry-after}\n' "$@" $(yes "$url$ask_path" | head -"$asked") >"$tmp/answers"
        seconds=$(($(date +%s) - seconds + 1))
}
count() { grep -c "^$1 " "$tmp/answers"; }
# has_rate RATE STATUS NAME: as many have that status as ten seconds of the rate, plus the elapsed time, permit; the
# others have 429.
has_rate() {
        passed=$(count "$2") limited=$(count 429)
        ok "$3 ($passed of $asked within $seconds s)" \
                test "$passed" -ge $((10 * $1)) -a "$passed" -le $(((10 + seconds) * $1)) \
                -a $((passed + limited)) -eq "$asked"
}

start_server --token-file "$tmp/tokens" --rate 2

# ---- requests of a token ----

ask 40 /api/v1/debuginfo -H "$(as grafana)"
has_rate 1 200 'a token has its rate and a burst'
like "$(cat "$tmp/answers")" 'token grafana sends more than 1 requests a second; retry in 1 s.*"rate"' \
        'over it the response has token and wait time'
like "$(cat "$tmp/answers")" '^429 1$' 'and so does its header'
is "$(metric_as_root 'cairn_limited_total{limit="rate",token="grafana"}')" "$limited" 'refusals are counted by the name'
ask 60 /api/v1/debuginfo -H "$(as root)"
is "$(count 200)" 60 'a token without a limit has none'
unlike "$(cat "$server_log")" 'token-of' 'no token is in the log'

# ---- requests of an address ----

ask 60 /api/v1/debuginfo -H "$(as guess)"
has_rate 2 401 'tokens are not guessed faster than the rate of an address'
is "$(metric_as_root 'cairn_limited_total{limit="rate",token=""}')" "$limited" 'refusals of addresses are counted'
ask 60 /healthz
is "$(count 200)" 60 'health checks are not limited'
ask 20 /api/v1/debuginfo -H "$(as root)"
is "$(count 200)" 20 'nor has a token that is known, from the same address'
ask 5 /api/v1/debuginfo --interface 127.0.0.2
is "$(count 401)" 5 'another address has its own'

# ---- bytes per day ----

printf 'int main(void) { return 0; }\n' >"$tmp/main.c"
gcc -g -Wl,--build-id -o "$tmp/main" "$tmp/main.c"
printf 'token-of-ci\n' >"$tmp/token"
ok 'an upload within the daily bytes' "$upload" --server "$url" --token-file "$tmp/token" "$tmp/main"
head -c 300000 /dev/urandom >"$tmp/big"
request -H "$(as ci)" -X PUT -H 'Expect:' -H 'Transfer-Encoding: chunked' -T "$tmp/big" \
        "$url/api/v1/debuginfo/abcd/debuginfo"
is "$code" 400 'bytes of a refused upload'
ended() { [ "$(metric_as_root cairn_http_connections)" -eq 1 ]; }
wait_for 'its end, when they are counted' ended
printf 'int main(void) { return 1; }\n' >"$tmp/main.c"
gcc -g -Wl,--build-id -o "$tmp/main" "$tmp/main.c"
"$upload" --server "$url" --token-file "$tmp/token" "$tmp/main" >"$tmp/out" 2>&1
like "$? $(cat "$tmp/out")" \
        '^1 .*: token ci has sent the 262144 bytes that it may send in a day; retry in [0-9]+ s \(HTTP 429, ' \
        'count too, and cairn-upload says so without waiting for hours'
is "$(metric_as_root 'cairn_limited_total{limit="bytes",token="ci"}')" 1 'it sent one request'

# ---- changing limits at run time ----

sed -i 's/rate=1/rate=1000/; s/ bytes=256K//' "$tmp/tokens"
kill -HUP "$server_pid"
wait_for 'the tokens to be read again' grep -q "3 tokens from" "$server_log"
ask 40 /api/v1/debuginfo -H "$(as grafana)"
is "$(count 200)" 40 'limits are reloaded'
ok 'also those of bytes' "$upload" --server "$url" --token-file "$tmp/token" "$tmp/main"

stop_server
done_testing
