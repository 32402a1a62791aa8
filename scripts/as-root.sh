# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# as_root COMMAND...: runs it directly as root, through sudo as any other user.
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

# need_packages build|all: installs missing packages; root is needed only if a package is missing.
need_packages() {
        if [ "$(id -u)" -eq 0 ] || ! scripts/deps.sh "$1" >/dev/null 2>&1; then
                as_root scripts/deps.sh "$1"
        fi
}
