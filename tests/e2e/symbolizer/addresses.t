#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The query "addresses": from a function or an object to the addresses at which it was sampled, and from these to their
# explanation.
. tests/e2e/lib.sh
for tool in gcc nm jq curl zstd python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

cat >"$tmp/work.c" <<'EOC'
volatile int sink;
static inline __attribute__((always_inline)) void inner(int n) { sink += n; }
__attribute__((noinline)) void work(int n) { inner(n); sink ^= n; }
__attribute__((noinline)) void rest(int n) { sink -= n; }
int main(int argc, char **argv) { (void)argv; work(argc); rest(argc); return 0; }
EOC
id=00000000000000000000000000000000000000a1
other=00000000000000000000000000000000000000b2
(cd "$tmp" && gcc -g -O1 -Wl,--build-id=0x$id -o work work.c) || bail_out "cannot build a program"
at() { nm "$tmp/work" | awk -v name="$1" '$3 == name { print $1 }'; }
work=$(at work) rest=$(at rest) main=$(at main)
hex() { printf '0x%x' "0x$1"; }
# send NAME=VALUE...: one batch.
send() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "$@"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        [ "$code" = 200 ] || bail_out "samples are refused: $body"
}
# addresses PARAMETERS JQ
addresses() { curl -sS --max-time 20 "$url/api/v1/query/addresses?from=0&$1" | jq -c "$2"; }

start_server --flush-interval 1
put_object debuginfo "$tmp/work"
is "$code" 201 "debuginfo is stored"
wait_metric cairn_objects_indexed_total 1
send "build_id=$id" mapping_file=/opt/work "addresses=$work,$main" values=5,2
send "build_id=$id" mapping_file=/opt/work "addresses=$rest,$main" values=4
send "build_id=$other" mapping_file=/opt/other addresses=401000 values=9
send names=named values=1

for where in head parts; do
        is "$(addresses function_name=main \
                '[.address_count, (.rows[] | .build_id, .object, .address, .function, .line,
                        .flat, .cumulative, .samples)]')" \
                "[1,\"$id\",\"/opt/work\",\"$(hex "$main")\",\"main\",5,0,11,1]" \
                "$where: a caller has its address, object and line"
        is "$(addresses function_name=work '[.rows[] | .address, .state, .quality, .flat, .cumulative]')" \
                "[\"$(hex "$work")\",\"resolved\",\"dwarf\",7,7]" \
                "$where: a leaf has its own cost"
        is "$(addresses 'function=work%7Crest' '[.rows[] | .function, .flat]')" '["work",7,"rest",4]' \
                "$where: the most expensive come first"
        is "$(addresses 'function=work%7Crest&limit=1' '[.address_count, (.rows | length)]')" '[2,1]' "$where: a limit"
        is "$(addresses 'function_name=0x401000%20%5Bother%5D' \
                '[.rows[] | .build_id, .address, .state, .file, .line]')" \
                "[\"$other\",\"0x401000\",\"no_debuginfo\",\"\",0]" \
                "$where: an address without a name is found by what is shown for it"
        ok "$where:   with its meaning, and a remedy" test \
                "$(addresses "build_id=$other" \
                '.rows[0] | (.meaning | length > 10) and (.next_step | length > 10)')" = true
        is "$(addresses "build_id=$id" '[.rows[] | .function] | sort')" '["inner","main","rest"]' \
                "$where: all addresses of an object"
        is "$(addresses "build_id=$other&function_name=work" '[.address_count, .rows]')" '[0,[]]' \
                "$where: and none of others"
        is "$(addresses function_name=named '[.rows[] | .build_id, .state, .flat]')" '["","sender",1]' \
                "$where: a name without an object"
        [ $where = parts ] && break
        wait_metric cairn_flushes_total 1
        wait_metric 'cairn_table_rows{table="samples"}' 5
done
is "$(curl -sS "$url/api/v1/query/addresses?from=0&function_name=rest&format=csv" | tr -d '\r' | cut -d, -f1-6,8-)" \
        "$(printf 'build_id,object,address,address_kind,state,function,line,flat,cumulative,samples\n%s,/opt/work,%s,object,resolved,rest,4,4,4,1' $id "$(hex "$rest")")" \
        "the addresses of a function are given as CSV"
is "$(curl -sS "$url/api/v1/why?build_id=$id&address=$(addresses function_name=rest .rows[0].address | tr -d '"')" |
        jq -c '[.results[0] | .state, .frames[0].function, .frames[0].line]')" \
        '["resolved","rest",4]' "why takes build-id and address from here"

# ---- offsets in the file: of a program that is not loaded where its file begins ----

fixed=00000000000000000000000000000000000000c3
(cd "$tmp" && gcc -g -O1 -no-pie "-Wl,-Ttext-segment=0x600000,--build-id=0x$fixed" -o fixed work.c) ||
        bail_out "cannot build a program without PIE"
rest=$(nm "$tmp/fixed" | awk '$3 == "rest" { print $1 }')
offset=$(printf '0x%x' $((0x$rest - 0x600000)))
put_object debuginfo "$tmp/fixed"
is "$code" 201 "debuginfo of a program without PIE is stored"
wait_metric cairn_objects_indexed_total 2
python3 - "$tmp/fixed.pb" "$offset" $fixed <<'END'
import sys
sys.path.insert(0, "tests/e2e")
from profiles import blob, num, pprof
strings = ("", "cpu", "nanoseconds", "/opt/fixed", sys.argv[3])
mapping = blob(3, num(1, 1) + num(2, 0x7000000) + num(3, 0x7100000) + num(5, 3) + num(6, 4))
location = num(1, 1) + num(2, 1) + num(3, 0x7000000 + int(sys.argv[2], 16))
open(sys.argv[1], "wb").write(pprof(strings, locations=[location], functions=[], values=(8,), extra=mapping))
END
ok "samples with offsets are taken" "$cairn" import --server "$url" --time now "$tmp/fixed.pb"
is "$(addresses "build_id=$fixed" '[.rows[] | .address, .address_kind, .function, .flat]')" \
        "[\"$offset\",\"file_offset\",\"rest\",8]" "the offset is there, as one"
why() { curl -sS "$url/api/v1/why?build_id=$fixed&$1" | jq -c "$2"; }
for second in false true; do
        is "$(why "address=$offset&address_kind=file_offset&second_opinion=$second" '[.results[0] | .address, .file_offset,
                .state, .source, .frames[0].function, .frames[0].line, .index.frames[0].function]')" \
                "[\"$(hex "$rest")\",\"$offset\",\"resolved\",\"dwarf\",\"rest\",4,\"rest\"]" \
                "why explains the address of the offset, with the opinion of libdw: $second"
done
is "$(why "address=$offset" '.results[0].state')" '"not_in_object"' "as an address it is another one"
like "$(why "address=fffffff&address_kind=file_offset" '[.error, .results[0].state, .results[0].file_offset]')" \
        'no segment.*"not_in_object","0xfffffff"' "an offset outside of the segments is reported as one"
answers 400 'address_kind is object or file_offset' "another kind is refused" \
        "$url/api/v1/why?build_id=$fixed&address=10&address_kind=page"
for asked in function_name=rest "build_id=$fixed&start=$rest&end=$(printf %x $((0x$rest + 1)))"; do
        is "$(curl -sS "$url/api/v1/query/disassembly?from=0&build_id=$fixed&$asked" |
                jq -c '[.build_id, (.ranges[].instructions[] | select(.flat > 0) | .address, .flat)]')" \
                "[\"$fixed\",\"$(hex "$rest")\",8]" "the cost is at the instruction of the address: ${asked%%=*}"
done

answers 400 'needs function or file' "without a function there is no answer" "$url/api/v1/query/addresses?from=0"
answers 400 'not a build-id' "nor with what is no build-id" "$url/api/v1/query/addresses?from=0&build_id=x"
answers 400 'json and csv' "nor as text" "$url/api/v1/query/addresses?from=0&function_name=main&format=text"
answers 400 'not a parameter' "nor by labels" "$url/api/v1/query/addresses?from=0&function_name=main&by=service_name"
done_testing
