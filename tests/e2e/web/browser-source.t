#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The source view in a browser: the lines and instructions of a recorded program with a file of 20,000 lines; and the
# standalone page written by `cairn record`.
. tests/e2e/lib.sh
. tests/browser/lib.sh
for tool in gcc python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$CAIRN_BUILD/cairn-agent" --doctor --sampler perf >"$tmp/doctor" ||
        skip_all "no perf events here: $(grep '^error' "$tmp/doctor" | head -1)"
export CAIRN_CACHE_DIR="$tmp/cache"
mkdir "$CAIRN_CACHE_DIR" "$tmp/src"

python3 - "$tmp/src/work.c" "$tmp/src/more.h" <<'END'
import sys
lines = [f"/* line {n} */" for n in range(1, 20001)]
lines[1:3] = ["#include \"more.h\"", "#include <time.h>"]
code = """volatile unsigned long sink;
__attribute__((noinline, noclone)) void burn(unsigned long n)
{
        for (unsigned long i = 0; i < n; i++)
                mix(i); /* <img src=x onerror="window.reached=1"> \u202e turned */
        more(n);
}
int main(void)
{
        while (clock() < CLOCKS_PER_SEC)
                burn(3000000);
        return 0;
}""".split("\n")
code[0:1] = ["extern volatile unsigned long sink;", "static inline __attribute__((always_inline)) void mix(unsigned long i) { sink += i * 31; }"]
lines[19900:19900 + len(code)] = code
lines.append("volatile unsigned long sink;")
open(sys.argv[1], "w").write("\n".join(lines) + "\n")
open(sys.argv[2], "w").write("extern volatile unsigned long sink;\nstatic inline __attribute__((always_inline)) void more(unsigned long n)\n"
                             "{\n        for (unsigned long i = 0; i < n / 8; i++)\n                sink ^= i;\n}\n")
END
gcc -O2 -g -Wl,--build-id -o "$tmp/work" "$tmp/src/work.c" || bail_out "cannot build a program"
id=$(build_id_of "$tmp/work")

start_server --flush-interval 1
"$cairn" record -F 999 -o "$tmp/work.otlp" -- "$tmp/work" >"$tmp/out" 2>"$tmp/err" ||
        bail_out "cannot record: $(cat "$tmp/err")"
ok "the recording is sent" "$cairn" import --server "$url" --time now "$tmp/work.otlp"
"$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/work" >"$tmp/out" 2>&1
wait_metric cairn_objects_indexed_total 1
"$cairn" query --server "$url" --lines --function burn --json >"$tmp/lines.json"

ok "  and a page is recorded" "$cairn" record -F 999 -o "$tmp/work.html" -- "$tmp/work"

run_browser source.js missing "$url" "$id" "$tmp/work"
ok "sources and code are uploaded" "$CAIRN_BUILD/cairn-upload" --server "$url" --executables --sources "$tmp/src" \
        "$tmp/work"
"$cairn" query --server "$url" --lines --function burn --json >"$tmp/lines.json"
"$cairn" query --server "$url" --lines --function burn >"$tmp/lines.txt"
curl -sS "$url/api/v1/query/disassembly?function_name=burn" >"$tmp/code.json"
run_browser source.js shown "$url" "$tmp/lines.json" "$tmp/lines.txt" "$tmp/code.json"
# Its policy has the hashes of its scripts and styles.
policy() { sed -n 's/.*http-equiv="Content-Security-Policy" content="\([^"]*sha256-[^"]*\)".*/\1/p' "$1"; }
curl -sS -o "$tmp/service.html" "$url/api/v1/query/flame?format=html"
like "$(policy "$tmp/work.html")" "script-src 'sha256-.*style-src 'sha256-" "the recorded page has a policy"
is "$(policy "$tmp/work.html")" "$(policy "$tmp/service.html")" \
        "  its scripts and styles are those of the pages that the service writes"
run_browser recorded.js "$tmp/work.html"
stop_server
done_testing
