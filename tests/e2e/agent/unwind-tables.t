#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares the unwind tables of this system's files with libdw's CFI. CAIRN_UNWIND_ALL=1 uses every program and library,
# CAIRN_UNWIND_FILES a list of files (one per line) instead.
set -eu
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
compare=${CAIRN_SAN:-$PWD/build/san}/tests/unit/unwind-tables/test_unwind_libdw
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

count=0
ok() { # STATUS NAME
        count=$((count + 1))
        if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}
check() { # NAME COMMAND...
        name=$1
        shift
        if "$@"; then ok 0 "$name"; else ok 1 "$name"; fi
}

# Only ELF files, each once, however many links it has.
elf_files() {
        for f in "$@"; do
                [ -f "$f" ] && [ ! -L "$f" ] && [ "$(head -c 4 "$f" | tr -d '\0' | tail -c 3)" = ELF ] && echo "$f"
        done || true
}

if [ -n "${CAIRN_UNWIND_FILES:-}" ]; then
        cp "$CAIRN_UNWIND_FILES" "$dir/list"
elif [ -n "${CAIRN_UNWIND_ALL:-}" ]; then
        elf_files /usr/bin/* /usr/sbin/* /usr/lib/*-linux-gnu/*.so* /usr/lib/*-linux-gnu/*/*.so* \
                /usr/*-linux-gnu/lib/*.so* \
                "$(readlink -f "$(command -v node)")" \
                > "$dir/list"
else
        elf_files /usr/bin/[a-f]* /usr/bin/python3* /usr/lib/*-linux-gnu/libc.so.6 /usr/lib/*-linux-gnu/ld-linux*.so.* \
                /usr/lib/*-linux-gnu/libcrypto.so.* /usr/lib/*-linux-gnu/libstdc++.so.* \
                /usr/lib/*-linux-gnu/lib[a-e]*.so.* \
                /usr/*-linux-gnu/lib/libc.so.6 | head -n 150 > "$dir/list"
fi
# A Go program has only .debug_frame; a Rust program is used if there is one.
if command -v go > /dev/null; then
        printf 'package main\n\nfunc main() { println("here") }\n' > "$dir/here.go"
        for arch in amd64 arm64; do
                if (cd "$dir" && HOME=$dir GO111MODULE=off GOARCH=$arch go build -o "go-$arch" here.go) > /dev/null \
                        2>&1; then
                        echo "$dir/go-$arch" >> "$dir/list"
                fi
        done
fi
if [ -e "$dir/go-amd64" ]; then # on arm64 handlers return to the vDSO
        "$agent" unwind-table "$dir/go-amd64" > "$dir/rows"
        check "the trampoline of Go's runtime is a signal frame" grep -q 'signal$' "$dir/rows"
fi
if command -v rustc > /dev/null; then
        echo 'fn main() { println!("{:?}", std::env::args().collect::<Vec<_>>()); }' > "$dir/here.rs"
        if rustc -O -o "$dir/rust" "$dir/here.rs" > /dev/null 2>&1; then echo "$dir/rust" >> "$dir/list"; fi
fi

xargs -d '\n' "$compare" < "$dir/list" > "$dir/compared" && status=0 || status=$?
grep -E '^# (unknown|[0-9])|: ours' "$dir/compared" || true
check "the tables of $(wc -l < "$dir/list") files say what libdw says" [ "$status" -eq 0 ]

libc=$(ldd "$agent" | awk '/libc\.so/ { print $3 }')
"$agent" unwind-table "$libc" > "$dir/rows"
"$agent" unwind-table --json "$libc" > "$dir/rows.json"
check "rows are printed" grep -q '^[0-9a-f]\{16\} ' "$dir/rows"
check "the signal trampoline is a signal frame" grep -q 'signal$' "$dir/rows"
check "statistics are printed" grep -q '^# bytes_per_row 4\.' "$dir/rows"
if command -v python3 > /dev/null; then
        check "JSON has as many rows as its statistics say" python3 -c '
import json, sys
t = json.load(open(sys.argv[1]))
assert len(t["rows"]) == t["statistics"]["rows"] > 1000
assert sorted(r["address"] for r in t["rows"]) == [r["address"] for r in t["rows"]]
' "$dir/rows.json"
fi
"$agent" unwind-table "$dir/list" 2> "$dir/err" && status=0 || status=$?
check "a file that is not ELF is bad data" [ "$status" -eq 2 ]
check "and the message names it" grep -q "list': not an ELF file" "$dir/err"
"$agent" unwind-table 2> /dev/null && status=0 || status=$?
check "no file is a usage error" [ "$status" -eq 64 ]
echo "1..$count"
