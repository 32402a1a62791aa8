# SPDX-License-Identifier: Apache-2.0
# cairn-upload unpacks packages and archives of every compression, and stays inside its temporary folder.
. tests/e2e/lib.sh
for tool in gcc jq bsdtar dpkg-deb python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
build() { gcc -g -Wl,--build-id="0x00000000000000000000000000000000000000$1" -o "$2" "$tmp/program.c"; }
id() { printf '%038d%s' 0 "$1"; }
export TMPDIR="$tmp/scratch"
mkdir "$TMPDIR"
upload() { "$CAIRN_SAN/cairn-upload" --server "$url" --json "$@"; }
# sent ARGUMENT...: build-ids that were sent, with their reported paths.
sent() { upload "$@" 2>"$tmp/err" | jq -c '[.files[] | select(.state == "sent") | [.build_id[-2:], .path]]'; }

start_server

mkdir -p "$tmp/deb/DEBIAN" "$tmp/deb/usr/bin" "$tmp/dist"
printf 'Package: thing\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: x\n' \
        >"$tmp/deb/DEBIAN/control"
build 11 "$tmp/deb/usr/bin/thing"
printf 'no ELF\n' >"$tmp/deb/usr/bin/script"
ln -s /etc/passwd "$tmp/deb/usr/bin/link"
for packing in xz gzip zstd; do
        dpkg-deb -Z$packing --root-owner-group -b "$tmp/deb" "$tmp/dist/thing_$packing.deb" >/dev/null 2>&1
done
is "$(sent "$tmp/dist/thing_xz.deb")" '[["11","thing_xz.deb/usr/bin/thing"]]' "a Debian package"
is "$(ls "$TMPDIR")" '' "nothing stays in the temporary folder"
is "$(upload "$tmp/dist" 2>/dev/null | jq -c '[.files[].state]')" '["already_there"]' \
        "packages in a folder are taken apart too, and known ones are not sent"

mkdir "$tmp/tree"
n=12
for packing in --gzip --bzip2 --xz --lzma --zstd ''; do
        build $n "$tmp/tree/program"
        bsdtar -c $packing -f "$tmp/archive-$n" -C "$tmp" tree
        is "$(sent "$tmp/archive-$n")" "[[\"$n\",\"archive-$n/tree/program\"]]" \
                "a program in a tar archive is sent (${packing:-not compressed})"
        n=$((n + 1))
done
for format in zip cpio newc; do
        build $n "$tmp/tree/program"
        bsdtar -c --format $format -f "$tmp/archive-$n" -C "$tmp" tree
        is "$(sent "$tmp/archive-$n")" "[[\"$n\",\"archive-$n/tree/program\"]]" \
                "a program in an archive of format $format is sent"
        n=$((n + 1))
done

build 31 "$tmp/deb/usr/bin/thing"
dpkg-deb --root-owner-group -b "$tmp/deb" "$tmp/inner.deb" >/dev/null 2>&1
bsdtar -c --zstd -f "$tmp/inner.tar.zst" -C "$tmp" inner.deb
bsdtar -c --format zip -f "$tmp/outer.zip" -C "$tmp" inner.tar.zst
is "$(sent "$tmp/outer.zip")" '[["31","outer.zip/usr/bin/thing"]]' "a package in a tar in a zip"

build 32 "$tmp/tree/program"
is "$(bsdtar -c --gzip -f - -C "$tmp" tree | sent -)" '[["32","stdin-2/tree/program"]]' "an archive on standard input"
build 33 "$tmp/tree/program"
is "$(sent - <"$tmp/tree/program")" '[["33","stdin"]]' "a file on standard input"

# ---- compressed files that are no archives ----
for packing in gzip bzip2 xz lzma zstd; do
        build $n "$tmp/program"
        $packing -c "$tmp/program" >"$tmp/compressed-$n"
        is "$(sent "$tmp/compressed-$n" | jq -c 'map(.[0])')" "[\"$n\"]" "a file compressed with $packing"
        n=$((n + 1))
done
mkdir -p "$tmp/modules/kernel"
echo 'int module(int n) { return n * 3; }' >"$tmp/module.c"
gcc -g -c -o "$tmp/module.o" "$tmp/module.c"
ld -r --build-id="0x$(id 61)" -o "$tmp/module.ko" "$tmp/module.o"
xz -c "$tmp/module.ko" >"$tmp/modules/kernel/module.ko.xz"
ld -r --build-id="0x$(id 62)" -o "$tmp/module.ko" "$tmp/module.o"
zstd -qc "$tmp/module.ko" >"$tmp/modules/kernel/module.ko.zst"
printf 'text\n' | gzip >"$tmp/modules/text.gz"
is "$(sent "$tmp/modules" | jq -c 'map(.[0]) | sort')" '["61","62"]' "compressed modules of a directory"
ld -r --build-id="0x$(id 63)" -o "$tmp/module.ko" "$tmp/module.o"
xz -c "$tmp/module.ko" >"$tmp/modules/kernel/module.ko.xz"
bsdtar -c -f "$tmp/modules.tar" -C "$tmp" modules
is "$(sent "$tmp/modules.tar" | jq -c 'map(.[0])')" '["63"]' "the compressed modules of an archive are sent"
upload "$tmp/modules/text.gz" >/dev/null 2>"$tmp/err"
like "$(cat "$tmp/err")" "no ELF files under" "a compressed text is no ELF file"

# ---- malicious archives ----
build 41 "$tmp/e41"; build 42 "$tmp/e42"; build 43 "$tmp/e43"; build 44 "$tmp/e44"
python3 - "$tmp" <<'EOF'
import io, sys, tarfile
tmp = sys.argv[1]
def add(tar, name, file=None, **kind):
    t = tarfile.TarInfo(name)
    data = open(tmp + "/" + file, "rb").read() if file else b""
    t.size = len(data)
    for k, v in kind.items():
        setattr(t, k, v)
    tar.addfile(t, io.BytesIO(data))
with tarfile.open(tmp + "/evil.tar", "w") as tar:
    add(tar, "../../escaped", "e41")
    add(tar, "a/../../../escaped", "e42")
    add(tar, tmp + "/escaped", "e43")
    add(tar, "door", type=tarfile.SYMTYPE, linkname=tmp)
    add(tar, "door/escaped", "e44")
EOF
is "$(sent "$tmp/evil.tar" | jq -c 'map(.[0])')" '["41","42","43","44"]' "files with paths that lead outside are read"
is "$(find "$tmp" -name 'escaped*')" '' "files with paths that lead outside stay inside the temporary folder"

build 51 "$tmp/tree/program"
bsdtar -c -f "$tmp/cut.tar" -C "$tmp" tree
head -c 9000 "$tmp/cut.tar" >"$tmp/cut2.tar"
build 52 "$tmp/good"
is "$(sent "$tmp/cut2.tar" "$tmp/good")" '[["52","'"$tmp"'/good"]]' "a file beside a damaged archive is sent"
like "$(cat "$tmp/err")" "cut2.tar' cannot be unpacked: " "the damaged archive is named"
upload "$tmp/cut2.tar" "$tmp/good" >/dev/null 2>&1
is $? 2 "the exit code tells"
printf 'text\n' >"$tmp/text.tar"
upload "$tmp/text.tar" >/dev/null 2>"$tmp/err"
like "$(cat "$tmp/err")" "neither an ELF file nor an archive" "a file that is not an archive"

# ---- sparse members: zeros that the archive does not hold ----
# spread FILE SIZE: appends a hole up to this size, which ends with data.
spread() { truncate -s "$(($2 - 4096))" "$1" && head -c 4096 /dev/zero | tr '\0' x >>"$1"; }
mkdir "$tmp/sparse"
for format in gnu posix; do
        build $n "$tmp/sparse/program"
        spread "$tmp/sparse/program" 8388608
        tar --sparse --format=$format -cf "$tmp/sparse.tar" -C "$tmp/sparse" program
        is "$(($(stat -c %s "$tmp/sparse.tar") < 1000000))" 1 "a $format archive of an ELF file with a hole is small"
        is "$(sent "$tmp/sparse.tar" | jq -c 'map(.[0])')" "[\"$n\"]" "  the ELF file with a hole is read with it"
        n=$((n + 1))
        spread "$tmp/sparse/program" 3221225472
        tar --sparse --format=$format -cf "$tmp/sparse.tar" -C "$tmp/sparse" program
        upload "$tmp/sparse.tar" >/dev/null 2>"$tmp/err"
        is $? 2 "  one that announces gigabytes is refused"
        like "$(cat "$tmp/err")" "sparse.tar' unpacks to more than 256 times its size" \
                "  the refusal names the archive and the ratio"
done
build $n "$tmp/sparse/program"
: >"$tmp/sparse/lastlog"
spread "$tmp/sparse/lastlog" 3221225472
tar --sparse -cf "$tmp/sparse.tar" -C "$tmp/sparse" lastlog program
is "$(sent "$tmp/sparse.tar" | jq -c 'map(.[0])')" "[\"$n\"]" "a file beside a large sparse one, which is passed over"
printf 'PK\3\4' >"$tmp/sparse/nested.zip"
spread "$tmp/sparse/nested.zip" 3221225472
tar --sparse -cf "$tmp/sparse.tar" -C "$tmp/sparse" nested.zip
upload "$tmp/sparse.tar" >/dev/null 2>"$tmp/err"
is $? 2 "an archive in an archive that announces gigabytes is refused"
like "$(cat "$tmp/err")" "sparse.tar' cannot be unpacked: .*more than 256 times its size" \
        "  the refusal of the nested archive gives the reason"
is "$(ls "$TMPDIR")" '' "nothing stays in the temporary folder"
done_testing
