# SPDX-License-Identifier: Apache-2.0
"""A TCP proxy that breaks the first connections that send many bytes.

cutting-proxy.py PORT-FILE SERVER-PORT-FILE CUTS BYTES LOG: listens on a free port and writes it to PORT-FILE; connects
to the port that SERVER-PORT-FILE contains at that time. The first CUTS connections are closed after BYTES. LOG gets a
line "cut BYTES" or "whole BYTES" for each connection, with the number of forwarded bytes.
"""
import os
import socket
import sys
import threading

port_file, server_port_file, cuts, limit, log = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
lock = threading.Lock()


def copy(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
    except OSError:
        pass
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client):
    global cuts
    try:
        server = socket.create_connection(("127.0.0.1", int(open(server_port_file).read())))
        data = client.recv(65536)
    except (OSError, ValueError):
        client.close()
        return
    threading.Thread(target=copy, args=(server, client), daemon=True).start()
    cut = False
    passed = 0
    try:
        while data and not cut:
            server.sendall(data)
            passed += len(data)
            with lock:
                cut = passed >= limit and cuts > 0
                cuts -= cut
            if not cut:
                data = client.recv(65536)
    except OSError:
        pass
    with lock, open(log, "a") as f:
        f.write("%s %d\n" % ("cut" if cut else "whole", passed))
    for s in (client, server) if cut else (server,):
        try:
            s.shutdown(socket.SHUT_RDWR if cut else socket.SHUT_WR)
        except OSError:
            pass


listener = socket.create_server(("127.0.0.1", 0))
with open(port_file + ".tmp", "w") as f:
    f.write("%d" % listener.getsockname()[1])
os.rename(port_file + ".tmp", port_file)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
