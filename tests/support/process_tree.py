#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run a command and end every process that it started.

As a library: run(). As a program, which prints nothing unless a process is left running:

    process_tree.py COMMAND...

The caller becomes a child subreaper (prctl(2)): a process whose parent ends is adopted by the nearest subreaper above
it, so that a daemon that left its session and process group is still a descendant of this process. The processes to
end are therefore the descendants; no marker in the environment is needed, which a program might clear.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

TIMED_OUT = 124  # like timeout(1)


def read_stat(pid):
    """Return (state, parent) of a process, or None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read().rpartition(b")")[2].split()  # the name may contain any bytes
        return fields[0].decode(), int(fields[1])
    except (OSError, IndexError, ValueError):
        return None


def list_descendants(root):
    """Return the running processes below root, without zombies."""
    children, zombies = {}, set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = read_stat(name)
        if stat is None:
            continue
        children.setdefault(stat[1], []).append(int(name))
        if stat[0] in "ZX":
            zombies.add(int(name))
    found, queue = [], [root]
    while queue:
        for pid in children.get(queue.pop(), []):
            queue.append(pid)
            if pid not in zombies:
                found.append(pid)
    return found


def describe_process(pid):
    """Return the command line of a process, or its name in brackets."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            words = f.read().rstrip(b"\0").split(b"\0")
        if words != [b""]:
            return " ".join(w.decode(errors="backslashreplace") for w in words).replace("\n", "\\n")[:300]
        with open(f"/proc/{pid}/comm", "rb") as f:
            return "[" + f.read().decode(errors="backslashreplace").strip() + "]"
    except OSError:
        return "[unknown]"


def signal_processes(pids, number):
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def reap_children():
    """Wait for every child that has ended; return {pid: wait status}."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def wait_for_descendants(seconds):
    """Wait at most this long until no descendant runs; return those that still do."""
    deadline = time.monotonic() + seconds
    pause = 0.001
    while True:
        reap_children()
        left = list_descendants(os.getpid())
        if not left or time.monotonic() >= deadline:
            return left
        time.sleep(pause)
        pause = min(pause * 2, 0.1)


def end_descendants(seconds):
    """Send SIGTERM to every descendant, and SIGKILL to those that still run after the given time."""
    # A stopped descendant handles SIGTERM only once it continues.
    left = list_descendants(os.getpid())
    signal_processes(left, signal.SIGTERM)
    signal_processes(left, signal.SIGCONT)
    for _ in range(100):  # a killed process may have forked in the meantime
        left = wait_for_descendants(seconds)
        if not left:
            return
        signal_processes(left, signal.SIGKILL)
        seconds = 0.2
    print(f"process_tree: cannot end {left}", file=sys.stderr)


class Result:
    """status: exit status as in a shell; timed_out; left_behind: command lines of the processes that the command left
    running.
    """

    def __init__(self):
        self.status = None
        self.timed_out = False
        self.left_behind = []
        self.interrupted = None


def run(command, *, limit=None, grace=5.0, term_seconds=5.0, stderr=None, write=None, environment=None):
    """Run a command in a session of its own until it ends, then end the processes that it left running.

    limit: predicate on the elapsed seconds, true when the command must be ended; None for no limit.
    grace: seconds that the command's processes have to end after it (they may have just been killed).
    write: called with each chunk of stdout; None to inherit stdout. The pipe is read until the command and its
    processes have ended, not until the end of file, so that an unkillable process does not block this one.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    result = Result()
    out_read = out_write = None
    if write:
        out_read, out_write = os.pipe()
        os.set_blocking(out_read, False)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)

    def interrupt(number, _frame):
        result.interrupted = number

    handlers = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)

    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            for number in handlers:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.setsid()
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
            if out_write is not None:
                os.dup2(out_write, 1)
            if stderr is not None:
                os.dup2(stderr, 2)
            os.execvpe(command[0], command, environment or os.environ)
        except BaseException as e:
            os.write(2, f"cannot run {command[0]}: {e}\n".encode())
        os._exit(127)
    if out_write is not None:
        os.close(out_write)

    def copy_output():
        while write:
            try:
                piece = os.read(out_read, 65536)
            except BlockingIOError:
                return
            if not piece:
                return
            write(piece)

    poll = select.poll()
    poll.register(wake_read, select.POLLIN)
    if write:
        poll.register(out_read, select.POLLIN)
    started = time.monotonic()
    wait_status = None
    while wait_status is None and not result.interrupted:
        for fd, events in poll.poll(500):
            if fd == wake_read:
                try:
                    os.read(wake_read, 4096)
                except BlockingIOError:
                    pass
            else:
                copy_output()
                if not events & select.POLLIN:  # the command closed its stdout
                    poll.unregister(fd)
        wait_status = reap_children().get(pid)
        if wait_status is None and limit and limit(time.monotonic() - started):
            result.timed_out = True
            break

    if wait_status is None:
        result.left_behind = [describe_process(p) for p in list_descendants(os.getpid())]
        end_descendants(term_seconds)
        result.status = TIMED_OUT if result.timed_out else 128 + (result.interrupted or 0)
    else:
        code = os.waitstatus_to_exitcode(wait_status)
        result.status = code if code >= 0 else 128 - code
        left = wait_for_descendants(grace)
        result.left_behind = [describe_process(p) for p in left]
        if left:
            end_descendants(term_seconds)
    if write:
        copy_output()
        os.close(out_read)
    signal.set_wakeup_fd(-1)
    for number, handler in handlers.items():
        signal.signal(number, handler)
    os.close(wake_read)
    os.close(wake_write)
    return result


def main():
    if len(sys.argv) < 2:
        print("usage: process_tree.py COMMAND...", file=sys.stderr)
        return 64
    result = run(sys.argv[1:])
    for text in result.left_behind:
        print(f"process_tree: left behind and ended: {text}", file=sys.stderr)
    return result.status


if __name__ == "__main__":
    sys.exit(main())
