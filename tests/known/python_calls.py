# SPDX-License-Identifier: Apache-2.0
"""A program whose stacks are known: a comment names the function that a line calls, and "by C" if C code calls it.
Runs with Python 3.8 and later, until it is killed; judge_python.py checks samples of it."""
import functools
import hashlib
import re
import threading


def leaf(n):
    x = 0
    for i in range(n):
        x += i * i % 7
    return x


def generate(n):
    for _ in range(3):
        yield leaf(n)  # leaf


class Work:
    def method(self, n):
        return sum(generate(n))  # generate by C


def key(_):
    return Work().method(300)  # method


def reduce_pair(a, b):
    return sorted([2, 1], key=key)[0] + a + b  # key by C


def recurse(n):
    if n:
        return recurse(n - 1)  # recurse
    return functools.reduce(reduce_pair, [1, 2])  # reduce_pair by C


def replace(_):
    recurse(5)  # recurse
    return "x"


def substitute():
    while True:
        re.sub("a", replace, "a")  # replace by C


def hash_without_lock():
    data = b"x" * 3000000
    while True:
        hashlib.sha256(data).digest()


threading.Thread(target=substitute).start()
threading.Thread(target=hash_without_lock).start()
substitute()  # substitute
