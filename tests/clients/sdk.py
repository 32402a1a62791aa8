# SPDX-License-Identifier: Apache-2.0
"""Profiles itself for three seconds with pyroscope-io: sdk.py URL."""
import sys
import time

import pyroscope

pyroscope.configure(application_name="python-sdk", server_address=sys.argv[1], tags={"region": "eu"}, upload_interval=1)
end = time.time() + 3
total = 0
while time.time() < end:
    total += sum(range(1000))
pyroscope.shutdown()
print("ok - the SDK profiled itself")
