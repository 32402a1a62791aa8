# SPDX-License-Identifier: Apache-2.0
# deploy/ci: the jobs are valid, and their steps run against a service: without a change they pass, with a function that
# is slower they fail, and with too little data they do what each CI has for that. snippets.py has the rules.
. tests/e2e/lib.sh
. tests/e2e/venv.sh
for tool in git gcc make groovy java go shellcheck; do
        command -v $tool >/dev/null || {
                [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "$tool is not installed: scripts/deps.sh all"
                skip_all "$tool is not installed"
        }
done
# actionlint is no package of Debian: without its module the other checks run.
actionlint_version=v1.6.27 # the last one that Debian's Go builds
actionlint=$CAIRN_BUILD/actionlint-$actionlint_version/actionlint
mkdir -p "$tmp/workflow/.github/workflows"
cp deploy/ci/github.yaml "$tmp/workflow/.github/workflows/"
if [ -x "$actionlint" ] || GOFLAGS='' GOBIN=${actionlint%/*} timeout 120 go install \
        github.com/rhysd/actionlint/cmd/actionlint@$actionlint_version >"$tmp/log" 2>&1; then
        ok "actionlint finds nothing in the job of GitHub" "$actionlint" "$tmp/workflow/.github/workflows/github.yaml"
else
        pass "actionlint # SKIP cannot be built: $(tail -1 "$tmp/log")"
fi
cp deploy/ci/gitlab.yaml "$tmp/.gitlab-ci.yml"
ok "the job of GitLab is as its schema says" \
        "$venv/bin/check-jsonschema" --builtin-schema vendor.gitlab-ci "$tmp/.gitlab-ci.yml"

echo "$(openssl rand -hex 16) upload,ingest,read name=ci" >"$tmp/tokens"
chmod 600 "$tmp/tokens"
start_server --token-file "$tmp/tokens"
JAVA_HOME=$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")
export JAVA_HOME
report_checks "$PYTHON" tests/e2e/ci/snippets.py "$CAIRN_BUILD" "$tmp" "$url" "$(sed 's/ .*//' "$tmp/tokens")"
stop_server
done_testing
