#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Static checks. A check whose tool is missing prints that and fails the target.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0

need() {
        command -v "$1" >/dev/null 2>&1 && return 0
        echo "lint: $1 is missing (make deps installs it)" >&2
        bad=1
        return 1
}

# cppcheck does not follow scope guards, so leaks are left to the address sanitizer. It also tries configurations of
# unsupported processors, so an #error is left to the compiler. Results are kept, and files that did not change are not
# read again.
if need cppcheck; then
        queue=$(echo '#include <sys/queue.h>' | cc -E - | sed -n 's|^# 1 "\(.*/sys/queue\.h\)".*|\1|p') # its macros are control flow
        mkdir -p build/cppcheck
        # shellcheck disable=SC2046  # a list of files on purpose
        cppcheck --cppcheck-build-dir=build/cppcheck -j "$(nproc)" --include="$queue" --quiet --std=c11 --enable=warning --inline-suppr --error-exitcode=1 -D_GNU_SOURCE \
                -I. --suppress=missingIncludeSystem --suppress=unknownMacro --suppress=memleak --suppress=resourceLeak \
                --suppress=preprocessorErrorDirective \
                $(git ls-files '*.c' | grep -vE '^(bpf|tests)/') || bad=1
fi
if need clang-format; then
        # shellcheck disable=SC2046  # a list of files on purpose
        clang-format --dry-run -Werror $(git ls-files '*.c' '*.h') || bad=1
fi
if need shellcheck; then
        scripts=$(git ls-files '*.sh' '*.t' tests/run .ci/run)
        # shellcheck disable=SC2086  # a list of files on purpose
        bash_scripts=$(grep -lE '^#!.*bash' $scripts)
        echo "$bash_scripts" | xargs -r shellcheck -S warning -s bash -e SC1007 || bad=1
        echo "$scripts" | grep -vxF "$bash_scripts" | xargs shellcheck -S warning -s sh -e SC1007 || bad=1
fi
if need mandoc; then
        for page in docs/man/*.[158]; do
                [ -e "$page" ] || continue
                # mandoc expects ERRORS only in sections 2, 3, 4 and 9; our pages in sections 1 and 8 have it too.
                said=$(mandoc -Tlint -W warning "$page" | grep -v 'unexpected section: Sh ERRORS')
                [ -z "$said" ] || { printf '%s\n' "$said" >&2; bad=1; }
        done
fi
scripts/cleanup-order.py || bad=1
# Names are unique in the tree, and folders include only what docs/architecture.md allows.
scripts/shape.py --check || bad=1
# Each source file names its licence.
for f in $(git ls-files '*.c' '*.h' '*.sh' '*.t' Makefile '*.mk'); do
        head -n 3 "$f" | grep -q SPDX-License-Identifier || {
                echo "lint: $f has no SPDX line" >&2
                bad=1
        }
done
[ "$bad" -eq 0 ] && echo "lint: clean"
exit "$bad"
