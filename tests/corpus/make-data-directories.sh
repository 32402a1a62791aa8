#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Creates the data directories of tests/corpus/data_directory/ with the programs of a release, after which they are
# named:
#
#     make programs
#     tests/corpus/make-data-directories.sh build/cairn tests/corpus/data_directory 0.1.0
#
# VERSION-queue.tar.xz         two days of profiles in the tables, stored and indexed debuginfo, and a queue of
#                              acknowledged batches that were not flushed: the service was killed
# VERSION-resymbolized.tar.xz  104 flushes, so that each log of samples has a checkpoint, with the debuginfo
#                              stored after half of them: the locations were rewritten, and replaced files are
#                              still there
#
# tests/e2e/store/old-data.t has the expected sums and names. Directories from before the first release, which are
# refused, are made by make-unreleased-directories.sh.
set -eu
cairn=$1 out=$2 version=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
data=$tmp/data
t0=1790000000 # 2026-09-21T13:33:20Z

cat >"$tmp/program.c" <<'END'
volatile int sink;
static inline __attribute__((always_inline)) void inlined_part(int n)
{
        sink += n * 3;
}
__attribute__((noinline)) void outer_part(int n)
{
        inlined_part(n);
}
__attribute__((noinline)) void other_part(int n)
{
        sink -= n;
}
int main(int argc, char **argv)
{
        (void)argv;
        outer_part(argc);
        other_part(argc);
        return 0;
}
END
build_id=00000000000000000000000000000000000042ab
(cd "$tmp" && gcc -g -O1 -fdebug-prefix-map="$tmp=." -Wl,--build-id=0x$build_id -o program program.c)
address() { nm "$tmp/program" | awk -v name="$1" '$3 == name { print $1 }'; }
metric() { curl -sS "$url/metrics" | awk -v n="$1" '$1 == n { v = $2 } END { print v + 0 }'; }
wait_metric() { until [ "$(metric "$1")" -ge "$2" ]; do sleep 0.05; done; }
start() {
        rm -f "$tmp/port"
        "$cairn" serve --data "$data" --listen 127.0.0.1:0 --port-file "$tmp/port" --max-age any "$@" 2>>"$tmp/log" &
        pid=$!
        until [ -s "$tmp/port" ]; do
                kill -0 $pid || { cat "$tmp/log" >&2; exit 1; }
                sleep 0.05
        done
        url=http://127.0.0.1:$(cat "$tmp/port")
}
end() {
        kill "-$1" $pid
        wait $pid || :
}
# otlp SECONDS SERVICE VALUE FUNCTION: one sample in FUNCTION of main.
otlp() {
        python3 tests/e2e/profiles.py otlp "$tmp/one" build_id=$build_id mapping_file=/opt/program "service=$2" \
                "values=$3" \
                "addresses=$(address "$4"),$(address main)" "at_ns=$((t0 + $1))000000000"
        curl -sSf -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one" "$url/v1development/profiles" \
                >"$tmp/answer"
}
fold() { printf '%b' "$3" | curl -sSf --data-binary @- "$url/ingest?name=$2&format=folded&from=$((t0 + $1))"; }
put_program() {
        curl -sSf -T "$tmp/program" -H "X-Cairn-Size: $(stat -c %s "$tmp/program")" \
                -H "X-Cairn-SHA256: $(sha256sum "$tmp/program" | cut -d' ' -f1)" \
                "$url/api/v1/debuginfo/$build_id/debuginfo"
}
pack() {
        rm -f "$data/lock" "$data/index/lock.mdb" "$data/debuginfo/meta/lock.mdb" "$data/profiles/queue/lock"
        tar -C "$tmp" --sort=name --owner=0 --group=0 --numeric-owner --sparse -cf - data |
                xz -9e >"$out/$version-$1.tar.xz"
        rm -rf "$data"
}

# ---- an unflushed queue ----
start --flush-interval 1
put_program
wait_metric cairn_objects_indexed_total 1
otlp 0 api 7 outer_part
otlp 60 api 5 other_part
otlp 86400 web 11 outer_part
fold 120 'shop%7Bregion=eu,env=prod%7D' 'main;work;leaf 13\nmain;idle 3\n'
wait_metric cairn_flushes_total 1
end TERM # flushes
start --flush-interval 3600
otlp 90000 api 17 outer_part
fold 90060 'shop%7Bregion=us%7D' 'main;work 19\n'
end KILL
pack queue

# ---- a checkpoint and re-symbolized locations ----
start --flush-interval 1
for i in $(seq 1 104); do
        flushes=$(metric cairn_flushes_total)
        [ "$i" != 52 ] || {
                put_program
                wait_metric cairn_resymbolize_rounds_total 1
        }
        if [ $((i % 2)) = 0 ]; then otlp $((i * 600)) api 2 other_part; else otlp $((i * 600)) web 3 outer_part; fi
        wait_metric cairn_flushes_total $((flushes + 1))
done
end TERM
pack resymbolized
