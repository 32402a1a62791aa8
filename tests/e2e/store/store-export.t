#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn store export: one flat file of selected samples with resolved stacks, from tables and queue.
. tests/e2e/lib.sh
for tool in jq xz python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
. tests/e2e/venv.sh

tar -C "$tmp" -xf tests/corpus/data_directory/0.1.0-queue.tar.xz || bail_out "the data directory does not unpack"
export_it() { "$cairn" store export --data "$data" "$@" >"$tmp/out" 2>"$tmp/err"; }
rows() { tr -d '\r' <"$tmp/out" | sed 1d; }
cpu=process_cpu:cpu:nanoseconds:cpu:nanoseconds

export_it --format csv
is $? 0 "everything as CSV"
is "$(head -1 "$tmp/out" | tr -d '\r')" \
        'time,profile_type,unit,period,value,samples,stack,function,file,line,labels_rest,label_env,label_region,label_service_name' \
        "  the first line has the columns"
is "$(rows | sed 's|\./||g')" \
        "2026-09-21T14:00:00Z,$cpu,nanoseconds,10000000,5,1,main;other_part,other_part,program.c,12,,,,api
2026-09-21T14:00:00Z,$cpu,nanoseconds,10000000,7,1,main;outer_part;inlined_part,inlined_part,program.c,4,,,,api
2026-09-21T14:00:00Z,samples:samples:count::,count,,13,13,main;work;leaf,leaf,,,,prod,eu,shop
2026-09-21T14:00:00Z,samples:samples:count::,count,,3,3,main;idle,idle,,,,prod,eu,shop
2026-09-22T14:00:00Z,$cpu,nanoseconds,10000000,11,1,main;outer_part;inlined_part,inlined_part,program.c,4,,,,web
2026-09-22T15:00:00Z,$cpu,nanoseconds,10000000,17,1,main;outer_part;inlined_part,inlined_part,program.c,4,,,,api
2026-09-22T15:00:00Z,samples:samples:count::,count,,19,19,main;work,work,,,,,us,shop" "  the rows, of the queue too"
export_it --format csv --step 7d '{region=~"..*"}'
is "$(rows | cut -d, -f1,5-8,13)" '2026-09-17T00:00:00Z,13,13,main;work;leaf,leaf,eu
2026-09-17T00:00:00Z,3,3,main;idle,idle,eu
2026-09-17T00:00:00Z,19,19,main;work,work,us' "a selector, in steps of a week"
export_it --format csv --type $cpu --from 2026-09-21T14:14:00Z --to 2026-09-22T14:13:21Z --step 1s
is "$(rows | cut -d, -f1,5)" '2026-09-21T14:14:20Z,5
2026-09-22T14:13:20Z,11' "a type and a time range, in steps of a second: the gap is skipped"
export_it --format csv --type process_cpu --from 2026-09-22T00:00:00Z
is "$(rows | cut -d, -f1,5)" '2026-09-22T14:00:00Z,11
2026-09-22T15:00:00Z,17' "a part of a type"
export_it --format csv '{__profile_type__="cpu", service_name="web"}'
is "$(rows | cut -d, -f1,5)" '2026-09-22T14:00:00Z,11' "  a selector takes a sample type"
export_it --format csv --type cpu --from 2026-09-22T14:30:00Z --to 2026-09-22T14:40:00Z
is "$? $(wc -l <"$tmp/out")" "0 1" "a type without samples in the range has no rows"
export_it --format csv --type memory
is "$? $(cat "$tmp/out")" "64 " "a type that no sample has is wrong usage"
like "$(cat "$tmp/err")" \
        "^cairn store: type 'memory' matches none of those in the store; there are: $cpu, samples:samples:count::\$" \
        "  the types of the store are listed"
export_it --format csv --from now-1h --to now-2h
is "$? $(cat "$tmp/out")" "64 " "an empty time range is wrong usage"
like "$(cat "$tmp/err")" '--from is not before --to' "  the message names the empty time range"
export_it --format csv '{service_name="nobody"}'
is "$? $(wc -l <"$tmp/out")" "0 1" "a selection of nothing has no rows"

export_it --output "$tmp/all.parquet"
is "$? $(cat "$tmp/err")" "0 $tmp/all.parquet: 7 rows of 35 samples" "everything as Parquet"
export_it --output "$tmp/all.csv" --format csv
export_it --output "$tmp/suffix.csv"
ok "a file whose name ends in .csv is CSV" cmp "$tmp/suffix.csv" "$tmp/all.csv"
export_it --output "$tmp/all.json"
is "$? $(cat "$tmp/err")" "64 cairn store: no format has the suffix of '$tmp/all.json': use one of .parquet, .csv, or\
 an option for the format" "a suffix of another format is refused"
"$PYTHON" tests/e2e/store/store-export.py "$tmp/all.parquet" "$tmp/all.csv" >"$tmp/read" 2>&1
is "$(sed -n 1p "$tmp/read")" "[('count', 35, 35, 3), ('nanoseconds', 40, 4, 2)]" "  DuckDB reads the sums of the store"
is "$(sed -n 2p "$tmp/read")" '[75, 39]' "  pyarrow reads the same sums"
is "$(sed -n 3p "$tmp/read")" '0 rows differ' "  the CSV has the same rows"
is "$("$cairn" top --data "$data" --type $cpu --from 2026-09-20T00:00:00Z --to 2026-09-25T00:00:00Z --json |
        jq 'map(.flat) | add')" 40 \
        "  as cairn top"

export_it
is $? 64 "Parquet needs a file"
export_it --format json --output "$tmp/x"
is $? 64 "a format that does not exist is wrong usage"
export_it --format csv '{region='
is $? 64 "a malformed selector is wrong usage"
export_it --output "$tmp/none/x.parquet"
is $? 1 "a directory that does not exist fails"
ok "no temporary file is left" test -z "$(find "$tmp" -maxdepth 1 -name '.tmp-*')"
done_testing
