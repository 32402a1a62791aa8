# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# shellcheck disable=SC2154,SC2034  # run sets work, and ends with status
# The inputs of the comparison. Sourced by run, which defines wanted and input; unavailable inputs are reported.

debug_file() {
        id=$(readelf -n "$1" 2>/dev/null | awk '/Build ID:/ { print $3 }')
        echo "/usr/lib/debug/.build-id/$(echo "$id" | cut -c1-2)/$(echo "$id" | cut -c3-).debug"
}

# debian NAME PACKAGE FILE: a program of a Debian package and its debug file
debian() {
        wanted "$1" || return 0
        if [ -e "$3" ] && [ -e "$(debug_file "$3")" ]; then
                input "$1" "$2 $(dpkg-query -W -f '${Version}' "$2" 2>/dev/null)" "$3" "$(debug_file "$3")"
        else
                echo "# $1: not here; install $2"
        fi
}

# build NAME COMMAND...: runs a compiler; its errors are printed
build() {
        what=$1
        shift
        command -v "$1" >/dev/null || { echo "# $what: no $1"; return 1; }
        "$@" >"$work/log" 2>&1 || { echo "# $what: $*: $(head -n 1 "$work/log")"; return 1; }
}

compiler_version() {
        "$@" 2>/dev/null | head -n 1
}

# sample NAME COMPILER OPTION...: the C++ program built with these options
sample() {
        wanted "$1" || return 0
        name=$1
        shift
        if build "$name" "$@" -O2 -g -std=c++17 tests/oracle/sample.cc -o "$work/$name"; then
                input "$name" "sample.cc, $* -O2 -g, $(compiler_version "$1" --version)" "$work/$name" "$work/$name"
        fi
}
llvm="llvm-symbolizer,llvm-symbolizer-19"

libc=$(ldconfig -p | awk '$1 == "libc.so.6" && /x86-64|AArch64/ { print $NF; exit }')
debian libc libc6-dbg "$libc"
debian python3.11 python3.11-dbg /usr/bin/python3.11
libs=$(dirname "${libc:-/}")
debian libdb libdb5.3-dbg "$libs/libdb-5.3.so"
debian libopcodes libbinutils-dbg "$libs/libopcodes-2.40-system.so" # LTO, and a dwz file shared by all of binutils
debian libbfd libbinutils-dbg "$libs/libbfd-2.40-system.so"
debian librados librados2-dbg "$libs/librados.so.2.0.0"

sample c++-gcc g++
sample c++-clang clang++
sample c++-gcc-dwarf4 g++ -gdwarf-4
sample c++-gcc-dwarf2 g++ -gdwarf-2
sample c++-gcc-dwarf3 g++ -gdwarf-3
sample c++-gcc-dwarf64 g++ -gdwarf64
sample c++-clang-dwarf4 clang++ -gdwarf-4
sample c++-clang-dwarf64 clang++ -gdwarf64
sample c++-gcc-lto g++ -flto
sample c++-gcc-dropped g++ -ffunction-sections -Wl,--gc-sections
sample c++-clang-folded clang++ -fuse-ld=lld -ffunction-sections -Wl,--gc-sections -Wl,--icf=all

# names NAME COMMAND...: functions whose linkage names only some demanglers read, or none
names() {
        wanted "$1" || return 0
        name=$1
        shift
        if build "$name" "$@" -O1 -g tests/oracle/names.cc -o "$work/$name"; then
                input "$name" "names.cc, $* -O1 -g" "$work/$name" "$work/$name"
        fi
}
names c++-names-gcc g++ -std=c++20
names c++-names-clang clang++ -std=c++17

# PyPI's ziglang, which has a newer clang than Debian: ZIG="python3 -m ziglang".
: "${ZIG:=zig}"
zig_program() {
        wanted "$1" || return 0
        name=$1
        shift
        # shellcheck disable=SC2086  # it may be several words
        if build "$name" $ZIG build-exe "$@" -fno-strip tests/oracle/sample.zig "-femit-bin=$work/$name"; then
                input "$name" "sample.zig, $* -fno-strip, zig $($ZIG version)" "$work/$name" "$work/$name" --peers $llvm
        fi
}
# shellcheck disable=SC2086
names c++-names-zig $ZIG c++ -std=c++23 -fno-sanitize=undefined
zig_program zig -O Debug -fno-llvm
zig_program zig-llvm -O ReleaseFast

# Two objects with functions of the same name and size but different code: the linker keeps the first.
copies() {
        wanted "$1" || return 0
        name=$1 ld=$3
        if build "$name" "$2" -O2 -g -c tests/oracle/copies.cc -o "$work/$name-1.o" &&
                build "$name" "$2" -O2 -g -DSECOND -c tests/oracle/copies.cc -o "$work/$name-2.o" &&
                build "$name" "$2" "-fuse-ld=$ld" "$work/$name-1.o" "$work/$name-2.o" -o "$work/$name"; then
                input "$name" "copies.cc twice, $2 -O2 -g -fuse-ld=$ld" "$work/$name" "$work/$name"
        fi
}
copies c++-copies-bfd g++ bfd
copies c++-copies-gold clang++ gold

if wanted rust && build rust rustc -O -g tests/oracle/sample.rs -o "$work/rust"; then
        input rust "sample.rs, rustc -O -g, $(rustc --version)" "$work/rust" "$work/rust"
fi

# Line tables only: other readers than LLVM's do not combine such DIEs with symbols.
if wanted c++-clang-lines && build c++-clang-lines clang++ -O2 -gline-tables-only -std=c++17 tests/oracle/sample.cc \
        -o "$work/c++-clang-lines"; then
        input c++-clang-lines "sample.cc, clang++ -O2 -gline-tables-only, $(compiler_version clang++ --version)" \
                "$work/c++-clang-lines" "$work/c++-clang-lines" --peers $llvm
fi
if wanted rust-lines &&
        build rust-lines rustc -O -C debuginfo=line-tables-only tests/oracle/sample.rs -o "$work/rust-lines"; then
        input rust-lines "sample.rs, rustc -O -C debuginfo=line-tables-only, $(rustc --version)" "$work/rust-lines" \
                "$work/rust-lines" --peers $llvm
fi

# Cairn gets the stripped program, the other tools the same code with DWARF.
go_build() {
        build go env GOENV=off GOFLAGS= GOTOOLCHAIN=local GOCACHE="$work/go-cache" GOPATH="$work/go-path" go build \
                "$@" \
                tests/oracle/sample.go
}
if wanted go && go_build -o "$work/go-full" && go_build "-ldflags=-s -w" -o "$work/go"; then
        input go "sample.go, stripped with -s -w; the peers have its DWARF, $(go version)" "$work/go" "$work/go-full" \
                --go
fi

# Split DWARF: Cairn gets a program beside its .dwp, the others the same code linked with its DWARF.
same_code() {
        objcopy -O binary -j .text "$1" "$1.text" && objcopy -O binary -j .text "$2" "$2.text" &&
                cmp "$1.text" "$2.text"
}
split_dwarf() {
        wanted "$1" || return 0
        name=$1
        shift
        rm -f "$work/$name" "$work/$name-whole"
        if build "$name" "$@" -O2 -g -std=c++17 tests/oracle/sample.cc -o "$work/$name-whole" &&
                build "$name" "$@" -O2 -g -std=c++17 -gsplit-dwarf -c tests/oracle/sample.cc -o "$work/$name.o" &&
                build "$name" "$@" "$work/$name.o" -o "$work/$name" &&
                build "$name" llvm-dwp -e "$work/$name" -o "$work/$name.dwp" &&
                build "$name" same_code "$work/$name" "$work/$name-whole"; then
                rm -f "$work/$name.dwo"
                input "$name" "sample.cc, $* -O2 -gsplit-dwarf and llvm-dwp; the peers have it unsplit" \
                        "$work/$name" "$work/$name-whole"
        fi
}
split_dwarf dwp-gcc g++
split_dwarf dwp-clang clang++

# A pair of files with a dwz file. The peers do not support .debug_sup: they get the file as it was before dwz.
dwz_pair() {
        wanted "$1" || return 0
        name=$1 option=$2
        shift 2
        # shellcheck disable=SC2086  # an empty variable means no option
        if build "$name" "$@" -O2 -g -std=c++17 tests/oracle/sample.cc -o "$work/$name-1" &&
                build "$name" "$@" -O2 -g -std=c++17 -DOTHER tests/oracle/sample.cc -o "$work/$name-2" &&
                cp "$work/$name-1" "$work/$name-whole" &&
                build "$name" dwz $option -m "$work/$name-common" "$work/$name-1" "$work/$name-2"; then
                text="sample.cc, $* -O2 -g, one of a pair after dwz -m${option:+ $option}"
                if [ -n "$option" ]; then
                        input "$name" "$text; the peers have it as it was before" "$work/$name-1" "$work/$name-whole"
                else
                        input "$name" "$text" "$work/$name-1" "$work/$name-1"
                fi
        fi
}
dwz_pair dwz "" g++
dwz_pair dwz-clang "" clang++ -gdwarf-4
dwz_pair dwz-sup --dwarf-5 g++

# Other architectures, of both byte orders and word sizes. Not linked with libraries, because these are not installed.
machine() {
        wanted "machine-$1" || return 0
        if build "machine-$1" clang++ --target="$2" -O2 -g -ffreestanding -fno-exceptions -fno-rtti -nostdlib -fPIC \
                -shared \
                -fuse-ld=lld tests/oracle/freestanding.cc -o "$work/machine-$1"; then
                input "machine-$1" "freestanding.cc, $(compiler_version clang++ --version), --target=$2 -O2 -g" \
                        "$work/machine-$1" "$work/machine-$1" --peers $llvm
        fi
}
machine powerpc64 powerpc64-linux-gnu
machine mips mips-linux-gnu
machine i386 i386-linux-gnu
machine arm arm-linux-gnueabihf
machine aarch64 aarch64-linux-gnu
machine riscv64 riscv64-linux-gnu

# served NAME TEXT FILE DEBUGFILE: the results of a service, from its index
served() {
        wanted "$1" || return 0
        rm -rf "$work/data" "$work/port"
        "$CAIRN_BUILD/cairn" index --data "$work/data" "$3" >"$work/log" 2>&1 ||
                { echo "# $1: cairn index: $(head -n 1 "$work/log")"; status=1; return; }
        "$CAIRN_BUILD/cairn" serve --data "$work/data" --listen 127.0.0.1:0 --port-file "$work/port" \
                >"$work/serve.log" 2>&1 &
        server=$!
        while [ ! -s "$work/port" ] && kill -0 $server 2>/dev/null; do sleep 0.1; done
        input "$1" "$2, from the index of cairn serve" "$3" "$4" --server "http://127.0.0.1:$(cat "$work/port")" \
                --peers $llvm
        kill $server
        wait $server
        server=
}
[ -z "$libc" ] || served libc-served libc6-dbg "$libc" "$(debug_file "$libc")"
if wanted c++-served && build c++-served g++ -O2 -g -std=c++17 tests/oracle/sample.cc -o "$work/c++-served"; then
        served c++-served "sample.cc, g++ -O2 -g" "$work/c++-served" "$work/c++-served"
fi

# The kernel: specified, installed, or downloaded.
if wanted kernel; then
        kernel=
        [ -n "$FAST" ] ||
                kernel=$(ls /usr/lib/debug/boot/vmlinux-*cloud* /usr/lib/debug/boot/vmlinux-* 2>/dev/null | head -n 1)
        for file; do
                case ${file##*/} in vmlinux*) kernel=$file ;; esac
        done
        [ -n "$kernel$FAST" ] || kernel=$(tests/oracle/fetch-kernel "$work/kernel") ||
                echo "# kernel: cannot be fetched"
        [ -z "$kernel" ] ||
                input kernel "linux-image-cloud-amd64-dbg's ${kernel##*/}" "$kernel" "$kernel" --eu-addr2line 500
fi

for file; do
        case ${file##*/} in
        vmlinux*) ;;
        *) wanted "${file##*/}" && input "${file##*/}" "given" "$file" "$file" ;;
        esac
done
