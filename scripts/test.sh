#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs all tests: installs missing Debian packages, builds with sanitizers,
# runs unit tests, fuzz corpora and end-to-end tests.
#   scripts/test.sh [TESTS=tests/e2e/query/query.t]   (passed on to `make check`)
set -eu
cd "$(dirname "$0")/.."
. scripts/as-root.sh
command -v make >/dev/null 2>&1 || as_root sh -c 'apt-get update -qq && apt-get install -y -qq make'
need_packages all
exec make check "$@"
