# SPDX-License-Identifier: Apache-2.0
"""
Judges the off-CPU samples of agent-waits.c.

  agent-waits.py OUTPUT DUMP UNTRACED [TIMEHIST]

OUTPUT of the program, DUMP of the agent's samples by otlp_dump.py, UNTRACED: the number of waits whose end the kernel
did not trace, counted by the agent. TIMEHIST: of perf sched, of the same time. A line of TAP for each check.
"""
import collections
import re
import sys

PAUSE_NS = 100e6
TOLERANCE = 0.02
# Waits shorter than the stretch of the estimator (bpf/off_cpu.h), which may grow from 4 to 8 ms here, are sampled at
# random: four standard errors of 8 s. The sum of all is exact within a stretch per CPU.
TOLERANCES = {"run_queue": 0.13, "disk": 0.13}


def check(is_ok, name, detail=""):
    print("ok" if is_ok else "not ok", "-", name)
    if not is_ok:
        print("#", detail)


def read_samples(path):
    """Time by thread and reason, and what else the samples of a thread have."""
    times, futexes, stacks = collections.defaultdict(collections.Counter), set(), collections.defaultdict(set)
    for line in open(path):
        value, labels, frames = line.rstrip("\n").split("\t")
        labels = dict(label.split("=", 1) for label in labels.split(";") if "=" in label)
        reason = labels.get("cairn.wait.reason")
        if not reason:
            continue  # CPU time
        times[labels["thread.name"]][reason] += int(value)
        if "cairn.wait.futex" in labels:
            futexes.add((labels["thread.name"], reason, labels["cairn.wait.futex"]))
        stacks[labels["thread.name"]].add(frames)
    return times, futexes, stacks


def read_timehist(path):
    """Time between two turns on a CPU, by thread."""
    times = collections.Counter()
    for line in open(path):
        row = re.match(r"\s*[0-9.]+ +\[\d+\] +(.*)\[\d+/\d+\] +([0-9.]+) +([0-9.]+) +([0-9.]+)", line)
        if row:
            times[row[1]] += float(row[2]) * 1e6
    return times


def main():
    rows = [line.split() for line in open(sys.argv[1])]
    futex, known = rows[0][1], {name: int(ns) for name, ns in rows[1:]}
    times, futexes, stacks = read_samples(sys.argv[2])
    missed_ns = int(sys.argv[3]) * PAUSE_NS
    for reason, want in known.items():
        got, tolerance = times[reason].total(), TOLERANCES.get(reason, TOLERANCE)
        check(want * (1 - tolerance) - missed_ns <= got <= want * (1 + tolerance),
              f"the time of {reason} is within {tolerance:.0%} of the known", f"{got / 1e6:.1f} ms, {want / 1e6:.1f} ms are known")
        # While another thread starts, forks or ends, one may wait for the lock of the address space: at a page fault, or in a
        # system call that is not known to wait.
        locked = times[reason]["page_fault"] + times[reason]["other"]
        check(set(times[reason]) <= {reason, "run_queue", "page_fault", "other"} and 0 < times[reason][reason] > 10 * locked,
              f"the reason of {reason} is right", dict(times[reason]))
    total, want = sum(times[reason].total() for reason in known), sum(known.values())
    check(want * (1 - TOLERANCE / 2) - missed_ns <= total <= want * (1 + TOLERANCE / 2),
          "the sum of all is within 1%", f"{total / 1e6:.1f} ms of {want / 1e6:.1f} ms")
    check({f for f in futexes if f[0] == "futex"} == {("futex", "futex", futex)},
          "waits for one futex have its address", f"{sorted(futexes)}, want {futex}")
    check(all(not f[2] or f[1] == "futex" for f in futexes), "no other wait has the address of a futex", futexes)
    check(all("agent-waits" in frames for reason in known for frames in stacks[reason]),
          "each stack has frames of the program that waits")
    if len(sys.argv) > 4:
        perf = read_timehist(sys.argv[4])
        for reason in known:
            got, tolerance = times[reason].total(), TOLERANCES.get(reason, TOLERANCE)
            if abs(perf[reason] - known[reason]) > 0.01 * known[reason] + missed_ns:
                # Some switches are missing without a word (Linux 6.18), and clocks of CPUs that differ put those of a
                # thread that moves between them into another order.
                print(f"# perf has {perf[reason] / 1e6:.1f} ms of {reason}, the program itself {known[reason] / 1e6:.1f} ms: not compared")
                continue
            check(abs(got - perf[reason]) <= tolerance * perf[reason] + missed_ns,
                  f"perf sched timehist has the time of {reason} within {tolerance:.0%}",
                  f"{got / 1e6:.1f} ms, perf has {perf[reason] / 1e6:.1f} ms")


main()
