#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands of the README, the quick starts and the integrations, run as a reader would; docs-commands.py has the
# rules.
. tests/e2e/lib.sh
. tests/e2e/venv.sh
for tool in gcc curl jq gdb debuginfod-find; do
        command -v $tool >/dev/null || {
                [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "$tool is not installed: scripts/deps.sh all"
                skip_all "$tool is not installed"
        }
done
can=
command -v go >/dev/null && can=go
"$CAIRN_SAN/cairn-agent" --doctor --sampler perf >/dev/null 2>&1 &&
        perf record -q -e cpu-clock -o "$tmp/perf.data" true >/dev/null 2>&1 && can="$can,perf events"
diag "here are: $can"
report_checks "$PYTHON" tests/e2e/tree/docs-commands.py "$CAIRN_SAN" "$tmp" "$can" README.md docs/quick-starts/*.md \
        docs/integrations.md
done_testing
