#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs the Debian 12 packages Cairn needs.
#   scripts/deps.sh build   packages for building and running
#   scripts/deps.sh all     these, and the packages for tests and benchmarks
#   scripts/deps.sh dev     these, and the packages for make check-tidy and make coverage
# Without root, it only prints the command to run.
set -eu

build="gcc g++ libc6-dev make pkg-config clang llvm llvm-19-dev libbpf-dev bpftool binutils ca-certificates
libelf-dev libdw-dev libdebuginfod-dev liblmdb-dev
libmicrohttpd-dev libnghttp2-dev libgnutls28-dev libzstd-dev zlib1g-dev libdeflate-dev liblz4-dev libsnappy-dev liblzma-dev libcurl4-openssl-dev libssl-dev libiberty-dev libseccomp-dev
libxxhash-dev libjson-c-dev libcap-dev libcapstone-dev libarchive-dev libyaml-dev libexpat1-dev libmd-dev libprotobuf-c-dev protobuf-c-compiler"

tests="check libsubunit-dev perl git curl openssl python3 python3-venv python3-protobuf python3-yaml protobuf-compiler jq xz-utils zstd nodejs npm
procps iproute2 systemd elfutils debuginfod gdb valgrind linux-perf lld g++ dwz golang-go openjdk-17-jdk-headless rustc musl-tools libarchive-tools libclang-rt-14-dev rpm cppcheck shellcheck mandoc clang-format
chromium groovy nginx haproxy mold python3.11 libpython3.11-stdlib python3.11-dbg libc6-dbg"

dev="clang-tidy gcovr"

case "${1:-all}" in
build) want=$build ;;
all) want="$build $tests" ;;
dev) want="$build $tests $dev" ;;
*)
        echo "usage: scripts/deps.sh [build|all|dev]" >&2
        exit 64
        ;;
esac

# Third-party packages of Node.js include npm and conflict with Debian's npm package.
! command -v npm >/dev/null || want=$(echo "$want" | sed 's/ npm$//; s/ npm / /')

missing=
for p in $want; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $p"
done
if [ -z "$missing" ]; then
        echo "deps: everything is installed"
        exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
        echo "deps: these packages are missing; as root, run:" >&2
        echo "  apt-get update && apt-get install -y --no-install-recommends$missing" >&2
        exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086  # intentionally a list of words
apt-get install -y -qq --no-install-recommends $missing
