# SPDX-License-Identifier: Apache-2.0
# An AutoFDO sample profile of imported samples, which clang accepts and uses for optimization.
. tests/e2e/lib.sh

command -v clang >/dev/null || skip_all "no clang"

cat >"$tmp/hot.c" <<'END'
#include <stdio.h>
static int step(int i)
{
        if (i % 1000 == 0)
                return i * 3;
        return i + 1;
}

int work(int n)
{
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += step(i);
        return sum;
}

int main(void)
{
        printf("%d\n", work(1000000));
        return 0;
}
END
# One location per line of step(), inlined into work() at line 13, and one in a function without a first line.
PYTHONPATH=tests/e2e python3 - "$tmp/hot.pprof" <<'END'
import sys, time
from profiles import Strings, blob, num, packed
s = Strings()
b = blob(1, num(1, s("cpu")) + num(2, s("nanoseconds")))
for i, (name, start) in enumerate((("step", 2), ("work", 9), ("other", 0)), 1):
    b += blob(5, num(1, i) + num(2, s(name)) + num(3, s(name)) + num(4, s("hot.c")) + num(5, start))
for i, chain in enumerate((((1, 4), (2, 13)), ((1, 6), (2, 13)), ((3, 7),)), 1):
    b += blob(4, num(1, i) + num(3, 0x1000 + i) + b"".join(blob(4, num(1, f) + num(2, l)) for f, l in chain))
for location, ms in ((1, 500), (2, 1000), (3, 7)):
    b += blob(2, packed(1, [location]) + packed(2, [ms * 10**6]))
b += num(9, time.time_ns()) + b"".join(blob(6, t) for t in s.items)
open(sys.argv[1], "wb").write(b)
END

start_server
ok "samples with start lines of functions are accepted" "$cairn" import --server "$url" "$tmp/hot.pprof"
ok "a sample profile is written" "$cairn" flame --server "$url" --format autofdo --output "$tmp/hot.prof" 2>"$tmp/err"
is "$(tr '\n' '|' <"$tmp/hot.prof")" "work:1500:0| 4: step:1500|  2: 500|  4: 1000|" \
        "  the profile has inlined calls and offsets of lines"
like "$("$cairn" flame --server "$url" --format autofdo 2>&1 >/dev/null)" \
        'not included: 1 sample whose leaf lacks a line, or the first line' \
        "  a sample without a first line is named as not included"
clang -O2 -g -S -emit-llvm -o "$tmp/plain.ll" "$tmp/hot.c"
ok "clang accepts it" clang -O2 -g -S -emit-llvm -Werror -fprofile-sample-use="$tmp/hot.prof" -o "$tmp/hot.ll" \
        "$tmp/hot.c"
is "$(grep -c branch_weights "$tmp/plain.ll")" 0 "  has no branch weights without it"
like "$(cat "$tmp/hot.ll")" '"branch_weights", i32 (1, i32 [0-9]{3,}|[0-9]{3,}, i32 1)\}' \
        "  clang uses its counts as branch weights"
stop_server

# ---- only addresses: start lines come from the program's DWARF ----

gcc -O1 -g -Wl,--build-id=sha1 -o "$tmp/hot" "$tmp/hot.c"
"$cairn" index --data "$tmp/index" "$tmp/hot" >"$tmp/out"
"$cairn" index dump --json --data "$tmp/index" "$tmp/hot" >"$tmp/dump"
# The address of a line of step() that was inlined into line 13 of work(), "ADDRESS LINE".
place=$(python3 - "$tmp/dump" <<'END'
import json, sys
for r in map(json.loads, open(sys.argv[1])):
    frames = [(f["function"], f["line"], f["start_line"]) for f in r["frames"]]
    if len(frames) == 2 and frames[0][0] == "step" and frames[1] == ("work", 13, 9):
        assert frames[0][2] == 2, frames
        print(r["start"][2:], frames[0][1])
        break
END
)
like "$place" '^[0-9a-f]+ [4-6]$' \
        "a line of an inlined function is at one address, and both functions have their first lines"
data=$tmp/data2
start_server --flush-interval 1
put_object debuginfo "$tmp/hot"
wait_for "the program to be indexed" metric_equals cairn_index_queue 0
python3 tests/e2e/profiles.py otlp "$tmp/hot.otlp" service=hot build_id="$(build_id_of "$tmp/hot")" \
        "addresses=${place% *}" values=500000000
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/hot.otlp" "$url/v1development/profiles"
is "$code" 200 "a sample with only an address is accepted"
wait_metric cairn_flushes_total 1
"$cairn" flame --server "$url" --format autofdo --output "$tmp/hot.prof" 2>"$tmp/err"
is "$(tr '\n' '|' <"$tmp/hot.prof")" "work:500:0| 4: step:500|  $((${place#* } - 2)): 500|" \
        "  the sample is in the profile with offsets of lines"
ok "  which clang accepts" clang -O2 -g -S -emit-llvm -Werror -fprofile-sample-use="$tmp/hot.prof" -o "$tmp/hot.ll" \
        "$tmp/hot.c"
stop_server
done_testing
