# SPDX-License-Identifier: Apache-2.0
# The cost of lines with their text, from a source bundle that was uploaded beside the debuginfo.
. tests/e2e/lib.sh

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
stop_server
done_testing
