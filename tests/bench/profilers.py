#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the cost of the agent with that of the OpenTelemetry eBPF profiler, in turn on the same processes. Must run as
root.

    profilers.py PEER [ROUNDS [SECONDS]]      default 2 rounds of 30 seconds; PEER is the profiler's program

The processes are the 500 of agent.py, of which some run Python, Node and Java if these are installed. Each profiler samples
all of the machine at 19 Hz with everything else as it is by default, and sends over OTLP to a service of its own. Measured
are its BPF programs (kernel.bpf_stats_enabled), the CPU time of its processes and its memory, once it has known the processes
for a while; and the CPU time that the service was sent.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from agent import (AGENT, BUILD, JAVA, NODE, PROCESSES, STATS, cpu_seconds, held_by, run_time, start_processes, status)

FREQUENCY = 19
EACH = 8  # processes of node and java


def start_runtimes(work):
    with open(f"{work}/deep.js", "w") as f:
        f.write(NODE)
    with open(f"{work}/Deep.java", "w") as f:
        f.write(JAVA)
    commands = []
    if shutil.which("node"):
        commands += [["node", f"{work}/deep.js", "20"]] * EACH
    if shutil.which("javac"):
        subprocess.run(["javac", "-d", work, f"{work}/Deep.java"], check=True)
        commands += [["java", "-Xmx64m", "-cp", work, "Deep", "20"]] * EACH
    print(f"# {len(commands)} of them with node and java")
    return [subprocess.Popen(["nice", "-n", "19", *c], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for c in commands]


class Service:
    """cairn serve, without symbols: the agent has none to send."""

    def __init__(self, directory):
        port_file = f"{directory}/port"
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.grpc_port = s.getsockname()[1]
        self.process = subprocess.Popen([os.path.join(BUILD, "cairn"), "serve", "--data", f"{directory}/data", "--listen", "127.0.0.1:0",
                                         "--port-file", port_file, "--listen-otlp-grpc", f"127.0.0.1:{self.grpc_port}",
                                         "--log-level", "error"],
                                        stdin=subprocess.DEVNULL)
        while not os.path.exists(port_file) or not os.path.getsize(port_file):
            time.sleep(0.05)
        with open(port_file, encoding="ascii") as f:
            self.port = int(f.read())

    def sent_seconds(self):
        url = f"http://127.0.0.1:{self.port}/api/v1/query/series?by=service_name"
        with urllib.request.urlopen(url) as answer:
            return sum(group["total"] for group in json.load(answer)["groups"]) / 1e9

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def bpf_ns(pid):
    return sum(run_time(p["id"])[0] for p in held_by("prog", pid))


def measure_profiler(name, make_command, warm, seconds):
    with tempfile.TemporaryDirectory() as directory:
        service = Service(directory)
        profiler = subprocess.Popen(make_command(service), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(warm)
            first = cpu_seconds(profiler.pid)
            bpf, cpu, sent, began = bpf_ns(profiler.pid), first, service.sent_seconds(), time.monotonic()
            time.sleep(seconds)
            wall = time.monotonic() - began
            bpf, cpu, sent = (bpf_ns(profiler.pid) - bpf) / 1e9, cpu_seconds(profiler.pid) - cpu, service.sent_seconds() - sent
            resident = status(profiler.pid, "VmRSS") / 1024
            maps = sum(m.get("bytes_memlock", 0) for m in held_by("map", profiler.pid)) / 1e6
        finally:
            profiler.send_signal(signal.SIGTERM)
            profiler.wait()
            service.stop()
    print(f"{name}: BPF {100 * bpf / wall / os.cpu_count():.4f}% of each CPU, itself {100 * cpu / wall:.2f}% of a core "
          f"(after {first:.2f} s in its first {warm:.0f} s), {resident:.0f} MB resident, maps {maps:.0f} MB; "
          f"sent {sent:.1f} s of CPU time in {wall:.0f} s", flush=True)
    return bpf + cpu


def main(peer, rounds, seconds):
    if os.geteuid() != 0:
        sys.exit("bench profilers: it takes root")
    with open(STATS, encoding="ascii") as f:
        before = f.read()
    work, processes = tempfile.mkdtemp(), []
    commands = {"cairn-agent": lambda s: [AGENT, "--sampler", "bpf", "--frequency", str(FREQUENCY), "--no-upload",
                                          "--server", f"http://127.0.0.1:{s.port}"],
                "OpenTelemetry": lambda s: [peer, "-collection-agent", f"127.0.0.1:{s.grpc_port}", "-disable-tls",
                                            "-samples-per-second", str(FREQUENCY)]}
    try:
        with open(STATS, "w", encoding="ascii") as f:
            f.write("1")
        processes = start_processes(work)
        processes += start_runtimes(work)
        warm = 4.5 * PROCESSES / FREQUENCY / os.cpu_count()
        spent = {name: 0 for name in commands}
        for _ in range(rounds):
            for name, make_command in commands.items():
                spent[name] += measure_profiler(name, make_command, warm, seconds)
        ratio = spent["cairn-agent"] / spent["OpenTelemetry"]
        print(f"cairn-agent takes {ratio:.2f} of the peer's CPU time (BPF and processes); the target is 0.50")
    finally:
        for p in processes:
            p.kill()
        for p in processes:
            p.wait()
        with open(STATS, "w", encoding="ascii") as f:
            f.write(before)
        shutil.rmtree(work)


main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2, float(sys.argv[3]) if len(sys.argv) > 3 else 30)
