#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn why: sources, units, DIEs, rows, symbols and reasons; of files, a data directory and a service.
. tests/e2e/lib.sh
for tool in gcc nm readelf objcopy strip jq curl zstd python3 llvm-dwarfdump; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
fast=$CAIRN_BUILD/cairn

cat >"$tmp/a.c" <<'END'
#include <stdio.h>
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + (x >> 2); }
__attribute__((noinline)) int outer(int n)
{
        int sum = 0;
        for (int i = 0; i < n; i++)
                sum += inner(i) ^ inner(sum);
        return sum;
}
int main(int argc, char **argv)
{
        printf("%d %s\n", outer(argc), argv[0]);
        return 0;
}
END
printf '.globl asm_only\n.section .note.GNU-stack,"",%%progbits\n.text\nasm_only:\n\tnop\n\tnop\n\tret\n' >"$tmp/b.s"
(cd "$tmp" && gcc -g -O2 -rdynamic -Wl,--build-id,-z,lazy -o whole a.c b.s) || bail_out "cannot compile"
id=$(build_id_of "$tmp/whole")
address_of() { nm "$1" | awk -v name="$2" '$3 == name { print $1 }'; }
outer=$(address_of "$tmp/whole" outer)
asmonly=$(address_of "$tmp/whole" asm_only)
data_address=$(nm "$tmp/whole" | awk '$3 == "__data_start" || $3 == "data_start" { print $1; exit }')

why() { "$cairn" why --json "$@" >"$tmp/why.json" 2>"$tmp/err"; why_code=$?; }
said() { jq -c "$1" "$tmp/why.json"; }

# ---- a file with DWARF ----

ok "units, DIEs and rows are those of llvm-dwarfdump and libdw" python3 tests/tools/check_why.py "$cairn" "$tmp/whole" \
        "$tmp/whole" 6
why --second-opinion "$tmp/whole" "$outer"
is $why_code 0 "a resolved address is exit code 0"
is "$(said '.results[0] | [.state, .source, .frames[-1].function, .unit.version, .unit.split, .scopes[-1].tag]')" \
        '["resolved","dwarf","outer",5,false,"subprogram"]' "DWARF answered, by that unit and subprogram"
is "$(said '[.results[0].scopes[-1].names[] | select(.gave) | .gave]')" '["name"]' "the DIE of the name is reported"
is "$(said '[.results[0].sources[].source]')" '["dwarf","symtab","dynsym"]' \
        "the results of the other sources are reported"
is "$(said '.results[0].second_opinion.agrees')" true "the second opinion of libdw agrees"
out=$("$cairn" why "$tmp/whole" "$outer")
like "$out" "^0x$(printf %x "0x$outer"): resolved by dwarf" "the text has the source"
like "$out" 'scope +subprogram at 0x[0-9a-f]+: outer' "the text has the DIE of the scope"
like "$out" 'table at 0x[0-9a-f]+ of .debug_line' "the text has the line table"
like "$out" 'symtab would give outer' "the text has the result of the next source"

# ---- other sources of the same file ----

why "$tmp/whole" "$asmonly"
is "$(said '.results[0] | [.source, .name_source, .symbol.name, .symbol.type, .symbol.binding,
        .symbol.size, .symbol.section]')" \
        '["lines","symtab","asm_only","notype","global",0,".text"]' \
        "assembly: its lines by DWARF, its label by the symbol"
strip -g -o "$tmp/bare.o" "$tmp/whole"
why "$tmp/bare.o" "$asmonly"
is "$(said '.results[0] | [.source, .name_source, .symbol.name, .symbol.size]')" '["symtab",null,"asm_only",0]' \
        "without lines, by the symbol alone"
plt=$(objdump -d "$tmp/whole" | sed -n 's/^0*\([0-9a-f]*\) <\(printf\|puts\)@plt>:/\1/p' | head -1)
why "$tmp/whole" "$plt"
like "$(said '.results[0] | [.source, .frames[0].function]')" '"plt","(printf|puts)@plt"' "a stub of the PLT"
like "$(said '.results[0].meaning')" 'a stub that jumps to this function through the GOT' "  what a stub is"
plt=$(readelf -SW "$tmp/whole" | sed 's/^ *\[ *//' | awk '$2 == ".plt" { print $4 }')
why "$tmp/whole" "$plt"
is "$(said '.results[0] | [.state, .source, .frames[0].function]')" '["resolved","plt","_PROCEDURE_LINKAGE_TABLE_"]' \
        "the first entry of the PLT"
like "$(said '.results[0].meaning')" 'calls the dynamic linker' "  what that is"
why "$tmp/whole" ffffffffff "$data_address"
is $why_code 1 "unresolved addresses are exit code 1"
is "$(said '[.results[].state]')" '["not_in_object","uncovered"]' "outside of the object, and data of it"
is "$(said '[.results[1].place.section_is_code, (.results[1].next_step | length > 0)]')" '[false,true]' \
        "data addresses are reported, with a remedy"

why "$tmp/bare.o" "$outer"
is "$(said '[.quality, .results[0].source, .results[0].symbol.table, .results[0].symbol.type]')" \
        '["symtab","symtab",".symtab","func"]' "without DWARF, .symtab"
gcc -O2 -o "$tmp/hidden" "$tmp/a.c"
inside=$(address_of "$tmp/hidden" outer)
strip "$tmp/hidden"
why "$tmp/hidden" "$inside"
is "$(said '.results[0] | [.state, .source, .frames[0].function]')" \
        "[\"resolved\",\"boundaries\",\"fn@$(printf '0x%x' "0x$inside") [hidden]\"]" \
        "a stripped program has boundaries of functions"
like "$(said '.results[0] | .meaning + " " + .next_step')" 'no symbol here.*upload the debuginfo' \
        "the answer for a boundary says what is missing"
like "$("$cairn" why "$tmp/hidden" "$inside")" 'meaning +the file has no symbol here' \
        "the text for a boundary says what is missing"
strip -R .eh_frame -R .eh_frame_hdr -o "$tmp/dark" "$tmp/hidden"
why "$tmp/dark" 0x30
is "$(said '.results[0].state')" '"uncovered"' "a header is not covered"
why --second-opinion "$tmp/hidden" "$inside"
like "$(said .second_opinion_error)" 'libdw cannot read' "without DWARF libdw has no result, which is not an error"
objcopy --only-keep-debug "$tmp/whole" "$tmp/only.debug"
why "$tmp/only.debug" 10
is "$(said '.results[0].state')" '"outside"' "the contents of an object are unknown if there is only a debug file"

(cd "$tmp" && gcc -g -O2 -gsplit-dwarf -o split a.c)
why "$tmp/split" "$(address_of "$tmp/split" outer)"
is "$(said '.results[0] | [.source, .unit.split, .split_unit.split, (.split_unit.name | split("/") | last),
        .scopes[-1].name, .unit_gives_frames]')" \
        '["dwarf",false,true,"a.c","outer",true]' "split DWARF: the skeleton and its other half"

# ---- bad input ----

head -c 3000 "$tmp/whole" >"$tmp/cut"
"$cairn" why "$tmp/cut" 10 >/dev/null 2>"$tmp/err"
is $? 2 "a file that is cut off is exit code 2"
"$cairn" why "$tmp/whole" xyz 2>/dev/null
is $? 64 "no address is exit code 64"
"$cairn" why "$tmp/whole" 2>/dev/null
is $? 64 "as is none at all"
"$cairn" why --data "$tmp" nothex 10 2>/dev/null
is $? 64 "a malformed build-id is a usage error"
cp "$tmp/bare.o" "$tmp/hostile"
python3 - "$tmp/hostile" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
open(sys.argv[1], "wb").write(data.replace(b"\0outer\0", b"\0o\x07\x1b\x9b\x7f\0"))
END
"$cairn" why "$tmp/hostile" "$outer" >"$tmp/out"
like "$(cat "$tmp/out")" 'o\\x07\\x1b' "control characters are escaped"
"$cairn" why --json "$tmp/hostile" "$outer" >>"$tmp/out"
is "$(tr -d '\n' <"$tmp/out" | LC_ALL=C grep -c '[[:cntrl:]]')" 0 "control characters are never printed"

# ---- real files ----

for file in /usr/bin/python3.11 "$(ldd /bin/sh | awk '/libc\.so/ { print $3 }')"; do
        hex=$(build_id_of "$file")
        debug=/usr/lib/debug/.build-id/$(printf %.2s "$hex")/${hex#??}.debug
        [ -e "$debug" ] || continue
        ok "$(basename "$file"): as llvm-dwarfdump and libdw say" python3 tests/tools/check_why.py "$fast" "$file" \
                "$debug" 4
        is "$("$fast" why --json "$file" 10 | jq -r '[.files[] | .found] | join(", ")')" 'by build-id, as named' \
                "$(basename "$file"): each file says how it was found"
done
if command -v go >/dev/null; then
        printf 'package main\n\nfunc main() { println("here") }\n' >"$tmp/here.go"
        if (cd "$tmp" && HOME=$tmp GO111MODULE=off go build -o gowhole here.go && strip -o gostripped gowhole) \
                >/dev/null 2>&1; then
                "$fast" why --json "$tmp/gostripped" "$(address_of "$tmp/gowhole" main.main)" >"$tmp/why.json"
                is "$(said '.results[0] | [.source, .frames[0].function, .go.name, .frames[0].line]')" \
                        '["go_pclntab","main.main","main.main",3]' "a stripped Go program"
        fi
fi

# ---- stored objects ----

start_server
strip -o "$tmp/exe" "$tmp/whole"
put_object debuginfo "$tmp/whole"
put_object executable "$tmp/exe"
wait_metric cairn_objects_indexed_total 1
wait_for "the index queue to be empty" metric_equals cairn_index_queue 0
"$cairn" why --json --server "$url" --second-opinion "$id" "$outer" ffffffffff >"$tmp/why.json"
is $? 1 "one of two addresses is unresolved"
is "$(said '[.index.state, .index.quality, (.index.generation > 0),
        .results[0].state, .results[0].source, .results[1].state]')" \
        '["indexed","dwarf",true,"resolved","dwarf","not_in_object"]' "a service explains what it has"
is "$(said '.results[0].index | [.state, .block.row < .block.rows, .block.bytes > 0, .block.is_gap,
        .frames[-1].function]')" \
        '["resolved",true,true,false,"outer"]' "the service names the block and the row of the index"
is "$(said '[.files[] | [.role, .name, .found]]')" '[["debuginfo","whole","upload"],["executable","exe","upload"]]' \
        "the service lists the files with their roles"
is "$(said '.results[0].second_opinion.agrees')" true "libdw reads the stored file"
"$cairn" why --json --data "$data" "$id" "$outer" ffffffffff >"$tmp/data.json"
is "$(jq -c 'del(.results[].second_opinion)' "$tmp/why.json")" "$(jq -c . "$tmp/data.json")" \
        "the data directory gives the same while the service runs"
like "$("$cairn" why --data "$data" "$id" "$outer")" 'row [0-9]+ of [0-9]+' "the text of the data directory has the row"
"$cairn" why --json --server "$url" 00ff 10 >"$tmp/why.json"
is "$? $(said '[.index.state, .results[0].state]')" '1 ["absent","no_debuginfo"]' \
        "an unknown build-id is reported as absent"
answers 400 'address' "a request without an address is refused" "$url/api/v1/why?build_id=$id"
answers 400 'build-id' "a request without a build-id is refused" "$url/api/v1/why?address=10"
answers 400 'hexadecimal' "a request with a bad address is refused" "$url/api/v1/why?build_id=$id&address=10,,20"

# ---- the reasons are those documented, also in the metric ----

curl -sS "$url/metrics" | sed -n 's/^cairn_unresolved_frames_total{reason="\([a-z_]*\)"}.*/\1/p' | sort >"$tmp/labels"
sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' docs/reasons.md | sort >"$tmp/page"
ok "the metric has every reason from the start" cmp "$tmp/labels" "$tmp/page"

# ---- names that are no functions ----

is "$("$cairn" why '[jit]' | head -2)" "$(printf '[jit]\n  meaning      %s' \
        'code that a runtime generated, in memory without a file; no perf map and no jitdump names it')" \
        "the name of code without a file"
is "$("$cairn" why --json bpf_trampoline_6442525000 | jq -r '[.name, (.meaning | test("BPF"))] | @tsv')" \
        "$(printf 'bpf_trampoline_6442525000\ttrue')" "a name that the kernel generated, as JSON"
is "$("$cairn" why main 2>/dev/null; echo $?)" 64 "that of a function needs a file and an address"
# Code of the agent, the page of the agent, and the table of names.
{
        sed -n 's/.*build_named_frame([^"]*"\(\[[^"]*\)".*/\1/p; s/.*_NAME "\(\[[^"]*\)".*/\1/p' \
                sampling/profile_build.c sampling/processes/kernel.h
        sed -n '/Frames without an address/,/^\.El/s/^\.It Li //p' docs/man/cairn-agent.8
        sed -n '/^| code | names /,/^$/s/^|[^|]*|\(.*\)|$/\1/p' docs/reasons.md | grep -o '`[^`]*`' | tr -d '`'
} >"$tmp/names"
ok "names are found" test "$(wc -l <"$tmp/names")" -gt 30
is "$(while read -r name; do "$cairn" why "$name" >/dev/null 2>&1 || echo "$name"; done <"$tmp/names")" '' \
        "each name that the agent and the documentation have is explained"

done_testing
