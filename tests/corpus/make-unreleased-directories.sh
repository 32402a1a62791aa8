#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Creates the directories of tests/corpus/unreleased_directory/ with the programs of a commit from before the first
# release, after which they are named. tests/e2e/store/unreleased-data.t checks that they are refused and not changed.
# Needs the rights of the agent.
#
#     git worktree add OLD c3c2a302 && make -C OLD build/cairn build/cairn-agent
#     tests/corpus/make-unreleased-directories.sh OLD/build tests/corpus/unreleased_directory c3c2a302
#
# COMMIT-data.tar.xz    data/: a part, stored and indexed debuginfo, and a batch in the queue: the service was killed
# COMMIT-agent.tar.xz   spool/: the agent's batches for a service that does not answer; cache/: a symcache,
#                       and the program of which it is
set -eu
build=$1 out=$2 commit=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
id=00000000000000000000000000000000000042ab

printf '%s\n' 'volatile int sink;' 'int main(void) { for (;;) sink++; }' >"$tmp/program.c"
(cd "$tmp" && gcc -g -O1 -fdebug-prefix-map="$tmp=." -Wl,--build-id=0x$id -o program program.c)
pack() {
        name=$1
        shift
        tar -C "$tmp" --sort=name --owner=0 --group=0 --numeric-owner --sparse -cf - "$@" |
                xz -9e >"$out/$commit-$name.tar.xz"
}

"$build/cairn" serve --data "$tmp/data" --listen 127.0.0.1:0 --port-file "$tmp/port" --flush-interval 1 2>"$tmp/log" &
service=$!
until [ -s "$tmp/port" ]; do kill -0 $service && sleep 0.05; done
url=http://127.0.0.1:$(cat "$tmp/port")
metric() { curl -sS "$url/metrics" | awk -v n="$1" '$1 == n { v = $2 } END { print v + 0 }'; }
until_metric() { until [ "$(metric "$1")" -ge "$2" ]; do sleep 0.05; done; }
curl -sSf -T "$tmp/program" -H "X-Cairn-Size: $(stat -c %s "$tmp/program")" \
        -H "X-Cairn-SHA256: $(sha256sum "$tmp/program" | cut -d' ' -f1)" "$url/api/v1/debuginfo/$id/debuginfo"
until_metric cairn_objects_indexed_total 1
fold() { printf '%s\n' "$1" | curl -sSf --data-binary @- "$url/ingest?name=shop&format=folded&from=$(date +%s)"; }
fold 'main;work;leaf 13'
until_metric cairn_flushes_total 1
fold 'main;idle 5'
kill -KILL $service
wait $service || :
rm -f "$tmp/data/lock" "$tmp/data/index/lock.mdb" "$tmp/data/debuginfo/meta/lock.mdb" "$tmp/data/profiles/queue/lock"
pack data data

"$tmp/program" &
busy=$!
"$build/cairn-agent" --server http://127.0.0.1:1 --interval 1 --pid $busy --spool "$tmp/spool" 2>"$tmp/log" &
agent=$!
until [ -n "$(find "$tmp/spool" -name '[0-9]*.batch' 2>/dev/null)" ]; do kill -0 $agent && sleep 0.05; done
kill -TERM $agent
wait $agent || :
kill $busy
rm -f "$tmp/spool/lock"
CAIRN_CACHE_DIR=$tmp/cache "$build/cairn" symbolize -e "$tmp/program" \
        "0x$(nm "$tmp/program" | awk '$3 == "main" { print $1 }')"
pack agent spool cache program
