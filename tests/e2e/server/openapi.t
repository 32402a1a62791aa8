#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# docs/openapi.yaml is a valid OpenAPI 3.1 file with exactly the routes of the source, and responses match its schemas.
. tests/e2e/lib.sh
. tests/e2e/venv.sh
for tool in gcc zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'static int twice(int n) { return n * 2; }\nint main(int argc, char **argv) { (void)argv; return twice(argc); }\n' >"$tmp/program.c"
gcc -g -O1 -Wl,--build-id -o "$tmp/program" "$tmp/program.c"
id=$(build_id_of "$tmp/program")
address=$(nm "$tmp/program" | sed -n 's/^0*\([0-9a-f]*\) T main$/\1/p')

# An upstream that refuses connections has a last error.
start_server --flush-interval 1 --upstream "http://127.0.0.1:$(free_port)"
put_object debuginfo "$tmp/program"
is "$code" 201 "a program is stored"
put_object executable "$tmp/program"
is "$code" 201 "as both kinds"
wait_metric cairn_objects_indexed_total 1
"$cairn" import --server "$url" --time "$(($(date +%s) - 60))" --label version=1 tests/browser/data/build.pb.gz \
        >"$tmp/log" 2>&1 ||
        bail_out "the recorded profile cannot be imported: $(cat "$tmp/log")"
python3 tests/e2e/profiles.py otlp "$tmp/program.otlp" "addresses=$address" "build_id=$id" "mapping_file=$tmp/program" \
        service=shop values=5
answers 200 '' "samples of the program are taken" -H 'Content-Type: application/x-protobuf' \
        --data-binary "@$tmp/program.otlp" \
        "$url/v1development/profiles"
wait_metric cairn_flushes_total 1

report_checks "$PYTHON" tests/e2e/server/openapi.py "$url" "$id" "$address" "$tmp/program"
done_testing
