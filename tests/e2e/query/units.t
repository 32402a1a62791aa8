#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The exposure level of the systemd units, computed by systemd (0: none, 100: full), and their requirements on the
# programs.
. tests/e2e/lib.sh
command -v systemd-analyze >/dev/null || skip_all "systemd-analyze is not installed"
[ -x /bin/kill ] || skip_all "/bin/kill of procps, which reloads the service, is not installed"

# check_unit NAME PROGRAM EXPOSURE: the maximum exposure.
check_unit() {
        sed "s|^ExecStart=/usr/bin/[a-z-]*|ExecStart=$2|; /^Documentation=/d" "deploy/systemd/$1.service" \
                >"$tmp/$1.service"
        ok "$1 has a low exposure" systemd-analyze security --offline=true --threshold="$3" "$tmp/$1.service"
        is "$(systemd-analyze verify "$tmp/$1.service" 2>&1)" '' "  systemd understands all of $1"
        for setting in Type=notify WatchdogSec= ExecReload= TimeoutStartSec= NoNewPrivileges=yes SystemCallFilter= \
                MemoryDenyWriteExecute=yes; do
                ok "  $setting" grep -q "^$setting" "$tmp/$1.service"
        done
}
checked=0
for unit in deploy/systemd/*.service; do
        case ${unit##*/} in
        cairn.service) check_unit cairn "$cairn" 15 ;;
        # The remaining privileges of root: reading all processes, /proc/kallsyms, /proc/kcore and BPF are its purpose.
        cairn-agent.service) check_unit cairn-agent "$CAIRN_SAN/cairn-agent" 41 ;;
        *) fail "${unit##*/} has a limit here" ;;
        esac
        checked=$((checked + 1))
done
is "$checked" 2 "all units are checked"

# The system calls of the agent are in the list of its unit.
agent=$CAIRN_BUILD/cairn-agent
if command -v strace >/dev/null && command -v python3 >/dev/null && "$agent" --doctor >/dev/null; then
        timeout -s TERM 12 strace -f -qq -o "$tmp/calls" "$agent" --config= --server http://127.0.0.1:9 \
                --spool "$tmp/spool" \
                --interval 2 2>"$tmp/agent.log"
        python3 - deploy/systemd/cairn-agent.service "$tmp/calls" >"$tmp/refused" <<'PYTHON'
import re, subprocess, sys

def expand(words):
    calls = set()
    for word in words:
        if word.startswith("@"):
            lines = subprocess.run(["systemd-analyze", "syscall-filter", word],
                                   capture_output=True, text=True, check=True)
            calls |= expand(w for w in (l.strip() for l in lines.stdout.split("\n")[1:]) if w and w[0] != "#")
        else:
            calls.add(word)
    return calls

allowed = expand(["@default"])
for value in re.findall(r"^SystemCallFilter=(.*)$", open(sys.argv[1]).read(), re.M):
    if value.startswith("~"):
        allowed -= expand(value[1:].split())
    else:
        allowed |= expand(value.split())
used = set(re.findall(r"^\d+ +([a-z0-9_]+)\(", open(sys.argv[2]).read(), re.M))
print(len(used), "used")
print(*sorted(used - allowed))
PYTHON
        like "$(sed -n 1p "$tmp/refused")" '^[5-9][0-9] used|^1[0-9][0-9] used' "the agent's calls are recorded"
        is "$(sed -n 2p "$tmp/refused")" '' "  the agent's unit allows all of its calls"
fi

# ---- credentials, as provided by LoadCredential= ----

mkdir "$tmp/credentials"
printf 'a-secret-of-all admin\n' >"$tmp/credentials/cairn.token-file"
printf 'a-secret-of-another admin\n' >"$tmp/tokens"
export CREDENTIALS_DIRECTORY="$tmp/credentials"
start_server
answers 401 token "a credential is the token file of the service" "$url/metrics"
answers 200 '' "  and its token is taken" -H 'Authorization: Bearer a-secret-of-all' "$url/metrics"
stop_server
like "$("$cairn" config show serve)" \
        "token-file: \"$tmp/credentials/cairn.token-file\"  # credential cairn.token-file" "config show names it"
like "$(CAIRN_TOKEN_FILE=$tmp/tokens "$cairn" config show serve)" "token-file: \"$tmp/tokens\"  # CAIRN_TOKEN_FILE" \
        "  an environment variable overrides the credential"
like "$("$cairn" config show agent)" 'token-file: .*  # credential cairn.token-file' "the agent has credentials too"
done_testing
