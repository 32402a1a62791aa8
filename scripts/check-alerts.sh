#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Checks deploy/prometheus with Prometheus' promtool and runs its tests.
#   scripts/check-alerts.sh BUILD_DIR
set -eu
cd "$(dirname "$0")/.."
promtool=$(scripts/promtool.sh "$1")
"$promtool" check rules deploy/prometheus/alerts.yaml
"$promtool" test rules deploy/prometheus/alerts-test.yaml
