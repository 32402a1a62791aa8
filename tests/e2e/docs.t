#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the documentation names is there, and what is there is named: options, routes, metrics, limits, files, targets.
exec python3 tests/e2e/docs.py "${CAIRN_BUILD:-$PWD/build}"
