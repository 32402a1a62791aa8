# SPDX-License-Identifier: Apache-2.0
"""Runs the jobs of deploy/ci as GitHub, GitLab and Jenkins would: snippets.py PROGRAMS DIR URL TOKEN.

Each runs in a clone of a repository with a benchmark, for a change that is the same, one whose function `slow` costs
20% more, and with a rule for which there is too little data. `cairn record` is replaced: the benchmark prints its
folded stacks with some noise, so that the results are the same in each run (docs-commands.t records the benchmark of
the docs).
"""

import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import yaml

PROGRAMS, URL, TOKEN = os.path.abspath(sys.argv[1]), sys.argv[3], sys.argv[4]
DIR = Path(sys.argv[2])
CHANGES = {"same": "100000", "slow": "120000"}
MAKEFILE = """
build/bench: bench.c
	mkdir -p build
	$(CC) -g -Wl,--build-id -o $@ bench.c
bench:
	@n=$$(cat count 2>/dev/null || echo 1); echo $$((n + 1)) >count; noise=$$((n * %s %% 7 * 100)); \\
	echo "main;slow $$((%s + noise))"; echo "main;other $$((300000 - noise))"; echo "main;loop 500000"
.PHONY: bench
"""
RECORD = """#!/bin/sh
[ "$1" = record ] || exec %s/cairn "$@"
[ "$2" = -o ] && [ "$4" = -- ] || exit 64
out=$3
shift 4
"$@" | grep '^main;' >"$out.folded" && exec %s/cairn flame --profile "$out.folded" --format pprof --output "$out"
"""


def check(good, name, detail=""):
    print(("ok - " if good else "not ok - ") + name)
    for line in str(detail).splitlines()[-40:] if not good else []:
        print("#   " + line)
    sys.stdout.flush()


def git(*words):
    return subprocess.run(
        ["git", "-c", "user.name=ci", "-c", "user.email=ci@example.org", *words],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout.strip()


def make_repository():
    tree = DIR / "origin"
    git("init", "-q", "-b", "main", tree)
    (tree / "ci").mkdir()
    shutil.copy("deploy/ci/benchmark-gate.sh", tree / "ci")
    (tree / "bench.c").write_text("int main(void) { return 0; }\n")
    (tree / ".gitignore").write_text("build/\ncount\n")

    def commit(noise, cost, message):
        (tree / "Makefile").write_text(MAKEFILE % (noise, cost))
        git("-C", tree, "add", "-A")
        git("-C", tree, "commit", "-q", "-m", message)

    commit(1, CHANGES["same"], "base")
    for name, cost in CHANGES.items():
        git("-C", tree, "checkout", "-q", "-b", name, "main")
        commit(3, cost, name)
    git("-C", tree, "checkout", "-q", "main")


def make_programs():
    """What runners have: cairn, and stubs of what only they have."""
    programs = DIR / "bin"
    programs.mkdir()

    def write(name, text):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)

    write("cairn", RECORD % (PROGRAMS, PROGRAMS))
    write("sudo", '#!/bin/sh\n[ "$1" = sysctl ]\n')
    write("gh", '#!/bin/sh\necho "$*" >gh-words\nwhile [ $# -gt 1 ]; do shift; done\ncp "$1" comment.md\n')
    os.symlink(f"{PROGRAMS}/cairn-upload", programs / "cairn-upload")


def environment(**more):
    return {name: value for name, value in os.environ.items() if not name.startswith("CAIRN_")} | {
        "PATH": f"{DIR}/bin:{os.environ['PATH']}",
        "CAIRN_CONFIG": "",
        "CAIRN_CACHE_DIR": "",
        **more,
    }


def place(text):
    return text.replace("https://cairn.example", URL)


def run_shell(script, directory, variables, log, shell=("bash", "-e")):
    """shellcheck reads it, too: its mistakes are in the log, and end the step."""
    words = subprocess.run(
        ["shellcheck", "-s", "bash", "-S", "warning", "-"],
        input=script,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    log.append(f"+ {script}\n{words.stdout}")
    if words.returncode:
        return 98
    done = subprocess.run(
        [*shell, "-c", script],
        cwd=directory,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    log.append(done.stdout)
    return done.returncode


# ---- GitHub ----


class GitHub:
    """Steps until one fails, and those with always(). Of expressions it knows names, always() and hashFiles()."""

    name = "github"
    on_too_little_data = "passed"

    def __init__(self, directory, change, more):
        self.directory, self.change, self.more, self.log, self.failed = directory, change, more, [], False
        self.names = {
            "github.event.pull_request.base.sha": git("-C", DIR / "origin", "rev-parse", "main"),
            "github.run_id": directory.name,
            "github.run_attempt": "1",
            "github.event.pull_request.number": "7",
            "secrets.CAIRN_TOKEN": TOKEN,
            "github.token": "t",
        }

    def fill(self, text):
        return re.sub(r"\$\{\{ (\S+) \}\}", lambda m: self.names[m[1]], place(str(text)))

    def holds(self, condition):
        if condition is None:
            return not self.failed
        terms = condition.split(" && ")
        files = [re.fullmatch(r"hashFiles\('([^']+)'\) != ''", term) for term in terms if term != "always()"]
        return ("always()" in terms or not self.failed) and all((self.directory / file[1]).exists() for file in files)

    def step(self, step):
        if "run" in step:
            variables = environment(
                GITHUB_STEP_SUMMARY=f"{self.directory}/summary.md",
                GITHUB_REPOSITORY="o/r",
                **self.more,
                **{k: self.fill(v) for k, v in step.get("env", {}).items()},
            )
            return run_shell(self.fill(step["run"]), self.directory, variables, self.log) == 0
        action, inputs = step["uses"].split("@")[0], {k: self.fill(v) for k, v in step.get("with", {}).items()}
        if action == "actions/checkout":
            git("clone", "-q", "-b", self.change, DIR / "origin", self.directory / inputs["path"])
            git("-C", self.directory / inputs["path"], "checkout", "-q", inputs.get("ref", self.change))
            return True
        files = {"github/codeql-action/upload-sarif": "sarif_file", "actions/upload-artifact": "path"}
        return any(self.directory.glob(inputs[files[action]]))

    def run(self):
        with open("deploy/ci/github.yaml", encoding="utf-8") as f:
            (job,) = yaml.safe_load(f)["jobs"].values()
        for step in job["steps"]:
            if self.holds(step.get("if")) and not self.step(step):
                self.failed = True
                self.log.append(f"failed: {step}")
        return "failed" if self.failed else "passed"


# ---- GitLab and Jenkins ----


def clone_change(directory, change):
    git("clone", "-q", "-b", change, DIR / "origin", directory / "tree")
    return directory / "tree"


class GitLab:
    name = "gitlab"
    on_too_little_data = "allowed to fail"

    def __init__(self, directory, change, more):
        self.directory, self.more, self.log = clone_change(directory, change), more, []

    def run(self):
        with open("deploy/ci/gitlab.yaml", encoding="utf-8") as f:
            (job,) = yaml.safe_load(f).values()
        variables = environment(
            CAIRN_TOKEN=TOKEN,
            CI_JOB_ID=self.directory.parent.name,
            CI_MERGE_REQUEST_TARGET_BRANCH_NAME="main",
            **self.more,
        )
        for name, value in job["variables"].items():
            variables[name] = re.sub(r"\$(\w+)", lambda m: variables[m[1]], place(value))
        status = run_shell("\n".join(job["script"]), self.directory, variables, self.log, ("bash", "-eo", "pipefail"))
        for path in [*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"]]:
            if not (self.directory / path).exists():
                self.log.append(f"no artifact {path}")
                return "no artifact"
        return (
            "passed"
            if status == 0
            else "allowed to fail" if status == job["allow_failure"]["exit_codes"] else "failed"
        )


class Jenkins:
    """Its workspace has what an earlier build left."""

    name = "jenkins"
    on_too_little_data = "unstable"

    def __init__(self, directory, change, more):
        self.directory, self.more, self.log = clone_change(directory, change), more, []
        git("-C", self.directory, "worktree", "add", "-q", "--force", "base", "origin/main")
        (self.directory / "gate.md").write_text("of another build")

    def run(self):
        variables = environment(CHANGE_TARGET="main", BUILD_TAG=self.directory.parent.name, SECRET=TOKEN, **self.more)
        jenkinsfile = self.directory / "Jenkinsfile"
        jenkinsfile.write_text(place(Path("deploy/ci/Jenkinsfile").read_text(encoding="utf-8")))
        done = subprocess.run(
            ["groovy", os.path.abspath("tests/e2e/ci/pipeline.groovy"), jenkinsfile],
            cwd=self.directory,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log.append(done.stdout)
        return done.stdout.splitlines()[-1] if done.stdout else "nothing printed"


# ---- the runs ----


def run_job(kind, change, case, **more):
    directory = DIR / f"{kind.name}-{case}"
    directory.mkdir()
    job = kind(directory, change, more)
    return job, job.run()


def check_reports(job, case, slower):
    report = (job.directory / "gate.md").read_text(encoding="utf-8")
    check(
        ("`slow`" in report) == slower,
        (
            f"{job.name}, {case}: the report names the slower function"
            if slower
            else f"{job.name}, {case}: the report names none"
        ),
        report,
    )
    failures = xml.etree.ElementTree.parse(job.directory / "gate.xml").getroot().get("failures")
    check((failures != "0") == slower, f"{job.name}, {case}: JUnit has {'a' if slower else 'no'} failure", failures)
    check("/#view=diff" in report, f"{job.name}, {case}: the report has the link to the comparison", report)


def client(*words):
    return subprocess.run(
        [f"{PROGRAMS}/cairn", *words, "--server", URL, "--token-file", DIR / "token"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment(),
        check=False,
    ).stdout


(DIR / "token").write_text(TOKEN)
make_repository()
make_programs()
for one in (GitHub, GitLab, Jenkins):
    for name, wanted in (("same", "passed"), ("slow", "failed")):
        ran, result = run_job(one, name, name)
        check(result == wanted, f"{one.name}, {name}: {wanted}", result + "\n" + "\n".join(ran.log))
        if result == wanted:
            check_reports(ran, name, name == "slow")
        if one is GitHub:
            comment = ran.directory / "comment.md"
            check(
                comment.exists() and comment.read_text() == (ran.directory / "gate.md").read_text(),
                f"{one.name}, {name}: the report is a comment",
            )
    ran, result = run_job(one, "same", "little", RUNS="2", RULES="slow>0.0001%")
    check(
        result == one.on_too_little_data,
        f"{one.name}, too little data: {one.on_too_little_data}",
        result + "\n" + "\n".join(ran.log),
    )
    job_name = f"{one.name}-{one.name}-slow" + ("-1" if one is GitHub else "")
    said = client("query", "--series", f'{{ci_job="{job_name}"}}', "--by", "ci_side,ci_run,service_version")
    check(
        all(f'"{run}"' in said for run in range(1, 7)) and '"base"' in said and '"head"' in said,
        f"{one.name}: the profiles are in the service",
        said,
    )
listed = client("debuginfo", "list")
check("bench" in listed, "the debuginfo is in the service", listed)
