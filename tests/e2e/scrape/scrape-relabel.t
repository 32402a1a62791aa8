#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Relabelling with random expressions, replacements and texts, compared with Go's regexp, which Prometheus uses.
# SEEDS="5 6" selects others.
. tests/e2e/lib.sh

command -v go >/dev/null || { [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "go is needed"; \
        skip_all "go is not installed"; }
cat >"$tmp/expand.go" <<'END'
package main

import (
	"encoding/json"
	"os"
	"regexp"
)

type question struct{ Pattern, Replacement, Text string }

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		panic(err)
	}
	answers := []string{}
	for _, q := range questions {
		expression := regexp.MustCompile("^(?:" + q.Pattern + ")$")
		answer := ""
		if found := expression.FindStringSubmatchIndex(q.Text); found != nil {
			answer = string(expression.ExpandString(nil, q.Replacement, q.Text, found))
		}
		answers = append(answers, answer)
	}
	json.NewEncoder(os.Stdout).Encode(answers)
}
END
mkdir -p "$CAIRN_BUILD/go-cache"
HOME=$tmp GOCACHE=$CAIRN_BUILD/go-cache GO111MODULE=off go build -o "$tmp/expand" "$tmp/expand.go" ||
        bail_out "the judge does not build"
cat >"$tmp/relabel.py" <<'END'
import json, random, subprocess, sys

cairn, judge, folder, seed = sys.argv[1:]
random.seed(int(seed))
JOBS, RULES, TEXTS = 5, 20, 30


def atom(depth):
    kind = random.randrange(10 if depth else 6)
    if kind < 3:
        return random.choice("abc")
    if kind < 6:
        return random.choice([".", "[ab]", "[^a]", "\\d", "\\w", ":", "é", "\\.", "x"])
    inner = pattern(depth - 1)
    return ("(" if kind < 9 else "(?:") + inner + ")"


def piece(depth):
    return atom(depth) + random.choice(["", "", "", "*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{1,}", "{0,2}?"])


def pattern(depth):
    text = "|".join("".join(piece(depth) for _ in range(random.randrange(1, 4)))
                        for _ in range(random.choice([1, 1, 2])))
    return text + random.choice(["", "", "", ".*", "(.*)", "(.*?)(.*)"])


def replacement():
    return "=" + "".join(random.choice(["$1", "${2}", "$3x", "${1}_", "$$", "-", "$", "$0", "${", "$9", "$name", "${3}"])
                       for _ in range(4))


jobs, questions = [], []
for j in range(JOBS):
    rules = [(pattern(3), replacement()) for _ in range(RULES)]
    texts = ["".join(random.choice("aabbc.:1é") for _ in range(random.randrange(1, 9))) for _ in range(TEXTS)]
    jobs.append({
        "job_name": f"job{j}",
        "static_configs": [{"targets": [f"h{i}:1"], "labels": {"text": text}} for i, text in enumerate(texts)],
        "relabel_configs": [{"source_labels": ["text"], "regex": p, "replacement": r, "target_label": f"r{k}"}
                                    for k, (p, r) in enumerate(rules)],
    })
    questions += [(j, i, k, p, r, text) for i, text in enumerate(texts) for k, (p, r) in enumerate(rules)]
with open(f"{folder}/config", "w") as f:
    json.dump({"scrape_configs": jobs}, f)
asked = [{"Pattern": p, "Replacement": r, "Text": t} for _, _, _, p, r, t in questions]
want = json.loads(subprocess.run([judge], input=json.dumps(asked), check=True,
                                stdout=subprocess.PIPE, text=True).stdout)
said = subprocess.run([cairn, "scrape", "--check", "--json", f"{folder}/config"], check=True,
                      stdout=subprocess.PIPE, text=True).stdout
got = {(t["job"], t["labels"]["instance"]): t["labels"] for t in json.loads(said)}
wrong = 0
for (j, i, k, p, r, text), expected in zip(questions, want):
    is_what = got[f"job{j}", f"h{i}:1"].get(f"r{k}", "")
    if is_what != expected:
        wrong += 1
        print(f"{p!r} {r!r} on {text!r}: {is_what!r}, want {expected!r}")
print(f"{len(questions)} compared, {sum(w != '' for w in want)} match, {wrong} differ")
sys.exit(wrong != 0)
END
for seed in ${SEEDS:-1 2 3 4}; do
        python3 "$tmp/relabel.py" "$cairn" "$tmp/expand" "$tmp" "$seed" >"$tmp/said" 2>&1
        is $? 0 "seed $seed: $(tail -1 "$tmp/said")"
        [ "$(wc -l <"$tmp/said")" -eq 1 ] || tail -20 "$tmp/said" | sed 's/^/# /'
done
matches=$(sed -n 's/.* \([0-9]*\) match.*/\1/p' "$tmp/said")
ok "many expressions match" [ "$matches" -gt 200 ]
done_testing
