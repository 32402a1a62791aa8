# SPDX-License-Identifier: Apache-2.0
# The cost of lines with their text, from a source bundle that was uploaded beside the debuginfo.
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
address=$(objdump --dwarf=decodedline "$tmp/app" | awk '$1 == "app.c" && $2 == 3 { sub("0x", "", $3); print $3; exit }')

start_server
ok "debuginfo is uploaded with its sources" "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/src" "$tmp/app" 2>"$tmp/err"
wait_metric cairn_objects_indexed_total 1
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(build_id_of "$tmp/app")" "addresses=$address" \
        values=9 service=lines mapping_file=app
ok "samples are taken" "$cairn" import --server "$url" --time now "$tmp/one.otlp" 2>"$tmp/err"
lines() { "$cairn" query --server "$url" --lines "$@"; }
like "$(lines --function square)" '^ +9.00 ns +9.00 ns +3          return x \* x; /\* the line that costs \*/$' \
        "lines of a function come with their text"
like "$(lines --file 'app\.c' --csv)" '^square,[^,]*app\.c,3,app,9,9, *"? *return x' "  and lines of a file as CSV"
"$cairn" query --data "$data" --lines --function square >"$tmp/local"
like "$(cat "$tmp/local")" ' 3  square$' "a data directory alone has no sources: the function stands in the text's place"

# ---- a name is no HTML ----

answers 400 'the formats of values are json, text and csv' "lists of names have no HTML form" -D "$tmp/headers" "$url/api/v1/query/label/service_name/values?format=html"
like "$(tr -d '\r' <"$tmp/headers")" '^Content-Type: application/json' "  whatever is asked for"
stop_server

# ---- more frames in a location than any writer of ours gives it ----

"$PYTHON" - "$data" <<'END' || bail_out "cannot rewrite the locations"
import glob, sys
import pyarrow as pa, pyarrow.parquet as pq
path, = glob.glob(sys.argv[1] + "/profiles/tables/locations/*.parquet")
t = pq.read_table(path)
frames = t.column("frames").to_pylist()
at = next(i for i, f in enumerate(frames) if f and f[0]["function"] == "square")
frames[at] = [dict(frames[at][0], function=f"f{i}", line=1) for i in range(100000)]
t = t.set_column(t.column_names.index("frames"), t.field("frames"), pa.array(frames, t.field("frames").type))
starts = t.column("start_lines").to_pylist()
starts[at] = [1] * 100000
t = t.set_column(t.column_names.index("start_lines"), t.field("start_lines"), pa.array(starts, t.field("start_lines").type))
pq.write_table(t, path, compression="zstd")
END
"$cairn" flame --data "$data" --format pprof --output "$tmp/deep.pb.gz" 2>"$tmp/err"
is $? 0 "a pprof file is written"
like "$("$cairn" import --dry-run "$tmp/deep.pb.gz" 2>&1)" '1 samples' "  with the innermost 256 frames, which is valid"
"$cairn" flame --data "$data" --format autofdo --output "$tmp/deep.prof" 2>"$tmp/err"
is $? 0 "a sample profile is written without them"
done_testing
