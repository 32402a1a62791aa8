# SPDX-License-Identifier: Apache-2.0
# deploy/prometheus: the metrics and labels used by the alerts exist.
. tests/e2e/lib.sh

report_checks python3 tests/e2e/server/alerts.py
done_testing
