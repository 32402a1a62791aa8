# SPDX-License-Identifier: Apache-2.0
"""Batches 1, 2, ... of one sample of value 1 each: store-snapshot.py URL FIRST LAST ACKED [STOP]

Writes the number of the last acknowledged batch to the file ACKED; stops when the file STOP exists.
"""
import http.client
import os
import sys
import urllib.parse

url, first, last, acked = sys.argv[1:5]
stop = sys.argv[5] if len(sys.argv) > 5 else None
connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60)
for number in range(int(first), int(last) + 1):
    connection.request("POST", "/ingest?name=steady&format=folded", "main;work 1\n", {"X-Cairn-Batch": f"{number:032x}"})
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        sys.exit(f"batch {number}: {answer.status}")
    with open(acked + ".new", "w", encoding="ascii") as f:
        f.write(str(number))
    os.rename(acked + ".new", acked)
    if stop and os.path.exists(stop):
        break
