# SPDX-License-Identifier: Apache-2.0
# Maintenance of the debuginfo store: show, get, pin, rm, gc and verify, with the service and on its directory.
. tests/e2e/lib.sh
for tool in gcc jq zstd curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
for b in 01 02 03 04; do
        gcc -g -Wl,--build-id="0x00000000000000000000000000000000000000$b" -o "$tmp/program-$b" "$tmp/program.c"
done
id() { printf '%038d%s' 0 "$1"; }
debuginfo() { verb=$1; shift; "$cairn" debuginfo "$verb" --server "$url" "$@"; }
stored() { debuginfo list --json | jq -r '[.objects[] | .build_id[-2:]] | join(" ")'; }

start_server
"$CAIRN_SAN/cairn-upload" --server "$url" --tag 'nightly/7' "$tmp/program-01" >/dev/null
put_object debuginfo "$tmp/program-02"
is "$(stored)" "01 02" "two objects are stored"
answers 400 'is not a tag' "a tag of other letters is refused" -X PUT \
        "$url/api/v1/debuginfo/$(id 03)/debuginfo?tag=a%20b" \
        -H 'X-Cairn-Size: 1' -H "X-Cairn-SHA256: $(printf x | sha256sum | cut -d' ' -f1)"
wait_metric cairn_objects_indexed_total 2

is "$(debuginfo show "$(id 01)" --json | jq -c '.objects[] | [.kind, .tag, .pinned, .index.state]')" \
        '["debuginfo","nightly/7",false,"indexed"]' "show tells the tag and the state"
debuginfo show "$(id 09)" >"$tmp/out" 2>&1
is $? 1 "show of what is not stored fails"
like "$(cat "$tmp/out")" "nothing is stored under build-id $(id 09)" "the message says that the object is not stored"

debuginfo get "$(id 02)" --output "$tmp/got"
is "$(sha256sum <"$tmp/got")" "$(sha256sum <"$tmp/program-02")" "get returns the object byte for byte"
is "$(debuginfo get "$(id 02)" -o - | sha256sum)" "$(sha256sum <"$tmp/program-02")" \
        "get writes the same bytes to standard output"
is "$("$cairn" debuginfo get "$(id 02)" --data "$data" -o - | sha256sum)" "$(sha256sum <"$tmp/program-02")" \
        "get reads the same bytes from the directory"
debuginfo get "$(id 09)" --output "$tmp/none" >"$tmp/out" 2>&1
is $? 1 "get of what nobody has fails"
is "$(ls "$tmp"/none* 2>/dev/null)" '' "get of what is not stored leaves no file"

# Both were just stored, so only a size rule removes them.
like "$(debuginfo gc --dry-run --retain 'size=1')" '^would remove 2 objects' "a dry run reports what would be removed"
is "$(stored)" "01 02" "the dry run removes nothing"
debuginfo pin "$(id 02)" >/dev/null
is "$(debuginfo gc --retain 'tag=nightly/*,keep' --retain 'size=1' --json | jq -c '[.removed, .pinned, .objects]')" \
        '[[],1,2]' \
        "tagged and pinned objects stay"
is "$(debuginfo gc --retain 'size=1' --json | jq -c '[.removed[] | [.build_id[-2:], .reason, .tag]]')" \
        '[["01","size","nightly/7"]]' "the other one goes"
is "$(metric 'cairn_debuginfo_removed_total{reason="size"}')" 1 "the removed object is counted"
is "$(metric cairn_debuginfo_objects)" 1 "as are the remaining ones"
is "$(debuginfo list --json | jq -c '[.objects[] | .build_id[-2:]]')" '["02"]' "the list has the pinned one"
answers 200 'main' "symbols of what was removed stay" -G "$url/api/v1/why" --data-urlencode "build_id=$(id 01)" \
        --data-urlencode "address=0x$(nm "$tmp/program-01" | awk '$3 == "main" { print $1 }')"
answers 400 "neither true nor false" "a dry run that is not said clearly is none" -H 'Content-Type: application/json' \
        --data '{"dry_run": "yes", "rules": ["size=1"]}' "$url/api/v1/debuginfo/gc"
answers 400 "'dry-run' is unknown" "nor is one under another name" -H 'Content-Type: application/json' \
        --data '{"dry-run": true, "rules": ["size=1"]}' "$url/api/v1/debuginfo/gc"
answers 400 "'dry-run' is unknown" "  for a new look at symbols either" -H 'Content-Type: application/json' \
        --data '{"dry-run": true}' "$url/api/v1/resymbolize"
answers 400 'an object' "what is not an object is refused" -H 'Content-Type: application/json' \
        --data '["size=1"]' "$url/api/v1/debuginfo/gc"
is "$(debuginfo list --json | jq -c '[.objects[] | .build_id[-2:]]')" '["02"]' "  an invalid request removes nothing"
debuginfo gc --retain 'size=lots' >"$tmp/out" 2>&1
is $? 64 "a rule that is none is refused"
like "$(cat "$tmp/out")" "size=lots" "the wrong rule is named"

"$cairn" debuginfo rm "$(id 02)" --data "$data" >"$tmp/out" 2>&1
is $? 1 "a directory with a running service is not changed"
like "$(cat "$tmp/out")" 'query that service' "the message says to use the running service"
debuginfo unpin "$(id 02)" >/dev/null
put_object debuginfo "$tmp/program-03"
like "$(debuginfo rm "$(id 02)" "$(id 03)")" "$(id 03)  debuginfo   removed" "rm removes an object"
is "$(stored)" "" "nothing is left"
put_object debuginfo "$tmp/program-01"
put_object debuginfo "$tmp/program-02"
stop_server

# ---- verify, and the service's own rules ----
like "$("$cairn" debuginfo verify --data "$data")" '^2 objects are whole, 0 damaged$' "verify finds no damage"
file=$(ls "$data"/debuginfo/objects/00/*01/debuginfo-*.zst)
printf 'X' | dd of="$file" bs=1 seek=2000 conv=notrunc 2>/dev/null
"$cairn" debuginfo verify --data "$data" >"$tmp/out" 2>"$tmp/err"
is $? 2 "a changed byte is found"
like "$(cat "$tmp/out")" "^$(id 01)  debuginfo   program-01: " "the object is reported"
like "$(cat "$tmp/err")" 'upload them again' "the message says what to do about the damage"
is "$("$cairn" debuginfo verify --data "$data" --json 2>/dev/null | jq -c '[.good, (.damaged | length)]')" '[1,1]' \
        "the damage is reported as JSON"
"$cairn" debuginfo rm "$(id 01)" --data "$data" >/dev/null
is $? 0 "without a service the directory can be changed"

start_server --retain 'size=1'
gone() { [ -z "$(stored)" ]; }
wait_for "the service to keep its rules" gone
wait_for "the log, which is written after they are gone" grep -q 'removed 1 object ' "$server_log"
pass "the service collects by its own rules and says so"
put_object debuginfo "$tmp/program-04"
wait_for "what arrives to be collected too" gone
answers 200 '"resolved"' "but not before it is indexed" -G "$url/api/v1/why" --data-urlencode "build_id=$(id 04)" \
        --data-urlencode "address=0x$(nm "$tmp/program-04" | awk '$3 == "main" { print $1 }')"
done_testing
