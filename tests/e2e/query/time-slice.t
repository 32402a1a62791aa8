#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Threads for short requests have short time slices, so that they preempt queries when they wake up.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip_all "python3 is not installed"
[ "$(python3 tests/e2e/query/time-slice.py $$ | awk '{ print $3 }')" -gt 0 ] ||
        skip_all "this kernel tells no time slices (Linux 6.12 does)"

# slices_of NAME: "NICE SLICE" of these threads, without duplicates.
slices_of() { python3 tests/e2e/query/time-slice.py "$server_pid" | awk -v name="$1" '$1 == name { print $2, $3 }' |
        sort -u; }

start_server --listen-otlp-grpc 127.0.0.1:0
answers 200 '^ok$' 'a request makes a thread of libmicrohttpd known' "$url/healthz"
nice=$(nice)
# A thread sets its slice when it starts.
becomes "$nice 100000" 'ingest has short slices' slices_of ingest
becomes "$nice 100000" 'health checks have short slices' slices_of status
becomes "$nice 100000" 'gRPC has short slices' slices_of grpc
like "$(slices_of MHD-worker)" "^$nice 100000\$" 'a thread that has read a request has short slices'
becomes "$((nice + 10)) $(python3 tests/e2e/query/time-slice.py $$ | awk '{ print $3 }')" \
        'queries have default slices and niceness' slices_of query
stop_server
done_testing
