# SPDX-License-Identifier: Apache-2.0
# Instructions with their cost, compared with objdump, of executables in the store or from an upstream; inlined call
# sites and source lines, which may also come from upstreams; and messages about missing files.
# shellcheck disable=SC2046  # symbol gives two words on purpose
. tests/e2e/lib.sh

for tool in gcc objdump strip nm jq; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
mkdir "$tmp/src" "$tmp/code"
cat >"$tmp/src/app.c" <<'END'
#include <stdio.h>
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
        return x * 2654435761u ^ x >> 13; /* inlined */
}
__attribute__((noinline)) unsigned hash(const char *s)
{
        unsigned h = 1;
        while (*s)
                h = mix(h + *s++); /* the call site */
        return h;
}
int main(int argc, char **argv)
{
        printf("%u %f\n", hash(argv[0]), argc / 3.0);
        return 0;
}
END
gcc -g -O2 -Wl,--build-id -o "$tmp/code/app" "$tmp/src/app.c" || bail_out "cannot build a program"
id=$(build_id_of "$tmp/code/app")
# The address of the inlined code of mix() at the call site, which is the leaf; main's is inside its call of hash.
leaf=$(objdump --dwarf=decodedline "$tmp/code/app" |
        awk '$1 == "app.c" && $2 == 4 { sub("0x", "", $3); print $3; exit }')
call=$(objdump -d "$tmp/code/app" | awk '/call.*<hash>/ { sub(":", "", $1); print $1; exit }')
[ -n "$leaf" ] && [ -n "$call" ] || bail_out "no address of the inlined code"
inside=$(printf %x $((0x$call + 4)))

start_server
ok "debuginfo is uploaded, with sources and without code" \
        "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$tmp/src" "$tmp/code/app"
wait_metric cairn_objects_indexed_total 1
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$id" "addresses=$leaf,$inside" \
        values=9 service=code mapping_file=/opt/app/bin/app
ok "samples are taken" "$cairn" import --server "$url" --time now "$tmp/one.otlp"
query() { curl -sS --max-time 60 -G "$url/api/v1/query/$1" --data-urlencode "function_name=$2"; }

# ---- lines ----

query lines hash >"$tmp/lines.json"
is "$(jq -c '[.flat, .cumulative]' "$tmp/lines.json")" '[0,9]' "inlined code is not part of the function's self cost"
is "$(jq -c '.rows[] | select(.line == 10) |
        [.flat, .cumulative, .inlined[0].function, .inlined[0].flat, .inlined[0].cumulative]' "$tmp/lines.json")" \
        '[0,9,"mix",9,9]' "inlined code is part of the cost of the call at its line"
like "$(jq -r '.rows[] | select(.line == 10) | .source' "$tmp/lines.json")" 'mix\(h \+ \*s\+\+\); /\* the call site' \
        "the line of the call comes with its text"
curl -sS -G "$url/api/v1/query/lines" --data-urlencode "file_name=$(jq -r '.rows[0].file' "$tmp/lines.json")" \
        -d source=file |
        jq -j '.files[0].text' >"$tmp/text"
ok "a whole file has the bytes that were uploaded" cmp "$tmp/text" "$tmp/src/app.c"
like "$("$cairn" query --server "$url" --lines --function hash)" ' inlined mix$' \
        "text output shows inlined functions, too"
"$cairn" query --server "$url" --lines --function main >/dev/null 2>"$tmp/err"
is "$(cat "$tmp/err")" "" "text output notes nothing while there is text"

# ---- no executable yet ----

query disassembly hash >"$tmp/none.json"
like "$(jq -r .missing.reason "$tmp/none.json")" "^no executable of build-id $id is stored" \
        "without the executable the reason is reported"
is "$(curl -sS -G "$url/api/v1/query/disassembly" -d function_name=hash --data-urlencode "server=$url" |
        jq -r .missing.command)" \
        "cairn-upload --server $url --executables /opt/app/bin/app" \
        "the command that uploads the executable is reported"
"$cairn" query --server "$url" --disassembly --function hash >"$tmp/out" 2>"$tmp/err"
is $? 1 "disassembly without the executable is an error of the command"
like "$(cat "$tmp/err")" \
        "build-id $id is stored; upload it: cairn-upload --server $url --executables /opt/app/bin/app" \
        "the message has reason and command"
"$cairn" query --data "$data" --disassembly --function hash >"$tmp/out" 2>"$tmp/err"
like "$(cat "$tmp/err")" "only a service has executables" "a data directory alone cannot disassemble"

# ---- against objdump ----

ok "the executable is uploaded" "$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/code/app"
query disassembly hash >"$tmp/code.json"
listed() { # JSON: "ADDRESS BYTES MNEMONIC" of each instruction
        jq -r '.ranges[].instructions[] | .address[2:] + " " + .bytes + " " + (.mnemonic | gsub(" +"; " "))' "$1"
}
# objdump -M intel prints prefixes and padding differently from capstone: data16 and cs before nopw; only their bytes
# are compared.
judged() { # FILE START END
        objdump -d -M intel --insn-width=16 --no-show-raw-insn --start-address="0x$2" --stop-address="0x$3" "$1" \
                >"$tmp/names"
        objdump -d -M intel --insn-width=16 --start-address="0x$2" --stop-address="0x$3" "$1" |
                awk -F'\t' '/^ +[0-9a-f]+:\t/ { gsub(/[ :]/, "", $1); gsub(/ /, "", $2); sub(/^((data16|cs|ds) )+/, "", $3)
                        sub(/ +(#.*)?$/, "", $3); split($3, word, " ")
                        name = word[1] ~ /^(rep|repz|repnz|bnd|lock|notrack)$/ ? word[1] " " word[2] : word[1]
                        sub(/^repz ret$/, "repz ret", name); print $1 " " $2 " " name }'
}
symbol() { nm -S "$1" | awk -v name="$2" '$4 == name { print $1, $2 }'; }
compare() { # FILE FUNCTION JSON NAME
        set -- "$1" "$2" "$3" "$4" $(symbol "$1" "$2")
        judged "$1" "$5" "$(printf %x $((0x$5 + 0x$6)))" >"$tmp/judged"
        listed "$3" >"$tmp/listed"
        if [ -s "$tmp/judged" ] && diff "$tmp/judged" "$tmp/listed" >"$tmp/diff"; then
                pass "$4 ($(wc -l <"$tmp/judged") instructions)"
        else
                fail "$4" "$(cat "$tmp/diff")"
        fi
}
compare "$tmp/code/app" hash "$tmp/code.json" "addresses, bytes and mnemonics are those of objdump"
is "$(jq -c '[.ranges[].instructions[] | select(.flat) | [.address, .flat, .cumulative]]' "$tmp/code.json")" \
        "[[\"0x$leaf\",9,9]]" "the cost is at the instruction that was sampled"
is "$(jq -r '.ranges[].function' "$tmp/code.json")" hash "the function has its name"
is "$(jq -r --arg a "0x$leaf" \
        '[.ranges[].instructions[] | {address, place}] | [.[:(map(.address) | index($a)) + 1][] |
                .place | select(.)] | last | "\(.function):\(.line) \(.source)"' "$tmp/code.json")" \
        "mix:4         return x * 2654435761u ^ x >> 13; /* inlined */" \
        "the place of an instruction is the line that was inlined"
query disassembly main >"$tmp/main.json"
is "$(jq -c '.ranges[].instructions[] | select(.cumulative) |
        [.address, .mnemonic, .flow, .target_name, .flat, .cumulative]' "$tmp/main.json")" \
        "[\"0x$call\",\"call\",\"call\",\"hash\",0,9]" \
        "an address inside of a call is its cost, and the callee is named"
compare "$tmp/code/app" main "$tmp/main.json" "main too is as objdump has it"
text=$("$cairn" query --server "$url" --disassembly --function hash)
like "$text" "^ +9.00 ns +9.00 ns +$leaf:  " "text has the cost before the instruction"
like "$text" '^ +[^ ]*app\.c:10  ' "text has lines between the instructions"
like "$("$cairn" query --server "$url" --disassembly --function hash --csv)" \
        "^$id,0x$leaf,[0-9a-f]+,[a-z]+,[^,]*.*,9,9,mix," "CSV has a row each"
like "$("$cairn" query --server "$url" --disassembly --function hash --syntax att)" '%e[a-z]{2}' \
        "AT&T's syntax is written when asked for"

# ---- a range, an object without symbols, and hostile ones ----

range() { curl -sS -G "$url/api/v1/query/disassembly" -d "build_id=$1" -d "start=$2" -d "end=$3"; }
set -- $(symbol "$tmp/code/app" hash)
range "$id" "0x$1" "0x$(printf %x $((0x$1 + 0x$2)))" >"$tmp/range.json"
ok "a range of addresses gives the same" sh \
        -c "[ \"\$(jq -c '[.ranges[].instructions[] | [.address, .flat]]' '$tmp/range.json')\" = \"\$(jq -c '[.ranges[].instructions[] | [.address, .flat]]' '$tmp/code.json')\" ]"
answers 400 'hexadecimal' "a range that ends before it begins is refused" \
        "$url/api/v1/query/disassembly?build_id=$id&start=20&end=10"
answers 400 'disassembly needs function' "no function and no range is refused" "$url/api/v1/query/disassembly"
answers 200 'no code at these addresses' "a range outside of the code says so" \
        "$url/api/v1/query/disassembly?build_id=$id&start=fffffff0&end=ffffffff"

gcc -O1 -Wl,--build-id=sha1 -DOTHER -o "$tmp/code/bare" "$tmp/src/app.c"
bare_id=$(build_id_of "$tmp/code/bare")
set -- $(symbol "$tmp/code/bare" hash)
bare_start=$1 bare_end=$(printf %x $((0x$1 + 0x$2)))
cp "$tmp/code/bare" "$tmp/bare-full"
strip "$tmp/code/bare"
"$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/code/bare" >"$tmp/out" 2>&1
python3 tests/e2e/profiles.py otlp "$tmp/two.otlp" "build_id=$bare_id" "addresses=$(printf %x $((0x$bare_start + 4)))" \
        values=5 service=bare mapping_file=bare
"$cairn" import --server "$url" --time now "$tmp/two.otlp" 2>"$tmp/err"
curl -sS -G "$url/api/v1/query/disassembly" --data-urlencode 'function=fn@0x.*bare.*' >"$tmp/bare.json"
is "$(jq -r '.ranges[] | .start + " " + .end' "$tmp/bare.json")" "0x$(printf %x "0x$bare_start") 0x$bare_end" \
        "call frame information bounds the functions of a stripped executable"
cp "$tmp/bare-full" "$tmp/bare"
compare "$tmp/bare" hash "$tmp/bare.json" "  with the same instructions"

# Whatever the bytes are, the worker decodes all of them, without gaps between instructions.
python3 -c 'import random, sys; random.seed(16); sys.stdout.buffer.write(random.randbytes(200000))' >"$tmp/random"
cat >"$tmp/src/random.s" <<END
        .globl _start
        .type _start, @function
_start: .incbin "$tmp/random"
        .size _start, . - _start
END
gcc -nostdlib -static -Wl,--build-id -o "$tmp/code/random" "$tmp/src/random.s" || bail_out "cannot assemble"
"$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/code/random" >"$tmp/out" 2>&1
set -- $(symbol "$tmp/code/random" _start)
range "$(build_id_of "$tmp/code/random")" "$1" "$(printf %x $((0x$1 + 0x$2)))" >"$tmp/random.json"
is "$(jq -r '[.ranges[].instructions[].bytes] | add | length / 2' "$tmp/random.json")" 200000 \
        "random bytes are decoded to their end"
jq -r '[.ranges[].instructions[].bytes] | add' "$tmp/random.json" |
        python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' >"$tmp/again"
ok "  and are the bytes of the file" cmp "$tmp/again" "$tmp/random"

# ---- AArch64 ----

if command -v clang >/dev/null && command -v ld.lld >/dev/null && command -v llvm-objdump >/dev/null; then
        cat >"$tmp/src/arm.c" <<'END'
int table[8];
__attribute__((noinline)) int sum(int *p, int n)
{
        int s = 0;
        for (int i = 0; i < n; i++)
                s += p[i] > 3 ? p[i] : -p[i];
        return s;
}
void _start(void) { table[0] = sum(table, 8); for (;;); }
END
        clang -target aarch64-linux-gnu -ffreestanding -nostdlib -fuse-ld=lld -g -O1 \
                -Wl,--build-id=sha1 -o "$tmp/code/arm" "$tmp/src/arm.c" ||
                bail_out "clang cannot build for AArch64"
        arm_id=$(build_id_of "$tmp/code/arm")
        "$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/code/arm" >"$tmp/out" 2>&1
        set -- $(symbol "$tmp/code/arm" sum)
        start=$(printf %x "0x$1") end=$(printf %x $((0x$1 + 0x$2)))
        wait_for "the object to be indexed" sh -c "'$cairn' debuginfo show --server '$url' '$arm_id' | grep -q indexed"
        range "$arm_id" "$start" "$end" >"$tmp/arm.json"
        llvm-objdump -d --start-address="0x$start" --stop-address="0x$end" "$tmp/code/arm" |
                awk '/^ +[0-9a-f]+: / { sub(":", "", $1); b = $2 $3 $4 $5; print $1, b, $6 }' >"$tmp/judged"
        jq -r '.ranges[].instructions[] | .address[2:] + " " + .bytes + " " + .mnemonic' "$tmp/arm.json" >"$tmp/listed"
        if [ -s "$tmp/judged" ] && diff "$tmp/judged" "$tmp/listed" >"$tmp/diff"; then
                pass "AArch64: addresses, bytes and mnemonics are those of llvm-objdump ($(wc -l \
                        <"$tmp/judged") instructions)"
        else
                fail "AArch64: addresses, bytes and mnemonics are those of llvm-objdump" \
                        "$(cat "$tmp/diff"; head -3 "$tmp/judged")"
        fi
        is "$(jq -r '[.ranges[].instructions[] | select(.flow == "jump") | .target] | unique |
                all(. >= "0x" and . != null)' "$tmp/arm.json")" true \
                "  the jumps have their targets"
else
        [ -z "${CAIRN_NEED_ORACLES:-}" ]
        ok "AArch64 # SKIP no cross compiler" test $? -eq 0
fi

# ---- from an upstream ----

far=$url
background_pids="${background_pids:-} $server_pid"
far_pid=$server_pid
data=$tmp/near start_server --upstream "$far"
"$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/code/app" >"$tmp/out" 2>&1
wait_metric cairn_objects_indexed_total 1
"$cairn" import --server "$url" --time now "$tmp/one.otlp" 2>"$tmp/err"
query lines hash >"$tmp/near.json"
like "$(jq -r '.files[0].missing.reason' "$tmp/near.json")" \
        "no sources of build-id $id are stored, and no upstream sent it yet" "lines alone do not wait for upstreams"
is "$(jq -c '[.rows[] | select(.source)] | length' "$tmp/near.json")" 0 "lines without waiting have no source text"
curl -sS -G "$url/api/v1/query/lines" -d function_name=hash -d source=file >"$tmp/whole.json"
jq -j '.files[0].text' "$tmp/whole.json" >"$tmp/text"
ok "a whole file is fetched from the upstream" cmp "$tmp/text" "$tmp/src/app.c"
like "$(query lines hash | jq -r '.rows[] | select(.line == 10) | .source')" 'the call site' \
        "the fetched source is kept for the lines of later queries"
query disassembly hash >"$tmp/fetched.json"
is "$(jq -c '[.ranges[].instructions[] | [.address, .bytes]]' "$tmp/fetched.json")" \
        "$(jq -c '[.ranges[].instructions[] | [.address, .bytes]]' "$tmp/code.json")" \
        "the executable is fetched from there too"
kill -TERM "$far_pid"
wait "$far_pid"
cat >"$tmp/src/other.c" <<'END'
int main(void) { return 7; }
END
gcc -g -Wl,--build-id -o "$tmp/code/other" "$tmp/src/other.c"
"$CAIRN_BUILD/cairn-upload" --server "$url" "$tmp/code/other" >"$tmp/out" 2>&1
wait_metric cairn_objects_indexed_total 2
set -- $(symbol "$tmp/code/other" main)
python3 tests/e2e/profiles.py otlp "$tmp/three.otlp" "build_id=$(build_id_of "$tmp/code/other")" \
        "addresses=$(printf %x $((0x$1 + 1)))" \
        values=5 service=other mapping_file=other
"$cairn" import --server "$url" --time now "$tmp/three.otlp" 2>"$tmp/err"
curl -sS -G "$url/api/v1/query/disassembly" -d 'function_name=main' -d "build_id=$(build_id_of "$tmp/code/other")" \
        -d "server=$url" >"$tmp/gone.json"
like "$(jq -r .missing.next_step "$tmp/gone.json")" "^repeat the query later, or upload the executable" \
        "an unreachable upstream is distinguished from a miss"
like "$(jq -r .missing.command "$tmp/gone.json")" "^cairn-upload --server $url --executables " \
        "the command is reported for an unreachable upstream, as it may stay so"
is "$(curl -sS -G "$url/api/v1/query/lines" -d function_name=main -d source=file -d "server=$url" |
        jq -r '.files[] | select(.file | endswith("other.c")) | .missing |
                [(.next_step | startswith("repeat the query later, or upload")), .command[:28]] | @csv' | cut -c1-20)" \
        'true,"cairn-upload -' "the command is reported for sources as well"
"$cairn" query --server "$url" --lines --function main --file other >"$tmp/out" 2>"$tmp/err"
like "$(cat "$tmp/err")" "no text of '[^']*other.c': the upstreams did not answer" "  for sources as well"

stop_server
done_testing
