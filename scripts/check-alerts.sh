#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Has Prometheus' promtool check deploy/prometheus and run its tests. Without promtool, the program alone is taken out of
# Debian's package, which would start a daemon, and kept in the build folder.
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
