#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stops the next worker of one kind that a service starts. Prints "ready", then its pid.

usage: catch-worker.py SERVICE-PID KIND [BUT-NOT-PID]
"""
import os
import signal
import sys
import time

service, kind = sys.argv[1], sys.argv[2].encode()
caught_before = [int(pid) for pid in sys.argv[3:]]
end = time.monotonic() + 60


def children():
    for task in os.listdir(f"/proc/{service}/task"):
        try:
            with open(f"/proc/{service}/task/{task}/children", encoding="ascii") as f:
                yield from map(int, f.read().split())
        except OSError:
            pass  # the thread has ended


print("ready", flush=True)
while time.monotonic() < end:
    for pid in children():
        if pid in caught_before:
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
        except OSError:
            continue
        if len(words) > 2 and words[1:3] == [b"worker", kind]:
            os.kill(pid, signal.SIGSTOP)
            print(pid)
            sys.exit(0)
    time.sleep(0.0005)
sys.exit("no worker came")
