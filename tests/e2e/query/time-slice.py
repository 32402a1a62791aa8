#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""
time-slice.py PID: a line "NAME NICE SLICE" for each thread of a process, its slice in nanoseconds as sched_getattr(2) tells it
(zero before Linux 6.12).
"""
import ctypes
import errno
import os
import platform
import struct
import sys

SYSCALL = {'x86_64': 315, 'aarch64': 275}[platform.machine()]
LAYOUT = 'IIQiIQQQ'
libc = ctypes.CDLL(None, use_errno=True)

for tid in os.listdir(f'/proc/{sys.argv[1]}/task'):
    buffer = ctypes.create_string_buffer(struct.calcsize(LAYOUT))
    try:
        with open(f'/proc/{sys.argv[1]}/task/{tid}/comm', encoding='utf-8') as name:
            comm = name.read().strip()
    except OSError:
        continue  # the thread has ended
    if libc.syscall(SYSCALL, int(tid), buffer, len(buffer), 0):
        if ctypes.get_errno() == errno.ESRCH:
            continue
        sys.exit(os.strerror(ctypes.get_errno()))
    _, _, _, nice, _, slice_ns, _, _ = struct.unpack(LAYOUT, buffer.raw)
    print(comm, nice, slice_ns)
