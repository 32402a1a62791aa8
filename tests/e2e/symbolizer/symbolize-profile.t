# SPDX-License-Identifier: Apache-2.0
# cairn symbolize on profiles: pprof, perf script and folded stacks get the same frames as plain addresses.
. tests/e2e/lib.sh
for tool in g++ objcopy readelf go python3; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
top=$PWD
go=$(PATH=/usr/bin:$PATH command -v go) # Debian's version: newer ones build their pprof first
go_pprof() { timeout 60 env GOTOOLCHAIN=local "$go" tool pprof -symbolize=none "$@"; }
pprof() { python3 "$top/tests/e2e/pprof.py" "$@"; }

cat >"$tmp/prog.cc" <<'EOF'
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + (x >> 2); }
namespace shop {
struct Cart { int total(int n) const; };
__attribute__((noinline)) int Cart::total(int n) const
{
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += inner(i) ^ inner(sum);
        return sum;
}
}
int main(int argc, char **) { return shop::Cart().total(argc); }
EOF
mkdir "$tmp/bin" "$tmp/none"
(cd "$tmp" && g++ -O2 -g -pie -fPIE -Wl,--build-id -o bin/prog prog.cc) || bail_out "no compiler"
prog=$tmp/bin/prog
id=$(readelf -n "$prog" | awk '/Build ID:/ { print $3 }')
# The code segment as mapped by the kernel: whole pages.
# shellcheck disable=SC2046  # three words
set -- $(readelf -lW "$prog" | awk '$1 == "LOAD" && / R E / { print $2, $3, $6 }')
offset=$(($1 / 4096 * 4096)) address=$(($2 / 4096 * 4096)) size=$((($3 + $2 % 4096 + 4095) / 4096 * 4096))
start=$((0x555500000000 + address))
first=$((0x$(nm "$prog" | awk '/CartE?5total|5total/ { print $1; exit }')))
objects=$(for i in 0 1 5 9 14 20 27 33; do printf '0x%x\n' $((first + i)); done)
addresses=$(for a in $objects; do printf '0x%x\n' $((start + a - address)); done)

# The expected frames of each location, from lookups of plain addresses.
# shellcheck disable=SC2086  # a list of addresses
{ "$cairn" symbolize -e "$prog" --format=json $objects | python3 -c '
import json, sys
for i, r in enumerate(json.load(sys.stdin)["results"]):
    print("location", 10 + i)
    for f in r["frames"]:
        print(f["function"], f["linkage_name"] or f["function"], "%s:%d" % (f["file"], f["line"]))'
echo location 7; echo by_the_sender by_the_sender sender.c:77; } >"$tmp/want"
ok "the addresses include inlined frames" test "$(grep -c '^inner inner' "$tmp/want")" -ge 3

# ---- pprof ----
# shellcheck disable=SC2086
pprof make "$tmp/in.pb.gz" $start $offset $size "$prog" "$id" $addresses
named() { # NAME OPTION...: the profile is symbolized, and has the frames it should
        what=$1; shift
        rm -f "$tmp/out.pb.gz"
        "$cairn" symbolize --pprof "$tmp/in.pb.gz" -o "$tmp/out.pb.gz" "$@" 2>"$tmp/err" ||
                { fail "$what" "$(cat "$tmp/err")"; return; }
        pprof frames "$tmp/out.pb.gz" >"$tmp/got"
        is "$(cat "$tmp/got")" "$(cat "$tmp/want")" "$what"
}
named "pprof: the file of the mapping's path gives functions, files, lines and inlined frames" --debug-dir "$tmp/none"
is "$(cat "$tmp/err")" "" "  nothing is said on standard error"
is "$(pprof flags "$tmp/out.pb.gz" | tr '\n' ' ')" '[1, 1, 1, 1] [1, 0, 0, 0] ' \
        "  the mapping says that it has them, the other one is as it was"
pprof rest "$tmp/in.pb.gz" >"$tmp/rest.in"
pprof rest "$tmp/out.pb.gz" >"$tmp/rest.out"
ok "  samples, labels, comments, defaults and unknown fields are as they were" cmp "$tmp/rest.in" "$tmp/rest.out"
go_pprof -raw "$tmp/out.pb.gz" >"$tmp/raw" 2>"$tmp/err"
like "$(cat "$tmp/raw")" 'shop::Cart::total\(int\) const .*prog.cc:[0-9]+' "  go tool pprof -raw reads it"
like "$(cat "$tmp/raw")" "$id \[FN\]\[FL\]\[LN\]\[IN\]" "  the mapping's flags say what was resolved"
like "$(cat "$tmp/raw")" 'thread:\[main loop\]' "  go tool pprof shows the labels"
like "$(go_pprof -top -sample_index=samples "$tmp/out.pb.gz" 2>&1)" ' inner' \
        "  go tool pprof -top has the inlined function"
cp "$tmp/out.pb.gz" "$tmp/twice.pb.gz"
"$cairn" symbolize --pprof "$tmp/twice.pb.gz" -o "$tmp/twice.pb.gz" --debug-dir "$tmp/none"
ok "a second time changes nothing, in place" cmp "$tmp/out.pb.gz" "$tmp/twice.pb.gz"

# Existing names are kept; with --force they are replaced, if there are better ones.
g++ -O2 -g -pie -fPIE -Wl,--build-id -fdebug-prefix-map="$tmp"=/moved -o "$tmp/bin/moved" "$tmp/prog.cc"
python3 - "$tmp/out.pb.gz" "$tmp/renamed.pb.gz" <<'EOF'
import gzip, sys
data = gzip.decompress(open(sys.argv[1], "rb").read())
open(sys.argv[2], "wb").write(gzip.compress(data.replace(b"\x05inner", b"\x05INNER")))
EOF
"$cairn" symbolize --pprof "$tmp/renamed.pb.gz" -o "$tmp/kept.pb.gz" --debug-dir "$tmp/none"
is "$(pprof frames "$tmp/kept.pb.gz" | grep -c '^INNER')" "$(grep -c '^inner' "$tmp/want")" \
        "names that the profile has are kept"
"$cairn" symbolize --pprof "$tmp/renamed.pb.gz" -o "$tmp/forced.pb.gz" --debug-dir "$tmp/none" --force 2>/dev/null
is "$(pprof frames "$tmp/forced.pb.gz")" "$(cat "$tmp/want")" "--force replaces names, except where nothing is known"

# Possible locations of symbols.
mkdir -p "$tmp/debug/.build-id/$(echo "$id" | cut -c1-2)" "$tmp/flat/deep" "$tmp/away"
objcopy --only-keep-debug "$prog" "$tmp/flat/deep/some.debug"
cp "$tmp/flat/deep/some.debug" "$tmp/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
cp /etc/passwd "$tmp/flat/text" && head -c 2000 "$prog" >"$tmp/flat/cut" && cp "$tmp/bin/moved" "$tmp/flat/other"
mv "$prog" "$tmp/away/prog"
strip -o "$prog" "$tmp/away/prog"
named "a stripped program and its debug file under .build-id" --debug-dir "$tmp/debug"
named "or anywhere in a directory of files" --debug-dir "$tmp/flat"
rm "$prog"
named "the debug file alone: the mapping tells where its code lay" --debug-dir "$tmp/debug"
named "from a directory of files" --debug-dir "$tmp/flat"
named "the program by hand" -e "$tmp/away/prog" --debug-dir "$tmp/none"
cp "$tmp/bin/moved" "$prog"
grep -v -e '^inner' -e '^shop' -e '^main' "$tmp/want" >"$tmp/want.nothing"
cp "$tmp/want" "$tmp/want.all" && cp "$tmp/want.nothing" "$tmp/want"
named "another build at the path is not taken" --debug-dir "$tmp/none"
is "$(wc -l <"$tmp/err")" 1 "  another build at the path is reported once"
like "$(cat "$tmp/err")" "bin/prog \\(build-id $id\\): not found: 8 addresses; .*--debug-dir" \
        "  the message has the build-id and what would help"
pprof rest "$tmp/out.pb.gz" >"$tmp/rest.out"
ok "  and the profile is otherwise as it was" cmp "$tmp/rest.in" "$tmp/rest.out"
cp "$tmp/want.all" "$tmp/want"
# shellcheck disable=SC2086
pprof make "$tmp/in.pb.gz" $start $offset $size "$tmp/away/prog" "" $addresses
named "a path without a build-id is trusted" --debug-dir "$tmp/none"

if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
        cp "$tmp/away/prog" "$tmp/execute-only"
        chmod 111 "$tmp/execute-only"
        printf 'main;[%s+0x1139] 5\n' "$tmp/execute-only" |
                setpriv --reuid nobody --clear-groups "$cairn" symbolize --folded - 2>"$tmp/err" >/dev/null
        like "$(cat "$tmp/err")" "execute-only: cannot be read: Permission denied: 1 address; .* -e" \
                "a file that may not be read is not said to be missing"
fi

# ---- perf script ----
{
        printf 'prog 100/100 [000]  12.000001: PERF_RECORD_MMAP2 100/100: [0x%x(0x%x) @ 0x%x <%s>]: r-xp %s\n' $start \
                $size $offset "$id" /gone/prog
        for a in $addresses; do
                printf 'prog 100/100 [001]  12.5: 250000 cpu-clock:pppH: \n\t%16s [unknown] (/gone/prog)\n' "${a#0x}"
                printf '\t    7f0000001234 sleeps+0x14 (/lib/libother.so)\n\n'
        done
} >"$tmp/perf.txt"
ok "perf script" "$cairn" symbolize --perf-script "$tmp/perf.txt" -e "$tmp/away/prog" -o "$tmp/perf.out"
grep -v -e '^location' -e sender "$tmp/want" | sed 's/ [^ ]* [^ ]*$//' >"$tmp/want.names"
grep -v -e MMAP2 -e cpu-clock -e sleeps -e '^$' "$tmp/perf.out" |
        sed -E 's/^\t *[0-9a-f]+ //; s/ \([^ ]*\)$//' >"$tmp/got"
is "$(cat "$tmp/got")" "$(cat "$tmp/want.names")" "  its frames are named, inlined ones included"
like "$(cat "$tmp/perf.out")" '^	 +[0-9a-f]+ inner \(inlined\)$' "  in perf's format"
is "$(grep -c 'sleeps+0x14 (/lib/libother.so)' "$tmp/perf.out")" 8 "  existing names are kept"
ok "  cairn reads the result" "$cairn" import --dry-run "$tmp/perf.out"
"$cairn" symbolize --perf-script - --debug-dir "$tmp/none" <"$tmp/perf.txt" >"$tmp/perf.same" 2>"$tmp/err"
ok "without symbols the text is unchanged, from pipe to pipe" cmp "$tmp/perf.txt" "$tmp/perf.same"
"$cairn" symbolize --perf-script "$tmp/perf.txt" -e "$tmp/away/prog" --format=folded >"$tmp/folded" 2>"$tmp/err"
like "$(cat "$tmp/folded")" '^prog;sleeps;shop::Cart::total\(int\) const;inner [0-9]+$' "folded on request"
is "$(awk '{ n += $NF } END { print n }' "$tmp/folded")" $((8 * 250000)) "  the folded stacks have all that was counted"
is "$(sort "$tmp/folded" | uniq -d | wc -l)" 0 "  equal stacks as one line"

# ---- folded ----
set -- $objects
cat >"$tmp/in.folded" <<EOF
main;[$tmp/away/prog+$1];worker 3
main;$2 [prog];other 4
main;$tmp/away/prog+$3 5
[$id+$4];malloc+0x20;$5 6
main;[unknown];0x_1;[0x12 7
EOF
"$cairn" symbolize --folded "$tmp/in.folded" -e "$tmp/away/prog" >"$tmp/folded" 2>"$tmp/err"
python3 - "$tmp" "$1" "$2" "$3" "$4" "$5" >"$tmp/want.folded" <<'EOF'
import sys
tmp, frames, at = sys.argv[1], [], None
for l in open(tmp + "/want"):
    if l.startswith("location"):
        frames.append([])
    else:
        frames[-1].insert(0, l.rsplit(" ", 2)[0])
f = [";".join(x) for x in frames]
print("main;%s;worker 3\nmain;%s;other 4\nmain;%s 5\n%s;malloc+0x20;%s 6\nmain;[unknown];0x_1;[0x12 7" % tuple(f[:5]))
EOF
is "$(cat "$tmp/folded")" "$(cat "$tmp/want.folded")" "folded: each form of an address is named, and nothing else"
is "$("$cairn" symbolize --folded "$tmp/in.folded" --debug-dir "$tmp/none" 2>/dev/null | sed -n 2p)" \
        "main;$2 [prog];other 4" \
        "an address that stays unknown keeps its form"

# ---- from a service ----
start_server
put_object debuginfo "$tmp/away/prog"
wait_for "the object" sh -c "'$cairn' symbolize --server $url --build-id $id $1 | grep -q Cart"
rm "$prog"
# shellcheck disable=SC2086
pprof make "$tmp/in.pb.gz" 0 0 0 /gone/prog "$id" $objects
named "a service gives the symbols of what is not here" --server "$url" --debug-dir "$tmp/none"
# shellcheck disable=SC2086
pprof make "$tmp/in.pb.gz" $start $offset $size /gone/prog "$id" $addresses
named "  also the offsets that a mapping gives, without the program" --server "$url" --debug-dir "$tmp/none"
is "$(cat "$tmp/err")" "" "  a service's symbols are used without messages"
cp "$tmp/bin/moved" "$prog"
# shellcheck disable=SC2086
pprof make "$tmp/in.pb.gz" $start $offset $size "$prog" "$id" $addresses
named "  and with another build at the path" --server "$url" --debug-dir "$tmp/none"
rm "$prog"
ok "perf script from a service" "$cairn" symbolize --perf-script "$tmp/perf.txt" --server "$url" \
        --debug-dir "$tmp/none" -o "$tmp/perf.served"
ok "  is the same as from the program" cmp "$tmp/perf.served" "$tmp/perf.out"
# A program that is not relocated: perf prints its addresses unchanged, past the end of the file.
g++ -O2 -g -no-pie -Wl,--build-id -o "$tmp/away/fixed" "$tmp/prog.cc"
fixed_id=$(readelf -n "$tmp/away/fixed" | awk '/Build ID:/ { print $3 }')
{
        printf 'fixed 100/100 [000]  12.000001: PERF_RECORD_MMAP2 100/100: [0x401000(0x1000) @ 0x1000 <%s>]: r-xp /gone/fixed\n' "$fixed_id"
        for a in $(nm "$tmp/away/fixed" | awk '/total|main$/ { print $1 }'); do
                printf 'fixed 100/100 [001]  12.5: 250000 cpu-clock:pppH: \n\t%16s [unknown] (/gone/fixed)\n\n' \
                        "${a#0000000000}"
        done
} >"$tmp/fixed.txt"
put_object debuginfo "$tmp/away/fixed"
wait_for "the object" sh -c "'$cairn' symbolize --server $url --build-id $fixed_id 0x$(nm "$tmp/away/fixed" |
        awk '/5total/ { print $1; exit }') | grep -q Cart"
"$cairn" symbolize --perf-script "$tmp/fixed.txt" -e "$tmp/away/fixed" -o "$tmp/fixed.want"
ok "a program that is not relocated" "$cairn" symbolize --perf-script "$tmp/fixed.txt" --server "$url" \
        --debug-dir "$tmp/none" -o "$tmp/fixed.served"
like "$(cat "$tmp/fixed.served")" 'shop::Cart::total' "  a program that is not relocated has names"
ok "  the same as from the program" cmp "$tmp/fixed.served" "$tmp/fixed.want"
# The debug file alone lacks the file offsets.
objcopy --only-keep-debug "$tmp/bin/moved" "$tmp/moved.debug"
moved_id=$(readelf -n "$tmp/bin/moved" | awk '/Build ID:/ { print $3 }')
put_object debuginfo "$tmp/moved.debug"
wait_for "the object" sh -c "'$cairn' symbolize --server $url --build-id $moved_id $1 | grep -q Cart"
sed "s/$id/$moved_id/" "$tmp/perf.txt" >"$tmp/moved.txt"
"$cairn" symbolize --perf-script "$tmp/moved.txt" --server "$url" --debug-dir "$tmp/none" -o "$tmp/moved.out" \
        2>"$tmp/err"
like "$(cat "$tmp/err")" 'file offsets, and no program to translate them: 8 addresses; upload it' \
        "a service with only the debug file is reported"
# shellcheck disable=SC2086
pprof make "$tmp/in.pb.gz" 0 0 0 /gone/prog "$id" $objects
"$cairn" symbolize --pprof "$tmp/in.pb.gz" --server http://127.0.0.1:1 -o "$tmp/never" --debug-dir "$tmp/none" \
        2>"$tmp/err"
is $? 1 "a service that is away ends in 1"
ok "  and leaves no files" test ! -e "$tmp/never"

# ---- usage errors, damaged input ----
"$cairn" symbolize --pprof "$tmp/in.pb.gz" --folded "$tmp/in.folded" 2>"$tmp/err"
is $? 64 "two profiles end in 64"
"$cairn" symbolize --pprof "$tmp/in.pb.gz" --format=json -o "$tmp/never" 2>"$tmp/err"
is $? 64 "a form that a profile does not take ends in 64"
head -c 100 "$tmp/out.pb.gz" | "$cairn" symbolize --pprof - -o "$tmp/never" 2>"$tmp/err"
is $? 2 "a damaged profile ends in 2"
for form in perf-script folded; do
        is "$("$cairn" symbolize --$form /dev/null)" "" "an empty --$form gives nothing"
done
echo 'main;work' | "$cairn" symbolize --folded - 2>"$tmp/err"
is $? 2 "folded stacks without a count end in 2"
like "$(cat "$tmp/err")" 'standard input: line 1 of folded stacks: no count' "  the line without a count is named"
done_testing
