# SPDX-License-Identifier: Apache-2.0
"""Runs the commands in pages: docs-commands.py PROGRAMS DIR CAN PAGE...; prints "ok - NAME" and "not ok - NAME".

The fenced blocks `sh` and `bash` of a page are run in their order by one shell, in a directory of their own that is also
docs/examples/shop: with its shop.c and Makefile, a profile shop.pb.gz, and deploy/scrape.yaml. A block ends at its first command
that fails. Comments right above a block change that:

    <!-- keeps running -->      it is a service: it runs until the page's end, and must end well then
    <!-- prints: REGEX -->      what the block prints has a match, in lines (re.M)
    <!-- may fail: REASON -->   its exit status does not count
    <!-- needs: THING -->       where CAN (things, with commas) lacks it, as not run
    <!-- not run: REASON -->    it is only checked

Of what is not run the syntax is checked, and that options of cairn's programs are there. In the README the two blocks `sh` are
those that CI runs (.ci/run, scripts/check-fresh.sh), and are not run here. Blocks `python` are run like `sh`, when their first
import can be had.

A page says what a reader would type. Here its services listen on free ports, so in each block
    127.0.0.1:7700 to :7709, and :4317        become free ports of this machine
    https://cairn.example                     becomes http://127.0.0.1:7700, and then the same
    /etc/ of Grafana, /usr/share/cairn/       become copies of what is installed, in the page's directory
and CAIRN_LISTEN is the address of a service that is started without one.
"""
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

from profiles import blob, num, packed

PROGRAMS, DIR = sys.argv[1:3]
CAN = sys.argv[3].split(",")
PAGE_SECONDS = 240 * int(os.environ.get("CAIRN_WAIT_FACTOR", "1"))
FUNCTIONS = """
await() {
        until curl -sf -o /dev/null "$1/readyz"; do
                kill -0 "$2" 2>/dev/null || exit 97
                sleep 0.05
        done
}
"""


def shop_profile():
    """pprof, CPU time: main calls serve, which calls add_item for 0.9 s; and 0.1 s at an address of libc that has no name."""
    texts = ["", "cpu", "nanoseconds", "/usr/bin/shop", "main", "serve", "add_item", "shop.c", "/usr/lib/libc.so.6", "07" * 20, "08" * 20]
    profile = blob(1, num(1, 1) + num(2, 2)) + blob(11, num(1, 1) + num(2, 2)) + num(12, 10000000) + num(10, 10**10)
    for number, (file, build_id) in enumerate(((3, 9), (8, 10)), 1):
        profile += blob(3, num(1, number) + num(2, number << 20) + num(3, number + 1 << 20) + num(5, file) + num(6, build_id) + num(7, number == 1))
    for number, line in ((1, 25), (2, 20), (3, 14)):
        profile += blob(4, num(1, number) + num(2, 1) + num(3, (1 << 20) + 16 * number) + blob(4, num(1, number) + num(2, line)))
        profile += blob(5, num(1, number) + num(2, number + 3) + num(4, 7))
    profile += blob(4, num(1, 4) + num(2, 2) + num(3, (2 << 20) + 16))
    for stack, value in (((3, 2, 1), 900000000), ((4, 2, 1), 100000000)):
        profile += blob(2, packed(1, stack) + packed(2, (value,)))
    return profile + b"".join(blob(6, text) for text in texts)


def says(good, name, detail=""):
    print(("ok - " if good else "not ok - ") + name)
    for line in detail.splitlines()[-40:] if not good else []:
        print("#   " + line)
    sys.stdout.flush()


class Block:
    def __init__(self, page, line, language, text, remarks):
        self.name = f"{page}:{line}"
        self.language, self.text = language, text
        self.remarks = dict(remarks)

    def is_run(self):
        return "not run" not in self.remarks and ("needs" not in self.remarks or self.remarks["needs"] in CAN)


def blocks_of(page):
    with open(page, encoding="utf-8") as f:
        lines = f.read().split("\n")
    blocks, i = [], 0
    while i < len(lines):
        fence = re.fullmatch(r"```(\w*)", lines[i])
        if not fence:
            i += 1
            continue
        end = lines.index("```", i + 1)
        remarks, above = [], i - 1
        while above >= 0 and (remark := re.fullmatch(r"<!-- ([a-z ]+?)(?:: (.*))? -->", lines[above])):
            remarks.append((remark[1], remark[2]))
            above -= 1
        unknown = {name for name, _ in remarks} - {"keeps running", "prints", "may fail", "needs", "not run"}
        if unknown:
            says(False, f"{page}:{i + 1} has a remark that is none", str(unknown))
        if fence[1] in ("sh", "bash") and not (page == "README.md" and fence[1] == "sh") or fence[1] == "python":
            blocks.append(Block(page, i + 1, fence[1], "\n".join(lines[i + 1:end]), remarks))
        i = end + 1
    return blocks


# ---- what is not run ----

helps = {}


def options_of(command):
    if command not in helps:
        said = subprocess.run([f"{PROGRAMS}/{command[0]}", *command[1:], "--help"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False).stdout
        helps[command] = set(re.findall(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-zA-Z])\b", said))
    return helps[command]


def wrong_options(text):
    """Options of cairn's programs in a script that --help does not have."""
    mistakes = []
    for words in re.findall(r"(?:^|[(|;&]|\bsudo|\bdo|\bthen) *(cairn(?:-agent|-upload)?(?:[ \t](?:[^|;&\n\\]|\\\n)*)?)", text, re.M):
        words = re.sub(r"'[^']*'|\"[^\"]*\"", "X", words.replace("\\\n", " ")).split()
        command = (words[0], words[1]) if words[0] == "cairn" and len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) else (words[0],)
        own = words[1:words.index("--")] if "--" in words else words[1:]
        for option in (w.split("=")[0] for w in own if re.match(r"-{1,2}[a-z]", w)):
            if option not in options_of(command) | {"--help", "--version"}:
                mistakes.append(f"{' '.join(command)} has no {option}")
    return mistakes


def check_only(block):
    if block.language == "python":
        compile(block.text, block.name, "exec")
        says(True, f"{block.name} is Python")
        return
    syntax = subprocess.run(["sh", "-n"], input=block.text, text=True, stderr=subprocess.PIPE, check=False)
    mistakes = [syntax.stderr] if syntax.returncode else wrong_options(block.text)
    why = block.remarks.get("not run") or "no " + block.remarks["needs"]
    says(not mistakes, f"{block.name} has commands and options that are there (not run: {why})", "\n".join(mistakes))


# ---- what is run ----

ports_given = 0


def free_port():
    """Below those that the kernel gives out, as free_port of lib.sh."""
    global ports_given
    while True:
        ports_given += 1
        port = 10000 + (os.getpid() * 64 + ports_given) % 22000
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Page:
    def __init__(self, page):
        self.name = page
        self.dir = os.path.join(DIR, re.sub(r"\W", "-", page))
        os.makedirs(self.dir + "/home")
        self.ports = {}
        root = self.dir + "/root"
        shutil.copytree("deploy/grafana/provisioning", root + "/usr/share/cairn/grafana/provisioning")
        shutil.copytree("deploy/sql", root + "/usr/share/cairn/sql")
        for kind in ("datasources", "dashboards"):
            os.makedirs(f"{root}/etc/grafana/provisioning/{kind}")
        self.work = self.dir + "/work"
        os.makedirs(self.work + "/bin")
        for program in ("cairn", "cairn-agent", "cairn-upload"):
            os.symlink(os.path.abspath(f"{PROGRAMS}/{program}"), f"{self.work}/bin/{program}")
        for name in os.listdir("docs/examples/shop"):
            shutil.copy(f"docs/examples/shop/{name}", self.work)
        os.makedirs(self.work + "/docs/examples")
        os.symlink(self.work, self.work + "/docs/examples/shop")
        shutil.copy("deploy/scrape.yaml", self.work)
        with gzip.open(self.work + "/shop.pb.gz", "wb") as f:
            f.write(shop_profile())

    def place(self, text):
        text = text.replace("https://cairn.example", "http://127.0.0.1:7700")
        text = re.sub(r"(?<![\w/])/(etc/grafana|usr/share/cairn)/", rf"{self.dir}/root/\1/", text)

        def port(match):
            return f"127.0.0.1:{self.ports.setdefault(match[1], free_port())}"
        return re.sub(r"127\.0\.0\.1:(770\d|4317)\b", port, text)

    def script(self, blocks):
        yield FUNCTIONS
        for i, block in enumerate(blocks):
            text, out = self.place(block.text), f"{self.dir}/{i}.out"
            yield f"echo {i} >{self.dir}/at"
            if block.language == "python":
                text = f"{sys.executable} - <<'END OF PYTHON'\n{text}\nEND OF PYTHON"
            if "keeps running" in block.remarks:
                listen = re.search(r"--listen (\S+)", text)
                address = listen[1] if listen else self.place("127.0.0.1:7700")
                yield f"( exec {text.strip()} ) >{out} 2>&1 &\nservice=$!\necho $service {i} >>{self.dir}/services"
                yield f"await http://{address} $service"
            elif "may fail" in block.remarks:
                yield f"( {text}\n) >{out} 2>&1 || true"
            else:
                yield f"set -e\n{{\n{text}\n}} >{out} 2>&1\nset +e"
        yield f"echo end >{self.dir}/at"

    def run(self, blocks):
        with open(f"{self.dir}/script", "w", encoding="utf-8") as f:
            f.write("\n".join(self.script(blocks)) + "\n")
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CAIRN_", "DEBUGINFOD"))}
        go = subprocess.run(["go", "env", "GOCACHE"], stdout=subprocess.PIPE, text=True, check=False).stdout.strip() if "go" in CAN else ""
        environment |= {"GOCACHE": go or self.dir + "/go", "HOME": self.dir + "/home", "PATH": f"{self.work}/bin:{os.environ['PATH']}", "CAIRN_CONFIG": "", "CAIRN_CACHE_DIR": "",
                        "CAIRN_LISTEN": self.place("127.0.0.1:7700"), "DEBUGINFOD_PROGRESS": ""}
        start = time.monotonic()
        with open(f"{self.dir}/log", "w", encoding="utf-8") as log:
            try:
                subprocess.run(["sh", f"{self.dir}/script"], cwd=self.work, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                               stderr=log, timeout=PAGE_SECONDS, check=False)
            except subprocess.TimeoutExpired:
                says(False, f"{self.name} ends within {PAGE_SECONDS} s")
        with open(f"{self.dir}/at", encoding="utf-8") as f:
            at = f.read().strip()
        for i, block in enumerate(blocks):
            self.judge(block, i, at)
        self.stop(blocks)
        print(f"# {self.name}: {time.monotonic() - start:.1f} s")

    def output(self, i):
        try:
            with open(f"{self.dir}/{i}.out", encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def judge(self, block, i, at):
        if at != "end" and i > int(at):
            says(False, f"{block.name} was reached", "an earlier block failed")
            return
        if at == str(i):
            with open(f"{self.dir}/log", encoding="utf-8") as log:
                says(False, f"{block.name} runs", block.text + "\n" + self.output(i) + log.read())
            return
        says(True, f"{block.name} runs")
        if "prints" in block.remarks:
            pattern = block.remarks["prints"]
            says(re.search(pattern, self.output(i), re.M), f"{block.name} prints {pattern}", self.output(i))

    def stop(self, blocks):
        """The services end at SIGTERM, with no complaint of a sanitizer. They are children of a shell that is gone."""
        try:
            with open(f"{self.dir}/services", encoding="utf-8") as f:
                services = [list(map(int, line.split())) for line in f]
        except FileNotFoundError:
            return
        for pid, i in reversed(services):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                says(False, f"{blocks[i].name} still runs at the end", self.output(i))
                continue
            deadline = time.monotonic() + 60
            while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline and state_of(pid) != "Z":
                time.sleep(0.02)
            text = self.output(i)
            says(not re.search(r"Sanitizer|runtime error:", text) and time.monotonic() < deadline, f"{blocks[i].name} ends well", text)


def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


total = 0
for name in sys.argv[4:]:
    found = blocks_of(name)
    total += len(found)
    run = []
    for one in found:
        if one.is_run():
            run.append(one)
        else:
            check_only(one)
        if one.language != "python":
            wrong = wrong_options(one.text)
            if wrong and one.is_run():
                says(False, f"{one.name} has options that are there", "\n".join(wrong))
    if run:
        Page(name).run(run)
says(total >= 30, f"{total} blocks were found")
