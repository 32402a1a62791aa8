#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# JFR: a recording with known samples, sent like Pyroscope's Java agent, malformed ones, and recordings of a JDK, for
# which Cairn must read the same stacks, counts, sums and lines as the JDK's own reader.
. tests/e2e/lib.sh
for tool in curl jq python3 gzip; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

make_recording() { python3 tests/e2e/ingest/jfr.py "$@"; }
# total TYPE [SELECTOR-PART]: the sum of the service's values.
total() {
        "$cairn" query --server "$url" --from now-1h --json --type "$1" "{service_name=\"shop\"${2:+,$2}}" 2>/dev/null |
                jq '[.sides[].total] | add'
}
# Stacks that differ only in lines are merged.
folded() {
        "$cairn" flame --format folded --profile "$1" --type "$2" 2>/dev/null |
                awk \
                '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n } END { for (s in sum) printf "%s %d\n", s, sum[s] }' |
                sort
}

make_recording make "$tmp/made.jfr"
make_recording labels "$tmp/labels"
gzip -k "$tmp/made.jfr" "$tmp/labels"

# ---- the agent's request ----

start_server
agent="$url/ingest?name=shop%7Bregion%3Deu%7D&units=samples&aggregationType=sum&spyName=javaspy&sampleRate=100&format=jfr&from=$(($(date +%s) - 20))&until=$(date +%s)"
answers 200 '' "parts jfr and labels, packed" -F "jfr=@$tmp/made.jfr.gz" -F "labels=@$tmp/labels.gz" "$agent"
cat >"$tmp/types" <<'END'
block:contentions:count:block:count
block:delay:nanoseconds:block:count
memory:alloc_in_new_tlab_bytes:bytes:space:bytes
memory:alloc_in_new_tlab_objects:count:space:bytes
memory:alloc_outside_tlab_bytes:bytes:space:bytes
memory:alloc_outside_tlab_objects:count:space:bytes
memory:alloc_sample_bytes:bytes:space:bytes
memory:alloc_sample_objects:count:space:bytes
memory:live:count:objects:count
memory:malloc_bytes:bytes::
memory:malloc_objects:count::
mutex:contentions:count:mutex:count
mutex:delay:nanoseconds:mutex:count
native_method:samples:count::
process_cpu:cpu:nanoseconds:cpu:nanoseconds
wall:wall:nanoseconds:wall:nanoseconds
END
is "$(curl -sS -G "$url/api/v1/query/types" --data-urlencode from=now-1h \
        --data-urlencode 'selector={service_name="shop",region="eu",pyroscope_spy="javaspy"}' | jq -r '.[]')" \
        "$(cat "$tmp/types")" "  types as Pyroscope names them"
is "$(total process_cpu:cpu) $(total wall:wall) $(total native_method:samples)" "70000000 50000000 2" \
        "  time by the request's rate, without sleeping threads"
is "$(total memory:alloc_in_new_tlab_bytes) $(total memory:alloc_in_new_tlab_objects) $(total memory:alloc_outside_tlab_bytes) $(total memory:alloc_sample_bytes) $(total memory:live) $(total memory:malloc_bytes)" \
        "2000 2 5000 77 1 300" "  allocations are counted and summed in bytes"
is "$(total mutex:contentions) $(total mutex:delay) $(total block:contentions) $(total block:delay)" \
        "1 2000000000 1 1000000" "  locks, whose ticks are half a nanosecond"
is "$(total process_cpu:cpu 'endpoint="/buy"') $(total process_cpu:cpu 'endpoint="/sell"') $(total mutex:delay \
        'endpoint="/buy"')" \
        "10000000 20000000 2000000000" "  labels by context"
is "$(total process_cpu:cpu 'profile_id="0000000000abcdef",span_name="span one"')" 10000000 \
        "  the labels of a span select its samples"
is "$("$cairn" flame --server "$url" --from now-1h --type process_cpu:cpu --format folded '{service_name="shop"}' |
        sort)" "$(
        cat <<'END'
[no stack] 10000000
shop/Cart.main;shop/Cart$$Lambda$.run;libc.so.6.read;do_syscall_64_[k] 30000000
shop/Cart.main;shop/Cart.checkout;shop/Cart.add 30000000
END
)" "  stacks: generated names without numbers, kernel frames"
"$cairn" flame --server "$url" --from now-1h --type process_cpu:cpu --format pprof -o "$tmp/made.pb.gz" \
        '{service_name="shop"}'
python3 tests/e2e/pprof.py frames "$tmp/made.pb.gz" >"$tmp/frames"
like "$(cat "$tmp/frames")" 'shop/Cart\.add.*:12.*' "  frames have their lines"
is "$("$cairn" query --server "$url" --from now-1h --json --missing 2>/dev/null | jq 'length // 0' 2>/dev/null ||
        echo 0)" 0 "  nothing is missing debuginfo"
answers 200 '' "the same recording as the body" --data-binary "@$tmp/made.jfr" "$url/ingest?name=other&format=jfr"
is "$("$cairn" query --server "$url" --from now-1h --json --type process_cpu:cpu '{service_name="other"}' |
        jq '.sides[0].total')" 140000000 \
        "  whose own period counts where the request names no rate"

# ---- rejected recordings ----

printf 'no recording' >"$tmp/text"
answers 400 'not a JFR file' "what is not JFR is refused" -F "jfr=@$tmp/text" "$agent"
answers 400 "no part 'jfr'" "a form without a recording, too" -F "profile=@$tmp/text" "$agent"
for broken in event pool array metadata cut; do
        make_recording make "$tmp/broken" broken $broken
        answers 400 'JFR' "a recording with a broken $broken is refused" -F "jfr=@$tmp/broken" "$agent&n=$broken"
done
for broken in version plain; do
        make_recording make "$tmp/broken" broken $broken
        answers 415 'JFR version' "another format ($broken) is named" -F "jfr=@$tmp/broken" "$agent&n=$broken"
done
answers 400 'labels of the recording' "broken labels are refused" -F "jfr=@$tmp/made.jfr" -F "labels=@$tmp/text" \
        "$agent&n=labels"
head -c 300000000 /dev/zero | gzip >"$tmp/bomb"
answers 413 '' "a bomb is refused" -F "jfr=@$tmp/bomb" "$agent&n=bomb"
answers 200 '' "the service goes on" -F "jfr=@$tmp/made.jfr" "$agent&n=again"

# ---- recordings that take long to read ----

make_recording slow "$tmp/slow.gz"
slow=
for i in 1 2 3 4 5 6; do
        curl -sS -o /dev/null -F "jfr=@$tmp/slow.gz" "$agent&n=slow$i" 2>/dev/null &
        slow="$slow $!"
done
arrived() { # none is answered before the last one has arrived
        arrived_count=0
        for name in 'cairn_http_waiting' 'cairn_http_pool_busy{pool="ingest"}' \
                'cairn_http_pool_queue{pool="ingest"}'; do
                arrived_count=$((arrived_count + $(metric "$name")))
        done
        [ $arrived_count -ge 6 ]
}
wait_for 'six recordings to be read' arrived
printf 'main;work 5\n' >"$tmp/folded"
is "$(curl -sS --max-time 60 -o /dev/null -w '%{http_code}' --data-binary "@$tmp/folded" \
        "$url/ingest?name=beside&format=folded" 2>&1)" 200 \
        "while recordings are read other batches are taken"
ok "  which still are" arrived
# shellcheck disable=SC2086
kill $slow
wait_for 'their workers to be stopped' metric_equals cairn_http_waiting 0

# ---- the command line ----

is "$("$cairn" import --dry-run "$tmp/made.jfr.gz")" \
        "$tmp/made.jfr.gz: jfr, 7 samples, 5 stacks, 8 locations; not sent" "cairn import detects the format"
is "$("$cairn" import --server "$url" --label service.name=imported "$tmp/made.jfr" | sed 's/.*; //')" sent \
        "  cairn import sends the recording"
is "$("$cairn" query --server "$url" --from now-1h --json --type mutex:delay '{service.name="imported"}' |
        jq '.sides[0].total')" 2000000000 "    the imported locks have their sum"
"$cairn" import --dry-run --format jfr "$tmp/text" >/dev/null 2>"$tmp/err"
is "$? $(grep -c 'not a JFR file' "$tmp/err")" "2 1" "a malformed recording is bad data"

# ---- periods and kinds of time ----

# sums FILE TYPE...: the sum of each type in the recording.
sums() {
        sums_file=$1; shift
        for type; do
                "$cairn" flame --profile "$sums_file" --type "$type" --format folded 2>/dev/null |
                        awk '{ n += $NF } END { printf "%d\n", n }'
        done | paste -s -d' '
}
# times_are CPU WALL NAME=VALUE...: time in ms of three execution samples (one sleeps) and five wall clock samples.
times_are() {
        times_want="$1 $2"; shift 2
        make_recording times "$tmp/times.jfr" "$@"
        is "$(sums "$tmp/times.jfr" process_cpu:cpu wall:wall | awk '{ print $1 / 1e6, $2 / 1e6 }')" "$times_want" \
                "CPU and wall time with ${*:-no settings}"
}
times_are 20 250
times_are 40 250 period='20 ms'
times_are 2 250 event=cpu interval=1000000 wall=50000000
times_are 20 50 event=cpu interval=0 wall=10000000
times_are 20 250 event=itimer interval=0 wall=0
times_are 40 160 event=wall interval=20000000
times_are 100 400 event=wall interval=0
times_are 1 350 event=cpu interval=1000000 wall=50000000 nobatch=true
times_are 14 250 cpu-time
is "$(sums "$tmp/times.jfr" process_cpu:samples)" 3 "  beside CPU time samples execution samples are counts"
make_recording times "$tmp/faults.jfr" event=page-faults interval=4
is "$(sums "$tmp/faults.jfr" process_cpu:cpu perf:page-faults:count)" "0 12" \
        "an event that is not a time is counted by its interval"

# ---- the end of a file, and what is not used ----

make_recording times "$tmp/one.jfr" event=cpu interval=1000000 wall=50000000
make_recording times "$tmp/two.jfr" period='20 ms'
cat "$tmp/one.jfr" "$tmp/two.jfr" >"$tmp/both.jfr"
is "$(sums "$tmp/both.jfr" process_cpu:cpu wall:wall)" "42000000 500000000" \
        "the settings of a recording do not apply to the next one"
{ cat "$tmp/one.jfr"; head -c 5000 /dev/zero; } >"$tmp/padded.jfr"
is "$("$cairn" import --dry-run "$tmp/padded.jfr" 2>&1 | sed 's/.*locations//')" "; not sent" \
        "zeros after the last chunk are padding"
{ cat "$tmp/one.jfr"; head -c 900 "$tmp/two.jfr"; } >"$tmp/cut.jfr"
like "$("$cairn" import --dry-run "$tmp/cut.jfr" 2>&1)" \
        'jfr, [2-9] samples.*, the last 900 bytes of the recording are not read.*; not sent' \
        "a recording that is complete is read although the next one is cut off"
answers 200 'last 900 bytes' "  and the service says so" --data-binary "@$tmp/cut.jfr" "$url/ingest?name=cut&format=jfr"
make_recording times "$tmp/lock.jfr" native-lock
like "$("$cairn" import --dry-run "$tmp/lock.jfr" 2>&1)" \
        'jfr, [0-9]+ samples.*, events with stacks that are not used: 4 profiler.NativeLock; not sent' \
        "events with stacks that are not used are named"
answers 200 'not used: 4 profiler.NativeLock' "  by the service, too" --data-binary "@$tmp/lock.jfr" \
        "$url/ingest?name=lock&format=jfr"
make_recording times "$tmp/none.jfr" none
"$cairn" import --dry-run "$tmp/none.jfr" >/dev/null 2>"$tmp/err"
is "$? $(sed 's/.*: no event/no event/' "$tmp/err")" \
        "2 no event of the recording is used; it has 3 jdk.GarbageCollection" \
        "a recording of which nothing is used is refused with the names of its events"
answers 200 'it has 3 jdk.GarbageCollection' "  and accepted by the service, with a remark" \
        --data-binary "@$tmp/none.jfr" "$url/ingest?name=none&format=jfr"

# ---- recordings of a JDK ----

if command -v javac >/dev/null && command -v jfr >/dev/null; then
        cp tests/clients/Work.java "$tmp/Work.java"
        cat >"$tmp/all.jfc" <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<configuration version="2.0">
<event name="jdk.ExecutionSample"><setting name="enabled">true</setting><setting name="period">10 ms</setting></event>
<event name="jdk.NativeMethodSample"><setting name="enabled">true</setting><setting name="period">20 ms</setting></event>
<event name="jdk.ObjectAllocationInNewTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ObjectAllocationOutsideTLAB"><setting name="enabled">true</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ObjectAllocationSample"><setting name="enabled">true</setting><setting name="throttle">300/s</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.JavaMonitorEnter"><setting name="enabled">true</setting><setting name="threshold">1 ms</setting><setting name="stackTrace">true</setting></event>
<event name="jdk.ThreadPark"><setting name="enabled">true</setting><setting name="threshold">1 ms</setting><setting name="stackTrace">true</setting></event>
</configuration>
END
        (cd "$tmp" && javac Work.java &&
                java -XX:StartFlightRecording=filename=real.jfr,settings=all.jfc \
                -XX:FlightRecorderOptions=stackdepth=128 Work 3) \
                >"$tmp/java.log" 2>&1 || bail_out "java fails: $(tail -3 "$tmp/java.log")"
        # print_events EVENT: as printed by the JDK's reader. Its virtual machine may fail to start if memory is
        # short, so there are three attempts.
        print_events() {
                for _ in 1 2 3; do
                        if jfr print --json --stack-depth 2048 --events "$1" "$tmp/real.jfr" >"$tmp/printed.json" \
                                2>"$tmp/print.err"; then
                                return
                        fi
                        diag "jfr print --events $1: $(head -3 "$tmp/print.err")"
                done
                bail_out "the JDK's jfr print fails"
        }
        # same EVENT TYPE [FIELD [FACTOR]]: Cairn agrees with the JDK's reader.
        same() {
                print_events "$1"
                python3 tests/e2e/ingest/jfr.py stacks "$1" ${3:+"$3"} <"$tmp/printed.json" >"$tmp/their.stacks" ||
                        bail_out "jfr.py cannot read what jfr prints"
                awk -v f="${4:-1}" '{ n = $NF; sub(/ [0-9]+$/, ""); printf "%s %d\n", $0, n * f }' "$tmp/their.stacks" |
                        sort >"$tmp/theirs"
                folded "$tmp/real.jfr" "$2" >"$tmp/ours"
                ok "$2: equal stacks and sums" cmp "$tmp/theirs" "$tmp/ours"
                ok "  which are not empty" test -s "$tmp/ours"
        }
        same jdk.ExecutionSample process_cpu:cpu "" 10000000
        same jdk.ObjectAllocationInNewTLAB memory:alloc_in_new_tlab_objects
        same jdk.ObjectAllocationInNewTLAB memory:alloc_in_new_tlab_bytes tlabSize
        same jdk.ObjectAllocationSample memory:alloc_sample_bytes weight
        same jdk.ThreadPark block:contentions
        same jdk.JavaMonitorEnter mutex:contentions
        print_events jdk.ExecutionSample
        python3 tests/e2e/ingest/jfr.py lines jdk.ExecutionSample <"$tmp/printed.json" >"$tmp/theirs"
        "$cairn" flame --profile "$tmp/real.jfr" --type process_cpu:cpu --format pprof -o "$tmp/real.pb.gz" 2>"$tmp/err"
        python3 tests/e2e/pprof.py frames "$tmp/real.pb.gz" >"$tmp/frames"
        for line in $(grep '^Work\.' "$tmp/theirs" | tr ' ' : | head -20); do
                like "$(cat "$tmp/frames")" "^${line%:*} .*:${line##*:}( |\$)" "  the line $line"
        done
else
        [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "no JDK is installed: scripts/deps.sh all"
        diag "no JDK is installed: its recordings are not tried"
fi
done_testing
