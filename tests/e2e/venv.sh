# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# To be sourced by tests that need Python packages:
#       . tests/e2e/venv.sh
# sets PYTHON to an interpreter that has tests/requirements.txt. The packages
# are installed once, into $CAIRN_BUILD/venv, and again when the list changes.
# Without a way to install them the test is skipped, unless
# CAIRN_NEED_ORACLES is set: then it fails.
: "${CAIRN_BUILD:=$PWD/build}"
venv=$CAIRN_BUILD/venv
mkdir -p "$CAIRN_BUILD"
exec 8>"$CAIRN_BUILD/.venv.lock"
flock 8
if ! cmp -s tests/requirements.txt "$venv/requirements.txt"; then
        rm -rf "$venv"
        if python3 -m venv "$venv" >"$CAIRN_BUILD/venv.log" 2>&1 &&
                "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/requirements.txt \
                        >>"$CAIRN_BUILD/venv.log" 2>&1; then
                cp tests/requirements.txt "$venv/requirements.txt"
        elif [ -n "${CAIRN_NEED_ORACLES:-}" ]; then
                echo "Bail out! cannot install tests/requirements.txt, see $CAIRN_BUILD/venv.log"
                exit 1
        else
                echo "1..0 # SKIP cannot install tests/requirements.txt, see $CAIRN_BUILD/venv.log"
                exit 0
        fi
fi
exec 8>&-
# Used by the script that sources this.
# shellcheck disable=SC2034
PYTHON=$venv/bin/python
