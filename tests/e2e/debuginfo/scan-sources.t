#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sources of uploaded debuginfo: from the bundle, otherwise from a scanned tree or package, otherwise from an
# upstream; none exceeds the client's size limit.
. tests/e2e/lib.sh
for tool in gcc objcopy dpkg-deb bsdtar zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

tree=$tmp/tree
mkdir -p "$tree/src" "$tmp/far"
# source NAME TEXT: a file with a function that returns a number.
source_file() { printf 'int %s(void) { return %s; }\n' "$2" "$3" >"$1"; }
# build ID SOURCE OUTPUT [NAME-OF-ITS-FOLDER]
build() {
        gcc -g -O1 -shared -fPIC ${4:+-ffile-prefix-map="$(dirname "$2")=$4"} \
                -Wl,--build-id="0x00000000000000000000000000000000000000$1" -o "$3" "$2"
}
id() { printf '%038d%s' 0 "$1"; }
# package FILE FOLDER: a .deb of the folder.
package() {
        mkdir -p "$2/DEBIAN"
        printf 'Package: x\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: x\n' \
                >"$2/DEBIAN/control"
        dpkg-deb --root-owner-group -b "$2" "$tree/$1" >/dev/null 2>&1
}

# In the tree: a plain source, one without references, a source package, two versions of another one.
source_file "$tree/src/plain.c" plain 1
source_file "$tree/src/unnamed.c" unnamed 2
mkdir -p "$tmp/pack/usr/src/pack-1"; source_file "$tmp/pack/usr/src/pack-1/pack.c" pack 3
bsdtar -c --zstd -f "$tree/pack-source.tar.zst" -C "$tmp/pack" usr
for version in 1 2; do
        mkdir -p "$tmp/v$version/usr/src/twice"
        source_file "$tmp/v$version/usr/src/twice/twice.c" twice "$version"
done
package libtwice-dbgsym_1_all.deb "$tmp/v1"
package other-twice_2_all.deb "$tmp/v2"
# The tree has the executable of one, in a package whose name determines its version.
build 13 "$tmp/v1/usr/src/twice/twice.c" "$tmp/twice" /usr/src/twice
mkdir -p "$tmp/bin/usr/lib"; objcopy --strip-all "$tmp/twice" "$tmp/bin/usr/lib/twice"
package libtwice_1_all.deb "$tmp/bin"
build 11 "$tree/src/plain.c" "$tmp/plain"
build 12 "$tmp/pack/usr/src/pack-1/pack.c" "$tmp/pack.so" "/usr/src/pack-1/sub/.."
# A bundle takes precedence over the tree; and an object that only an upstream has.
source_file "$tree/src/bundled.c" bundled 4
build 14 "$tree/src/bundled.c" "$tmp/bundled"
mkdir "$tmp/elsewhere"; source_file "$tmp/elsewhere/far.c" far 6
build 15 "$tmp/elsewhere/far.c" "$tmp/far.so"

"$cairn" serve --data "$tmp/far/data" --listen 127.0.0.1:0 --port-file "$tmp/far/port" 2>"$tmp/far/log" &
background_pids=$!
wait_for "the upstream" test -s "$tmp/far/port"
far=http://127.0.0.1:$(cat "$tmp/far/port")
upload() { "$CAIRN_BUILD/cairn-upload" --server "$@" >>"$tmp/upload.log" 2>&1; }
ok "an upstream has a program and its sources" upload "$far" --sources "$tmp/elsewhere" "$tmp/far.so"

start_server --scan "$tree" --scan-interval 0 --upstream "$far"
wait_metric cairn_scan_rounds_total 1
answers 404 . "a source of a build-id that nobody knows" "$url/buildid/$(id 11)/source$tree/src/plain.c"
for n in plain pack.so twice; do ok "debuginfo of $n is uploaded" upload "$url" "$tmp/$n"; done

answers 200 'plain.*return 1' "a source in the tree that uploaded debuginfo names" \
        "$url/buildid/$(id 11)/source$tree/src/plain.c"
answers 404 . "and none that it does not name" "$url/buildid/$(id 11)/source$tree/src/unnamed.c"
answers 200 'pack.*return 3' "a source out of a package" "$url/buildid/$(id 12)/source/usr/src/pack-1/pack.c"
answers 200 'pack.*return 3' "  under the name that the debuginfo has" \
        --path-as-is "$url/buildid/$(id 12)/source/usr/src/pack-1/sub/../pack.c"
like "$(curl -sSI "$url/buildid/$(id 12)/source/usr/src/pack-1/pack.c" | tr -d '\r')" \
        "^X-DEBUGINFOD-ARCHIVE: $tree/pack-source.tar.zst\$" "  the response says which archive the source is from"
answers 200 'twice.*return 1' "of two packages with the path the one beside the scanned executable's" \
        "$url/buildid/$(id 13)/source/usr/src/twice/twice.c"

source_file "$tree/src/bundled.c" bundled 5
ok "debuginfo with sources is uploaded" upload "$url" --sources "$tree/src" "$tmp/bundled"
source_file "$tree/src/bundled.c" bundled 7
answers 200 'bundled.*return 5' "an uploaded source comes before the tree's" \
        "$url/buildid/$(id 14)/source$tree/src/bundled.c"

answers 200 . "debuginfo comes from an upstream" "$url/buildid/$(id 15)/debuginfo"
answers 200 'far.*return 6' "a source that only an upstream has" "$url/buildid/$(id 15)/source$tmp/elsewhere/far.c"

# ---- size limit of the client ----

at_most() { answers "$2" . "at most $1 bytes of $3" -H "X-DEBUGINFOD-MAXSIZE: $1" "$url/buildid/$(id "$4")/source$5"; }
size=$(stat -c %s "$tmp/pack/usr/src/pack-1/pack.c")
at_most "$size" 200 "a source of a package" 12 /usr/src/pack-1/pack.c
at_most $((size - 1)) 406 "a source of a package" 12 /usr/src/pack-1/pack.c
at_most 3 406 "a source of a tree" 11 "$tree/src/plain.c"
at_most 3 406 "an uploaded source" 14 "$tree/src/bundled.c"
at_most 3 406 "an upstream's source" 15 "$tmp/elsewhere/far.c"
headers=$(curl -sSI "$url/buildid/$(id 14)/source$tree/src/bundled.c" | tr -d '\r')
like "$headers" "^X-DEBUGINFOD-SIZE: $(stat -c %s "$tree/src/bundled.c")\$" \
        "X-DEBUGINFOD-SIZE says how large a source is"
section=$(readelf -SW "$tmp/plain" | awk '/ \.debug_str / { sub(/.*\.debug_str */, ""); print $4 }')
section=$(printf '%d' "0x$section")
answers 200 . "at most as many bytes as a section has" -H "X-DEBUGINFOD-MAXSIZE: $section" \
        "$url/buildid/$(id 11)/section/.debug_str"
answers 406 . "one byte less" -H "X-DEBUGINFOD-MAXSIZE: $((section - 1))" "$url/buildid/$(id 11)/section/.debug_str"
done_testing
