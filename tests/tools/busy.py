# SPDX-License-Identifier: Apache-2.0
"""Keeps the interpreter busy for SECONDS with a loop, regular expressions, JSON, and libc's memory functions."""
import json
import re
import sys
import time

TEXT = ' '.join(f'word{i} {i * 7} user{i}@example.org' for i in range(300))
ADDRESS = re.compile(r'(\w+)@(\w+)\.org')


def loop(n):
    total = 0
    for i in range(n):
        total = (total + i * i) % 1000003
    return total


def main():
    end = time.process_time() + float(sys.argv[1])
    record = {'rows': [{'id': i, 'name': f'row {i}', 'values': [i, i / 3, None]} for i in range(200)]}
    while time.process_time() < end:
        loop(20000)
        ADDRESS.findall(TEXT)
        for _ in range(3):
            json.loads(json.dumps(record))
        for _ in range(10):
            (bytes(300000) + b'end').find(b'e')
        sorted(bytes(i % 251 for i in range(5000)) + bytes(20000))


main()
