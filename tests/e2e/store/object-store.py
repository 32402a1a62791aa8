# SPDX-License-Identifier: Apache-2.0
"""An S3-compatible store (moto) behind a proxy that fails requests from a seed.

    object-store.py serve SEED PORT_FILE   runs until it is killed; the file gets the proxy's port
    object-store.py sum PORT               the sums of the samples table as deltalake reads it: rows, values
    object-store.py objects PORT           the rows of the table of objects: kind, quality and name, sorted; and its version

The proxy takes orders by path: PUT /-/faults/PERCENT sets how many requests fail, GET /-/requests counts those so far by
method, PUT /-/away and /-/back refuse all requests and end that. A failing request is refused with 503, or has its
effect while its answer is lost, is 500, or is cut short.
"""
import http.client
import json
import random
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = 'cairn-test'


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on; state is in the class."""

    protocol_version = 'HTTP/1.1'
    lock = threading.Lock()
    percent = 0
    is_away = False
    requests = {}

    def answer(self, code, body=b''):
        self.send_response(code)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def take_order(self):
        word, _, value = self.path.removeprefix('/-/').partition('/')
        if word == 'faults':
            Proxy.percent = int(value)
        elif word in ('away', 'back'):
            Proxy.is_away = word == 'away'
        self.answer(200, json.dumps(Proxy.requests).encode())

    def draw_fault(self):
        with self.lock:
            name = 'LIST' if 'list-type=2' in self.path else self.command
            Proxy.requests[name] = Proxy.requests.get(name, 0) + 1
            if Proxy.is_away:
                return 'refused'
            if self.rng.random() * 100 >= Proxy.percent:
                return None
            return self.rng.choice(['refused', 'lost', 'failed', 'cut'])

    def give_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def forward(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if self.path.startswith('/-/'):
            self.take_order()
            return
        fault = self.draw_fault()
        if fault == 'refused':
            self.answer(503, b'<Error><Code>SlowDown</Code></Error>')
            return
        upstream = http.client.HTTPConnection('127.0.0.1', self.store_port)
        upstream.request(self.command, self.path, body, dict(self.headers))
        response = upstream.getresponse()
        data = response.read()
        if fault == 'lost' or (fault == 'cut' and len(data) < 2):
            self.give_up()
            return
        if fault == 'failed':
            self.answer(500, b'<Error><Code>InternalError</Code></Error>')
            return
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ('connection', 'transfer-encoding', 'content-length', 'server', 'date'):
                self.send_header(name, value)
        self.send_header('Content-Length', response.headers.get('Content-Length', str(len(data))))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if fault == 'cut' else data)
        if fault == 'cut':
            self.give_up()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

    def log_message(self, *_):
        pass


def serve(seed, port_file):
    from moto.server import ThreadedMotoServer
    store = ThreadedMotoServer('127.0.0.1', 0, verbose=False)
    store.start()
    Proxy.store_port = store.get_host_and_port()[1]
    Proxy.rng = random.Random(int(seed))
    connection = http.client.HTTPConnection('127.0.0.1', Proxy.store_port)
    connection.request('PUT', f'/{BUCKET}')
    connection.getresponse().read()
    proxy = ThreadingHTTPServer(('127.0.0.1', 0), Proxy)
    with open(port_file, 'w', encoding='ascii') as f:
        f.write(f'{proxy.server_address[1]}\n')
    proxy.serve_forever()


def open_table(port, name):
    from deltalake import DeltaTable
    options = {'AWS_ENDPOINT_URL': f'http://127.0.0.1:{port}', 'AWS_ALLOW_HTTP': 'true', 'AWS_REGION': 'us-east-1',
               'AWS_ACCESS_KEY_ID': 'key', 'AWS_SECRET_ACCESS_KEY': 'secret'}
    return DeltaTable(f's3://{BUCKET}/fleet/tables/{name}', storage_options=options)


def print_sum(port):
    table = open_table(port, 'samples').to_pyarrow_table(columns=['value'])
    print(table.num_rows, sum(table['value'].to_pylist()))


def print_objects(port):
    table = open_table(port, 'objects')
    rows = table.to_pyarrow_table().to_pylist()
    for row in sorted(rows, key=lambda row: (row['kind'], row['build_id'])):
        print(row['kind'], row['quality'], row['name'] or '-')
    print('version', table.version())


if __name__ == '__main__':
    {'serve': serve, 'sum': print_sum, 'objects': print_objects}[sys.argv[1]](*sys.argv[2:])
