# SPDX-License-Identifier: Apache-2.0
"""A client of Parca's gRPC protocols, with manually encoded messages (captured from parca-debuginfo 0.12.2).

    parca.py PORT should ID [KEY=VALUE...]          ShouldInitiateUpload: its answer
    parca.py PORT initiate ID SIZE [KEY=VALUE...]   InitiateUpload: the upload id, the strategy
    parca.py PORT upload ID FILE [KEY=VALUE...]     InitiateUpload and Upload
    parca.py PORT finished ID [KEY=VALUE...]        MarkUploadFinished
    parca.py PORT broken ID FILE                    half an upload, "ready"; then the connection ends
    parca.py PORT small ID COUNT                    an upload of messages with one byte each
    parca.py PORT write FILE [KEY=VALUE...]         WriteRaw of one pprof file
    parca.py PORT arrow METHOD                      WriteArrow or Write
    parca.py PORT query METHOD [KEY=VALUE...]       the query API over gRPC; with web=URL over gRPC-Web, as Grafana sends it
    parca.py - pprof FILE BUILD_ID ADDRESS SERVICE  writes a pprof file with a native address

keys of query: query report mode label sum_by inverted bytes kind
keys: force type id_type hash chunk upload_id size first_chunk label normalized token
"""
import re
import struct
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import grpc
from profiles import Strings, blob, num

DEBUGINFO = "/parca.debuginfo.v1alpha1.DebuginfoService/"
PROFILES = "/parca.profilestore.v1alpha1.ProfileStoreService/"


def same(data):
    return data


def read_varint(data, at):
    n = shift = 0
    while True:
        n |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return n, at


def fields(data):
    """The fields of a message by number, the last one of each."""
    found, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        if key & 7 == 1:
            found[key >> 3] = data[at:at + 8]
            at += 8
            continue
        value, at = read_varint(data, at)
        if key & 7 == 2:
            data_at, at = at, at + value
            value = data[data_at:at]
        else:
            assert key & 7 == 0, key
        found[key >> 3] = value
    return found


class Client:
    def __init__(self, port, options):
        self.channel = grpc.insecure_channel(f"localhost:{port}", [("grpc.max_send_message_length", -1)])
        self.options = options
        self.metadata = [("authorization", "Bearer " + options["token"])] if "token" in options else []

    def number(self, name, default=0):
        return int(self.options.get(name, default))

    def unary(self, method, message):
        return self.channel.unary_unary(method, request_serializer=same, response_deserializer=same)(
            message, timeout=60, metadata=self.metadata)

    def stream(self, method, messages):
        return self.channel.stream_unary(method, request_serializer=same, response_deserializer=same)(
            messages, timeout=120, metadata=self.metadata)

    def named(self, *parts):
        """Fields that are not zero, as in proto3."""
        out = b""
        for field, value in parts:
            if value:
                out += num(field, value) if isinstance(value, int) else blob(field, value)
        return out

    def initiate(self, build_id, size):
        answer = self.unary(DEBUGINFO + "InitiateUpload", self.named(
            (1, build_id), (2, size), (3, self.options.get("hash", "2aa4c5b6d4f8e9b1")), (4, self.number("force")),
            (5, self.number("type")), (6, self.number("id_type"))))
        instructions = fields(fields(answer)[1])
        assert instructions[1].decode() == build_id and instructions.get(5, 0) == self.number("type"), instructions
        return instructions

    def info(self, build_id, upload_id):
        return blob(1, self.named((1, build_id), (2, upload_id), (3, self.number("type"))))


def should(c, build_id):
    answer = fields(c.unary(DEBUGINFO + "ShouldInitiateUpload", c.named(
        (1, build_id), (3, c.number("force")), (4, c.number("type")), (5, c.number("id_type")))))
    print("yes" if answer.get(1) else "no", answer[2].decode())


def initiate(c, build_id, size):
    instructions = c.initiate(build_id, int(size))
    print(instructions[2].decode(), "strategy", instructions[3])


def upload(c, build_id, path):
    with open(path, "rb") as f:
        data = f.read()
    size = c.number("size", len(data))
    upload_id = c.options.get("upload_id") or c.initiate(build_id, size)[2].decode()
    chunk = c.number("chunk", 8 << 20)

    def messages():
        if not c.number("first_chunk"):
            yield c.info(build_id, upload_id)
        for at in range(0, len(data), chunk):
            yield blob(2, data[at:at + chunk])

    answer = fields(c.stream(DEBUGINFO + "Upload", messages()))
    assert answer[1].decode() == build_id, answer
    print("OK", answer[2])


def finished(c, build_id):
    print("OK", c.unary(DEBUGINFO + "MarkUploadFinished", c.named((1, build_id), (3, c.number("type")))).hex() or "-")


def broken(c, build_id, path):
    with open(path, "rb") as f:
        data = f.read()
    upload_id = c.initiate(build_id, len(data))[2].decode()

    def messages():
        yield c.info(build_id, upload_id)
        yield blob(2, data[:len(data) // 2])
        sys.stdin.readline()

    call = c.channel.stream_unary(DEBUGINFO + "Upload", request_serializer=same, response_deserializer=same).future(messages())
    print("ready", flush=True)
    sys.stdin.readline()
    call.cancel()


def small(c, build_id, count):
    upload_id = c.initiate(build_id, int(count))[2].decode()

    def messages():
        yield c.info(build_id, upload_id)
        for _ in range(int(count)):
            yield blob(2, b"x")

    print("OK", fields(c.stream(DEBUGINFO + "Upload", messages())))


def write(c, path):
    with open(path, "rb") as f:
        data = f.read()
    labels = blob(1, blob(1, "__name__") + blob(2, "process_cpu"))
    name, value = c.options.get("label", "job=parca").split("=")
    labels += blob(1, blob(1, name) + blob(2, value))
    series = blob(1, labels) + blob(2, blob(1, data) + blob(2, num(1, 3) + blob(2, num(1, 4096) + num(2, 8192))))
    print("OK", c.unary(PROFILES + "WriteRaw", blob(2, series) + c.named((3, c.number("normalized")))).hex() or "-")


def arrow(c, method):
    message = blob(1, b"\xff\xff\xff\xff" + bytes(100))
    if method == "WriteArrow":
        print(c.unary(PROFILES + method, message))
    else:
        for answer in c.channel.stream_stream(PROFILES + method, request_serializer=same, response_deserializer=same)(
                iter([message]), timeout=60, metadata=c.metadata):
            print(answer)


def query_message(c, method):
    """As filled in by Grafana's data source: whole seconds, an Arrow flame graph."""
    now = int(time.time())
    start, end = blob(2, num(1, now - 3600)), blob(3, num(1, now + 60))
    text = c.options.get("query", "")
    if method == "Query":
        merge = blob(1, text) + start + end
        if c.number("mode", 2) == 1:
            side = blob(2, num(1, 1) + blob(2, merge))
            return num(1, 1) + blob(2, blob(1, num(1, 1) + blob(2, blob(1, c.options["base"]) + start + end)) + side) + num(5, c.number("report", 4))
        return num(1, c.number("mode", 2)) + blob(3, merge) + num(5, c.number("report", 5)) + c.named((11, c.number("inverted")))
    if method == "QueryRange":
        return blob(1, text) + start + end + num(4, 1000) + c.named((6, c.options.get("sum_by")))
    return blob(1, c.options["label"]) if "label" in c.options else b""


def web_call(c, method, message):
    """The message, status and text of the response; the request is encoded like connect-go."""
    body = c.options["bytes"].encode() if "bytes" in c.options else struct.pack(">BI", 0, len(message)) + message
    request = urllib.request.Request(
        f"{c.options['web']}/parca.query.v1alpha1.QueryService/{method}", body,
        {"Content-Type": c.options.get("kind", "application/grpc-web+proto"), "X-Grpc-Web": "1", "Grpc-Accept-Encoding": "gzip",
         "User-Agent": "grpc-go-connect/1.10.0 (go1.19.13)", **dict(c.metadata)})
    try:
        answer = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as e:
        return b"", f"HTTP {e.code}"
    assert answer.headers["Content-Type"] == "application/grpc-web+proto"
    data, found = answer.read(), b""
    while data:
        flag, size = struct.unpack(">BI", data[:5])
        frame, data = data[5:5 + size], data[5 + size:]
        if flag == 0x80:
            assert not data
            return found, " ".join(line.split(": ", 1)[1] for line in frame.decode().strip().split("\r\n"))
        found = frame
    return b"", "no trailers"


def path_of(node):
    """Names and values along the last children."""
    value = fields(node)
    name = fields(fields(value[1])[3])[3].decode()
    return f" {name}={value[2]}" + (path_of(value[4]) if 4 in value else "")


def query(c, method):
    message = query_message(c, method)
    if "web" in c.options:
        answer, status = web_call(c, method, message)
        if status != "0":
            print(urllib.parse.unquote(status))
            return
    else:
        answer = c.unary("/parca.query.v1alpha1.QueryService/" + method, message)
    value = fields(answer)
    if method != "Query":
        print(answer.hex() or "-")
    elif 5 in value:
        graph = fields(value[5])
        root = fields(graph[1])
        print("total", value.get(9, 0), graph[3].decode(), root[1], "diff", root.get(2, 0), path_of(root[3]) if 3 in root else "")
    elif 6 in value:
        print("pprof", value[6][:2].hex())
    else:
        row = fields(fields(value[7])[1])
        print("top", fields(fields(row[1])[3])[3].decode(), row[2], row[3])


def pprof(path, build_id, address, service):
    """The file offsets of the mapping differ from its addresses: interpreted as a process address it is another one."""
    strings = Strings()
    cpu, unit, file, id_text, key, name = (strings(s) for s in ("cpu", "nanoseconds", "/usr/bin/program", build_id, "service_name", service))
    body = blob(1, num(1, cpu) + num(2, unit)) + blob(11, num(1, cpu) + num(2, unit)) + num(12, 10000000)
    body += blob(2, num(1, 1) + num(2, 7) + blob(3, num(1, key) + num(2, name)))
    body += blob(3, num(1, 1) + num(2, 0x1000) + num(3, 0x3000) + num(4, 0x2000) + num(5, file) + num(6, id_text))
    body += blob(4, num(1, 1) + num(2, 1) + num(3, address)) + num(9, time.time_ns())
    with open(path, "wb") as f:
        f.write(body + b"".join(blob(6, s) for s in strings.items))


def main():
    port, what, args = sys.argv[1], sys.argv[2], sys.argv[3:]
    if what == "pprof":
        pprof(args[0], args[1], int(args[2], 16), args[3])
        return
    options = dict(a.split("=", 1) for a in args if re.match("[a-z_]+=", a))
    try:
        {"should": should, "initiate": initiate, "upload": upload, "finished": finished, "broken": broken, "small": small,
         "write": write, "arrow": arrow, "query": query}[what](Client(port, options), *(a for a in args if not re.match("[a-z_]+=", a)))
    except grpc.RpcError as e:
        print(e.code().name, e.details())


main()
