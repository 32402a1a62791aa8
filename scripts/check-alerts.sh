#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks deploy/prometheus with Prometheus' promtool and runs its tests. If promtool is not installed, only the program is
# extracted from Debian's package into the build folder; installing the package would start a daemon.
#   scripts/check-alerts.sh BUILD_DIR
set -eu
cd "$(dirname "$0")/.."
dir=$1/promtool

if command -v promtool >/dev/null; then
        promtool=promtool
else
        promtool=$dir/usr/bin/promtool
        if [ ! -x "$promtool" ]; then
                mkdir -p "$dir"
                (cd "$dir" && apt-get download prometheus && dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xf - ./usr/bin/promtool && rm prometheus_*.deb)
        fi
fi
"$promtool" check rules deploy/prometheus/alerts.yaml
"$promtool" test rules deploy/prometheus/alerts-test.yaml
