# SPDX-License-Identifier: Apache-2.0
# deploy/prometheus: the alerts ask for metrics and labels that are there.
. tests/e2e/lib.sh

report_checks python3 tests/e2e/alerts.py
done_testing
