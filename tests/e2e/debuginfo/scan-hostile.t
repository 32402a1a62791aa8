#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A tree for --scan that another user can write to: files whose reads block, symlink loops, nested archives and
# decompression bombs, invalid names, a tree that changes during the walk, a file system that hangs. The walk ends,
# good files are found, nothing outside the tree is served, and the service stops when requested.
. tests/e2e/lib.sh
for tool in gcc bsdtar zstd python3 curl jq mkfifo; do command -v $tool >/dev/null ||
        skip_all "$tool is not installed"; done

tree=$tmp/tree
mkdir -p "$tree" "$tmp/outside" "$tmp/in"
printf 'int main(void) { return 0; }\n' >"$tmp/program.c"
build() { gcc -Wl,--build-id="0x00000000000000000000000000000000000000$1" -o "$2" "$tmp/program.c"; }
id() { printf '%038d%s' 0 "$1"; }
is_served() { answers 200 . "$2" "$url/buildid/$(id "$1")/executable"; }
is_absent() { answers 404 . "$2" "$url/buildid/$(id "$1")/executable"; }
walk_again() {
        rounds=$(metric cairn_scan_rounds_total)
        kill -USR1 "$server_pid"
        wait_metric cairn_scan_rounds_total $((rounds + 1))
}

build 01 "$tree/good"
build 02 "$tmp/outside/secret"
build 03 "$tmp/in/program"
build 04 "$tree/linked"

# Links, pipes and sockets.
ln -s . "$tree/loop"
ln -s ../tree "$tree/around"
ln -s "$tmp/outside" "$tree/out"
ln "$tree/linked" "$tree/linked-again"
mkfifo "$tree/pipe.deb" "$tree/pipe"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$tree/socket.rpm"
mknod "$tree/zero.tar" c 1 5 2>/dev/null || :
mknod "$tree/tty.deb" c 5 0 2>/dev/null || :

# Names: with a log line, an escape sequence, invalid UTF-8, and of maximum length.
python3 - "$tree" "$tmp/in/program" <<'END'
import os, shutil, sys
tree, program = (os.fsencode(a) for a in sys.argv[1:])
for name in (b"a\n2026-01-01T00:00:00.000Z error store: forged.deb", b"\x1b[31mred\x1b]0;title\x07.rpm",
            b"\xff\xfe.tar", b"n" * 255):
    with open(os.path.join(tree, name), "wb") as f:
        f.write(b"!<arch>\n" + b"broken" * 20)
# Deeper than PATH_MAX.
fd = os.open(tree, os.O_DIRECTORY)
for i in range(40):
    name = b"d" * 200
    os.mkdir(name, dir_fd=fd)
    inner = os.open(name, os.O_DIRECTORY, dir_fd=fd)
    os.close(fd)
    fd = inner
with open(program, "rb") as source:
    out = os.open(b"program", os.O_WRONLY | os.O_CREAT, 0o755, dir_fd=fd)
    os.write(out, source.read())
# Many names in one folder, and a sparse file.
os.mkdir(os.path.join(tree, b"many"))
for i in range(20000):
    os.close(os.open(os.path.join(tree, b"many", b"%d" % i), os.O_CREAT | os.O_WRONLY))
with open(os.path.join(tree, b"hole"), "wb") as f:
    f.write(b"\x7fELF\x02\x01\x01")
    f.truncate(1 << 40)
END

# Nested archives, a bomb, and one that claims more data than it has.
build 05 "$tmp/inner"
bsdtar -c -f "$tmp/1.tar" -C "$tmp" inner
for n in 1 2 3 4 5 6; do
        bsdtar -c --zstd -f "$tmp/$((n + 1)).tar" -C "$tmp" $n.tar
done
cp "$tmp/7.tar" "$tree/nested.tar.zst"
python3 - "$tree" <<'END'
import io, subprocess, sys, tarfile, zlib, gzip
tree = sys.argv[1]
info = tarfile.TarInfo("usr/bin/zeros")
info.size = 3 << 30
z = subprocess.Popen(["zstd", "-q", "-1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
import threading
def feed():
    z.stdin.write(info.tobuf())
    try:
        for _ in range(3 << 10):
            z.stdin.write(bytes(1 << 20))
    except BrokenPipeError:
        pass
    z.stdin.close()
t = threading.Thread(target=feed)
t.start()
data = z.stdout.read()
t.join()
def member(name, data):
    return b"%-16s%-12d%-6d%-6d%-8s%-10d`\n" % (name, 0, 0, 0, b"100644", len(data)) + data + b"\n" * (len(data) & 1)
control = gzip.compress(b"\0" * 1024)
with open(tree + "/bomb.deb", "wb") as f:
    f.write(b"!<arch>\n" + member(b"debian-binary", b"2.0\n") + member(b"control.tar.gz", control)
                + member(b"data.tar.zst", data))
with open(tree + "/liar.deb", "wb") as f:
    f.write(b"!<arch>\n%-16s%-12d%-6d%-6d%-8s%-10d`\nshort" % (b"data.tar.xz", 0, 0, 0, b"100644", 9999999999))
END

start_server --scan "$tree" --scan-interval 0
wait_metric cairn_scan_rounds_total 1
pass "the first walk ends"
is_served 01 "what is good is served"
is_served 04 "a file with two names too"
is_absent 02 "nothing behind a link that leaves the tree is"
is_absent 05 "an archive inside of an archive is not opened"
is "$(grep -c '^2026-01-01' "$server_log")" 0 "no name creates a line of the log"
ok "no escape sequence is in the log" sh -c '! grep -q "$(printf "\033")" "$1"' sh "$server_log"
ok "the log has less than a line for each file" test "$(wc -l <"$server_log")" -lt 200
ok "memory use was small" test "$(peak_memory_kb)" -lt 1500000

# ---- a tree that changes during the walk ----

mkdir "$tree/swapped"
cp "$tmp/in/program" "$tree/swapped/secret"
python3 - "$tree" "$tmp/outside" "$tmp/stop" <<'END' &
import os, sys, time
tree, outside, stop = sys.argv[1:]
folder, aside, file = tree + "/swapped", tree + "/../aside", tree + "/growing"
body = open(tree + "/good", "rb").read()
while not os.path.exists(stop):
    os.rename(folder, aside)
    os.symlink(outside, folder)
    with open(file, "wb") as f:
        f.write(body[:len(body) // 2])
        f.flush()
        f.truncate(100)
        f.write(body)
    os.chmod(tree + "/many", 0)
    os.unlink(folder)
    os.rename(aside, folder)
    os.chmod(tree + "/many", 0o755)
    os.utime(tree + "/good")
END
swapper=$!
background_pids=$swapper
for n in 1 2 3 4 5 6 7 8; do
        walk_again
        request "$url/buildid/$(id 02)/executable"
        [ "$code" = 404 ] || break
done
is "$code" 404 "a folder replaced by a link during the walk is not followed"
: >"$tmp/stop"
wait $swapper
background_pids=
walk_again
is_served 01 "what is good is served still"
is_served 03 "and what came to rest"

# ---- a file system that hangs ----

cat >"$tmp/hang.py" <<'END'
# A file system whose first request is never answered, with the FUSE protocol itself, so that no library is needed.
import ctypes, os, sys, time
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = b"fd=%d,rootmode=40000,user_id=0,group_id=0" % fd
if libc.mount(b"hang", os.fsencode(sys.argv[1]), b"fuse", 0, options):
    sys.exit(1)
request = os.read(fd, 65536)              # FUSE_INIT
reply = (24 + 40).to_bytes(4, "little") + bytes(4) + request[8:16]
reply = (16 + 64).to_bytes(4, "little") + bytes(4) + request[8:16] + (7).to_bytes(4, "little") + (31).to_bytes(4, "little") + bytes(56)
os.write(fd, reply)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]):
    time.sleep(0.05)
END
mkdir "$tree/hung"
stop_server
trap 'umount -l "$tree/hung" 2>/dev/null; cleanup' EXIT
if [ -w /dev/fuse ]; then
        cairn=$CAIRN_BUILD/cairn # a leak sanitizer would wait for each thread
        start_server --scan "$tree" --scan-interval 0
        wait_metric cairn_scan_rounds_total 1
        python3 "$tmp/hang.py" "$tree/hung" "$tmp/mounted" "$tmp/unhang" 2>/dev/null &
        hang=$!
        background_pids=$hang
        until [ -e "$tmp/mounted" ] || ! kill -0 $hang 2>/dev/null; do sleep 0.05; done
        if [ -e "$tmp/mounted" ]; then
                kill -USR1 "$server_pid"
                wait_for "the walk to hang" metric_equals cairn_scan_stalled 1
                ok "while the walk hangs in a file system, the service is healthy" healthy
                is_served 01 "  and serves"
                wait_for "the log, which is written after the metric" grep \
                        -q "'$tree': a file system there has not responded.*umount" "$server_log"
                pass "the log says where and what to do"
                stop_server
        fi
        : >"$tmp/unhang"
        wait $hang
        background_pids=
fi
done_testing
