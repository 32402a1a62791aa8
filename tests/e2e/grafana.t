# SPDX-License-Identifier: Apache-2.0
# deploy/grafana: the dashboard asks for metrics and labels that are there, and the settings of the data source reach a
# service.
. tests/e2e/lib.sh

printf 'reader-secret read\n' >"$tmp/tokens"
start_server --token-file "$tmp/tokens"
python3 tests/e2e/grafana.py "$url" reader-secret >"$tmp/report" 2>"$tmp/report.err"
is $? 0 "all is right"
while read -r line; do
        case $line in
        'ok - '*) pass "${line#ok - }" ;;
        'not ok - '*) fail "${line#not ok - }" ;;
        *) diag "$line" ;;
        esac
done <"$tmp/report"
sed 's/^/# /' "$tmp/report.err"
done_testing
