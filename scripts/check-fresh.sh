#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs the README's two commands on a minimal Debian 12 that contains only the tracked files: a root file system made by
# debootstrap --variant=minbase, entered with pivot_root in its own mount namespace. (A chroot would forbid the user
# namespaces that confined workers use; a pid namespace would hide from the agent the processes of a real machine.)
# `make check-fresh` calls this; settings come from the environment:
#   FRESH_ONLY     any of: test run user. test is the second fenced sh block of the README, run is the first with
#                  SECONDS=30, user is the first as a user with sudo. Default: test run.
#   FRESH_TESTS    passed to the test command as TESTS=
#   FRESH_DIR      folder of the base and the root file system, default build-fresh; needs about 8 GB
#   FRESH_MIRROR   Debian mirror, default http://deb.debian.org/debian
#   FRESH_CCACHE   a ccache folder of this machine to compile with, for quick repeated runs
# Needs root, debootstrap, and an hour on two CPUs. The root file system is kept for inspection until the next run.
set -eu
cd "$(dirname "$0")/.."
dir=${FRESH_DIR:-build-fresh}
only=${FRESH_ONLY:-test run}
mirror=${FRESH_MIRROR:-http://deb.debian.org/debian}
say() { echo "check-fresh: $*"; }
die() { say "$*" >&2; exit 1; }

# ---- inside the mount namespace: pivot into the root file system, and run one command there ----

# enter ROOT COMMAND: COMMAND runs in /src/cairn of ROOT.
enter() {
        mount --bind "$1" "$1"
        for m in proc sys dev; do mount --rbind "/$m" "$1/$m"; done
        mount -t tmpfs -o mode=1777 none "$1/tmp"
        [ -z "${FRESH_CCACHE:-}" ] || mount --bind "$FRESH_CCACHE" "$1/var/cache/ccache"
        cd "$1"
        mkdir -p .old-root
        pivot_root . .old-root
        umount -l /.old-root
        exec /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
                ${FRESH_CCACHE:+CCACHE_DIR=/var/cache/ccache} \
                /bin/sh -c "cd /src/cairn && $2"
}
if [ "${1:-}" = --enter ]; then
        enter "$2" "$3"
fi

# ---- outside ----

[ "$(id -u)" -eq 0 ] || die "mounting and debootstrap need root; run it as root or with sudo"
for tool in debootstrap pivot_root unshare python3; do
        command -v $tool >/dev/null || die "$tool is not installed; run: apt-get install debootstrap util-linux python3"
done
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
base=$dir/bookworm-minbase.tar
root=$dir/root

# The base is made once. Mounts exist only in the namespace of each inner run, so there are none below the root here.
if [ ! -f "$base" ]; then
        say "making a minimal Debian 12 with debootstrap, once"
        rm -rf --one-file-system "$dir/base"
        debootstrap --variant=minbase bookworm "$dir/base" "$mirror" >"$dir/debootstrap.log" 2>&1 ||
                { tail "$dir/debootstrap.log"; die "debootstrap failed"; }
        tar -C "$dir/base" -cf "$base.part" .
        mv "$base.part" "$base"
        rm -rf --one-file-system "$dir/base"
fi
rm -rf --one-file-system "$root"
mkdir -p "$root"
tar -C "$root" -xf "$base"
mkdir -p "$root/src/cairn"
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$root/src/cairn"

# Copies this machine's access to Debian, Python and npm packages: proxies, mirrors, certificate authorities.
copy_settings() {
        cp -L /etc/resolv.conf "$root/etc/resolv.conf"
        for f in pip.conf npmrc; do
                [ ! -e "/etc/$f" ] || cp "/etc/$f" "$root/etc/$f"
        done
        if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
                mkdir -p "$root/usr/local/share/ca-certificates"
                cp /usr/local/share/ca-certificates/*.crt "$root/usr/local/share/ca-certificates/"
        fi
        apt-config dump --format '%F "%v";%n' 2>/dev/null | grep -iE '^Acquire::(https?|ftp)::[^ ]*Proxy' \
                >"$root/etc/apt/apt.conf.d/90host" || true
        # Only Debian's own archive: other package sources of this machine would change the versions found.
        for f in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
                [ -e "$f" ] || continue
                if grep -qi bookworm "$f" && grep -q 'debian-archive-keyring\|^deb .*debian' "$f"; then
                        case $f in
                        /etc/apt/sources.list) cp "$f" "$root/etc/apt/sources.list" ;;
                        *) cp "$f" "$root/etc/apt/sources.list.d/"; rm -f "$root/etc/apt/sources.list" ;;
                        esac
                fi
        done
}
copy_settings

# inside COMMAND: runs it inside; also ends every process that it started.
inside() {
        python3 tests/support/process_tree.py unshare --mount --propagation private \
                sh "$PWD/scripts/check-fresh.sh" --enter "$root" "$1"
}
if [ -n "${FRESH_CCACHE:-}" ]; then
        mkdir -p "$root/var/cache/ccache"
        inside 'apt-get update -qq && apt-get install -y -qq --no-install-recommends ccache' >"$dir/ccache.log" 2>&1 ||
                die "cannot install ccache: see $dir/ccache.log"
fi

# readme_command N: the Nth fenced sh block.
readme_command() {
        awk -v want="$1" '/^```sh$/ { n++; next } /^```$/ { if (n == want) exit; next } n == want' README.md
}
ccache_path=${FRESH_CCACHE:+'PATH=/usr/lib/ccache:$PATH && '}
run_command=$(readme_command 1)
test_command=$(readme_command 2)
[ -n "$run_command" ] && [ -n "$test_command" ] || die "README.md has no two fenced sh blocks"

failed=0
# report NAME STATUS
report() {
        if [ "$2" -eq 0 ]; then say "ok: $1"; else say "FAILED: $1 (status $2)"; failed=1; fi
}
# The demo's debuginfo is uploaded late: the last table names one of its functions with file and line.
shows_demo() { grep -Eq 'demo\.c:[0-9]+' "$1"; }

for what in $only; do
        status=0
        case $what in
        test)
                say "$test_command${FRESH_TESTS:+ TESTS='$FRESH_TESTS'}"
                inside "$ccache_path$test_command${FRESH_TESTS:+ TESTS='$FRESH_TESTS'}" || status=$?
                report "the test command" "$status"
                ;;
        run)
                say "$run_command SECONDS=30"
                inside "$ccache_path$run_command SECONDS=30" >"$dir/run.log" 2>&1 || status=$?
                cat "$dir/run.log"
                [ "$status" -ne 0 ] || shows_demo "$dir/run.log" || { say "no demo.c:LINE in its output"; status=1; }
                report "the main command as root" "$status"
                ;;
        user)
                say "$run_command SECONDS=30, for a user with sudo"
                inside "apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq sudo &&
                        useradd -m newcomer && echo 'newcomer ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/newcomer &&
                        mkdir /home/newcomer/cairn && tar -C /src/cairn --exclude=./build --exclude=./cairn-data -cf - . |
                                tar -C /home/newcomer/cairn -xf - && chown -R newcomer /home/newcomer/cairn &&
                        su newcomer -s /bin/sh -c 'cd /home/newcomer/cairn && $run_command SECONDS=30'" \
                        >"$dir/user.log" 2>&1 || status=$?
                cat "$dir/user.log"
                [ "$status" -ne 0 ] || shows_demo "$dir/user.log" || { say "no demo.c:LINE in its output"; status=1; }
                report "the main command for a user with sudo" "$status"
                ;;
        *) die "FRESH_ONLY accepts test, run and user, not '$what'" ;;
        esac
done
exit "$failed"
