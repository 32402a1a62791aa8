# SPDX-License-Identifier: Apache-2.0
"""browser.py DIR SERVICE-PORT BUILD-ID: the sites of an attacker, for browser.t.

A listener on a free port of 127.0.0.1 serves attack.html, which is another origin. A listener on SERVICE-PORT of
127.0.0.2 also serves it and relays all other requests to the service byte by byte: for a browser and the service this
is a name that was rebound to the service's address after the page was loaded (DNS rebinding). The free port is written
to DIR/port.
"""
import http.server
import os
import socket
import sys
import threading

PAGE = """<!DOCTYPE html><title>attack</title><pre id="log"></pre><script>
const service = location.hash.slice(1), log = document.getElementById('log'), pending = [];
const say = (name, what) => log.append(name + ': ' + what + '\\n');
function attempt(name, path, options) {
  pending.push(fetch(service + path, options).then(r => r.text().then(t => say(name, r.type + ' ' + r.status + ' ' + t.slice(0, 60))),
    () => say(name, 'no answer')));
}
function element(name, tag, attributes) {
  pending.push(new Promise(done => {
    const e = Object.assign(document.createElement(tag), attributes);
    e.onload = e.onerror = event => { say(name, event.type); done(); };
    document.body.append(e);
  }));
}
function form(name, path, enctype, field, value) {
  const frame = 'frame-' + name, f = Object.assign(document.createElement('form'), { action: service + path, method: 'POST', enctype, target: frame });
  f.append(Object.assign(document.createElement('input'), { name: field, value }));
  document.body.append(f);
  pending.push(new Promise(done => {
    const i = Object.assign(document.createElement('iframe'), { name: frame });
    document.body.append(i);
    i.onload = () => { say(name, 'loaded'); done(); };
    f.submit();
  }));
}
const ID = 'IDENTIFIER', folded = '/ingest?format=folded&name=evil', plain = { 'Content-Type': 'text/plain' };
const post = (body, headers = plain, mode = 'no-cors') => ({ method: 'POST', mode, headers, body });
attempt('ingest-plain', folded, post('evil;page 3'));
attempt('ingest-form', folded, post('evil;page 3', { 'Content-Type': 'application/x-www-form-urlencoded' }));
attempt('ingest-cors', folded, post('evil;page 3', plain, 'cors'));
attempt('otlp-plain', '/v1development/profiles', post('{"resourceProfiles":[]}'));
attempt('otlp-json', '/v1development/profiles', post('{"resourceProfiles":[]}', { 'Content-Type': 'application/json' }, 'cors'));
attempt('push-plain', '/push.v1.PusherService/Push', post('x'));
attempt('upload', '/api/v1/debuginfo/' + ID + '/debuginfo', { method: 'PUT', mode: 'cors', body: 'x' });
attempt('upload-connect', '/parca.debuginfo.v1alpha1.DebuginfoService/Upload', post('x'));
attempt('delete', '/api/v1/debuginfo/' + ID + '/executable', { method: 'DELETE', mode: 'cors' });
attempt('gc-plain', '/api/v1/debuginfo/gc', post('{"retain":["size=1"]}'));
attempt('gc-json', '/api/v1/debuginfo/gc', post('{"retain":["size=1"]}', { 'Content-Type': 'application/json' }, 'cors'));
attempt('resymbolize-plain', '/api/v1/resymbolize', post('{}'));
attempt('read-list', '/api/v1/debuginfo', { mode: 'cors' });
attempt('read-top', '/api/v1/query/top?from=now-1h', { mode: 'cors' });
attempt('read-metrics', '/metrics', { mode: 'cors' });
element('img-list', 'img', { src: service + '/api/v1/debuginfo' });
element('img-gc', 'img', { src: service + '/api/v1/debuginfo/gc?retain=size%3D1' });
element('script', 'script', { src: service + '/api/v1/query/top?from=now-1h' });
form('form-ingest', folded, 'text/plain', 'evil;page 3\\nevil;field', ' 4');
form('form-gc', '/api/v1/debuginfo/gc', 'text/plain', '{"retain":["size=1"],"x":"', '"}');
form('form-resymbolize', '/api/v1/resymbolize', 'text/plain', '{"x":"', '"}');
say('beacon', navigator.sendBeacon(service + folded, 'evil;beacon 5'));
Promise.all(pending).then(() => say('attempts', 'all made'));
</script>"""

directory, service_port, identifier = sys.argv[1], int(sys.argv[2]), sys.argv[3]
page = PAGE.replace("IDENTIFIER", identifier).encode()


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_):
        pass


def copy(source, to):
    try:
        while data := source.recv(65536):
            to.sendall(data)
        to.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client):
    first = client.recv(65536)
    if first.startswith(b"GET /attack.html "):
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(page) + page)
        client.close()
        return
    service = socket.create_connection(("127.0.0.1", service_port))
    service.sendall(first)
    threading.Thread(target=copy, args=(client, service), daemon=True).start()
    copy(service, client)
    client.close()


def accept(listener):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


rebound = socket.create_server(("127.0.0.2", service_port))
threading.Thread(target=accept, args=(rebound,), daemon=True).start()
other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
with open(directory + "/port.new", "w") as f:
    f.write(str(other.server_address[1]))
os.rename(directory + "/port.new", directory + "/port")
other.serve_forever()
