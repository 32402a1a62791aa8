#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How much a token and an address may do, and that our clients keep to what they are told.
. tests/e2e/lib.sh
upload=$CAIRN_SAN/cairn-upload

cat >"$tmp/tokens" <<'EOT'
token-of-ci      upload name=ci bytes=256K
token-of-grafana read   rate=1 name=grafana
token-of-root    admin
EOT
as() { printf 'Authorization: Bearer token-of-%s' "$1"; }
metric_as_root() { curl -sS -H "$(as root)" "$url/metrics" | awk -v name="$1" '$1 == name { print $2; f = 1 } END { if (!f) print 0 }'; }

# codes N CURL-ARGUMENT...: how often each status came.
codes() {
        codes_n=$1; shift
        codes_url=$1; shift
        # One connection, so that they come faster than they may.
        # shellcheck disable=SC2046
        curl -sS -o /dev/null -w '%{http_code}\n' "$@" $(yes "$codes_url" | head -"$codes_n" | sed 's/$/ -o \/dev\/null/') |
                sort | uniq -c | awk '{ printf "%s%s %s", sep, $2, $1; sep = ", " }'
}

start_server --token-file "$tmp/tokens" --rate 2

# ---- requests of a token ----

like "$(codes 40 "$url/api/v1/debuginfo" -H "$(as grafana)")" '^200 1[0-9], 429 [23][0-9]$' 'a token has its rate and a burst'
answers 429 "token grafana sends more than 1 requests a second; retry in 1 s.*\"rate\"" 'past it the answer says who and when' \
        -H "$(as grafana)" "$url/api/v1/debuginfo"
like "$(curl -sS -D - -o /dev/null -H "$(as grafana)" "$url/api/v1/debuginfo")" '^Retry-After: [12].?$' 'and so does its header'
is "$(codes 60 "$url/api/v1/debuginfo" -H "$(as root)")" '200 60' 'a token without a limit has none'
like "$(metric_as_root 'cairn_limited_total{limit="rate",token="grafana"}')" '^[23][0-9]$' 'refusals are counted by the name'
unlike "$(cat "$server_log")" 'token-of' 'no token is in the log'

# ---- requests of an address ----

like "$(codes 60 "$url/api/v1/debuginfo" -H "$(as guess)")" '^401 2[0-9], 429 [34][0-9]$' 'tokens are not guessed faster than the rate of an address'
is "$(codes 60 "$url/healthz")" '200 60' 'health has no limit'
is "$(codes 20 "$url/api/v1/debuginfo" -H "$(as root)")" '200 20' 'nor has a token that is known, from the same address'
like "$(codes 5 "$url/api/v1/debuginfo" --interface 127.0.0.2)" '^401 5$' 'another address has its own'
like "$(metric_as_root 'cairn_limited_total{limit="rate",token=""}')" '^[3-9][0-9]$' 'refusals of addresses are counted'

# ---- bytes of a day ----

printf 'int main(void) { return 0; }\n' >"$tmp/main.c"
gcc -g -Wl,--build-id -o "$tmp/main" "$tmp/main.c"
printf 'token-of-ci\n' >"$tmp/token"
ok 'an upload within the bytes of a day' "$upload" --server "$url" --token-file "$tmp/token" "$tmp/main"
head -c 300000 /dev/urandom >"$tmp/big"
request -H "$(as ci)" -X PUT -H 'Expect:' -H 'Transfer-Encoding: chunked' -T "$tmp/big" "$url/api/v1/debuginfo/abcd/debuginfo"
is "$code" 400 'bytes of what is refused'
printf 'int main(void) { return 1; }\n' >"$tmp/main.c"
gcc -g -Wl,--build-id -o "$tmp/main" "$tmp/main.c"
"$upload" --server "$url" --token-file "$tmp/token" "$tmp/main" >"$tmp/out" 2>&1
like "$? $(cat "$tmp/out")" '^1 .*429: token ci has sent the 262144 bytes that it may send in a day; retry in [0-9]+ s' \
        'count too, and cairn-upload says so without waiting for hours'
is "$(metric_as_root 'cairn_limited_total{limit="bytes",token="ci"}')" 1 'it asked once'

# ---- other limits while it runs ----

sed -i 's/rate=1/rate=1000/; s/ bytes=256K//' "$tmp/tokens"
kill -HUP "$server_pid"
wait_for 'the tokens to be read again' grep -q "3 tokens from" "$server_log"
is "$(codes 40 "$url/api/v1/debuginfo" -H "$(as grafana)")" '200 40' 'limits follow the file'
ok 'and so do bytes' "$upload" --server "$url" --token-file "$tmp/token" "$tmp/main"

stop_server
done_testing
