#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stops the next worker of one kind that a service starts, before its first instruction. Prints "ready", then its pid.

usage: catch-worker.py SERVICE-PID KIND [BUT-NOT-PID]

It traces the service (ptrace(2)) until then, since a worker may end before a look at /proc finds it.
"""
import ctypes
import os
import signal
import sys

PTRACE_CONT, PTRACE_DETACH, PTRACE_SEIZE, PTRACE_LISTEN = 7, 17, 0x4206, 0x4208
TRACE_FORK, TRACE_VFORK, TRACE_CLONE, TRACE_EXEC = 1 << 1, 1 << 2, 1 << 3, 1 << 4
EVENT_EXEC, EVENT_STOP = 4, 128
WALL = 0x40000000  # threads, too
STOPS = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def seize_threads(pid):
    """Trace all threads of a process, and what they start."""
    seized = set()
    while new := {int(task) for task in os.listdir(f"/proc/{pid}/task")} - seized:
        for task in new:
            if libc.ptrace(PTRACE_SEIZE, task, None, TRACE_FORK | TRACE_VFORK | TRACE_CLONE | TRACE_EXEC):
                # The thread has ended, or was traced from its start since another one was.
                if not is_traced(pid, task) and os.path.exists(f"/proc/{pid}/task/{task}"):
                    sys.exit(f"cannot trace thread {task}: {os.strerror(ctypes.get_errno())}")
        seized |= new


def is_traced(pid, task):
    try:
        with open(f"/proc/{pid}/task/{task}/status", encoding="ascii") as f:
            return f"TracerPid:\t{os.getpid()}\n" in f.read()
    except OSError:
        return False


def is_worker(pid, kind):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().split(b"\0")[1:3] == [b"worker", kind]


def resume(task, status):
    event, stop = status >> 16, os.WSTOPSIG(status)
    if event == EVENT_STOP and stop in STOPS:
        libc.ptrace(PTRACE_LISTEN, task, None, None)  # the whole process was stopped
    else:
        libc.ptrace(PTRACE_CONT, task, None, 0 if event else stop)


def catch(kind, caught_before):
    while True:
        task, status = os.waitpid(-1, WALL)
        if not os.WIFSTOPPED(status):
            continue
        if status >> 16 != EVENT_EXEC:
            resume(task, status)
        elif task not in caught_before and is_worker(task, kind):
            os.kill(task, signal.SIGSTOP)
            print(task)
            return  # the end of the tracer resumes all others
        else:
            libc.ptrace(PTRACE_DETACH, task, None, None)  # a traced program could not look for leaks


signal.alarm(60)  # no worker came
seize_threads(int(sys.argv[1]))
print("ready", flush=True)
catch(sys.argv[2].encode(), [int(pid) for pid in sys.argv[3:]])
