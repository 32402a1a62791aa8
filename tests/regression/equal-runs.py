# SPDX-License-Identifier: Apache-2.0
"""False alarms and power of `cairn gate` on recorded runs: equal-runs.py CAIRN SEEDS RUNS FOLDED...

The files are recordings of one program that did the same work. Of them each seed draws two sides of RUNS, so that there
is nothing to find, and counts the comparisons with an alarm. Then samples of one function, the greatest, are repeated
at random on the side after, so that it costs more by some percent, and the comparisons that name it are counted.
Beside that is the increase that the gate says it would have seen with a probability of 90%.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter

CAIRN, SEEDS, RUNS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
FIRST_SEED = 51000
INCREASES = (0, 5, 10, 20, 40)
LEVEL = 0.05  # of comparisons of equal runs may have an alarm


def read(path):
    """Stacks with their numbers of samples, and the cost of a sample."""
    with open(path, encoding="utf-8", errors="replace") as f:
        run = [(stack, int(cost)) for stack, cost in (line.rsplit(" ", 1) for line in f)]
    period = math.gcd(*(cost for _, cost in run))
    return [(stack, cost // period) for stack, cost in run]


def slow_down(run, function, percent, draws):
    """Each sample of the function counts twice with this probability."""
    for stack, count in run:
        if stack.rsplit(";", 1)[-1] == function:
            count += sum(draws.random() * 100 < percent for _ in range(count))
        yield f"{stack} {count}\n"


def compare(directory, sides, compare_by):
    files = []
    for side, runs in zip("ab", sides):
        for number, run in enumerate(runs):
            files.append(os.path.join(directory, f"{side}-{number:03}.folded"))
            with open(files[-1], "w", encoding="utf-8") as f:
                f.writelines(run)
    said = subprocess.run(
        [CAIRN, "gate", "--base", *files[:RUNS], "--head", *files[RUNS:], "--compare", compare_by, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    if said.returncode not in (0, 1, 3):
        sys.exit(f"cairn gate failed with {said.returncode}")
    return said.returncode, json.loads(said.stdout)


pool = [read(path) for path in sys.argv[4:]]
costs = Counter()
for each in pool:
    for names, samples in each:
        costs[names.rsplit(";", 1)[-1]] += samples
greatest, cost = costs.most_common(1)[0]
print(
    f"# {len(pool)} recorded runs, {sum(costs.values()) / len(pool):.0f} samples each; "
    f"{greatest} has {100 * cost / sum(costs.values()):.0f}%"
)
with tempfile.TemporaryDirectory() as scratch:
    for by in ("shares", "values"):
        for increase in INCREASES:
            alarms = found = others = 0
            seen = []
            for seed in range(FIRST_SEED, FIRST_SEED + SEEDS):
                draw = random.Random(seed)
                drawn = draw.sample(pool, 2 * RUNS)
                code, answer = compare(
                    scratch,
                    [
                        [[f"{s} {n}\n" for s, n in run] for run in drawn[:RUNS]],
                        [list(slow_down(run, greatest, increase, draw)) for run in drawn[RUNS:]],
                    ],
                    by,
                )
                failures = [row["function"] for row in answer["rows"] if row["is_failure"]]
                alarms += code == 1
                found += greatest in failures
                others += any(name != greatest for name in failures)
                seen += [
                    row["smallest_percent"]
                    for row in answer["rows"]
                    if row["function"] == greatest and row.get("smallest_percent")
                ]
            sure = f"{sum(seen) / len(seen):.1f}%" if seen else "none"
            if increase:
                print(
                    f"# {by}, +{increase}%: found in {found} of {SEEDS}; other functions in {others}; "
                    f"the gate would have seen {sure}"
                )
            else:
                print(f"# {by}, equal runs: an alarm in {alarms} of {SEEDS}; the gate would have seen {sure}")
                print(
                    f"{'ok' if alarms <= SEEDS * LEVEL else 'not ok'} - "
                    f"equal runs compared by {by} have an alarm in at most {LEVEL:.0%}"
                )
