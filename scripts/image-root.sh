#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Makes the file system of the container image: the stripped programs, the libraries that they load, certificates, and
# the user 65532.
#   scripts/image-root.sh BUILD TARGET
set -eu
build=$1 target=$2
mkdir -p "$target/usr/bin" "$target/etc/ssl/certs" "$target/var/lib/cairn" "$target/var/lib/cairn-agent" "$target/run"
install -d -m 1777 "$target/tmp"
for link in lib lib64 bin; do
        mkdir -p "$target/usr/$link"
        ln -sfn "usr/$link" "$target/$link"
done

for program in cairn cairn-agent cairn-upload; do
        strip -o "$target/usr/bin/$program" "$build/$program"
        # strip keeps the build-id, by which gdb and the service find the debuginfo.
done

# copy_library PATH: copies the file under the name by which it is loaded.
copy_library() {
        case $1 in
        /usr/*) to=$target$1 ;;
        *) to=$target/usr$1 ;; # /lib is /usr/lib
        esac
        [ ! -e "$to" ] || return 0
        mkdir -p "${to%/*}"
        cp -L "$1" "$to"
}
# Loaded on demand: the disassembler, and the library that pthread_cancel() and pthread_exit() need.
multiarch=$(gcc -print-multiarch)
for library in /usr/lib/"$multiarch"/libcapstone.so.[0-9] "/lib/$multiarch/libgcc_s.so.1"; do
        [ -e "$library" ] || { echo "image-root: $library is missing" >&2; exit 1; }
        copy_library "$library"
done
for file in "$target"/usr/bin/cairn* "$build/lib/lazy_references.so"; do # the latter: what cairn loads when it calls it
        ldd "$file" | grep -v 'linux-vdso' | grep -o '/[^ ]*'
done | sort -u | while read -r library; do copy_library "$library"; done
cp /etc/ssl/certs/ca-certificates.crt "$target/etc/ssl/certs/"

cat >"$target/etc/passwd" <<'END'
root:x:0:0:root:/root:/usr/sbin/nologin
cairn:x:65532:65532:cairn:/var/lib/cairn:/usr/sbin/nologin
END
cat >"$target/etc/group" <<'END'
root:x:0:
cairn:x:65532:
END
echo 'hosts: files dns' >"$target/etc/nsswitch.conf"
chown 65532:65532 "$target/var/lib/cairn"
