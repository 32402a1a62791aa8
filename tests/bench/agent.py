#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of the agent at 19 and 99 Hz while 500 processes keep all CPUs busy, and the time until stacks of a
large new program are complete. Must run as root; other load on the machine is sampled too.

    agent.py [SECONDS [AGENT...]]      duration of each measurement, default 30; several programs are measured in turn
    agent.py frames [SECONDS]          only the cost of a frame of each runtime, default 10 seconds for each program

BPF time is measured by the kernel (kernel.bpf_stats_enabled); the agent's CPU time is that of all its threads and
workers. The steady state is measured after nearly all of the 500 processes have had a first sample: at 19 Hz and two
CPUs that takes a minute. Each frequency is measured twice: with all processes sampled, and with only these (--pid),
which shows the share of other processes that start programs in the meantime.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("CAIRN_BUILD", os.path.join(HERE, "../../build"))
AGENT = os.path.join(BUILD, "cairn-agent")
PROCESSES = int(os.environ.get("PROCESSES", "500"))
HZ = os.sysconf("SC_CLK_TCK")
STATS = "/proc/sys/kernel/bpf_stats_enabled"


def bpftool(*args):
    tool = shutil.which("bpftool") or "/usr/sbin/bpftool"
    return json.loads(subprocess.run([tool, "-j", *args], capture_output=True, text=True, check=True).stdout)


def held_by(kind, pid):
    """The BPF objects of which a process has a descriptor."""
    ids = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                ids |= {int(line.split()[1]) for line in f if line.startswith(f"{kind}_id:")}
        except FileNotFoundError:
            pass
    return [x for x in bpftool(kind, "show") if x["id"] in ids]


def run_time(number):
    program = bpftool("prog", "show", "id", str(number))
    return program.get("run_time_ns", 0), program.get("run_cnt", 0)  # absent before its first run


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return f.read().split()


def cpu_seconds(pid):
    """CPU time of the process, its fork server, and workers that have ended."""
    ticks = 0
    for process in (pid, *children(pid)):
        try:
            with open(f"/proc/{process}/stat") as f:
                ticks += sum(map(int, f.read().rpartition(")")[2].split()[11:15]))
        except FileNotFoundError:
            pass
    return ticks / HZ


def status(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key + ":"))


class Sink(BaseHTTPRequestHandler):
    """Accepts profiles and ignores all other requests."""

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200 if "profiles" in self.path else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, *_):
        pass


def samples(path):
    try:
        with open(path) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("cairn_agent_samples_total "))
    except FileNotFoundError:
        return 0


def measure(program, frequency, seconds, server, work, pids):
    metrics = f"{work}/metrics"
    if os.path.exists(metrics):
        os.unlink(metrics)
    agent = subprocess.Popen([program, "--sampler", "bpf", "--log-level", "error", "--frequency", str(frequency), "--server",
                              f"http://127.0.0.1:{server.server_port}", "--metrics-file", metrics,
                              *(x for p in pids for x in ("--pid", str(p)))], stdin=subprocess.DEVNULL)
    warm = max(seconds / 2, 4.5 * PROCESSES / frequency / os.cpu_count())
    time.sleep(warm)
    number = next(p["id"] for p in held_by("prog", agent.pid) if p["name"] == "sample_cpu")
    cpu, began, windows, taken = cpu_seconds(agent.pid), time.monotonic(), [run_time(number)], samples(metrics)
    first = cpu
    while time.monotonic() - began < seconds:
        time.sleep(2)
        windows.append(run_time(number))
    wall = time.monotonic() - began
    cpu = cpu_seconds(agent.pid) - cpu
    maps = sum(m.get("bytes_memlock", 0) for m in held_by("map", agent.pid))
    rss, shared = status(agent.pid, "VmRSS"), status(agent.pid, "RssShmem") + status(agent.pid, "RssFile")
    taken = samples(metrics) - taken  # between updates of the metrics
    agent.send_signal(signal.SIGTERM)
    agent.wait()
    spent, ticks = (windows[-1][i] - windows[0][i] for i in (0, 1))
    quiet = sorted((b[0] - a[0]) / (b[1] - a[1]) for a, b in zip(windows, windows[1:]) if b[1] > a[1])
    print(f"{frequency} Hz, {'these alone' if pids else 'everything'}: BPF {100 * spent / 1e9 / wall / os.cpu_count():.4f}% of each CPU, {spent / 1000 / max(ticks, 1):.1f} us "
          f"a tick ({quiet[0] / 1000:.1f} us in the quietest two seconds), {taken} samples; agent {100 * cpu / wall:.2f}% of a "
          f"core, after {first:.2f} s in its first {warm:.0f} s; {rss / 1024:.0f} MB resident ({shared / 1024:.0f} MB of files and "
          f"shared maps), maps {maps / 1e6:.0f} MB")


def start_processes(work):
    subprocess.run([os.path.join(HERE, "../known/build"), work], check=True, stdout=subprocess.DEVNULL)
    with open(f"{work}/list") as f:
        names = [line.split("\t")[0] for line in f]
    commands = [[f"./{name}"] for name in names]
    commands += [["python3", os.path.join(HERE, "../tools/busy.py"), "100000"], ["perl", "-e", "sub f { $_[0] < 2 ? 1 : "
                 "f($_[0] - 1) + f($_[0] - 2) } f(20) while 1"]]
    return [subprocess.Popen(["nice", "-n", "19", *commands[i % len(commands)]], cwd=work, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for i in range(PROCESSES)]


def new_program(work):
    """A copy of a large program with a new build-id."""
    node = shutil.which("node")
    if not node or os.path.getsize(os.path.realpath(node)) < 50e6:
        print("# no large program: a nodejs that is a single file is not installed")
        return
    notes = subprocess.run(["readelf", "-n", node], capture_output=True, text=True).stdout
    id_text = notes.split("Build ID:")[1].split()[0] if "Build ID:" in notes else ""
    with open(os.path.realpath(node), "rb") as f:
        data = f.read()
    if id_text:
        data = data.replace(bytes.fromhex(id_text), os.urandom(len(id_text) // 2))
    with open(f"{work}/newprogram", "wb") as f:
        f.write(data)
    os.chmod(f"{work}/newprogram", 0o755)
    agent = subprocess.Popen([AGENT, "--sampler", "bpf", "--log-level", "error", "--frequency", "997", "--output",
                              f"{work}/otlp", "--duration", "8", "--only-process", "newprogram", "--stack-end-label",
                              "--metrics-file", f"{work}/metrics"])
    time.sleep(2)
    program = subprocess.Popen([f"{work}/newprogram", "-e", "const f = n => n < 2 ? n : f(n - 1) + f(n - 2); for (;;) f(20)"])
    agent.wait()
    program.kill()
    program.wait()
    with open(f"{work}/metrics") as f:
        metrics = dict(line.rsplit(" ", 1) for line in f if line[0] != "#")
    late = int(metrics["cairn_agent_samples_late_total"])
    dump = subprocess.run(["python3", os.path.join(HERE, "../support/otlp_dump.py"), f"{work}/otlp"], capture_output=True,
                          text=True, check=True).stdout
    values = [(int(line.split("\t")[0]), "cairn.stack.end=complete" in line) for line in dump.splitlines()
              if "cairn.stack.end=" in line]
    total, complete = (sum(v for v, good in values if good or not wanted) for wanted in (False, True))
    print(f"new program of {len(data) / 1e6:.0f} MB: {100 * complete / max(total, 1):.2f}% of its stacks since its exec "
          f"are complete; the kernel walks them after {late} ticks at 997 Hz ({late / 0.997:.0f} ms of its CPU time), "
          "the agent those before")


DEEP, SHALLOW = 200, 10
NATIVE = """
#include <stdlib.h>

__attribute__((noinline)) static unsigned long call(unsigned n)
{
        volatile unsigned long x = n;

        if (n)
                return call(n - 1) + x;
        for (;;)
                x++;
}
int main(int argc, char **argv)
{
        return (int)call((unsigned)atoi(argv[argc - 1]));
}
"""
PYTHON = """
import sys
def call(n):
    if n:
        return call(n - 1)
    while True:
        pass
call(int(sys.argv[1]))
"""


NODE = """
function call(n) {
    if (n)
        return call(n - 1) + 1;
    for (;;)
        ;
}
call(Number(process.argv[2]));
"""
JAVA = """
public class Deep {
    static volatile long x;

    static long call(int n) {
        if (n > 0)
            return call(n - 1) + 1;
        for (;;)
            x++;
    }
    public static void main(String[] arguments) {
        call(Integer.parseInt(arguments[0]));
    }
}
"""


def runtimes(work):
    """Programs that take the depth of their stack as the last argument, by runtime."""
    with open(f"{work}/native.c", "w") as f:
        f.write(NATIVE)
    subprocess.run(["cc", "-O1", "-fno-optimize-sibling-calls", "-o", f"{work}/native", f"{work}/native.c"], check=True)
    with open(f"{work}/deep.py", "w") as f:
        f.write(PYTHON)
    programs = {"native": [f"{work}/native"], "python": ["/usr/bin/python3", f"{work}/deep.py"]}
    if shutil.which("node"):
        with open(f"{work}/deep.js", "w") as f:
            f.write(NODE)
        programs["node"] = ["node", f"{work}/deep.js"]
    if shutil.which("javac"):
        with open(f"{work}/Deep.java", "w") as f:
            f.write(JAVA)
        subprocess.run(["javac", "-d", work, f"{work}/Deep.java"], check=True)
        programs["java, interpreted"] = ["java", "-Xint", "-cp", work, "Deep"]
        programs["java, compiled"] = ["java", "-Xcomp", "-XX:CompileCommand=dontinline,Deep.call", "-XX:CompileCommand=quiet",
                                      "-cp", work, "Deep"]
    return programs


def time_per_sample(command, depth, seconds, server, work):
    """BPF time in ns of all ticks, divided by the samples of that program; ticks of others end at once."""
    program = subprocess.Popen([*command, str(depth)], stdout=subprocess.DEVNULL)
    agent = subprocess.Popen([AGENT, "--sampler", "bpf", "--log-level", "error", "--frequency", "499", "--interval", "1",
                              "--server", f"http://127.0.0.1:{server.server_port}", "--no-upload",
                              "--metrics-file", f"{work}/metrics", "--pid", str(program.pid)])
    try:
        if os.path.exists(f"{work}/metrics"):
            os.unlink(f"{work}/metrics")
        while samples(f"{work}/metrics") < 300:  # unwind tables are built, and the runtime is known
            time.sleep(0.2)
        number = next(p["id"] for p in held_by("prog", agent.pid) if p["name"] == "sample_cpu")
        before, taken = run_time(number)[0], samples(f"{work}/metrics")
        time.sleep(seconds)
        return (run_time(number)[0] - before) / max(samples(f"{work}/metrics") - taken, 1)
    finally:
        for p in (agent, program):
            p.terminate()
            p.wait()


def frames(seconds, server, work):
    for runtime, command in runtimes(work).items():
        shallow, deep = (time_per_sample(command, depth, seconds, server, work) for depth in (SHALLOW, DEEP))
        print(f"{runtime}: {(deep - shallow) / (DEEP - SHALLOW):.1f} ns a frame in BPF; {shallow / 1000:.1f} us a sample of "
              f"{SHALLOW} frames, {deep / 1000:.1f} us of {DEEP}")


def main(only_frames, seconds, agents):
    if os.geteuid() != 0:
        sys.exit("bench agent: it takes root")
    with open(STATS) as f:
        before = f.read()
    work = tempfile.mkdtemp()
    processes = []
    try:
        with open(STATS, "w") as f:
            f.write("1")
        server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        if only_frames:
            frames(seconds, server, work)
            return
        new_program(work)
        frames(seconds / 3, server, work)
        processes = start_processes(work)
        time.sleep(3)
        print(f"# {PROCESSES} processes, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.0f}")
        for frequency in (19, 99):
            for pids in ([], [p.pid for p in processes]):
                for program in agents:
                    if len(agents) > 1:
                        print(f"# {program}")
                    measure(program, frequency, seconds, server, work, pids)
    finally:
        for p in processes:
            p.kill()
        for p in processes:
            p.wait()
        with open(STATS, "w") as f:
            f.write(before)
        shutil.rmtree(work)


if __name__ == "__main__":
    if sys.argv[1:2] == ["frames"]:
        main(True, float(sys.argv[2]) if len(sys.argv) > 2 else 10, [])
    else:
        main(False, float(sys.argv[1]) if len(sys.argv) > 1 else 30, sys.argv[2:] or [AGENT])
