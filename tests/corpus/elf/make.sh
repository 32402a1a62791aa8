#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes the files of this corpus again (gcc 12, binutils 2.40, python3). The fuzz target replays this script too, as
# bytes.
set -eu
cd "$(dirname "$0")"
mkdir -p good bad
src='int f(int x) { return x * 3; } int _start(void) { return f(2); }'
build() { echo "$src" | gcc -fdebug-prefix-map="$PWD"=. -x c -nostdlib -nostartfiles -Os -Wl,--build-id=sha1 "$@" -; }
build -static -g -o good/static-dwarf.elf
build -shared -fPIC -s -o good/stripped-shared.elf
build -static -g -gz=zlib -o good/static-dwarf-packed.elf
objcopy --only-keep-debug good/static-dwarf.elf good/only-debug.elf
echo "$src" | gcc -fdebug-prefix-map="$PWD"=. -x c -Os -c -ffunction-sections -o good/object.o -
printf '\177ELF' > bad/magic-only.elf
python3 - <<'PY'
import struct
d = bytearray(open('good/static-dwarf.elf', 'rb').read())
shoff, = struct.unpack_from('<Q', d, 40)
def write(name, *edits, cut=None):
    b = bytearray(d)
    for at, fmt, v in edits:
        struct.pack_into(fmt, b, at, v)
    open('bad/' + name + '.elf', 'wb').write(b[:cut])
write('cut-in-section-headers', cut=shoff + 100)
write('cut-in-sections', (40, '<Q', 64), cut=shoff // 2)
write('section-count-wide-wraps', (60, '<H', 0), (shoff + 32, '<Q', 2**64 // 64))
write('section-size-wraps', (shoff + 64 + 32, '<Q', 2**64 - 1))
write('section-entry-too-small', (58, '<H', 8))
write('names-index-out-of-range', (62, '<H', 0x7fff))
write('segment-count-wide-no-sections', (56, '<H', 0xffff), (40, '<Q', 0))
write('class-32-of-a-64', (4, '<B', 1))
write('big-endian-of-a-little', (5, '<B', 2))
write('unknown-class', (4, '<B', 9))
n = struct.unpack_from('<H', d, 60)[0]
for i in range(n):
    at = shoff + 64 * i
    kind, = struct.unpack_from('<I', d, at + 4)
    if kind == 2:
        write('symbols-entry-size-1', (at + 56, '<Q', 1))
        write('symbols-linked-to-themselves', (at + 40, '<I', i))
    if kind == 7:
        off, = struct.unpack_from('<Q', d, at + 24)
        write('note-name-size-wraps', (off, '<I', 0xffffffff))
        write('note-desc-size-wraps', (off + 4, '<I', 0xffffffff))
z = bytearray(open('good/static-dwarf-packed.elf', 'rb').read())
shoff, = struct.unpack_from('<Q', z, 40)
for i in range(struct.unpack_from('<H', z, 60)[0]):
    at = shoff + 64 * i
    flags, off = struct.unpack_from('<Q8xQ', z, at + 8)
    if flags & 0x800:
        b = bytearray(z)
        struct.pack_into('<Q', b, off + 8, 2**63)
        open('bad/packed-size-claims-8-eib.elf', 'wb').write(b)
        b = bytearray(z)
        struct.pack_into('<I', b, off, 2)
        open('bad/packed-zlib-named-zstd.elf', 'wb').write(b)
        break
PY
