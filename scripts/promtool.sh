#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Prints the path of Prometheus' promtool. If it is not installed, only this program is extracted from Debian's package into the
# build folder: installing the package would start a daemon.
#   scripts/promtool.sh BUILD_DIR
set -eu
dir=$1/promtool

if command -v promtool; then
        exit
fi
if [ ! -x "$dir/usr/bin/promtool" ]; then
        mkdir -p "$dir"
        (
                cd "$dir"
                apt-get download prometheus >&2
                dpkg-deb --fsys-tarfile prometheus_*.deb | tar -xf - ./usr/bin/promtool
                rm prometheus_*.deb
        )
fi
echo "$dir/usr/bin/promtool"
