#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Trees of packages and ELF files are served by build-id like by elfutils' debuginfod, and a walk reads only changed
# files.
. tests/e2e/lib.sh
for tool in gcc objcopy dpkg-deb bsdtar zstd debuginfod-find gdb python3 jq pgrep; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

tree=$tmp/tree
mkdir -p "$tree/plain" "$tmp/src" "$tmp/outside"
cat >"$tmp/src/program.c" <<'END'
volatile int sink;
__attribute__((noinline)) int outer_part(int n) { return sink += n * 3; }
int main(int argc, char **argv)
{
        (void)argv;
        return outer_part(argc) < 0;
}
END
# build N FILE [CC-OPTION]...: build-id 0...N
build() { build_n=$1; build_to=$2; shift 2; gcc -g -O1 \
        -Wl,--build-id="0x00000000000000000000000000000000000000$build_n" "$@" -o "$build_to" "$tmp/src/program.c"; }
id() { printf '%038d%s' 0 "$1"; }

find_id=0
find_it() {
        find_id=$((find_id + 1))
        found=$(DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/cache.$find_id debuginfod-find "$@" 2>"$tmp/find.err")
        find_status=$?
}
# package NAME FOLDER: a .deb of the folder.
package() {
        mkdir -p "$2/DEBIAN"
        printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: nobody <n@example.org>\nDescription: x\n' "$1" \
                >"$2/DEBIAN/control"
        dpkg-deb --root-owner-group -b "$2" "$tree/$1.deb" >/dev/null 2>&1
}
walk_again() {
        rounds=$(metric cairn_scan_rounds_total)
        kill -USR1 "$server_pid"
        wait_metric cairn_scan_rounds_total $((rounds + 1))
}

# ---- content of the tree: a program and its debuginfo in two packages, sources in a third; plain files ----

build 11 "$tmp/whole" -ffile-prefix-map="$tmp/src=/usr/src/thing-1/sub/.."
mkdir -p "$tmp/deb/usr/bin" "$tmp/dbg/usr/lib/debug" "$tmp/source/usr/src/thing-1"
objcopy --strip-all "$tmp/whole" "$tmp/deb/usr/bin/thing"
objcopy --only-keep-debug "$tmp/whole" "$tmp/dbg/usr/lib/debug/thing.debug"
cp "$tmp/src/program.c" "$tmp/source/usr/src/thing-1/program.c"
printf 'secret\n' >"$tmp/source/usr/src/thing-1/unnamed.c"
package thing "$tmp/deb"
package thing-dbgsym "$tmp/dbg"
bsdtar -c --zstd -f "$tree/thing-source.tar.zst" -C "$tmp/source" usr
mkdir "$tree/src"
cp "$tmp/src/program.c" "$tree/src/program.c"
build 12 "$tree/plain/program" -ffile-prefix-map="$tmp/src=$tree/src"
printf 'text\n' >"$tree/readme"
n=20
for packing in --gzip --bzip2 --xz --zstd ''; do
        mkdir -p "$tmp/in.$n"; build $n "$tmp/in.$n/program"
        bsdtar -c $packing -f "$tree/archive-$n.tar${packing:+.${packing#--}}" -C "$tmp/in.$n" program
        n=$((n + 1))
done
mv "$tree/archive-20.tar.gzip" "$tree/archive-20.tar.gz"; mv "$tree/archive-21.tar.bzip2" "$tree/archive-21.tar.bz2"
mv "$tree/archive-23.tar.zstd" "$tree/archive-23.tar.zst"
mkdir -p "$tmp/in.25"; build 25 "$tmp/in.25/program"
bsdtar -c --format zip -f "$tree/archive-25.zip" -C "$tmp/in.25" program
if command -v rpmbuild >/dev/null; then
        build 26 "$tmp/in.rpm"
        printf 'Name: t\nVersion: 1\nRelease: 1\nSummary: x\nLicense: x\n%%define __strip /bin/true\n%%define debug_package %%{nil}\n%%description\nx\n%%install\nmkdir -p %%{buildroot}/opt\ncp %s %%{buildroot}/opt/program\n%%files\n/opt/program\n' "$tmp/in.rpm" >"$tmp/t.spec"
        rpmbuild -bb --nodeps --define "_topdir $tmp/rpm" --define "_build_id_links none" "$tmp/t.spec" \
                >"$tmp/rpm.log" 2>&1
        cp "$tmp"/rpm/RPMS/*/*.rpm "$tree/t.rpm"
fi

# ---- and malicious files ----

build 41 "$tmp/e41"; build 42 "$tmp/e42"; build 43 "$tmp/outside/program"; build 44 "$tmp/e44"
python3 - "$tmp" "$tree" <<'END'
import io, sys, tarfile
tmp, tree = sys.argv[1:]
def add(tar, name, file=None, **kind):
    info = tarfile.TarInfo(name)
    for key, value in kind.items():
        setattr(info, key, value)
    data = open(file, 'rb').read() if file else b''
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
with tarfile.open(tree + '/evil.tar', 'w') as tar:
    add(tar, '../../../e41', tmp + '/e41')
    add(tar, '/etc/e42', tmp + '/e42')
    add(tar, 'link', type=tarfile.SYMTYPE, linkname='/etc/passwd')
    add(tar, 'program', type=tarfile.LNKTYPE, linkname='/etc/passwd')
    add(tar, 'device', type=tarfile.CHRTYPE, devmajor=1, devminor=5)
END
ln -s "$tmp/outside/program" "$tree/plain/link"
ln -s "$tmp/outside" "$tree/plain/folder"
head -c 3000 "$tmp/e44" >"$tree/plain/cut-off"
head -c 700 "$tree/thing.deb" >"$tree/truncated.deb"
python3 -c 'import sys, tarfile; i = tarfile.TarInfo("zeros"); i.size = 1408 << 20; sys.stdout.buffer.write(i.tobuf())' |
        zstd -q >"$tree/bomb.tar.zst"
head -c 64M /dev/zero | zstd -q >"$tmp/zeros.zst"
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22; do cat "$tmp/zeros.zst"; done >>"$tree/bomb.tar.zst"
printf '!<arch>\nno archive, but as long as the header of a member has to be, and then some more\n' >"$tree/broken.deb"

# A file with more sections than are indexed, and one that is replaced by another.
build 16 "$tmp/e16"
printf 'the last one\n' >"$tmp/last"
many=$(i=0; while [ $i -lt 900 ]; do printf -- "--add-section .a_section_of_a_long_name.%d=$tmp/last " \
        $i; i=$((i + 1)); done)
# shellcheck disable=SC2086  # many options
objcopy $many "$tmp/e16" "$tree/plain/many-sections"

build 17 "$tree/plain/replaced"

start_server --scan "$tree" --scan-interval 0
wait_metric cairn_scan_rounds_total 1

# ---- sections, before anything was extracted from a package ----

answers 404 . "a section that a package's debuginfo has not" "$url/buildid/$(id 11)/section/.gdb_index"
answers 404 . "a section whose name is longer" "$url/buildid/$(id 11)/section/.debug_line2"
is "$(metric cairn_scan_unpacked_total)" 0 "  is known without extracting the debuginfo from its package"
objcopy -O binary --only-section=.text "$tmp/whole" "$tmp/text"
find_it section "$(id 11)" .text
ok "a section of the executable" cmp "$found" "$tmp/text"
is "$(metric cairn_scan_unpacked_total)" 1 "  extracts that one, and not the debuginfo"
objcopy -O binary --only-section=.debug_info --set-section-flags .debug_info=alloc "$tree/plain/program" "$tmp/info"
find_it section "$(id 12)" .debug_info
ok "a section of a plain file" cmp "$found" "$tmp/info"
find_it section "$(id 16)" .a_section_of_a_long_name.899
ok "the last of 900 sections with long names" cmp "$found" "$tmp/last"
find_it section "$(id 16)" .a_section_of_a_long_name.7
ok "  and another one of them" cmp "$found" "$tmp/last"

# ---- served ----

find_it executable "$(id 11)"
is $find_status 0 "an executable out of a package"
ok "  is it, byte for byte" cmp "$found" "$tmp/deb/usr/bin/thing"
find_it debuginfo "$(id 11)"
is $find_status 0 "debuginfo out of another package"
ok "  is it, byte for byte" cmp "$found" "$tmp/dbg/usr/lib/debug/thing.debug"
objcopy -O binary --only-section=.debug_line --set-section-flags .debug_line=alloc "$tmp/whole" "$tmp/line"
find_it section "$(id 11)" .debug_line
ok "a section of it" cmp "$found" "$tmp/line"
find_it source "$(id 11)" /usr/src/thing-1/sub/../program.c
is $find_status 0 "a source out of an archive, under the name that the debuginfo has"
ok "  is it" cmp "$found" "$tmp/src/program.c"
answers 200 outer_part "and under its plain name" "$url/buildid/$(id 11)/source/usr/src/thing-1/program.c"
answers 404 . "what the debuginfo does not name is nobody's source" \
        "$url/buildid/$(id 11)/source/usr/src/thing-1/unnamed.c"
answers 404 . "nor is a file of the tree" "$url/buildid/$(id 12)/source$tree/readme"
find_it source "$(id 12)" "$tree/src/program.c"
ok "a source in the tree itself" cmp "$found" "$tmp/src/program.c"
find_it debuginfo "$(id 12)"
ok "a plain file is debuginfo" cmp "$found" "$tree/plain/program"
find_it executable "$(id 12)"
ok "  and executable" cmp "$found" "$tree/plain/program"
headers=$(curl -sS --head "$url/buildid/$(id 11)/debuginfo" | tr -d '\r')
like "$headers" '^X-DEBUGINFOD-FILE: /usr/lib/debug/thing.debug$' "X-DEBUGINFOD-FILE names the member"
like "$headers" "^X-DEBUGINFOD-ARCHIVE: $tree/thing-dbgsym.deb\$" "X-DEBUGINFOD-ARCHIVE names the package"
like "$headers" "^X-DEBUGINFOD-SIZE: $(stat -c %s "$tmp/dbg/usr/lib/debug/thing.debug")\$" \
        "X-DEBUGINFOD-SIZE is that of the member"
for n in 20 21 22 23 24 25; do
        find_it debuginfo "$(id $n)"
        ok "out of $(cd "$tree" && echo archive-$n.*)" cmp "$found" "$tmp/in.$n/program"
done
if [ -e "$tree/t.rpm" ]; then
        find_it debuginfo "$(id 26)"
        ok "out of an .rpm" cmp "$found" "$tmp/in.rpm"
fi
is "$(curl -sS "$url/api/v1/debuginfo" | jq -c .objects)" '[]' "none of it was copied into the store"
unpacked=$(metric cairn_scan_unpacked_total)
for i in 1 2 3 4 5 6 7 8; do curl -sS -o "$tmp/same.$i" "$url/buildid/$(id 11)/debuginfo" & done
wait_for "eight downloads" cmp "$tmp/same.8" "$tmp/dbg/usr/lib/debug/thing.debug"
is "$(metric cairn_scan_unpacked_total)" "$unpacked" "an extracted file is cached"

printf 'set confirm off\nbreak outer_part\nrun\nbt\nlist\n' >"$tmp/gdb.commands"
gdb=$(DEBUGINFOD_URLS=$url DEBUGINFOD_CACHE_PATH=$tmp/cache.gdb gdb -q -batch -nx -iex 'set debuginfod enabled on' \
        -x "$tmp/gdb.commands" "$tmp/deb/usr/bin/thing" 2>&1)
like "$gdb" 'outer_part \(n=1\) at /usr/src/thing-1/' "gdb stops in a stripped program, with lines"
like "$gdb" 'return sink \+= n \* 3' "  gdb shows the source out of the archive"

# ---- refused files, with a reason ----

answers 404 . "a member whose path leaves the archive" "$url/buildid/$(id 41)/debuginfo"
is "$(metric 'cairn_scan_errors_total{reason="odd_path"}')" 1 "  a member whose path leaves the archive is counted"
find_it debuginfo "$(id 42)"
ok "a member with an absolute path is an ordinary member" cmp "$found" "$tmp/e42"
answers 404 . "what a link in the tree leads to outside" "$url/buildid/$(id 43)/debuginfo"
answers 404 . "a file that is cut off" "$url/buildid/$(id 44)/debuginfo"
is "$(metric 'cairn_scan_errors_total{reason="too_big"}')" 1 "a bomb is counted"
is "$(metric 'cairn_scan_errors_total{reason="damaged"}')" 3 "as are a truncated file and two damaged packages"
like "$(cat "$server_log")" "bomb.tar.zst': .*more than 256 times its size" "the log reports the bomb"
like "$(cat "$server_log")" "truncated.deb': .*cannot be unpacked" "the log reports the truncated package"
like "$(cat "$server_log")" "evil.tar': 1 member has a path that leaves the archive" \
        "the log reports the archive with paths outside of it"

# ---- changes ----

files=$(find "$tree" -type f | wc -l)
is "$(metric cairn_scan_files_read_total)" "$files" "the first walk reads every file"
walk_again
is "$(metric cairn_scan_files_read_total)" "$files" "a walk reads nothing when nothing changed"
is "$(metric cairn_scan_files_seen_total)" $((2 * files)) "  though it sees every file"
build 13 "$tree/plain/program"
rm "$tree/archive-25.zip"
mkdir "$tree/new" && build 14 "$tree/new/program"
walk_again
is "$(metric cairn_scan_files_read_total)" $((files + 2)) "a walk reads one changed and one new file"
is "$(metric cairn_scan_files_gone_total)" 1 "a walk counts the removed file as gone"
answers 404 . "what was in the changed file is gone" "$url/buildid/$(id 12)/debuginfo"
answers 404 . "what was in the vanished one too" "$url/buildid/$(id 25)/debuginfo"
answers 200 . "the changed file" "$url/buildid/$(id 13)/debuginfo"
answers 200 . "the new file" "$url/buildid/$(id 14)/debuginfo"
answers 202 asked "a walk is asked for over HTTP" -X POST "$url/api/v1/debuginfo/scan"
wait_metric cairn_scan_rounds_total 4
echo >>"$tree/new/program"
answers 404 . "a file that is not what it was when it was scanned is not served" "$url/buildid/$(id 14)/debuginfo"
answers 404 . "nor is a section of it" "$url/buildid/$(id 14)/section/.debug_info"
answers 200 . "a section" "$url/buildid/$(id 17)/section/.debug_info"
cp -p "$tree/plain/replaced" "$tmp/replaced" && mv "$tmp/replaced" "$tree/plain/replaced"
answers 404 . "is not served of another file in its place, of the same size and time" \
        "$url/buildid/$(id 17)/section/.debug_info"

# ---- symbols of stored stacks ----

build 15 "$tmp/late"
address() { nm "$tmp/late" | awk -v name="$1" '$3 == name { print $1 }'; }
folded() {
        curl -sS -G "$url/api/v1/query/folded" --data-urlencode 'selector={service_name="late"}' \
                --data-urlencode from=now-1h \
                --data-urlencode to=now
}
python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(id 15)" service=late values=7 \
        "addresses=$(address outer_part),$(address main)" mapping_file=late
request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
is "$code" 200 "samples of an unknown program"
unlike "$(folded)" outer_part "have no names"
mkdir "$tmp/late.d" && objcopy --only-keep-debug "$tmp/late" "$tmp/late.d/late.debug"
package late-dbgsym "$tmp/late.d"
is "$(metric cairn_resymbolize_rounds_total)" 0 "nothing was re-symbolized yet"
walk_again
wait_metric cairn_resymbolize_rounds_total 1
like "$(folded)" '^main;outer_part 7$' "the samples get names from a package that arrives later"
wait_for "the index" metric_equals cairn_index_queue 0
is "$(metric cairn_objects_indexed_total)" 1 "nothing else of the tree was indexed"

# Files in archives cannot be read while the unpacking process is stopped.
in_archive() { bsdtar -c -f "$tree/$1.tar" -C "$tmp" "$1"; }
stop_unpacking() { fork_server=$(pgrep -P "$server_pid" -x cairn-forkserv); kill -STOP "$fork_server"; }
build 18 "$tmp/asked"; in_archive asked
gcc -g -O1 -Wl,--build-id=0x00a1b2c3d4e5f600 -o "$tmp/short" "$tmp/src/program.c"; in_archive short
walk_again
symbolized() {
        curl -sS -H 'Content-Type: application/json' "$url/api/v1/symbolize" \
                -d "{\"objects\":[{\"build_id\":\"$(id 18)\",\"addresses\":[\"0x$(nm "$tmp/asked" |
                awk '$3 == "outer_part" { print $1 }')\"]}]}"
}
has_name() { symbolized | grep -q outer_part; }
stop_unpacking
like "$(symbolized)" pending "a request for an address of a tree's object reports that it is being indexed"
kill -CONT "$fork_server"
wait_for "its name" has_name
pass "  and then its name"

# Mozilla's API has only the first sixteen bytes, swapped; a shorter build-id is padded with zeros.
wait_for "the index" metric_equals cairn_index_queue 0
indexed=$(metric cairn_objects_indexed_total)
symbolicated() { # DEBUG-ID FILE
        curl -sS "$url/symbolicate/v5" \
                -d "{\"memoryMap\":[[\"x\",\"$1\"],[\"unused\",\"000000000000000000000000000000000\"]],
                \"stacks\":[[[0,$(printf '%d' "0x$(nm "$2" | awk '$3 == "outer_part" { print $1 }')")]]]}"
}
has_names() { symbolicated "$1" "$2" | grep -q '"function":"outer_part"'; }
stop_unpacking
unlike "$(symbolicated C3B2A100E5D400F600000000000000000 "$tmp/short")" outer_part \
        "who asks for an address as the Firefox Profiler does gets none at first"
kill -CONT "$fork_server"
wait_for "the name of a short build-id" has_names C3B2A100E5D400F600000000000000000 "$tmp/short"
pass "  and then its name, of a short build-id"
wait_for "the index" metric_equals cairn_index_queue 0
is "$(metric cairn_objects_indexed_total)" $((indexed + 1)) "  no unreferenced module was indexed"
gcc -g -O1 -Wl,--build-id=0x0102030405060708090a0b0c0d0e0f1011121314 -o "$tree/plain/profiled" "$tmp/src/program.c"
walk_again
wait_for "the name of a long build-id" has_names 0403020106050807090A0B0C0D0E0F100 "$tree/plain/profiled"
pass "  and of a long one"
wait_for "the index" metric_equals cairn_index_queue 0
is "$(metric cairn_objects_indexed_total)" $((indexed + 2)) "  no other module was indexed"
answers 200 . "so it is for who asks why" "$url/api/v1/why?build_id=$(id 14)&address=0x1000"
wait_metric cairn_objects_indexed_total $((indexed + 3))

# ---- the fork server is killed in the middle of a job ----

stop_server
start_server --scan "$tree" --scan-interval 0
wait_metric cairn_scan_rounds_total 1
stop_unpacking
curl -sS -o "$tmp/of.fork_server" "$url/buildid/$(id 11)/debuginfo" &
asking=$!
begun() { find "$data/scan" -path '*unpacked*' -type f | grep -q .; }
wait_for "the worker's file" begun
kill -KILL "$fork_server"
wait $asking
ok "the request still gets the member" cmp "$tmp/of.fork_server" "$tmp/dbg/usr/lib/debug/thing.debug"

# ---- restart ----

stop_server
start_server --scan "$tree" --scan-interval 0
wait_metric cairn_scan_rounds_total 1
is "$(metric cairn_scan_files_read_total)" 0 "after a restart no file is read again"
find_it debuginfo "$(id 11)"
ok "and everything is served" cmp "$found" "$tmp/dbg/usr/lib/debug/thing.debug"
stop_server
start_server --scan "$tree/new"
wait_metric cairn_scan_rounds_total 1
answers 404 . "a tree that is no longer scanned is served no more" "$url/buildid/$(id 11)/debuginfo"
stop_server

# ---- a tree that contains the service's own directory ----

cp "$tree/thing-dbgsym.deb" "$tree/new"
data=$tree/new/data
start_server --scan "$tree/new" --scan-interval 0
wait_metric cairn_scan_rounds_total 1
objects=$(metric cairn_scan_objects)
find_it debuginfo "$(id 11)"
is $find_status 0 "a tree may hold the directory of the service"
walk_again
is "$(metric cairn_scan_objects)" "$objects" "extracted files are not walked"
stop_server

# ---- compressed ELF files, in a tree and in an archive ----

mkdir "$tmp/compressed" "$tmp/modules"
build 71 "$tmp/compressed.so"
build 72 "$tmp/module.ko"
xz -c "$tmp/compressed.so" >"$tmp/compressed/compressed.so.xz"
zstd -qc "$tmp/module.ko" >"$tmp/modules/module.ko.zst"
bsdtar -c -f "$tmp/compressed/modules.tar" -C "$tmp" modules
# Also by the program without a sanitizer: only that one loads libraries when it calls them.
for cairn in "$CAIRN_SAN/cairn" "$CAIRN_BUILD/cairn"; do
        data=$tmp/compressed-data-$(basename "$(dirname "$cairn")")
        start_server --scan "$tmp/compressed" --scan-interval 0
        wait_metric cairn_scan_rounds_total 1
        for file in 71:compressed.so 72:module.ko; do
                find_it debuginfo "$(id ${file%:*})"
                ok "a compressed file is served as it was: ${file#*:}" cmp "$found" "$tmp/${file#*:}"
        done
        stop_server
done
done_testing
