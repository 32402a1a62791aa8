#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # expanded by other programs
# Runs as root on a minimal machine with the packages in /packages; prints TAP. See run.
count=0
server=http://127.0.0.1:7700

# ok NAME COMMAND...
ok() {
        name=$1
        shift
        count=$((count + 1))
        if "$@" >/tmp/out 2>&1; then
                echo "ok $count - $name"
        else
                echo "not ok $count - $name"
                tail -40 /tmp/out | sed 's/^/# /'
        fi
}

# within SECONDS COMMAND...
within() {
        tries=$1
        shift
        until "$@"; do
                tries=$((tries - 1))
                [ "$tries" -gt 0 ] || return 1
                sleep 1
        done
}

install_packages() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q "$@"; }
is_active() { systemctl is-active "$1" || { journalctl -n 30 -u "$1"; return 1; }; }
shows() { # PATTERN COMMAND...
        pattern=$1
        shift
        "$@" >/tmp/shown 2>&1
        grep -Eq "$pattern" /tmp/shown || { cat /tmp/shown; return 1; }
}
is_quiet() { ! systemctl is-active "$1"; }

patience=300

# ---- install ----

ok 'the packages install non-interactively' install_packages /packages/first/*.deb
command -v cairn-upload >/dev/null || { echo "Bail out! the packages are not installed"; exit 1; }
ok 'the service runs' within $patience is_active cairn
ok 'the agent runs' within $patience is_active cairn-agent
ok 'the service is ready' within $patience curl -sf "$server/readyz"
ok 'the configuration is valid' cairn config check
ok 'kernel and privileges are sufficient for the agent' cairn-agent --doctor --sampler perf
for page in cairn cairn-doctor cairn-status cairn-serve cairn.yaml cairn-agent cairn-upload cairn-addr2line \
        cairn-symbolizer; do
        ok "man $page" shows cairn man -w "$page"
done
ok 'bash completes options' shows retain-samples bash -c '. /usr/share/bash-completion/completions/cairn
        COMP_WORDS=(cairn serve --re) COMP_CWORD=2; _cairn; echo "${COMPREPLY[@]}"'
ok 'the data is readable only by the service' shows '^7?700$' stat -L -c %a /var/lib/private

# ---- profile, upload, query ----

/packages/spin &
ok 'samples arrive' within $patience shows spin cairn top --from now-10m '{process_executable_name="spin"}'
ok 'debuginfo is uploaded' cairn-upload /packages/spin.debug
ok 'addr2line has a replacement' shows 'Cairn addr2line' /usr/lib/cairn/bin/addr2line --version
ok 'and so has llvm-symbolizer' shows 'Cairn' cairn-symbolizer --version
ok 'the function has its file and line' within $patience shows 'spin_in_c.*spin\.c:[0-9]+|spin\.c:[0-9]+.*spin_in_c' \
        cairn top --from now-10m '{process_executable_name="spin"}'
ok 'the web UI is served' shows '<title>Cairn' curl -s "$server/"

# ---- operate ----

ok 'the status is shown' shows '^http://127.0.0.1:7700 is ready$' cairn status
ok 'the doctor finds no error' shows '^0 errors,' cairn doctor configuration certificates data service
ok 'the service reloads' systemctl reload cairn
ok 'the agent reloads' systemctl reload cairn-agent
ok 'the service logs it' shows 'reload: done' journalctl -u cairn
ok 'and so does the agent' shows 'reload: done' journalctl -u cairn-agent
# give_credential UNIT TEXT: as --token-file.
give_credential() {
        printf '%s\n' "$2" >"/root/$1-token"
        chmod 0600 "/root/$1-token"
        mkdir -p "/etc/systemd/system/$1.service.d"
        printf '[Service]\nLoadCredential=cairn.token-file:/root/%s-token\n' "$1" \
                >"/etc/systemd/system/$1.service.d/credential.conf"
}
take_credentials() {
        rm /etc/systemd/system/cairn.service.d/credential.conf /etc/systemd/system/cairn-agent.service.d/credential.conf
        systemctl daemon-reload && systemctl restart cairn cairn-agent
}
give_credential cairn 'a-secret-of-all admin name=ops'
give_credential cairn-agent a-secret-of-all
systemctl daemon-reload
ok 'both start with a credential' systemctl restart cairn cairn-agent
ok 'the service requires its token' shows '^401$' curl -s -o /dev/null -w '%{http_code}\n' "$server/metrics"
ok 'the agent sends it' within $patience shows '^cairn_ingest_batches_total [1-9]' curl -s \
        -H 'Authorization: Bearer a-secret-of-all' \
        "$server/metrics"
printf '[Service]\nWatchdogSec=3\n' >/etc/systemd/system/cairn.service.d/watchdog.conf
systemctl daemon-reload
systemctl restart cairn
systemctl kill -s STOP cairn
ok 'a service that hangs is restarted' within 60 shows '^NRestarts=[1-9]' systemctl show -p NRestarts cairn
rm /etc/systemd/system/cairn.service.d/watchdog.conf
ok 'both start without credentials' take_credentials
ok 'and the service is ready' within $patience curl -sf "$server/readyz"

# ---- back up, upgrade, restore ----

ok 'a snapshot is taken while the service runs' cairn store snapshot /var/lib/private/copy --data /var/lib/private/cairn
ok 'the snapshot is valid' cairn store verify --data /var/lib/private/copy
ok 'the next version installs' install_packages /packages/next/*.deb
ok 'it is the next version' shows '\+next' dpkg-query -W -f '${Version}' cairn
ok 'the service was restarted and is ready' within $patience curl -sf "$server/readyz"
ok 'the agent runs again' within $patience is_active cairn-agent
ok 'earlier samples are still stored' within $patience shows spin_in_c cairn top --from now-30m \
        '{process_executable_name="spin"}'
mv /var/lib/private/copy /root/copy
cairn serve --data /root/copy --listen 127.0.0.1:7799 --config= 2>/tmp/copy.log &
copy=$!
ok 'a service on the snapshot returns the samples' within $patience shows spin_in_c cairn top \
        --server http://127.0.0.1:7799 --from now-30m '{process_executable_name="spin"}'
kill $copy
wait $copy
rm -rf /root/copy

# ---- remove, purge ----

ok 'the packages are removed' apt-get remove -y -q cairn cairn-agent cairn-symbolizer cairn-upload
ok 'the service is stopped' is_quiet cairn
ok 'the agent is stopped' is_quiet cairn-agent
ok 'the data stays' test -d /var/lib/private/cairn/profiles
ok 'and so does the configuration' test -f /etc/cairn/cairn.yaml
ok 'the packages are purged' apt-get purge -y -q cairn cairn-agent cairn-symbolizer cairn-upload
rm -r /etc/systemd/system/cairn-agent.service.d /etc/systemd/system/cairn.service.d # added by this test
rm /root/cairn-token /root/cairn-agent-token
find / -xdev \( -path /packages -o -path /var/cache/apt -o -path /var/lib/apt -o -path /proc -o -path /tmp -o \
        -path /var/log \) -prune \
        -o -iname '*cairn*' -print >/tmp/left
ok 'no files of them remain' shows '^0$' sh -c 'cat /tmp/left >&2; wc -l </tmp/left'
kill %1 2>/dev/null
echo "1..$count"
