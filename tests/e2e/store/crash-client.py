# SPDX-License-Identifier: Apache-2.0
"""Sends numbered batches until every one is acknowledged, across crashes of the service.

    crash-client.py PORT COUNT PROGRESS-FILE

Batch i is one sample of value 1 with the frame "batch-i". A batch without a response is sent again with the same batch
id, like by the agent. The number of acknowledged batches is kept in PROGRESS-FILE.
"""
import http.client
import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import profiles  # noqa: E402

port, count, progress = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
lock = threading.Lock()
todo = iter(range(count))
acknowledged = 0
deadline = time.monotonic() + 240


def send(body, batch):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("POST", "/v1development/profiles", body,
                           {"Content-Type": "application/x-protobuf", "X-Cairn-Batch": "%032x" % batch})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def work():
    global acknowledged
    while True:
        with lock:
            i = next(todo, None)
        if i is None:
            return
        body = profiles.otlp(names=("batch-%06d" % i, "root"), service="crash", values=(1,))
        while True:
            if time.monotonic() > deadline:
                os._exit(2)
            try:
                status = send(body, i + 1)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)  # the service is being restarted
                continue
            if status == 200:
                break
            if status not in (429, 503):
                print("batch", i, "got", status, file=sys.stderr)
                os._exit(1)
        with lock:
            acknowledged += 1
            with open(progress + ".new", "w") as f:
                f.write("%d\n" % acknowledged)
            os.replace(progress + ".new", progress)


threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads:
    t.start()
for t in threads:
    t.join()
