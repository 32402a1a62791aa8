#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what the agent's options --latency and --off-cpu add to a switch of threads, by `perf bench sched pipe`: two
processes that wake each other. Must run as root.

    switches.py [ROUNDS [OPERATIONS]]      default 12 rounds with 5 runs of 30000 operations for each set of options

In each round the agent runs without options and with each set of options, in random order. An operation is two switches when
both processes are on one CPU, where they have real-time priority, so that others do not take it; on two CPUs an operation
wakes an idle one twice. Printed are the fastest run, and what it takes longer than without options; and the median of the
same losses within each round.
"""
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(HERE, "../../build"))
OPTIONS = ((), ("--latency",), ("--off-cpu",), ("--latency", "--off-cpu"))
RUNS = 5
SWITCHES = 2  # of an operation


def run_pipe(prefix, operations):
    """Nanoseconds of an operation."""
    bench = subprocess.run([*prefix, "perf", "bench", "-f", "simple", "sched", "pipe", "-l", str(operations)],
                           capture_output=True, text=True, check=True)
    return float(bench.stdout) * 1e9 / operations


def measure(options, prefix, operations):
    with tempfile.TemporaryDirectory() as directory:
        agent = subprocess.Popen([os.path.join(BUILD, "cairn-agent"), "--sampler", "bpf", *options, "--output",
                                  os.path.join(directory, "out.otlp"), "--duration", "600"],
                                 stderr=subprocess.PIPE, text=True)
        for line in agent.stderr:
            if "sampling" in line:
                break
        try:
            return min(run_pipe(prefix, operations) for _ in range(RUNS))
        finally:
            agent.terminate()
            agent.communicate()


def compare(title, prefix, rounds, operations):
    times = {options: [] for options in OPTIONS}
    for _ in range(rounds):
        for options in random.sample(OPTIONS, len(OPTIONS)):
            times[options].append(measure(options, prefix, operations))
    print(f"\n{title}\n{'':24}{'ns/operation':>14}{'loss':>8}{'ns/switch':>11}{'median loss':>13}")
    base = min(times[()])
    for options in OPTIONS:
        best = min(times[options])
        median = statistics.median(x / b - 1 for x, b in zip(times[options], times[()]))
        print(f"{' '.join(options) or 'neither':24}{best:14.0f}{best / base - 1:8.1%}{(best - base) / SWITCHES:11.0f}{median:13.1%}")


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    operations = int(sys.argv[2]) if len(sys.argv) > 2 else 30000
    for tool in "perf", "chrt", "taskset":
        if not shutil.which(tool):
            sys.exit(f"{tool} is not installed")
    print(f"perf bench sched pipe, {rounds} rounds with {RUNS} runs of {operations} operations, agent at 19 Hz")
    one_cpu = ("chrt", "-f", "1", "taskset", "-c", str(max(os.sched_getaffinity(0))))
    compare("both processes on one CPU", one_cpu, rounds, operations)
    compare("processes on any CPU", (), rounds, operations)


main()
