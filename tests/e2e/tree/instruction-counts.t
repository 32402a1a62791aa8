#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No path of tests/ratchet takes over 3% more instructions than its record (docs/internals/testing.md, "Instruction
# counts"). The records are of the compiler and libraries of Debian 12 on x86-64.
set -u
cd "$(dirname "$0")/../../.." || exit 1
program=${CAIRN_BUILD:-$PWD/build}/tests/ratchet/ratchet
skip_all() {
        echo "1..0 # SKIP $1"
        exit 0
}
[ "$(uname -m)" = x86_64 ] && grep -q '^VERSION_ID="12"' /etc/os-release || skip_all "not Debian 12 on x86-64"
for tool in valgrind python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
[ -x "$program" ] || skip_all "$program is not built"
out=$(tests/ratchet/run 2>&1)
status=$?
[ $status -ne 77 ] || skip_all "$out"
echo "$out" | sed 's/^/# /'
echo 1..1
[ $status -eq 0 ] || printf 'not '
echo "ok 1 - each path takes at most 3% more instructions than recorded"
