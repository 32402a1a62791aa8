#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compares 20,000 addresses of libc and of python3.11 with three other tools, and a small program in every DWARF version
# and for other architectures with llvm-symbolizer: every difference must have an explanation supported by the line rows
# and DIEs, and none may be an error of Cairn. make check-oracle compares all addresses, and more files.
set -u
cd "$(dirname "$0")/../../.." || exit 1
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
# compare NAME FILE DEBUGFILE OPTION...
compare() {
        name=$1
        shift
        PYTHONDONTWRITEBYTECODE=1 python3 tests/oracle/compare.py --cairn "$cairn" --facts "$work/die_facts" "$@" \
                >"$work/log" 2>"$work/progress"
        status=$?
        n=$((n + 1))
        grep agree "$work/log"
        if [ $status -eq 0 ]; then
                echo "ok $n - every difference on $name is explained"
        else
                sed 's/^[^#]/# &/' "$work/log" "$work/progress"
                echo "not ok $n - every difference on $name is explained"
        fi
}

skip() {
        n=$((n + 1))
        echo "ok $n - $1 # SKIP $2"
}

check() {
        debug=$(debug_file "$2")
        if [ -e "$2" ] && [ -e "$debug" ]; then
                compare "$1" --limit 20000 --addr2line 5000 --eu-addr2line 1000 "$1" "$2" "$debug"
        else
                skip "$1" "its debug file is not installed"
        fi
}

# built NAME OPTION...: the program without libraries, built with clang and lld
peers=llvm-symbolizer,llvm-symbolizer-19
built() {
        name=$1
        shift
        if clang++ "$@" -O2 -ffreestanding -fno-exceptions -fno-rtti -nostdlib -fPIC -shared -fuse-ld=lld \
                tests/oracle/freestanding.cc -o "$work/$name" 2>"$work/complaints"; then
                compare "$name" --random 500 --peers "$peers" "$name" "$work/$name" "$work/$name"
        else
                skip "$name" "$(head -n 1 "$work/complaints")"
        fi
}

check libc "$(ldconfig -p | awk '$1 == "libc.so.6" && /x86-64|AArch64/ { print $NF; exit }')"
check python3.11 /usr/bin/python3.11
for version in 2 3 4 5; do
        built dwarf-$version -gdwarf-$version
done
for version in 3 4 5; do
        built dwarf-$version-64 -gdwarf-$version -gdwarf64
done
built dwarf-5-packed -gdwarf-5 -gz
built powerpc64 --target=powerpc64-linux-gnu -g
built powerpc64-dwarf64 --target=powerpc64-linux-gnu -gdwarf-5 -gdwarf64
built mips --target=mips-linux-gnu -gdwarf-4
built i386 --target=i386-linux-gnu -g
built arm --target=arm-linux-gnueabihf -g
built aarch64 --target=aarch64-linux-gnu -g
peers=llvm-symbolizer # LLVM 19 takes unnamed labels of RISC-V objects for functions
built riscv64 --target=riscv64-linux-gnu -g
echo "1..$n"
