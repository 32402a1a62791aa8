#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# /metadata of a service without upstreams responds, also after requests that leave other data on the thread's stack.
. tests/e2e/lib.sh
command -v curl >/dev/null || skip_all "curl is not installed"
start_server
for key in glob file buildid glob glob; do
        curl -sS -o /dev/null "$url/api/v1/query/folded?selector=%7Ba%3D~%22(x%7B1%2C50%7D)%2B%22%7D&from=now-1h&to=now"
        request "$url/metadata?key=$key&value=00aa"
        is "$code" 200 "key $key is answered"
done
ok "the service is healthy" healthy
stop_server
done_testing
