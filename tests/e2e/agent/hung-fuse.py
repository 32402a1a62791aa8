#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system with the executable files "program" and "other" that hangs on request: requests are then read, but
not answered.

usage: hung-fuse.py FILE MOUNT-POINT [DEBUG-FILE], which is served as "program.debug". Prints "mounted", and "opened
NAME" each time that a file was opened. After SIGUSR1 prints "hung" and answers no more; after SIGUSR2 prints "other hung"
and answers no more for this file; after SIGHUP prints "lookups hung" and answers no more who looks for the debug file.
SIGTERM ends it, which also fails pending requests.
"""
import ctypes
import errno
import os
import signal
import struct
import sys

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, BATCH_FORGET = 1, 2, 3, 14, 15, 17, 18, 25, 26, 42
source, mount_point = sys.argv[1:3]
NAMES = {2: "program", 3: "other", 4: "program.debug"}  # by node id
contents = {}
for served_node, path in ((2, source), (3, source), (4, sys.argv[3] if len(sys.argv) > 3 else None)):
    if path:
        with open(path, "rb") as f:
            contents[served_node] = f.read()
is_hung = False
are_lookups_hung = False
hung_nodes = set()


def hang(_signal, _frame):
    global is_hung
    is_hung = True
    print("hung", flush=True)


def hang_other(_signal, _frame):
    hung_nodes.add(3)
    print("other hung", flush=True)


def hang_lookups(_signal, _frame):
    global are_lookups_hung
    are_lookups_hung = True
    print("lookups hung", flush=True)


def attributes(node):
    mode, size = (0o40755, 0) if node == 1 else (0o100755, len(contents[node]))
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, (size + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(opcode, node, body):
    """The bytes of the response, or a negative errno."""
    if opcode == INIT:
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 8, 8, 65536, 1, 32, 0, 0)
    if opcode == LOOKUP:
        for found, name in NAMES.items():
            if found in contents and body.rstrip(b"\0") == name.encode():  # not cached: each access sends a request
                return struct.pack("<QQQQII", found, 0, 0, 0, 0, 0) + attributes(found)
        return -errno.ENOENT
    if opcode == GETATTR:
        return struct.pack("<QII", 0, 0, 0) + attributes(node)
    if opcode == OPEN:
        print("opened", NAMES.get(node), flush=True)
        return struct.pack("<QII", 0, 2, 0)  # FOPEN_KEEP_CACHE: pages already read stay mapped
    if opcode == READ:
        offset, size = struct.unpack_from("<8xQI", body)
        return contents[node][offset:offset + size]
    if opcode == STATFS:
        return struct.pack("<QQQQQIIII24x", 1, 0, 0, 1, 0, 4096, 255, 4096, 0)
    if opcode in (RELEASE, FLUSH):
        return b""
    return -errno.ENOSYS


device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
libc = ctypes.CDLL(None, use_errno=True)
options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions".encode()
if libc.mount(b"cairn-test", mount_point.encode(), b"fuse", 2 | 4, options):  # nosuid, nodev
    sys.exit(f"cannot mount: {os.strerror(ctypes.get_errno())}")
signal.signal(signal.SIGUSR1, hang)
signal.signal(signal.SIGUSR2, hang_other)
signal.signal(signal.SIGHUP, hang_lookups)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
print("mounted", flush=True)
while True:
    try:
        request = os.read(device, 1 << 20)
    except OSError as e:
        sys.exit(0 if e.errno == errno.ENODEV else f"cannot read: {e}")
    _length, opcode, unique, node = struct.unpack_from("<IIQQ", request)
    if is_hung or node in hung_nodes or opcode in (FORGET, BATCH_FORGET):
        continue
    if are_lookups_hung and opcode == LOOKUP and request[40:].rstrip(b"\0") == NAMES[4].encode():
        print("waits for the debug file", flush=True)
        continue
    reply = answer(opcode, node, request[40:])
    error, data = (reply, b"") if isinstance(reply, int) else (0, reply)
    os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
