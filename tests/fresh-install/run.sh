#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Proves the README's two commands on a Debian 12 that has nothing but the
# checkout: makes a minimal root with debootstrap, copies the tracked files
# in, and runs both commands there, as root and (the first) as a user with
# sudo.
#   tests/fresh-install/run.sh [--mirror URL] [--keep] [--only run|test|user]
# Takes root, debootstrap, about 4 GB of disk and 20 minutes.
set -eu
cd "$(dirname "$0")/../.."
mirror=http://deb.debian.org/debian
keep= only=
while [ $# -gt 0 ]; do
        case "$1" in
        --mirror) mirror=$2; shift ;;
        --keep) keep=1 ;;
        --only) only=$2; shift ;;
        *) echo "usage: $0 [--mirror URL] [--keep] [--only run|test|user]" >&2; exit 64 ;;
        esac
        shift
done
[ "$(id -u)" -eq 0 ] || { echo "fresh-install: needs root for debootstrap and chroot" >&2; exit 1; }
command -v debootstrap >/dev/null || { echo "fresh-install: install debootstrap first" >&2; exit 1; }

root=$(mktemp -d "${TMPDIR:-/tmp}/cairn-fresh.XXXXXX")
chmod 755 "$root" # the user inside must reach it too
cleanup() {
        for m in proc sys dev; do
                umount -R -l "$root/$m" 2>/dev/null || true
        done
        [ -n "$keep" ] && { echo "fresh-install: kept $root"; return; }
        rm -rf --one-file-system "$root"
}
trap cleanup EXIT INT TERM

echo "# making a minimal Debian 12 in $root"
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || { tail "$root.log"; exit 1; }
rm -f "$root.log"
for m in proc sys dev; do
        mount --rbind "/$m" "$root/$m"
        mount --make-rslave "$root/$m"
done
cp /etc/resolv.conf "$root/etc/resolv.conf"
# A site whose proxy signs with its own authority needs that authority in the new root as well.
if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
        mkdir -p "$root/usr/local/share/ca-certificates"
        cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
fi
mkdir -p "$root/src/cairn"
git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$root/src/cairn"

nth_block() {
        awk -v want="$1" '/^```sh$/ { n++; next } /^```$/ { if (n == want) exit; next } n == want' README.md
}
main=$(nth_block 1)
tests=$(nth_block 2)
as_root() {
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
                chroot "$root" /bin/sh -c "cd /src/cairn && $1"
}
as_user() {
        env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/home/newcomer LANG=C.UTF-8 \
                chroot "$root" su newcomer -s /bin/sh -c "cd /home/newcomer/cairn && $1"
}

failed=0
report() {
        if [ "$2" -eq 0 ]; then echo "ok - $1"; else echo "not ok - $1"; failed=1; fi
}
# The top table must name a function of the demo program with its file and line.
check_run() {
        cat "$1"
        grep -Eq 'demo\.c:[0-9]+' "$1"
}

if [ -z "$only" ] || [ "$only" = run ]; then
        echo "# root: $main SECONDS=30"
        rc=0
        as_root "$main SECONDS=30" >"$root/run.log" 2>&1 || rc=$?
        check_run "$root/run.log" || rc=1
        report "the main command works as root" "$rc"
fi
if [ -z "$only" ] || [ "$only" = user ]; then
        echo "# user with sudo: $main SECONDS=30"
        rc=0
        as_root 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq sudo &&
                useradd -m newcomer && echo "newcomer ALL=(ALL) NOPASSWD:ALL" >/etc/sudoers.d/newcomer &&
                cp -r /src/cairn /home/newcomer/cairn && rm -rf /home/newcomer/cairn/build &&
                chown -R newcomer /home/newcomer/cairn' >"$root/user.log" 2>&1 || rc=$?
        as_user "$main SECONDS=30" >>"$root/user.log" 2>&1 || rc=$?
        check_run "$root/user.log" || rc=1
        report "the main command works for a user with sudo" "$rc"
fi
if [ -z "$only" ] || [ "$only" = test ]; then
        echo "# root: $tests"
        rc=0
        as_root "$tests" || rc=$?
        report "the test command works as root" "$rc"
fi
exit "$failed"
