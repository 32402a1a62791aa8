# SPDX-License-Identifier: Apache-2.0
"""An S3-compatible store behind a proxy that fails requests from a seed. It is moto, or versitygw if CAIRN_TEST_VERSITYGW
has its path; with CAIRN_TEST_S3_DELAY_MS each request takes that long.

    object-store.py serve SEED PORT_FILE [ADDRESS PORT]
                                           runs until it is killed; the file gets the proxy's port (default: a free one of
                                           127.0.0.1)
    object-store.py keys PORT_FILE         services that give keys: instance metadata, a container's and a role's
    object-store.py sum [ADDRESS:]PORT     the sums of the samples table as deltalake reads it: rows, values
    object-store.py doubled [ADDRESS:]PORT rows of locations and stacks beyond the first of their key
    object-store.py read PORT KEY          the content of an object
    object-store.py lock PORT              creates the bucket cairn-locked, which keeps objects for a day
    object-store.py encryption PORT KEY    how an object is encrypted
    object-store.py objects PORT           the rows of the table of objects: kind, quality and name, sorted; and its version

Keys that are given have a number: those of an instance are INSTANCE-1, then INSTANCE-2. Each service refuses a
request without the token that it expects.

The proxy takes orders by path: PUT /-/expire/KEY and /-/forget/KEY let it refuse a key as expired or unknown, PUT
/-/deny and /-/allow whether writes are denied, /-/fill and /-/empty whether a quota is reached, PUT /-/region/NAME sets
where the bucket is, GET /-/key is the last key that was used. PUT /-/faults/PERCENT sets how many requests fail, GET
/-/requests counts those so far by method, PUT /-/away and /-/back refuse all requests and end that; PUT /-/writes/N
does the former after N objects were put. PUT /-/hold lets requests that delete wait until PUT /-/release; GET /-/held
lists the paths of those that wait. PUT /-/ahead/SECONDS makes what was put before old: it sets the clock of answers, or
the times of versitygw's files, since that checks the times of requests. PUT /-/stall/N lets all requests but the next N
wait until PUT /-/resume, PUT /-/stall/commits those that put a file of a Delta log, PUT /-/stall/files those that get a
file of a table; GET /-/stalled counts those that wait, GET /-/stalled/paths their paths. PUT /-/delay/MILLISECONDS lets
each request take that long. PUT /-/mangle/KIND/N changes the answers to the next N requests of a kind: "short" objects
have half of their bytes, "shifted" ranges are one byte further, and "list"s are cut in the middle, all with a
Content-Length that says so; "whole" objects are the answers to ranges; the beginning of "damaged" ones has wrong bytes,
where their key contains a further component of the order; N is 0 to end that. A failing request is refused with 503, or
has its effect while its answer is lost, is 500, or is cut short.
"""
import datetime
import http.client
import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKET = 'cairn-test'
DAMAGED_AT = range(100, 400, 16)  # bytes of an answer: of several columns


class Proxy(BaseHTTPRequestHandler):
    """Passes requests on; state is in the class."""

    protocol_version = 'HTTP/1.1'
    lock = threading.Lock()
    percent = 0
    is_away = False
    writes_left = -1
    is_denied = False
    is_full = False
    resumed = threading.Event()
    resumed.set()
    passing = 0
    stalls = None  # all requests, or 'commits' or 'files'
    stalled = []
    region = None
    last_key = ''
    expired = set()
    unknown = set()
    requests = {}
    released = threading.Event()
    released.set()
    held = []
    ahead_s = 0
    delay_s = 0
    directory = None
    mangling = None
    mangled_left = 0
    damaged_name = ''

    def date_time_string(self, timestamp=None):
        return super().date_time_string((timestamp or time.time()) + Proxy.ahead_s)

    def answer(self, code, body=b'', headers=None):
        self.send_response(code)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def take_order(self):
        word, _, value = self.path.removeprefix('/-/').partition('/')
        if word == 'faults':
            Proxy.percent = float(value)
        elif word in ('away', 'back'):
            Proxy.is_away = word == 'away'
            Proxy.writes_left = -1
        elif word == 'writes':
            Proxy.writes_left = int(value)
        elif word == 'stall':
            Proxy.stalls = value if value in ('commits', 'files') else None
            Proxy.passing = 0 if Proxy.stalls else int(value)
            Proxy.resumed.clear()
        elif word == 'resume':
            Proxy.resumed.set()
        elif word == 'stalled':
            self.answer(200, str(len(set(Proxy.stalled) if value == 'paths' else Proxy.stalled)).encode())
            return
        elif word in ('deny', 'allow'):
            Proxy.is_denied = word == 'deny'
        elif word in ('fill', 'empty'):
            Proxy.is_full = word == 'fill'
        elif word == 'forget':
            Proxy.unknown.add(value)
        elif word == 'expire':
            Proxy.expired.add(value)
        elif word == 'region':
            Proxy.region = value
        elif word in ('hold', 'release'):
            (Proxy.released.clear if word == 'hold' else Proxy.released.set)()
        elif word == 'ahead' and Proxy.directory:
            make_files_older(Proxy.directory, int(value))
        elif word == 'ahead':
            Proxy.ahead_s = int(value)
        elif word == 'mangle':
            Proxy.mangling, Proxy.mangled_left, Proxy.damaged_name = (value + '/').split('/')[:3]
            Proxy.mangled_left = int(Proxy.mangled_left)
        elif word == 'delay':
            Proxy.delay_s = int(value) / 1000
        elif word == 'held':
            self.answer(200, '\n'.join(Proxy.held).encode())
            return
        elif word == 'key':
            self.answer(200, Proxy.last_key.encode())
            return
        self.answer(200, json.dumps(Proxy.requests).encode())

    def may_stall(self):
        if self.stalls == 'commits':
            return self.command == 'PUT' and '/_delta_log/' in self.path
        return not self.stalls or (self.command == 'GET' and self.path.endswith('.parquet'))

    def wait_for_resume(self):
        if self.resumed.is_set() or not self.may_stall():
            return
        with self.lock:
            Proxy.passing -= 1
            if self.passing >= 0:
                return
            Proxy.stalled.append(self.path)
        self.resumed.wait()
        with self.lock:
            Proxy.stalled.remove(self.path)

    def draw_fault(self):
        with self.lock:
            name = 'LIST' if 'list-type=2' in self.path else self.command
            Proxy.requests[name] = Proxy.requests.get(name, 0) + 1
            if self.command == 'PUT' and Proxy.writes_left >= 0:
                Proxy.is_away = Proxy.writes_left == 0
                Proxy.writes_left -= 1
            if Proxy.is_away:
                return 'refused'
            if self.rng.random() * 100 >= Proxy.percent:
                return None
            return self.rng.choice(['refused', 'lost', 'failed', 'cut'])

    def refuse_key(self):
        """Whether the request was answered: its key is refused, or it is for another region."""
        scope = re.search(r'Credential=([^/]+)/[0-9]+/([^/]+)/', self.headers.get('Authorization', ''))
        if not scope:
            return False
        Proxy.last_key = scope[1]
        if Proxy.region and scope[2] != Proxy.region:
            self.answer(400, b'<Error><Code>AuthorizationHeaderMalformed</Code></Error>',
                        {'x-amz-bucket-region': Proxy.region})
        elif scope[1] in Proxy.unknown:
            self.answer(403, b'<Error><Code>InvalidAccessKeyId</Code></Error>')
        elif scope[1] in Proxy.expired:
            self.answer(400, b'<Error><Code>ExpiredToken</Code></Error>')
        elif Proxy.is_denied and self.command not in ('GET', 'HEAD'):
            self.answer(403, b'<Error><Code>AccessDenied</Code></Error>')
        elif Proxy.is_full and self.command in ('PUT', 'POST'):
            self.answer(403, b'<Error><Code>QuotaExceeded</Code></Error>')
        else:
            return False
        return True

    def mangle(self, code, headers, data):
        """The headers and the content of an answer as an order wants them."""
        is_list = 'list-type=2' in self.path
        applies = {'list': is_list, 'short': not is_list, 'shifted': 'Content-Range' in headers,
                   'damaged': self.damaged_name in self.path}
        if self.command != 'GET' or code >= 300 or not data or not applies.get(Proxy.mangling):
            return headers, data
        with self.lock:
            Proxy.mangled_left -= 1
            if Proxy.mangled_left < 0:
                return headers, data
        if Proxy.mangling == 'damaged':
            return headers, bytes(byte ^ (at in DAMAGED_AT) for at, byte in enumerate(data))
        if Proxy.mangling != 'shifted':
            return headers, data[:len(data) // 2]
        first, last, size = re.fullmatch(r'bytes (\d+)-(\d+)/(\d+)', headers['Content-Range']).groups()
        return {**headers, 'Content-Range': f'bytes {int(first) + 1}-{int(last) + 1}/{size}'}, data

    def give_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def forward(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0)))
        if self.path.startswith('/-/'):
            self.take_order()
            return
        self.wait_for_resume()
        time.sleep(Proxy.delay_s)
        if self.refuse_key():
            return
        fault = self.draw_fault()
        if fault == 'refused':
            self.answer(503, b'<Error><Code>SlowDown</Code></Error>')
            return
        if self.command == 'DELETE' and not Proxy.released.is_set():
            Proxy.held.append(self.path)
            Proxy.released.wait()
            Proxy.held.remove(self.path)
        if Proxy.mangling == 'whole' and Proxy.mangled_left > 0 and self.headers['Range']:
            Proxy.mangled_left -= 1
            del self.headers['Range']
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
        size = None if data else response.headers.get('Content-Length')  # of HEAD
        headers = {name.title(): value for name, value in response.getheaders()}
        headers, data = self.mangle(response.status, headers, data)
        self.send_response(response.status)
        for name, value in headers.items():
            if name.lower() not in ('connection', 'transfer-encoding', 'content-length', 'server', 'date'):
                self.send_header(name, value)
        self.send_header('Content-Length', size or str(len(data)))
        self.end_headers()
        self.wfile.write(data[:len(data) // 2] if fault == 'cut' else data)
        if fault == 'cut':
            self.give_up()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = forward

    def log_message(self, *_):
        pass


class KeyService(BaseHTTPRequestHandler):
    """Instance metadata, the keys of a container, and the token service of roles."""

    protocol_version = 'HTTP/1.1'
    given = {}

    def make_keys(self, name):
        self.given[name] = self.given.get(name, 0) + 1
        expires = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
        return f'{name}-{self.given[name]}', expires.strftime('%Y-%m-%dT%H:%M:%SZ')

    def make_json_keys(self, name):
        key, expires = self.make_keys(name)
        return json.dumps({'Code': 'Success', 'Type': 'AWS-HMAC', 'AccessKeyId': key, 'SecretAccessKey': 'secret',
                           'Token': 'session', 'Expiration': expires, 'LastUpdated': expires})

    def make_xml_keys(self, name):
        key, expires = self.make_keys(name)
        return (f'<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{key}'
                f'</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>session</SessionToken>'
                f'<Expiration>{expires}</Expiration></Credentials></AssumeRoleWithWebIdentityResult>'
                f'</AssumeRoleWithWebIdentityResponse>')

    def choose_answer(self, body):
        roles = '/latest/meta-data/iam/security-credentials/'
        has_token = self.headers.get('X-aws-ec2-metadata-token') == 'instance-token'
        if self.command == 'PUT' and self.path == '/latest/api/token':
            return 'instance-token' if self.headers.get('X-aws-ec2-metadata-token-ttl-seconds') else None
        if self.path == roles and has_token:
            return 'cairn-role'
        if self.path == roles + 'cairn-role' and has_token:
            return self.make_json_keys('INSTANCE')
        if self.path == '/container' and self.headers.get('Authorization') == 'container-token':
            return self.make_json_keys('CONTAINER')
        if self.command == 'POST' and 'WebIdentityToken=an.identity' in body and 'RoleArn=arn%3Aaws%3Aiam' in body:
            return self.make_xml_keys('ROLE')
        return None

    def give_keys(self):
        body = self.rfile.read(int(self.headers.get('Content-Length', 0))).decode()
        text = self.choose_answer(body)
        self.send_response(200 if text else 401)
        self.send_header('Content-Length', str(len(text or '')))
        self.end_headers()
        self.wfile.write((text or '').encode())

    do_GET = do_PUT = do_POST = give_keys

    def log_message(self, *_):
        pass


def write_port(port_file, server):
    with open(port_file, 'w', encoding='ascii') as f:
        f.write(f'{server.server_address[1]}\n')


def serve_keys(port_file):
    service = ThreadingHTTPServer(('127.0.0.1', 0), KeyService)
    write_port(port_file, service)
    service.serve_forever()


def make_client(port):
    import boto3
    return boto3.client('s3', endpoint_url=f'http://127.0.0.1:{port}', aws_access_key_id='key',
                        aws_secret_access_key='secret', region_name='us-east-1')


def lock_objects(port):
    client = make_client(port)
    client.create_bucket(Bucket='cairn-locked', ObjectLockEnabledForBucket=True)
    client.put_object_lock_configuration(Bucket='cairn-locked', ObjectLockConfiguration={
        'ObjectLockEnabled': 'Enabled', 'Rule': {'DefaultRetention': {'Mode': 'COMPLIANCE', 'Days': 1}}})


def start_moto():
    from moto.server import ThreadedMotoServer
    store = ThreadedMotoServer('127.0.0.1', 0, verbose=False)
    store.start()
    port = store.get_host_and_port()[1]
    connection = http.client.HTTPConnection('127.0.0.1', port)
    connection.request('PUT', f'/{BUCKET}')
    connection.getresponse().read()
    return port


def make_files_older(directory, seconds):
    for folder, _, names in os.walk(directory):
        for name in names:
            path = f'{folder}/{name}'
            changed = os.stat(path).st_mtime - seconds
            os.utime(path, (changed, changed))


def start_versitygw(program):
    """Its buckets are directories. It ends with this process."""
    directory = tempfile.mkdtemp(dir=os.environ.get('TMPDIR'))
    os.mkdir(f'{directory}/{BUCKET}')
    Proxy.directory = directory
    with socket.create_server(('127.0.0.1', 0)) as probe:
        port = probe.getsockname()[1]
    subprocess.Popen(['setpriv', '--pdeathsig', 'KILL', program, '--access', 'key', '--secret', 'secret', '--port',
                      f'127.0.0.1:{port}', '--quiet', 'posix', directory])
    while True:
        try:
            socket.create_connection(('127.0.0.1', port)).close()
            return port
        except ConnectionRefusedError:
            time.sleep(0.05)


def serve(seed, port_file, address='127.0.0.1', port=0):
    program = os.environ.get('CAIRN_TEST_VERSITYGW')
    Proxy.store_port = start_versitygw(program) if program else start_moto()
    Proxy.rng = random.Random(int(seed))
    Proxy.delay_s = int(os.environ.get('CAIRN_TEST_S3_DELAY_MS', '0')) / 1000
    proxy = ThreadingHTTPServer((address, int(port)), Proxy)
    write_port(port_file, proxy)
    proxy.serve_forever()


def open_table(port, name):
    from deltalake import DeltaTable
    host = port if ':' in port else f'127.0.0.1:{port}'
    options = {'AWS_ENDPOINT_URL': f'http://{host}', 'AWS_ALLOW_HTTP': 'true', 'AWS_REGION': 'us-east-1',
               'AWS_ACCESS_KEY_ID': 'key', 'AWS_SECRET_ACCESS_KEY': 'secret'}
    return DeltaTable(f's3://{BUCKET}/fleet/tables/{name}', storage_options=options)


def print_sum(port):
    table = open_table(port, 'samples').to_pyarrow_table(columns=['value'])
    print(table.num_rows, sum(table['value'].to_pylist()))


def print_doubled(port):
    locations = open_table(port, 'locations').to_pyarrow_table(columns=['location_id'])['location_id'].to_pylist()
    stacks = open_table(port, 'stacks').to_pyarrow_table(columns=['stack_id', 'date']).to_pylist()
    keys = {(row['stack_id'], row['date']) for row in stacks}
    print('locations', len(locations) - len(set(locations)), 'stacks', len(stacks) - len(keys))


def print_object(port, key):
    print(make_client(port).get_object(Bucket=BUCKET, Key=key)['Body'].read().decode())


def print_encryption(port, key):
    head = make_client(port).head_object(Bucket=BUCKET, Key=key)
    print(head.get('ServerSideEncryption'), head.get('SSEKMSKeyId'))


def print_objects(port):
    table = open_table(port, 'objects')
    rows = table.to_pyarrow_table().to_pylist()
    for row in sorted(rows, key=lambda row: (row['kind'], row['build_id'])):
        print(row['kind'], row['quality'], row['name'] or '-')
    print('version', table.version())


if __name__ == '__main__':
    {'serve': serve, 'keys': serve_keys, 'sum': print_sum, 'doubled': print_doubled, 'read': print_object,
     'lock': lock_objects, 'encryption': print_encryption, 'objects': print_objects}[sys.argv[1]](*sys.argv[2:])
