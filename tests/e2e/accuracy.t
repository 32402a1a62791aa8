#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 20,000 addresses of libc and of python3.11 against three other tools: every difference has an explanation that the
# line rows and DIEs bear out, and none is our mistake. make check-oracle asks for all addresses, and of more files.
set -u
cd "$(dirname "$0")/../.." || exit 1
cairn=${CAIRN_BUILD:-$PWD/build}/cairn
for tool in python3 readelf eu-addr2line llvm-symbolizer llvm-dwarfdump addr2line; do
        command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
export CAIRN_CACHE_DIR="$work/cache"
"${CC:-cc}" -std=gnu17 -D_GNU_SOURCE -O1 tests/oracle/die_facts.c -o "$work/die_facts" -ldw -lelf || exit 1

debug_file() {
        id=$(readelf -n "$1" 2>/dev/null | awk '/Build ID:/ { print $3 }')
        echo "/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
}

n=0
check() {
        n=$((n + 1))
        debug=$(debug_file "$2")
        if [ ! -e "$2" ] || [ ! -e "$debug" ]; then
                echo "ok $n - $1 # SKIP its debug file is not installed"
                return
        fi
        PYTHONDONTWRITEBYTECODE=1 python3 tests/oracle/compare.py --cairn "$cairn" --facts "$work/die_facts" \
                --limit 20000 --addr2line 5000 --eu-addr2line 1000 "$1" "$2" "$debug" >"$work/log" 2>"$work/progress"
        status=$?
        grep agree "$work/log"
        if [ $status -eq 0 ]; then
                echo "ok $n - every difference on $1 is explained"
        else
                sed 's/^[^#]/# &/' "$work/log" "$work/progress"
                echo "not ok $n - every difference on $1 is explained"
        fi
}
check libc "$(ldconfig -p | awk '$1 == "libc.so.6" && /x86-64|AArch64/ { print $NF; exit }')"
check python3.11 /usr/bin/python3.11
echo "1..$n"
