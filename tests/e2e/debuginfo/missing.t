# SPDX-License-Identifier: Apache-2.0
# cairn debuginfo missing: the uploads that would resolve most samples, and the commands for them.
. tests/e2e/lib.sh
for tool in gcc strip jq zstd python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

cat >"$tmp/program.c" <<'EOC'
volatile int sink;
__attribute__((noinline)) void shown(int n) { sink += n; }
int main(int argc, char **argv) { (void)argv; shown(argc); return 0; }
EOC
build() { gcc -g -O1 -rdynamic -DBUILD="$1" \
        -Wl,--build-id="0x00000000000000000000000000000000000000$1" -o "$tmp/program-$1" "$tmp/program.c"; }
for b in 01 02 03; do build $b; done
id() { printf '%038d%s' 0 "$1"; }
address=$(nm "$tmp/program-01" | awk '$3 == "shown" { print $1 }')
from=$(date +%s)
# ingest BUILD PATH VALUES [KEY=VALUE]...: values of one stack.
ingest() {
        ingest_id=$(id "$1"); ingest_path=$2; ingest_values=$3; shift 3
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$ingest_id" "values=$ingest_values" \
                "addresses=$address" \
                "mapping_file=$ingest_path" "$@"
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
        is "$code" 200 "samples of $ingest_path are taken"
}
missing() { "$cairn" debuginfo missing --server "$url" "$@"; }
rows() { missing --json | jq -c "[.$1[] | [.build_id[-2:], .state, .samples, .percent, .value]]"; }
gone() { [ "$(rows missing)" = '[]' ]; }

start_server --flush-interval 3600

# A program whose only names are its dynamic symbols, and two unknown programs.
strip -o "$tmp/dynamic" "$tmp/program-03"
put_object debuginfo "$tmp/dynamic"
is "$code" 201 "a stripped program is stored"
wait_metric cairn_objects_indexed_total 1
ingest 03 /opt/dynamic 5 period=5
ingest 01 /opt/seldom 100 period=100
ingest 02 '/opt/often; rm' 1,1 period=1
ingest 02 '/opt/often; rm' 1 period=1 at_ns=1000000000000000000

for where in head parts; do
        is "$(rows missing)" '[["02","no_debuginfo",3,60,3],["01","no_debuginfo",1,20,100]]' \
                "$where: most samples come first, whatever their values"
        is "$(rows poor)" '[["03","resolved",1,20,5]]' "$where: objects with only dynamic symbols are listed separately"
        out=$(missing)
        like "$out" '^ +3 +60\.0% +no_debuginfo +0+02 +/opt/often; rm$' "$where: a row of the table"
        like "$out" "^ +cairn-upload --server $url /opt/seldom\$" "$where: and the command"
        like "$out" "^ +cairn-upload --server $url FILE\$" "$where: in which names are quoted for the shell"
        like "$out" '^ +1 +20\.0% +dynsym +0+03 +/opt/dynamic$' "$where: the other table"
        like "$out" "^ +cairn-upload --server $url dynamic\.debug\$" \
                "$where: and the command that uploads its debug file"
        [ $where = parts ] && break
        "$cairn" debuginfo missing --data "$data" --json >"$tmp/data.json"
        is "$(jq -c '[.missing, .poor | .[] | .samples]' "$tmp/data.json")" '[3,1,1]' \
                "$where: the data directory gives the same while the service runs"
        stop_server
        start_server --flush-interval 3600
        becomes 0 "a clean stop has flushed" metric cairn_queue_batches
done

is "$("$cairn" query --missing --csv --from 0 --server "$url" | tr -d '\r' | sed "s/0\{38\}//")" \
        'build_id,object,state,locations,samples
02,/opt/often; rm,no_debuginfo,1,3
01,/opt/seldom,no_debuginfo,1,1' "cairn query --missing has CSV"
is "$(curl -sS "$url/api/v1/query/uploads?from=0&format=csv" | tr -d '\r' | sed "s/0\{38\}//" | cut -d, -f1-9)" \
        'list,build_id,mapping,state,quality,locations,samples,percent,value
missing,02,/opt/often; rm,no_debuginfo,none,1,3,60.00,3
missing,01,/opt/seldom,no_debuginfo,none,1,1,20.00,100
poor,03,/opt/dynamic,resolved,dynsym,1,1,20.00,5' "so has the list of uploads"
is "$(missing --json --from "$from" | jq -c '[.samples, (.missing[] | .samples, .percent)]')" '[4,2,50,1,25]' \
        "a time range"
is "$(missing --json --limit 1 | jq -c '[(.missing, .poor) | length]')" '[1,1]' "a limit shortens both lists"
like "$(missing --limit 1)" '^\.\.\. 1 more$' "the text says how many more there are"
is "$(missing --json | jq -c '[.unit, (.missing[0].next_step | length > 10)]')" '["nanoseconds",true]' \
        "the unit of values, and descriptions"
is "$(curl -sS "$url/api/v1/debuginfo/missing" | jq -c .missing[].samples | tr '\n' ' ')" '3 1 ' \
        "the route beside the list of objects"
missing --from never >/dev/null 2>&1
is $? 64 "a time that is none is wrong usage"
"$cairn" debuginfo list --server "$url" --from now-1h >/dev/null 2>&1
is $? 64 "as is a time range of the list of objects"

# Uploaded objects leave the lists once past samples are re-symbolized.
command=$(missing --json | jq -r '.poor[0].command')
like "$command" '^cairn-upload --server http://127' "the command names the service that was asked"
put_object debuginfo "$tmp/program-02"
wait_metric cairn_resymbolize_locations_total 1
is "$(rows missing)" '[["01","no_debuginfo",1,20,100]]' "an uploaded object is no longer missing"
put_object debuginfo "$tmp/program-03"
wait_metric cairn_resymbolize_locations_total 2
is "$(rows poor)" '[]' "nothing more can be gained once debuginfo is uploaded"
put_object debuginfo "$tmp/program-01"
wait_for "the last one to go" gone
like "$(missing)" '^no object of these samples lacks debuginfo$' "an empty list says so"

# ---- files known only by name, as sent by the OpenTelemetry eBPF profiler ----

# A distribution has debug files of its own: its files on hosts are stripped.
ingest 04 /usr/lib/x86_64-linux-gnu/libof.so.1 1
ingest 05 /usr/local/lib/libown.so.1 1
advice() { missing --json | jq -r ".missing[] | select(.mapping == \"$1\") | .next_step, .command"; }
like "$(advice /usr/lib/x86_64-linux-gnu/libof.so.1)" \
        '^add the debuginfod server of .*: cairn serve --upstream https://' \
        "for a file of a distribution its server is proposed"
like "$(advice /usr/lib/x86_64-linux-gnu/libof.so.1)" \
        "DEBUGINFOD_URLS=https://[a-z./]+ debuginfod-find debuginfo $(id 04)" \
        "  the advice has the command that fetches it from there"
like "$(missing | tail -2 | tr '\n' ' ')" \
        '^1 object is of a distribution; .* cairn serve --upstream https://[a-z./]+ $' \
        "  the list ends with the option that fetches all such files"
like "$(advice /usr/local/lib/libown.so.1)" "^cairn-upload --server $url /usr/local/lib/libown.so.1\$" \
        "  the advice for a file of one's own is an upload"
like "$(advice /usr/local/lib/libown.so.1)" 'if it is stripped, upload its debug file or build it with -g$' \
        "  if it has symbols"

# cairn status and cairn doctor give the same advice, each step once.
ingest 06 /usr/local/lib/libother.so.1 1
wanted=$(missing --json --from now-1h | jq -c '[.missing[].next_step] | unique')
is "$(printf '%s\n' "$wanted" | jq length)" 2 "three objects are missing for two reasons"
is "$("$cairn" status --server "$url" --json | jq -c '[.missing.next_steps[].next_step] | unique')" "$wanted" \
        "cairn status has the advice of the list"
is "$("$cairn" status --server "$url" --json |
        jq -c '[.missing.objects, (.missing.next_steps | map(.more_objects) | add)]')" '[3,1]' "  each step once"
out=$("$cairn" status --server "$url")
like "$out" '^missing +3 objects in samples of the last hour lack debuginfo$' "  on the screen"
like "$out" '^ +/usr/lib/x86_64-linux-gnu/libof.so.1 \(.*% of samples\): add the debuginfod server of .*: cairn serve --upstream https://' \
        "  the screen has the distribution's server"
like "$out" '^ +/usr/local/lib/lib(own|other).so.1 \(.*% of samples\) and 1 more object: upload the object ' \
        "  the screen has the upload of one's own files"
is "$("$cairn" doctor --json --server "$url" service |
        jq -c '[.checks[] | select(.name == "debuginfo" and .state == "warning") | .fix] | unique')" "$wanted" \
        "cairn doctor has the same"

stop_server
rm -rf "$data"
start_server --flush-interval 3600
gcc -g -O1 -rdynamic -Wl,--build-id=none -o "$tmp/nameless" "$tmp/program.c"
htlhash=$(python3 -c 'import hashlib, sys; b = open(sys.argv[1], "rb").read()
print(hashlib.sha256(b[:4096] + b[-4096:] + len(b).to_bytes(8, "big")).hexdigest()[:32])' "$tmp/nameless")
ingest 01 program-01 1
ingest 02 vmlinux 1
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" id_kind=htlhash "build_id=$htlhash" values=1 "addresses=$address" \
        mapping_file=nameless
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
is "$code" 200 "samples of a file without a build-id are taken"
commands() { missing --json | jq -r ".missing[] | select(.mapping == \"$1\") | .command"; }
is "$(commands program-01)" "find / -xdev -type f -name program-01 -exec cairn-upload --server $url {} +" \
        "for a file without a path the command searches"
is "$(commands nameless)" "find / -xdev -type f -name nameless -exec cairn-upload --server $url --executables {} +" \
        "one without a build-id is sent whole"
is "$(commands vmlinux | sed 's|_URLS=https://[^ ]*|_URLS=URL|')" \
        "cairn-upload --server $url \"\$(DEBUGINFOD_URLS=URL debuginfod-find debuginfo $(id 02))\"" \
        "a kernel is fetched"
for name in program-01 nameless; do
        # Here the test's folder replaces the host's root.
        command=$(commands $name | sed "s|find /|find $tmp|")
        PATH=$CAIRN_BUILD:$PATH sh -c "$command" >"$tmp/upload.log" 2>&1
        is $? 0 "the command for $name runs"
        wait_for "$name not to be missing" sh \
                -c "! '$cairn' debuginfo missing --server '$url' --json | grep -q '\"$name\"'"
done
pass "and nothing of these two is missing then"
done_testing
