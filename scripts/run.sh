#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Profiles this machine: installs missing Debian packages, builds, starts the
# service and the agent, and prints where to look. It changes nothing outside
# this folder except the Debian packages it installs.
#   scripts/run.sh [SECONDS=30] [DEMO=0] [PORT=7700]   (passed on to `make run`)
set -eu
cd "$(dirname "$0")/.."
. scripts/as-root.sh
command -v make >/dev/null 2>&1 || as_root sh -c 'apt-get update -qq && apt-get install -y -qq make'
need_packages build
exec make run "$@"
