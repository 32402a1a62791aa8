#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the unit file of the service leaves open, as systemd counts it: 0 is nothing, 100 is all.
. tests/e2e/lib.sh
command -v systemd-analyze >/dev/null || skip_all "systemd-analyze is not installed"
[ -x /bin/kill ] || skip_all "/bin/kill of procps, which reloads the service, is not installed"

cp deploy/systemd/cairn.service "$tmp/cairn.service"
sed -i "s|^ExecStart=/usr/bin/cairn|ExecStart=$cairn|; /^Documentation=/d" "$tmp/cairn.service"
ok 'the unit of the service leaves little open' systemd-analyze security --offline=true --threshold=20 "$tmp/cairn.service"
is "$(systemd-analyze verify "$tmp/cairn.service" 2>&1)" '' 'and systemd understands all of it'
done_testing
