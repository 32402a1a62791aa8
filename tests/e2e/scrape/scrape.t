#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `cairn scrape` with a real Go program: values, differences of cumulative profiles, restarts, target files, targets
# that are down or hostile.
# Time limit: 600 s.
. tests/e2e/lib.sh

command -v go >/dev/null || { [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "go is needed"; \
        skip_all "go is not installed"; }
mkdir -p "$CAIRN_BUILD/go-cache"
HOME=$tmp GOCACHE=$CAIRN_BUILD/go-cache GO111MODULE=off go build -o "$tmp/target" tests/e2e/scrape/scrape-target.go ||
        bail_out "the target does not build"
export HOME="$tmp"
cd "$tmp" || exit 1

# start_target NAME PORT: sets $target_pid and $at.
start_target() {
        rm -f "port.$1"
        ./target "127.0.0.1:$2" "port.$1" 2>>"target.$1.log" &
        target_pid=$!
        background_pids="${background_pids:-} $target_pid"
        wait_for "the target $1 to listen" [ -s "port.$1" ]
        at=127.0.0.1:$(cat "port.$1")
}
# start_scraper CONFIG [OPTION]...: sets $scraper_pid and $scraper_url.
start_scraper() {
        rm -f scrape.log # the previous log
        "$cairn" scrape --server "$url" --metrics-listen 127.0.0.1:0 "$@" 2>scrape.log &
        scraper_pid=$!
        background_pids="${background_pids:-} $scraper_pid"
        wait_for "the scraper to listen" grep -q 'metrics at' scrape.log
        scraper_url=$(sed -n 's|.*metrics at \(.*\)/metrics$|\1|p' scrape.log)
}
# stop_scraper NAME
stop_scraper() {
        kill -TERM "$scraper_pid"
        wait "$scraper_pid"
        is $? 0 "the scraper ends well: $1"
        unlike "$(cat scrape.log)" 'Sanitizer|runtime error' "no sanitizer reports anything: $1"
}
# scraped FILTER: of /targets, with all profiles as jq's input.
scraped() { curl -sS --max-time 20 "$scraper_url/targets" | jq -r "$1"; }
# scrapes PROFILE: the number of its successful scrapes, over all targets.
scrapes() { scraped "[.profiles[] | select(.profile == \"$1\") | .scrapes - .failures] | add // 0"; }
has_scraped() { [ "$(scrapes "$1")" -ge "$2" ]; }
# wait_scrapes PROFILE MORE: waits for this many more successful scrapes.
wait_scrapes() { wait_for "$2 more scrapes of $1" has_scraped "$1" $(($(scrapes "$1") + $2)); }
sent_all() { [ "$(curl -sS "$scraper_url/metrics" | awk '$1 == "cairn_scrape_batches_waiting" { print $2 }')" = 0 ]; }
# cost TYPE FUNCTION [SELECTOR]: its self cost according to the service.
cost() {
        wait_for "all batches to be sent" sent_all
        "$cairn" top --server "$url" --json --type "$1" --function "$2" ${3:+"$3"} 2>/dev/null |
                jq -s '[.[][].flat] | add // 0'
}
# go_cost TYPE UNIT FUNCTION FILE...: its cost in the files according to go tool pprof.
go_cost() {
        go_type=$1 go_unit=$2 go_function=$3
        shift 3
        go tool pprof -top -nodecount=100000 -nodefraction=0 -edgefraction=0 -sample_index="$go_type" -unit="$go_unit" \
                "$@" 2>/dev/null |
                awk -v f="$go_function" '$6 == f { v = $1; sub(/[A-Za-z]+$/, "", v); printf "%d\n", v }'
}

start_server

# ---- CONFIG ----
printf 'scrape_configs:\n- job_name: a\n  scrape_intervall: 1s\n' >bad.yaml
"$cairn" scrape --check bad.yaml >out 2>err
is $? 64 "a configuration with a mistake is refused"
like "$(cat err)" "^cairn scrape: bad.yaml:3: 'scrape_intervall' is not known here" \
        "the mistake is reported with its line"
mkdir sd
cat >check.yaml <<'END'
global: {scrape_interval: 5s, external_labels: {zone: z}}
scrape_configs:
  - job_name: shop
    static_configs: [{targets: ['a:1', 'b:2'], labels: {env: prod}}]
    relabel_configs:
      - {source_labels: [__address__], regex: 'b:.*', action: drop}
  - job_name: files
    scheme: https
    file_sd_configs: [{files: ['sd/*.json']}]
    profiling_config: {pprof_prefix: /app/, pprof_config: {memory: {path: /heap}, block: {enabled: false}, mutex: {enabled: false}}}
END
echo '[{"targets": ["c:3"], "labels": {"team": "x"}}]' >sd/one.json
"$cairn" scrape --check check.yaml >out 2>err
is $? 0 "--check of a good one"
like "$(cat out)" '^  http://a:1 env=prod instance=a:1 job=shop service_name=shop zone=z$' \
        "a target of the configuration with its labels"
like "$(cat out)" '^  https://c:3/app instance=c:3 job=files service_name=files team=x zone=z$' \
        "one of a file beside it"
like "$(cat out)" '^2 targets, 1 dropped by relabelling$' "a target is dropped by a rule"
is "$("$cairn" scrape --check --json check.yaml | jq -r '.[1].urls | join(" ")')" \
        "https://c:3/app/debug/pprof/profile?seconds=4 https://c:3/app/heap https://c:3/app/debug/pprof/goroutine" \
        "--json has the URLs"
echo '[{"targets": ["c 3"]}]' >sd/two.json
"$cairn" scrape --check check.yaml >out 2>err
is $? 64 "an address that is none fails --check"
like "$(cat err)" "job 'files': target 'c 3': 'c 3' is not HOST:PORT" "the wrong address is reported with its job"
echo '[{"targets"' >sd/two.json
"$cairn" scrape --check check.yaml >out 2>err
like "$?:$(cat err)" "64:.*sd/two.json:[12]: not YAML" "a broken file of targets fails --check with its name"

# ---- a real program: cumulative totals become differences ----
start_target go "$(free_port)" # which it gets again when it is restarted
real=$at
curl -sS "http://$real/load/allocate?n=50" # before the first scrape: not counted
curl -sS "http://$real/load/burn"
cat >real.yaml <<END
global: {scrape_interval: 2s}
scrape_configs:
  - job_name: go
    static_configs: [{targets: ['$real'], labels: {service_name: shop}}]
END
soft=$(prlimit --nofile --raw --noheadings --output SOFT)
prlimit --pid $$ --nofile=256:
start_scraper real.yaml
prlimit --pid $$ --nofile="$soft:"
hard=$(prlimit --nofile --raw --noheadings --output HARD)
[ "$hard" != unlimited ] && [ "$hard" -lt 2176 ] || hard=2176
is "$(prlimit --pid "$scraper_pid" --nofile --raw --noheadings --output SOFT)" "$hard" \
        "the limit of open files is raised for 256 requests at one time"
for profile in process_cpu memory goroutine block mutex; do wait_for "the first scrape of $profile" has_scraped \
        $profile 1; done
is "$(cost memory:alloc_objects main.allocateBlocks)" 0 "what was allocated before the first scrape does not count"
curl -sS -o before.pb.gz "http://$real/debug/pprof/allocs"
curl -sS -o mutex-before.pb.gz "http://$real/debug/pprof/mutex"
curl -sS -o block-before.pb.gz "http://$real/debug/pprof/block"
curl -sS "http://$real/load/allocate?n=7"
curl -sS "http://$real/load/contend?n=5"
wait_scrapes memory 2
curl -sS "http://$real/load/allocate?n=5"
wait_scrapes memory 2
wait_scrapes mutex 2
wait_scrapes block 2
curl -sS -o after.pb.gz "http://$real/debug/pprof/allocs"
curl -sS -o mutex-after.pb.gz "http://$real/debug/pprof/mutex"
curl -sS -o block-after.pb.gz "http://$real/debug/pprof/block"
for type in alloc_objects:count alloc_space:B; do
        want=$(go_cost ${type%:*} ${type#*:} main.allocateBlocks -diff_base=before.pb.gz after.pb.gz)
        is "$(cost "memory:${type%:*}" main.allocateBlocks)" "$want" \
                "${type%:*} of three scrapes together: what go tool pprof says of the endpoint"
        like "$want" '^[1-9]' "the difference of the scrapes is not zero"
done
for kind in mutex block; do
        for type in contentions:count delay:ns; do
                want=$(go tool pprof -top -nodefraction=0 -sample_index=${type%:*} -unit=${type#*:} \
                        -focus=contendLocks \
                        -diff_base=$kind-before.pb.gz $kind-after.pb.gz 2>/dev/null |
                        sed -n 's/.*accounting for \([0-9]*\)[^,]*,.*/\1/p')
                got=$("$cairn" flame --server "$url" --format folded --type "$kind:${type%:*}" --focus contendLocks |
                        awk '{ n += $NF } END { print n + 0 }')
                is "$got" "$want" "$kind ${type%:*}: the same"
        done
done
wait_scrapes goroutine 2
wait_for "all batches to be sent" sent_all
# Its stack never changes: averages of several stacks are rounded to whole goroutines.
is "$("$cairn" top --server "$url" --json --type goroutine --function main.main |
        jq -s '[.[][].cumulative] | add // 0')" 1 \
        "a goroutine counts once, however many scrapes have seen it"
ok "CPU profiles have the busy function" [ "$(cost process_cpu:cpu main.burnProcessor)" -gt 100000000 ]
ok "labels of samples are kept, in addition to those of the target" \
        [ "$(cost process_cpu:cpu main.burnProcessor \
        '{endpoint="hot",job="go",service_name="shop",instance="'"$real"'"}')" -gt 100000000 ]
is "$(cost process_cpu:cpu main.burnProcessor '{job!="go"}')" 0 "a program cannot claim to be another job"
like "$(curl -sS "$scraper_url/metrics")" "^cairn_scrape_up\{job=\"go\",instance=\"$real\",profile=\"memory\"\} 1" \
        "it is up"

# ---- the program is restarted: a reset, and no negative values ----
kill -9 "$target_pid"
wait "$target_pid" 2>/dev/null
is_down() { [ "$(scraped '[.profiles[] | select(.profile == "memory") | .health] | join(" ")')" = down ]; }
wait_for "the target to be down" is_down
like "$(curl -sS "$scraper_url/metrics")" "^cairn_scrape_up\{job=\"go\",instance=\"$real\",profile=\"memory\"\} 0" \
        "it is down"
like "$(cat scrape.log)" "warn scrape: job 'go', $real, http://$real/debug/pprof/allocs: .*(onnect|eply)" \
        "the log has the target and the reason"
like "$(curl -sS "$scraper_url/metrics")" '^cairn_scrape_failures_total\{reason="unreachable"\} [1-9]' \
        "the unreachable target is counted"
before=$(cost memory:alloc_objects main.allocateBlocks)
start_target go "${real#*:}"
curl -sS "http://$real/load/allocate?n=3"
is_reset() { [ "$(scraped '[.profiles[] | select(.profile == "memory") | .resets] | add')" -ge 1 ]; }
wait_for "the reset to be seen" is_reset
wait_scrapes memory 2 # the first of them may have begun before the allocations
curl -sS -o new.pb.gz "http://$real/debug/pprof/allocs"
is "$(cost memory:alloc_objects main.allocateBlocks)" \
        $((before + $(go_cost alloc_objects count main.allocateBlocks new.pb.gz))) \
        "after a restart all that the new process counted is new"
like "$(cat scrape.log)" "info scrape: job 'go', $real: memory was reset" "the log says so"
is "$("$cairn" flame --server "$url" --format folded --type memory:alloc_objects | awk '$NF < 0' | wc -l)" 0 \
        "nothing is negative"
stop_scraper "a real program"

# ---- the same file: all values of go tool pprof ----
curl -sS -o fixed.pb.gz "http://$real/debug/pprof/profile?seconds=1" # of an idle program
curl -sS "http://$real/load/burn"
curl -sS -o port.go.fixed "http://$real/debug/pprof/profile?seconds=2"
cat >fixed.yaml <<END
global: {scrape_interval: 2m}
scrape_configs:
  - job_name: fixed
    static_configs: [{targets: ['$real']}]
    profiling_config:
      pprof_config:
        process_cpu: {path: /fixed, delta: false}
        memory: {enabled: false}
        goroutine: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
END
"$cairn" scrape --once --server "$url" fixed.yaml >out 2>err
is "$?:$(cat err)" "0:" "--once of one profile"
like "$(cat out)" "^fixed $real process_cpu up [1-9][0-9]* samples, $(stat -c %s port.go.fixed) bytes, [0-9]+ ms$" \
        "it prints the result"
go tool pprof -top -nodecount=100000 -nodefraction=0 -edgefraction=0 -sample_index=cpu -unit=ns port.go.fixed \
        2>/dev/null |
        awk '/flat%/ { on = 1; next } on { v = $1; c = $4; sub(/ns/, "", v); sub(/ns/, "", c); name = $6; for (i = 7; i <= NF; i++) if ($i != "(inline)") name = name " " $i; printf "%s %d %d\n", name, v, c }' | sort >want
"$cairn" top --server "$url" --json --type process_cpu:cpu '{job="fixed"}' |
        jq -r '.[] | "\(.function) \(.flat) \(.cumulative)"' | sort >got
ok "there is something to compare" grep -q burnProcessor want
is "$(diff want got)" "" "flat and cumulative values of each function are those of go tool pprof"

# ---- --once of totals: one interval ----
cat >once.yaml <<END
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: once
    static_configs: [{targets: ['$real', '127.0.0.1:1']}]
    profiling_config: {pprof_config: {process_cpu: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}}
END
"$cairn" scrape --once --json --server "$url" once.yaml >out 2>err
is $? 1 "--once ends with 1 when a target is down"
is "$(jq -r '.profiles[] | "\(.labels.instance) \(.health) \(.scrapes)"' out)" "$real up 2
127.0.0.1:1 down 1" "a profile of totals is scraped twice, a target that is down once"
like "$(cat err)" "1 of 2 profiles could not be scraped" "the number of profiles that could not be scraped is reported"

# ---- --once with targets that end in the meantime ----
mkdir leaving
echo "[{\"targets\": [\"$real\"]}]" >leaving/one.json
cat >leaving.yaml <<END
global: {scrape_interval: 6s}
scrape_configs:
  - job_name: leaving
    file_sd_configs: [{files: ['leaving/*.json']}]
    profiling_config: {pprof_config: {process_cpu: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}}
END
start_scraper leaving.yaml --once --json >out
wait_for "the first of two scrapes" has_scraped memory 1
rm leaving/one.json
has_ended() { ! kill -0 "$scraper_pid" 2>/dev/null; }
wait_for "--once to end" has_ended
wait "$scraper_pid"
is "$?:$(jq -r '.profiles[] | "\(.labels.instance) \(.health) \(.scrapes)"' out)" "0:$real up 2" \
        "--once ends with what there was at the start, though its file is gone"

# ---- credentials ----
cat >secret.yaml <<END
scrape_configs:
  - {job_name: none, static_configs: [{targets: ['SECRET']}], profiling_config: &only {pprof_config: {goroutine: {path: /secret/x}, process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}}}
  - {job_name: basic, static_configs: [{targets: ['SECRET']}], profiling_config: *only, basic_auth: {username: me, password_file: secret.pass}}
  - {job_name: bearer, static_configs: [{targets: ['SECRET']}], profiling_config: *only, bearer_token_file: secret.token}
  - {job_name: own, static_configs: [{targets: ['SECRET']}], profiling_config: *only, authorization: {type: Token, credentials: abc}}
END
echo 'pass word' >secret.pass
echo 'T0KEN' >secret.token
for way in "basic Basic $(printf 'me:pass word' | base64)" "bearer Bearer T0KEN" "own Token abc"; do
        export TARGET_AUTHORIZATION="${way#* }"
        start_target secret 0
        sed "s/SECRET/$at/" secret.yaml >secret-now.yaml
        "$cairn" scrape --once --json --server "$url" secret-now.yaml >out 2>err
        is "$(jq -r '[.profiles[] | select(.health == "up") | .job] | join(" ")' out)" "${way%% *}" \
                "credentials of the job ${way%% *} are sent"
        kill -9 "$target_pid"
done
is "$(jq -r '.profiles[] | select(.job == "none") | .error' out)" "HTTP 401: wrong credentials" \
        "a target's refusal is quoted"
unlike "$(cat out err)" 'pass word|T0KEN' "no secret is printed"
rm secret.pass
"$cairn" scrape --once --json --server "$url" secret-now.yaml >out 2>err
like "$(jq -r '.profiles[] | select(.job == "basic") | .error' out)" "secret.pass" "a missing file is reported"

# ---- TLS with certificates on both sides ----
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
        -keyout key.pem -out cert.pem 2>/dev/null
TARGET_CERT=cert.pem TARGET_KEY=key.pem start_target tls 0
sed "s/SECRET/$at/" >tls.yaml <<'END'
scrape_configs:
  - {job_name: both, scheme: https, static_configs: [{targets: ['SECRET']}], tls_config: {ca_file: cert.pem, cert_file: cert.pem, key_file: key.pem}, profiling_config: &only {pprof_config: {process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}}}
  - {job_name: unknown, scheme: https, static_configs: [{targets: ['SECRET']}], profiling_config: *only}
  - {job_name: anonymous, scheme: https, static_configs: [{targets: ['SECRET']}], tls_config: {ca_file: cert.pem}, profiling_config: *only}
  - {job_name: lost, scheme: https, static_configs: [{targets: ['SECRET']}], tls_config: {ca_file: absent.pem}, profiling_config: *only}
END
"$cairn" scrape --once --json --server "$url" tls.yaml >out 2>err
is "$(jq -r '[.profiles[] | select(.health == "up") | .job] | join(" ")' out)" both \
        "https with certificates of both sides"
like "$(jq -r '.profiles[] | select(.job == "unknown") | .error' out)" 'self.signed certificate' \
        "an untrusted certificate is refused"
like "$(jq -r '.profiles[] | select(.job == "anonymous") | .error' out)" '.' \
        "a target that requires a certificate fails without one"
like "$(jq -r '.profiles[] | select(.job == "lost") | .error' out)" 'absent.pem' \
        "a missing certificate file is reported"
kill -9 "$target_pid"

# ---- target files change ----
cat >files.yaml <<END
global: {scrape_interval: 500ms}
scrape_configs:
  - job_name: files
    file_sd_configs: [{files: ['found/*.json', 'found/*.yml']}]
    profiling_config: {pprof_config: {process_cpu: {enabled: false}, memory: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}}}
    relabel_configs:
      - {source_labels: [__meta_filepath], regex: '.*/(\\w+)\\.\\w+', target_label: file}
END
mkdir found
start_target other 0
other=$at
start_scraper files.yaml
found_targets() { scraped '[.profiles[].labels | "\(.file):\(.instance)"] | sort | join(" ")'; }
targets_are() { [ "$(found_targets)" = "$1" ]; }
is "$(found_targets)" "" "there is no target yet"
echo "[{\"targets\": [\"$real\"]}]" >found/one.json
wait_for "a file to be found" targets_are "one:$real"
wait_scrapes goroutine 2
printf -- '- targets: [%s]\n' "$other" >found/two.yml
wait_for "a second file" targets_are "one:$real two:$other"
kept=$(scraped '.profiles[] | select(.labels.file == "one") | .scrapes')
ok "unchanged targets keep their state" [ "$kept" -ge 2 ]
echo '[{"targets": [' >found/one.json
wait_for "the broken file to be noticed" grep -q 'found/one.json:[0-9]*: not YAML' scrape.log
has_failed_file() { curl -sS "$scraper_url/metrics" | grep -q '^cairn_scrape_files{state="failed"} 1'; } # after the log
wait_for "a broken file to be counted" has_failed_file
pass "a broken file is counted"
is "$(found_targets)" "one:$real two:$other" "the targets of a broken file stay"
echo "[{\"targets\": [\"$other\"]}]" >found/new && mv found/new found/one.json
wait_for "the file to change" targets_are "one:$other two:$other"
rm found/two.yml
wait_for "the file to be gone" targets_are "one:$other"
stop_scraper "files of targets"

# ---- hostile targets ----
cat >hostile.yaml <<END
global: {scrape_interval: 10s, scrape_timeout: 5s}
scrape_configs:
  - job_name: hostile
    body_size_limit: 4MB
    static_configs: [{targets: ['$real']}]
    profiling_config: &all
      pprof_config:
        process_cpu: {enabled: false}
        memory: {enabled: false}
        goroutine: {enabled: false}
        block: {enabled: false}
        mutex: {enabled: false}
        huge: {path: /huge}
        slow: {path: /slow}
        hang: {path: /hang}
        html: {path: /html}
        redirect: {path: /redirect}
        loop: {path: /loop}
        file: {path: /file}
        empty: {path: /empty}
        encoded: {path: /encoded}
        twice: {path: /twice}
        zlib: {path: /zlib}
        bomb: {path: /bomb}
        error: {path: /error}
        longerror: {path: /longerror}
        cut: {path: /cut}
        missing: {path: /missing}
        good: {path: /debug/pprof/goroutine}
  - job_name: followed
    body_size_limit: 4MB
    follow_redirects: true
    static_configs: [{targets: ['$real']}]
    profiling_config: *all
END
"$cairn" scrape --once --json --server "$url" --memory 256M hostile.yaml >out 2>err
is $? 1 "--once of a hostile target ends"
# refused PROFILE PATTERN NAME
refused() {
        like "$(jq -r ".profiles[] | select(.job == \"hostile\" and .profile == \"$1\") | .health + \" \" + .error" \
                out)" "^down $2" "$3"
}
refused huge 'the body has more than 4194304 bytes \(body_size_limit\)' "an endless body"
refused slow 'no complete response within 5.0 s \(scrape_timeout\)' "a slow one"
refused hang 'no complete response within 5.0 s' "none at all"
refused html 'not a profile: content type text/html' "a page"
refused redirect 'HTTP 302: redirected' "a redirection"
refused file 'HTTP 302: redirected' "one to a file"
refused encoded "not a profile: the target sends Content-Encoding 'br', which was not asked for; turn compression off for /encoded" "an encoding"
refused twice "not a profile: the target sends Content-Encoding 'gzip', which was not asked for" \
        "a profile compressed twice"
refused zlib "not a profile: content type .*: this is zlib data; compress pprof with gzip" "zlib data"
refused empty 'the response is empty' "nothing"
refused bomb '.*(too|more|large|big)' "a small body that unpacks to a large one"
refused error 'HTTP 500: cpu profiling already in use' "an error"
refused longerror 'HTTP 502' "an error with a long body"
refused cut '.*' "an answer that is cut off"
refused missing 'HTTP 404: 404 page not found' "a path that is not there"
is "$(jq -r '[.profiles[] | select(.health == "up") | .job + ":" + .profile] | sort | join(" ")' out)" \
        "followed:good followed:redirect hostile:good" \
        "what is good is scraped, and a redirection where that is allowed"
unlike "$(cat err)" "$(printf '\033')" "control characters of a target do not reach the terminal"
unlike "$(cat err)" 'Sanitizer|runtime error' "no sanitizer says anything"
ok "the service is healthy" healthy

# ---- frames that a profile asks to drop ----
cat >dropped.yaml <<END
scrape_configs:
  - job_name: dropped
    static_configs: [{targets: ['$real']}]
    profiling_config: {pprof_config: {process_cpu: {enabled: false}, memory: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, dropped: {path: /dropped}, undropped: {path: /undropped}}}
END
"$cairn" scrape --once --server "$url" dropped.yaml >out 2>err
is $? 0 "profiles with drop_frames are scraped"
leaf_of() { "$cairn" flame --server "$url" --format folded --type "$1" '{job="dropped"}' 2>&1; }
is "$(leaf_of dropped)" "main;allocate 7" "drop_frames removes frames of a scraped profile"
is "$(leaf_of undropped)" "main;allocate;malloc 7" "an expression that cannot be used removes none"
like "$(cat err)" "job 'dropped', $real: undropped: drop_frames and keep_frames are ignored: " \
        "the expression that cannot be used is logged"

# ---- a sample that exceeds the limit of a batch, while the service is unavailable ----
stop_server
cat >large.yaml <<END
scrape_configs:
  - job_name: large
    static_configs: [{targets: ['$real']}]
    profiling_config: {pprof_config: {process_cpu: {enabled: false}, memory: {enabled: false}, goroutine: {enabled: false}, block: {enabled: false}, mutex: {enabled: false}, large: {path: /large}}}
END
"$cairn" scrape --server http://127.0.0.1:9 --spool large-spool --once large.yaml >out 2>err
is $? 2 "a sample that is lost fails --once, though the rest waits in the spool"
like "$(cat err)" 'error sender: 1 sample of a profile is lost: ' "the log says why"
like "$(cat err)" 'batch(es)? stays? in the spool' "the rest is queued"
like "$(cat err)" '^cairn scrape: 0 batches and 1 further sample were lost' "the number of lost samples is reported"
like "$(cat out)" "^large $real large up 2 samples" "the result of the scrape is printed nevertheless"
start_server
"$cairn" scrape --server "$url" --spool large-spool --once once.yaml >/dev/null 2>&1
is "$("$cairn" top --server "$url" --json --type large '{job="large"}' | jq -r '.[] | "\(.function) \(.flat)"')" \
        "good 5" "the next run sends the rest"

# ---- an unavailable service: batches are kept in the spool ----
stop_server
start_target spooled 0
sed "s/'$real'/'$at'/; s/: 2s/: 500ms/" real.yaml >spooled.yaml
url=http://127.0.0.1:9 start_scraper spooled.yaml --spool spool
files_in_spool() { [ "$(find spool -name '*.batch' | wc -l)" -ge 3 ]; }
wait_for "batches in the spool" files_in_spool
stop_scraper "without a service"
like "$(cat scrape.log)" 'batch(es)? stays? in the spool' "batches stay in the spool"
start_server
"$cairn" scrape --server "$url" --spool spool --once once.yaml >/dev/null 2>&1
is "$(find spool -name '*.batch' | wc -l)" 0 "the next run sends them"
ok "and they are stored" \
        [ "$("$cairn" top --server "$url" --json --type goroutine "{instance=\"$at\"}" | jq length)" -gt 0 ]
done_testing
