#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Everything that the documentation refers to exists, and everything is documented: options, routes, metrics, limits,
# files, make targets.
exec python3 tests/e2e/tree/docs.py "${CAIRN_BUILD:-$PWD/build}"
