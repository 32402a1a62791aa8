#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn store: each verb refuses options that do not apply to it, has a help page of its own, and reads from the given
# location.
. tests/e2e/lib.sh
for tool in jq xz curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

tar -C "$tmp" -xf tests/corpus/data_directory/0.1.0-resymbolized.tar.xz || bail_out "the data directory does not unpack"
store() { "$cairn" store "$@" >"$tmp/out" 2>"$tmp/err"; }

# refused OPTION VERB [ARGUMENT]...: exit status 64, nothing on standard output, and a message with both.
refused() {
        option=$1 verb=$2; shift 2
        # shellcheck disable=SC2086  # a verb of two words
        store $verb --data "$data" "$@"
        is "$? $(cat "$tmp/out") $(cat "$tmp/err")" \
                "64  cairn store: option '--$option' does not apply to 'cairn store $verb' (try --help)" \
                "$verb refuses --$option"
}
for verb in verify snapshot export quarantine 'quarantine list' 'quarantine retry' 'quarantine remove' \
        'quarantine export'; do
        refused server "$verb" --server http://127.0.0.1:1
        refused token-file "$verb" --token-file "$tmp/none"
done
for verb in status files verify snapshot export compact quarantine; do refused dry-run "$verb" --dry-run; done
for verb in status verify snapshot compact expire quarantine 'quarantine retry'; do refused output "$verb" \
        --output "$tmp/x"; done
refused from status --from now-1h
refused type files --type cpu
refused step expire --step 1h
refused table status --table samples
refused sql verify --sql
refused json export --json --format csv
refused tenant snapshot "$tmp/copy" --tenant x
refused retain-samples compact --retain-samples age=1d
for verb in status files compact expire; do
        store $verb --data "$data" --server http://127.0.0.1:1
        is "$? $(cat "$tmp/err")" "64 cairn store: --server and --data exclude each other" "$verb is of one place"
done

# ---- arguments ----
store snapshot --data "$data"
is "$? $(cat "$tmp/err")" "64 cairn store: 'snapshot' needs TARGET, the new directory for the copy" \
        "a snapshot without TARGET says what is missing"
store quarantine retry --data "$data"
is "$? $(cat "$tmp/err")" "64 cairn store: 'quarantine retry' needs a batch id, or all" \
        "a retry without a batch says what is missing"
store verify x --data "$data"
is "$? $(cat "$tmp/err")" "64 cairn store: unexpected argument 'x' of 'verify'" "an argument too many is named"
store quarantine drop --data "$data"
is "$? $(cat "$tmp/err")" "64 cairn store: 'drop' is not one of list, retry, remove, export" \
        "an unknown subcommand of quarantine is named"
store check
is "$? $(cat "$tmp/err")" \
        "64 cairn store: unknown command 'check': expected status, files, verify, snapshot, copy, export, compact, expire or quarantine" \
        "an unknown command of store is named"

# ---- pages ----
options() { "$cairn" store "$@" --help | sed -n 's/^      --\([a-z-]*\).*/\1/p' | paste -sd ' '; }
is "$(options verify)" "data tenant json" "the page of a verb has its options"
is "$(options quarantine)" "data output tenant json" "  those of its own verbs too"
is "$(options quarantine retry)" "$(options quarantine)" "  the page of a verb's own verb is the same"
like "$("$cairn" store compact --help | head -1)" '^Usage: cairn store compact \[' \
        "  the page of a verb has its synopsis"
is "$(options | wc -w)" "$({ for verb in status files verify snapshot copy export compact expire \
        quarantine; do options $verb; done; } | tr ' ' '\n' | sort -u | wc -l)" \
        "each option is of some verb"
is "$("$cairn" store --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | paste -sd ' ')" \
        "status files verify snapshot copy export compact expire quarantine" "the page of the command lists the verbs"

# ---- a service ----
store quarantine retry all --json --data "$data"
is "$? $(cat "$tmp/out")" '0 {"batches":0,"action":"retry"}' "a retry as JSON"
"$cairn" store compact --data "$data" >/dev/null # otherwise the service does so in the meantime
start_server --flush-interval 3600
store status --json --server "$url"
is "$?" 0 "status of a service"
# The service re-symbolizes in the meantime: the two agree once it is done.
in_seconds='walk(if type == "number" and . > 1e18 then ./1e9 | floor else . end)'
compare_status() {
        "$cairn" store status --json --data "$data" |
                jq -S "del(.tables[].log_files, .tables[].log_bytes) | $in_seconds" >"$tmp/directory"
        "$cairn" store status --json --server "$url" | jq -S "$in_seconds" | diff "$tmp/directory" -
}
becomes '' "  is that of its directory, without the logs, in seconds" compare_status
is "$("$cairn" store status --server "$url" | grep -c '^samples  .* rows .* files .* KiB$')" 1 \
        "  as text, with sizes to read"
compare_files() {
        "$cairn" store files --json --data "$data" | jq -r '.[].path' | sed "s|^$data/profiles/tables|$url/store|" |
                sort >"$tmp/directory"
        "$cairn" store files --json --server "$url/" | jq -r '.[].path' | sort | diff "$tmp/directory" -
}
becomes '' "files of a service are URLs" compare_files
store files --json --server "$url"
path=$(jq -r '.[0] | "\(.bytes) \(.path)"' "$tmp/out")
is "$(curl -sS "${path#* }" | wc -c)" "${path%% *}" "  that can be fetched"
store files --table locations --server "$url"
like "$(cat "$tmp/out")" '^locations +[0-9]+ bytes  [^ /]+\.parquet$' "  the files of one table are shown as text"
store files --sql --server "$url"
is "$(head -1 "$tmp/out")" "SET VARIABLE cairn_files = {'samples': [" "  the files are given as SQL"
is "$(grep -c "^        '$url/store/" "$tmp/out")" "$("$cairn" store files --json --data "$data" | jq length)" \
        "  the SQL has the URLs of all files"
stop_server
store status --server "$url"
is "$?" 1 "an unreachable service is a failure"
like "$(cat "$tmp/err")" 'is the service running there' "  the message says that the service may not be running"
done_testing
