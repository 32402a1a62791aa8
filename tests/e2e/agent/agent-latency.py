# SPDX-License-Identifier: Apache-2.0
"""
Judges the latency samples of agent-latency.c.

  agent-latency.py CPU LATENCY [SWITCHES]

CPU, LATENCY: the samples of either type by otlp_dump.py. SWITCHES: of the same time, as perf script prints sched_switch
and its own samples of the CPUs. From the switches follows which threads ran at the moment of each of perf's samples, and
so the latency of each. Some switches are missing without a word (Linux 6.18), so each sample tells, too, what its CPU
runs. Samples, not times: a virtual machine that does not run has no samples. A line of TAP for each check.
"""
import collections
import re
import sys

NAMES = ("serial", "parallel", "queued")
# Of the ratio of latency to CPU time, which is at most 1: five standard errors of the difference of two ratios, each of
# 2000 samples that are 1/2 or 1.
TOLERANCE = 0.04
# Samples while a thread of another phase begins or ends.
EXACT = 0.01


def check(is_ok, name, detail=""):
    print("ok" if is_ok else "not ok", "-", name)
    if not is_ok:
        print("#", detail)


def read_samples(path):
    """Sums by thread name, and the identities of samples."""
    sums, identities = collections.Counter(), set()
    for line in open(path):
        value, labels, frames = line.rstrip("\n").split("\t")
        name = dict(label.split("=", 1) for label in labels.split(";") if "=" in label)["thread.name"]
        sums[name] += int(value)
        identities.add((labels, frames))
    return sums, identities


def read_switches(path):
    """CPU time, and latency, by thread name, in perf's samples."""
    cpu, latency, running = collections.Counter(), collections.Counter(), {}
    missing = 0
    event = re.compile(r"\s*(.*?)\s+(-?\d+)\s+\[(\d+)\]\s")
    switch = re.compile(r"prev_comm=.* prev_pid=\d+ .* ==> next_comm=(.*) next_pid=(\d+) ")
    for line in open(path):
        name, thread, at = event.match(line).groups()
        m = switch.search(line)
        if m:
            name, thread = m.groups()
        else:
            missing += running.get(at) != (thread if name in NAMES else None)
        running.pop(at, None)
        if name in NAMES:
            running[at] = thread
        if name in NAMES and not m:
            cpu[name] += 1
            latency[name] += 1 / len(running)
    print("# switches that perf does not have:", missing)
    return cpu, latency


def main():
    cpu, cpu_samples = read_samples(sys.argv[1])
    latency, latency_samples = read_samples(sys.argv[2])
    check(cpu_samples == latency_samples, "each stack has both values", cpu_samples ^ latency_samples)
    ratios = {name: latency[name] / max(cpu[name], 1) for name in NAMES}
    check(1 - EXACT <= ratios["serial"] <= 1, "one thread: latency is CPU time", ratios)
    check(1 - EXACT <= ratios["queued"] <= 1, "several threads on one CPU: latency is CPU time", ratios)
    check(1 / 2 - EXACT <= ratios["parallel"] <= 1, "two threads: latency is at least half of CPU time", ratios)
    if len(sys.argv) > 3:
        want_cpu, want_latency = read_switches(sys.argv[3])
        for name in NAMES:
            want = want_latency[name] / want_cpu[name]
            check(abs(ratios[name] - want) <= TOLERANCE, f"the ratio of {name} is that of the switches of threads",
                  f"{ratios[name]:.4f}, want {want:.4f}")
        got, want = latency.total() / cpu.total(), want_latency.total() / want_cpu.total()
        check(abs(got - want) <= TOLERANCE, "the sum of latency is the wall clock time in which the process ran",
              f"{got:.4f} of the CPU time, want {want:.4f}")
        print(f"# ratios {ratios}; of all {got:.4f}, by switches {want:.4f}")


main()
