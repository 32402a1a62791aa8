# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# as_root COMMAND...: as it is for root, through sudo for others.
as_root() {
        if [ "$(id -u)" -eq 0 ]; then
                "$@"
        elif command -v sudo >/dev/null 2>&1; then
                sudo "$@"
        else
                echo "this needs root or sudo: $*" >&2
                exit 1
        fi
}

# need_packages build|all: installs what is missing; a user who misses nothing needs no root.
need_packages() {
        if [ "$(id -u)" -eq 0 ] || ! scripts/deps.sh "$1" >/dev/null 2>&1; then
                as_root scripts/deps.sh "$1"
        fi
}
