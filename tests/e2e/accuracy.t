#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# 10,000 addresses of libc and of python3.11: every frame as eu-addr2line, llvm-symbolizer and addr2line give it.
set -u
cd "$(dirname "$0")/../.." || exit 1
cairn=${CAIRN_BUILD:-$PWD/build}/cairn
for tool in python3 readelf eu-addr2line llvm-symbolizer addr2line; do
        command -v $tool >/dev/null || { echo "1..0 # SKIP no $tool"; exit 0; }
done

debug_file() {
        id=$(readelf -n "$1" 2>/dev/null | awk '/Build ID:/ { print $3 }')
        echo "/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
}

# llvm-symbolizer has to agree with 99.5% by itself; on libc eu-addr2line too (on python, which is built with LTO, it
# drops inlined frames), and 99.5% of all have to agree with one of the three in every frame.
n=0
check() {
        n=$((n + 1))
        debug=$(debug_file "$1")
        if [ ! -e "$1" ] || [ ! -e "$debug" ]; then
                echo "ok $n - $1 # SKIP its debug file is not installed"
        elif python3 tests/tools/compare_symbols.py --cairn "$cairn" --each "$2" "$1" "$debug"; then
                echo "ok $n - frames of $1 agree on at least 99.5% of 10,000 addresses"
        else
                echo "not ok $n - frames of $1 agree on at least 99.5% of 10,000 addresses"
        fi
}
check "$(ldconfig -p | awk '$1 == "libc.so.6" && /x86-64|AArch64/ { print $NF; exit }')" llvm-symbolizer,eu-addr2line
check /usr/bin/python3.11 llvm-symbolizer
echo "1..$n"
