# SPDX-License-Identifier: Apache-2.0
"""Clients of OTLP over gRPC: grpcio, which real senders use too, and HTTP/2 frames by hand (h2).

    grpc-client.py PORT send [KEY=VALUE...]   one call; prints its code, its message and what RetryInfo says
        message=FILE method=PATH token=TOKEN gzip=1 deflate=1 ca=FILE timeout=SECONDS repeat=N
    grpc-client.py PORT health [SERVICE]      grpc.health.v1
    grpc-client.py PORT stop FILE             half a message, "ready", then, after GOAWAY, the rest
    grpc-client.py PORT hold FILE             half a message, "ready", then waits for the end of the connection
    grpc-client.py PORT timeout               a message that never comes, with grpc-timeout
    grpc-client.py PORT flood KIND            pings, resets, settings or empty until the connection ends
    grpc-client.py PORT idle COUNT            connections that say nothing, "ready", then waits for their end
    grpc-client.py PORT many                  as many calls at one time as one connection may have, then one more
    grpc-client.py PORT untaken COUNT         connections whose answers have no window, then a call of another
    grpc-client.py PORT crowd COUNT           connections without calls, then a call of another
    grpc-client.py PORT headers COUNT         a call with COUNT headers
    grpc-client.py PORT coding NAME           a call with that compression
"""
import base64
import socket
import struct
import sys
import time

import grpc
import h2.config
import h2.connection
import h2.events
import h2.settings
from profiles import blob, num

EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"


def read_file(path):
    with open(path, "rb") as f:
        return f.read()


def same(data):
    return data


def retry_seconds(details, code, text):
    """The seconds of google.rpc.RetryInfo; the rest of the status must agree with the headers."""
    head = num(1, code) + blob(2, text)
    assert details.startswith(head), details
    rest = details[len(head):]
    if not rest:
        return "no"
    for seconds in range(1, 100):
        if rest == blob(3, blob(1, RETRY_INFO) + blob(2, blob(1, num(1, seconds)))):
            return seconds
    raise AssertionError(rest)


def call(port, method, message, options):
    address = f"localhost:{port}"
    big = [("grpc.max_send_message_length", -1)]
    if "ca" in options:
        channel = grpc.secure_channel(address, grpc.ssl_channel_credentials(read_file(options["ca"])), big)
    else:
        channel = grpc.insecure_channel(address, big)
    compression = (grpc.Compression.Gzip if "gzip" in options else
                   grpc.Compression.Deflate if "deflate" in options else None)
    metadata = [("authorization", "Bearer " + options["token"])] if "token" in options else []
    try:
        answer = channel.unary_unary(method, request_serializer=same, response_deserializer=same)(
            message, timeout=float(options.get("timeout", 60)), compression=compression, metadata=metadata)
        print("OK", answer.hex() or "-", answer.decode(errors="replace").replace("\n", " "))
    except grpc.RpcError as e:
        details = dict(e.trailing_metadata() or []).get("grpc-status-details-bin")
        print(e.code().name, e.details(), "retry:",
              retry_seconds(details, e.code().value[0], e.details()) if details else "none")
    channel.close()


class Raw:
    """One connection of HTTP/2, frame by frame."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.events = []
        self.flush()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def headers(self, stream, *more, end=False):
        self.h2.send_headers(stream, [(":method", "POST"), (":scheme", "http"), (":path", EXPORT), (":authority", "x"),
                                      ("content-type", "application/grpc"), ("te", "trailers"), *more], end_stream=end)
        self.flush()

    def receive(self):
        """One read; False at the end of the connection."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        if not data:
            return False
        for event in self.h2.receive_data(data):
            self.events.append(event)
        self.flush()
        return True

    def wait(self, kind):
        """The next event of this kind, or None at the end of the connection."""
        while True:
            for i, event in enumerate(self.events):
                if isinstance(event, kind):
                    del self.events[:i + 1]
                    return event
            if not self.receive():
                return None

    def data(self, stream, data, end=False):
        data = memoryview(data)  # slices are not copies
        while data or end:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size, len(data))
            if data and not room:
                if not self.receive():
                    return
                continue
            self.h2.send_data(stream, bytes(data[:room]), end_stream=end and room == len(data))
            data = data[room:]
            self.flush()
            if not data:
                return

    def answer(self):
        """grpc-status and grpc-message of the next response."""
        event = self.wait((h2.events.TrailersReceived, h2.events.ResponseReceived, h2.events.StreamReset))
        if event is None:
            return "closed"
        if isinstance(event, h2.events.StreamReset):
            return f"reset {int(event.error_code)}"
        headers = dict(event.headers)
        if "grpc-status" not in headers and headers.get(":status") == "200":
            return self.answer()
        details = headers.get("grpc-status-details-bin", "")
        base64.b64decode(details + "=" * (-len(details) % 4), validate=True)
        return f"{headers.get(':status', '')} {headers.get('grpc-status', '')} {headers.get('grpc-message', '')}".strip()


def framed(message):
    return struct.pack(">BI", 0, len(message)) + message


def ready():
    print("ready", flush=True)


def stop(port, path):
    raw = Raw(port)
    body = framed(read_file(path))
    raw.headers(1)
    raw.data(1, body[:len(body) // 2])
    raw.wait(h2.events.SettingsAcknowledged)
    ready()
    print("goaway", int(raw.wait(h2.events.ConnectionTerminated).error_code), flush=True)
    raw.socket.sendall(struct.pack(">I", len(body) - len(body) // 2)[1:] + b"\0\1" + struct.pack(">I", 1) + body[len(body) // 2:])
    raw.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))  # it has closed itself
    seen = b""
    while True:
        try:
            data = raw.socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            break
        seen += data
    kinds = []
    while len(seen) >= 9:
        size = int.from_bytes(seen[:3], "big")
        kinds.append((seen[3], seen[4] & 1))
        seen = seen[9 + size:]
    print("answered" if kinds.count((1, 0)) == 1 and kinds.count((1, 1)) == 1 and (0, 0) in kinds else f"frames {kinds}")


def hold(port, path):
    raw = Raw(port)
    body = framed(read_file(path))
    raw.headers(1)
    raw.data(1, body[:len(body) // 3 * 2])
    raw.wait(h2.events.SettingsAcknowledged)
    ready()
    print(raw.answer())


def timeout(port):
    raw = Raw(port)
    raw.headers(1, ("grpc-timeout", "1500m"))
    raw.data(1, framed(b"x" * 100)[:50])
    print(raw.answer())
    print(raw.answer())


def flood(port, kind):
    raw = Raw(port)
    raw.wait(h2.events.RemoteSettingsChanged)
    try:
        for i in range(5000):
            if kind == "pings":
                raw.socket.sendall(struct.pack(">I", 8)[1:] + b"\6\0" + bytes(4) + bytes(8))
            elif kind == "settings":
                raw.socket.sendall(bytes(3) + b"\4\0" + bytes(4))
            elif kind == "empty":
                if i == 0:
                    raw.headers(1)
                raw.socket.sendall(bytes(3) + b"\0\0" + struct.pack(">I", 1))
            else:
                raw.headers(2 * i + 1)
                raw.h2.reset_stream(2 * i + 1, 8)
                raw.flush()
        while raw.socket.recv(65536):
            pass
    except (BrokenPipeError, ConnectionResetError, h2.exceptions.ProtocolError):
        pass
    print("ended")


def idle(port, count):
    sockets = []
    for _ in range(count):
        sockets.append(socket.create_connection(("127.0.0.1", port), timeout=60))
    ready()
    for s in sockets:
        try:
            while s.recv(65536):
                pass
        except ConnectionResetError:
            pass
    print("ended")


def many(port):
    raw = Raw(port)
    raw.wait(h2.events.SettingsAcknowledged)
    limit = raw.h2.remote_settings.max_concurrent_streams
    for i in range(limit):
        raw.headers(2 * i + 1)
    raw.h2.end_stream(1)
    raw.h2.end_stream(3)
    raw.flush()
    print(limit, raw.answer())
    block = raw.h2.encoder.encode([(":method", "POST"), (":scheme", "http"), (":path", EXPORT), (":authority", "x"),
                                   ("content-type", "application/grpc")])
    for i in range(limit, limit + 3):  # two of these fit
        raw.socket.sendall(struct.pack(">I", len(block))[1:] + b"\1\4" + struct.pack(">I", 2 * i + 1) + block)
    print("goaway", int(raw.wait(h2.events.ConnectionTerminated).error_code))


def untaken(port, count):
    raws = []
    for _ in range(count):
        raw = Raw(port)
        raw.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: 0})
        raw.headers(1)
        raw.data(1, framed(b""), end=True)
        raw.wait(h2.events.ResponseReceived)
        raws.append(raw)
    call(port, EXPORT, b"", {"timeout": 20})


def crowd(port, count):
    sockets = []
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port), timeout=60)
        sockets.append(s)
        try:
            s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4\0" + bytes(4))
            s.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
    call(port, EXPORT, b"", {"timeout": 20})


def headers(port, count):
    raw = Raw(port)
    raw.headers(1, *((f"x-{i}", "y" * 100) for i in range(count)), end=True)
    print(raw.answer())


def coding(port, name):
    raw = Raw(port)
    raw.headers(1, ("grpc-encoding", name))
    print(raw.answer())


def main():
    port, what, args = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if what == "send":
        options = dict(a.split("=", 1) for a in args)
        message = read_file(options["message"]) if "message" in options else b""
        for _ in range(int(options.get("repeat", 1))):
            call(port, options.get("method", EXPORT), message, options)
    elif what == "health":
        call(port, "/grpc.health.v1.Health/Check", blob(1, args[0]) if args else b"", {})
    else:
        {"stop": stop, "hold": hold, "timeout": timeout, "flood": flood, "idle": idle, "many": many, "untaken": untaken, "crowd": crowd,
         "headers": headers, "coding": coding}[what](port, *(int(a) if a.isdigit() else a for a in args))


main()
