# SPDX-License-Identifier: Apache-2.0
# The cost of source lines with their text, from a source bundle uploaded with the debuginfo.
. tests/e2e/lib.sh
. tests/e2e/venv.sh

command -v gcc >/dev/null || skip_all "gcc is not installed"
mkdir "$tmp/src"
cat >"$tmp/src/app.c" <<'END'
int square(int x)
{
        return x * x; /* the line that costs */
}
int main(void) { return square(3); }
END
gcc -g -O0 -Wl,--build-id -o "$tmp/app" "$tmp/src/app.c" || bail_out "cannot build a program"
address_of() { # PROGRAM LINE
        objdump --dwarf=decodedline "$1" |
                awk -v line="$2" '$1 == "app.c" && $2 == line { sub("0x", "", $3); print $3; exit }'
}
address=$(address_of "$tmp/app" 3)

start_server
ok "debuginfo is uploaded with its sources" "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/src" \
        "$tmp/app" 2>"$tmp/err"
wait_metric cairn_objects_indexed_total 1
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(build_id_of "$tmp/app")" "addresses=$address" \
        values=9 service=lines mapping_file=app
ok "samples are accepted" "$cairn" import --server "$url" --time now "$tmp/one.otlp" 2>"$tmp/err"
lines() { "$cairn" query --server "$url" --lines "$@"; }
like "$(lines --function square)" '^ +9.00 ns +9.00 ns +3          return x \* x; /\* the line that costs \*/$' \
        "lines of a function come with their text"
like "$(lines --file 'app\.c' --csv)" '^square,[^,]*app\.c,3,app,9,9, *"? *return x' \
        "lines of a file are written as CSV"
lines --function square >"$tmp/served"
"$cairn" query --data "$data" --lines --function square >"$tmp/local" 2>"$tmp/err"
is "$? $(cat "$tmp/local" "$tmp/err")" "0 $(cat "$tmp/served")" "a data directory alone shows the same text"
for options in '--function square --csv' '--function main --csv' '--file app --limit 1'; do
        # shellcheck disable=SC2086  # word splitting is intended
        is "$("$cairn" query --data "$data" --lines $options 2>&1)" "$(lines $options 2>&1)" \
                "a data directory gives the same lines with $options"
done
is "$("$cairn" query --data "$data" --lines --function square --json 2>&1 | jq -r '.rows[0].source')" \
        '        return x * x; /* the line that costs */' "JSON has the text of the line"


# ---- a data directory without the sources ----

id=$(build_id_of "$tmp/app")
ok "the sources are removed" "$cairn" debuginfo rm --server "$url" --kind source "$id"
lines --function square >"$tmp/served" 2>"$tmp/served-note"
"$cairn" query --data "$data" --lines --function square >"$tmp/local" 2>"$tmp/err"
is "$(cat "$tmp/local")" "$(cat "$tmp/served")" \
        "without the sources a data directory shows the function in place of the text, as the service"
like "$(cat "$tmp/local")" ' 3  square$' "the function is shown in place of the text"
is "$(cat "$tmp/err")" \
        "cairn query: no text of '$tmp/src/app.c': no sources of build-id $id are stored; upload it: cairn-upload --sources DIR app" \
        "the message says how to upload the sources"
mv "$data/debuginfo" "$tmp/debuginfo"
like "$("$cairn" query --data "$data" --lines --function square 2>&1)" "no sources of build-id $id are stored" \
        "the message is the same without any debuginfo"
mv "$tmp/debuginfo" "$data/debuginfo"
ok "the sources are uploaded again" "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/src" "$tmp/app" \
        2>"$tmp/err"

# ---- two versions, compared ----

cat >"$tmp/src/app.c" <<'END'
int square(int x)
{ /* version 2 */
        int y = x;
        return y * x;
}
int main(void) { return square(3); }
END
mkdir "$tmp/2"
gcc -g -O0 -Wl,--build-id -o "$tmp/2/app" "$tmp/src/app.c" || bail_out "cannot build a program"
ok "a second version is uploaded with its sources" "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/src" \
        "$tmp/2/app" 2>"$tmp/err"
wait_metric cairn_objects_indexed_total 2
take_version() { # VERSION PROGRAM LINE VALUE...
        version=$1 program=$2
        shift 2
        while [ $# -gt 0 ]; do
                python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(build_id_of "$program")" \
                        "addresses=$(address_of "$program" "$1")" \
                        "values=$2" service=lines mapping_file=app "label=version=$version" &&
                        "$cairn" import --server "$url" --time now "$tmp/one.otlp" >>"$tmp/import.log" 2>&1 || return
                shift 2
        done
}
ok "samples of the first version are taken" take_version 1 "$tmp/app" 2 3 3 9
ok "  and of the second" take_version 2 "$tmp/2/app" 3 4 4 20
compare() { "$cairn" diff --server "$url" --lines --base '{version="1"}' --function square "$@" '{version="2"}'; }
lines --function square --json '{version="1"}' >"$tmp/before"
lines --function square --json '{version="2"}' >"$tmp/after"
compare --json >"$tmp/both"
is "$(python3 - "$tmp/before" "$tmp/after" "$tmp/both" <<'END'
import json, sys
before, after, both = (json.load(open(path)) for path in sys.argv[1:])
costs = [{(r["function"], r["file"], r["line"]): (r["flat"], r["cumulative"]) for r in side["rows"]}
         for side in (before, after)]
joined = {}
for r in both["rows"]:  # a removed line and another one may have one number
    key, old = (r["function"], r["file"], r["line"]), ((0, 0), (0, 0))
    old = joined.get(key, old)
    joined[key] = ((old[0][0] + r["flat"], old[0][1] + r["cumulative"]),
                   (old[1][0] + r["flat_after"], old[1][1] + r["cumulative_after"]))
print(sorted(key[2] for key in joined))
print(all(joined[key] == (costs[0].get(key, (0, 0)), costs[1].get(key, (0, 0))) for key in joined),
      set(joined) == set(costs[0]) | set(costs[1]))
print(both["total"] == before["total"], both["total_after"] == after["total"],
      both["flat"] == before["flat"], both["flat_after"] == after["flat"])
print([f["flat_after"] - f["flat"] for f in both["files"]])
END
)" "[2, 3, 4]
True True
True True True True
[12]" "a comparison has the costs of two queries, and the lines of either side"
compare --csv | tr -d '\r' >"$tmp/both"
is "$(sed 's/^square,[^,]*,//' "$tmp/both")" \
        'function,file,line,object,flat,cumulative,flat_after,cumulative_after,line_before,source
,app,3,3,0,0,2,{
,app,9,9,0,0,3,"        return x * x; /* the line that costs */"
3,app,0,0,4,4,,"        int y = x;"
4,app,0,0,20,20,,"        return y * x;"' "  as CSV, with the text of the version that has the line"
is "$("$cairn" diff --data "$data" --lines --base '{version="1"}' --function square --csv '{version="2"}' |
        tr -d '\r')" \
        "$(cat "$tmp/both")" "a data directory compares the same lines"
is "$(compare --csv --compare shares)" "$(compare --csv --compare values)" \
        "--compare does not change the values of lines"
is "$(compare --csv --limit 1 | sed 1d | cut -d, -f3)" 4 "--limit 1 has the line that changed most"
compare >"$tmp/both"
like "$(cat "$tmp/both")" '^before: 12.0 ns in 1 sample,' "the text has the totals of both sides"
like "$(cat "$tmp/both")" \
        '^ +0 +4.00 ns +\+4.00 ns +\+16.67 pp +0 +4.00 ns +\+4.00 ns +\+16.67 pp +- +3          int y = x;$' \
        "the text has the change of each line, absolute and of the share"
compare --format html >"$tmp/both" 2>"$tmp/err"
is "$? $(cat "$tmp/err")" '64 cairn diff: the formats of lines are json, text and csv' \
        "lines are not compared as a page"
"$cairn" diff --server "$url" --lines --base '{version="1"}' '{version="2"}' >"$tmp/both" 2>"$tmp/err"
is "$? $(cut -c-40 "$tmp/err")" '64 cairn diff: lines needs function (a regu' \
        "lines are not compared without a function or a file"
answers 400 'base_from is not before base_to' "a base that ends before it begins is refused" \
        "$url/api/v1/query/lines?function=square&base_from=now&base_to=now-1h"
answers 400 'base_from is not a parameter of top; operations with it: diff, gate, services, lines, ' \
        "  and a base of a table of one side" \
        "$url/api/v1/query/top?base_from=now-1h"
for side in 'before 3 5' 'after 4 8'; do # NAME LINE VALUE
        # shellcheck disable=SC2086  # word splitting is intended
        set -- $side
        python3 tests/e2e/profiles.py otlp "$tmp/$1.otlp" addresses=10 "sent=work:/src/job.c:$2:1" values=$3
done
is "$("$cairn" diff --lines --file job --csv "$tmp/before.otlp" "$tmp/after.otlp" 2>"$tmp/err" | tr -d '\r' |
        cut -d, -f1-3,5-8)" \
        'function,file,line,flat,cumulative,flat_after,cumulative_after
work,/src/job.c,3,5,5,0,0
work,/src/job.c,4,0,0,8,8' "two files are compared without a service"

# ---- HTML characters in a name ----

answers 400 'the formats of values are json, text and csv' "lists of names have no HTML form" -D "$tmp/headers" \
        "$url/api/v1/query/label/service_name/values?format=html"
like "$(tr -d '\r' <"$tmp/headers")" '^Content-Type: application/json' "the Content-Type is JSON in every format"
stop_server

python3 tests/e2e/read-only.py digest "$data" >"$tmp/before"
like "$("$cairn" query --data "$data" --lines --function square '{version="2"}')" ' 4          return y \* x;$' \
        "the text is shown after the service has stopped"
python3 tests/e2e/read-only.py digest "$data" >"$tmp/after"
is "$(diff "$tmp/before" "$tmp/after")" "" "every byte of the directory is unchanged"

# ---- a location with more frames than Cairn's writers produce ----

"$PYTHON" - "$data" <<'END' || bail_out "cannot rewrite the locations"
import glob, sys
import pyarrow as pa, pyarrow.parquet as pq
for path in glob.glob(sys.argv[1] + "/profiles/tables/locations/*.parquet"):  # one of each flush
    t = pq.read_table(path)
    frames = t.column("frames").to_pylist()
    at = next((i for i, f in enumerate(frames) if f and f[0]["function"] == "square"), None)
    if at is not None:
        break
frames[at] = [dict(frames[at][0], function=f"f{i}", line=1) for i in range(100000)]
t = t.set_column(t.column_names.index("frames"), t.field("frames"), pa.array(frames, t.field("frames").type))
starts = t.column("start_lines").to_pylist()
starts[at] = [1] * 100000
t = t.set_column(t.column_names.index("start_lines"), t.field("start_lines"),
                 pa.array(starts, t.field("start_lines").type))
pq.write_table(t, path, compression="zstd")
END
"$cairn" flame --data "$data" --format pprof --output "$tmp/deep.pb.gz" 2>"$tmp/err"
is $? 0 "a pprof file is written"
like "$("$cairn" import --dry-run "$tmp/deep.pb.gz" 2>&1)" '1 sample, 4 stacks' \
        "the pprof file has the innermost 256 frames, which is valid"
"$cairn" flame --data "$data" --format autofdo --output "$tmp/deep.prof" 2>"$tmp/err"
is $? 0 "a sample profile is written without them"
done_testing
