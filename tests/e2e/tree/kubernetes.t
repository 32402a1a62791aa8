#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The programs accept the options in deploy/kubernetes, and the service runs with them as the user of the image. `make
# check-kubernetes` validates the files against the schemas of Kubernetes, `make check-image` builds the image.
. tests/e2e/lib.sh
for tool in python3 setpriv curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
python3 -c 'import yaml' 2>/dev/null || skip_all "python3-yaml is not installed"

report_checks python3 tests/e2e/kubernetes.py "$tmp"

# options PROGRAM: the options of its container, one per line, with directories of this machine.
options() {
        sed -e "s|/etc/cairn/tokens/|$tmp/secret/|; s|/etc/cairn/token/|$tmp/secret/|; s|/var/lib/|$tmp/lib/|" \
                -e 's|\$(NODE_NAME)|node-7|' "$tmp/$1.args"
}
mkdir -p "$tmp/secret" "$tmp/lib/cairn" "$tmp/lib/cairn-agent"
printf 'read-token read\nagent-token ingest,upload\n' >"$tmp/secret/tokens"
echo agent-token >"$tmp/secret/agent-token"
options cairn-agent >"$tmp/words"
xargs "$CAIRN_BUILD/cairn-agent" --check-config <"$tmp/words" >"$tmp/out" 2>&1
is $? 0 "the agent takes its options"
options cairn | sed 's/^--listen=.*/--listen=127.0.0.1:0/; s/^--listen-otlp-grpc=.*/--listen-otlp-grpc=127.0.0.1:0/' \
        >"$tmp/words"
user=
if [ "$(id -u)" -eq 0 ]; then
        uid=$(cat "$tmp/uid")
        chmod 755 "$tmp" "$tmp/secret" "$tmp/lib"
        chown -R "$uid:$uid" "$tmp/lib/cairn"
        chmod 440 "$tmp/secret/tokens"
        chgrp "$uid" "$tmp/secret/tokens"
        user="setpriv --reuid $uid --regid $uid --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs --"
fi
# shellcheck disable=SC2086,SC2046  # word splitting is intended
$user "$cairn" $(cat "$tmp/cairn.command") $(cat "$tmp/words") --port-file "$tmp/lib/cairn/port" 2>>"$server_log" &
server_pid=$!
wait_for "the service" test -s "$tmp/lib/cairn/port"
url=http://127.0.0.1:$(cat "$tmp/lib/cairn/port")
while read -r probe; do
        is "$(curl -sS -o /dev/null -w '%{http_code}' "$url$probe")" 200 "a probe of $probe needs no token"
done <"$tmp/probes"
is "$(curl -sS -o /dev/null -w '%{http_code}' "$url/api/v1/query/types")" 401 "another path needs one"
stop_server
done_testing
