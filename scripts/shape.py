#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports the shape of the C source: file sizes, naming, coupling, assertions.

usage: scripts/shape.py [--json] [--list MEASURE] [--check] [FOLDER...]

Without folders, every tracked .c and .h file outside of tests/ counts. --list
prints the findings of one measure, one per line: duplicate-names,
one-word-names, struct-tags (declared in two headers), single-caller,
hash-tables, single-user-files, long-lines, folder-includes (not allowed by
docs/architecture.md), folder-cycles (folders, at any depth, that include one
another), file-names (of two files), enum-only-includes (a header of another
folder of which only an enum is used), headless-files (.c files above 350
lines that do not open with a comment), long-test-lines (of shell tests),
unexplained-folders (of more than ten .c and .h files, without a README.md),
fragment-check-names (of end-to-end tests: they are no sentences).

--check fails when a measure of the whole tree is above its CEILING.

A function counts as called by a single file when exactly one .c file outside
of tests/ names it, besides its own. Some of these are external because a unit
test or fuzz target calls them; "with tests" counts files of tests/ too.

The script reads text, not an abstract syntax tree. It relies on the layout
that .clang-format keeps: a function definition starts in column 0, and its
body's opening brace is alone on a line in column 0.
"""
import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
DEFINITION = re.compile(r"^(?!typedef|#|/|\*|\}|\{)([A-Za-z_][^;{}=]*?)\)\s*(?:\w+\s*)?\n\{", re.M | re.S)
INCLUDE = re.compile(r'^#include "([\w-]+)/([\w./-]+)"', re.M)
PROBE = re.compile(r"\b(\w+) = \(\1 \+ 1\) & ")  # the step of linear probing
ASSERTION = re.compile(r"\b(?:assert|static_assert|_Static_assert)\s*\(")
LINE_LIMIT = 130
TEST_LINE_LIMIT = 120  # of shell tests
LONG_FILE = 350  # lines from which on a .c file opens with a comment: its model, the order of its functions, its locks
FOLDER_FILES = 10  # from more on a folder has a README with its reading order
CHECK = re.compile(r"(?:^|[;&|{]|\bthen|\bdo|\belse)\s*(?:is|like|unlike) ")
CHECK_NAME = re.compile(r'"([^"]*)"\s*(?:;;|; *(?:done|fi|\}).*)?$')
FRAGMENT = re.compile(r"^\s*(?:(?:and|with|nor|or|but|of|also|which|so)\b|\S+(?:\s+\S+)?$)")
ONLY_VARIABLES = re.compile(r"^(?:\$\w+\W*)+$")  # the caller of a function gives the name
CEILING = {"duplicate-names": 0, "struct-tags": 0, "one-word-names": 1, "folder-includes": 0, "folder-cycles": 0,
           "file-names": 0, "enum-only-includes": 13, "headless-files": 0, "unexplained-folders": 0, "fragment-check-names": 4,
           "long-test-lines": 113}


def strip_comments_and_strings(text):
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: "\n" * m.group().count("\n") or " ", text)


def find_long_test_lines():
    """Returns the lines of shell tests above their limit."""
    paths = subprocess.run(["git", "ls-files", "tests/*.t", "tests/*.sh"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            widths = [len(line.rstrip("\n").expandtabs(8)) for line in f]
        found += [f"{path}:{number}: {width}" for number, width in enumerate(widths, 1) if width > TEST_LINE_LIMIT]
    return found


def find_fragment_names():
    """Returns names of checks in end-to-end tests that continue another name or have fewer than three words."""
    paths = subprocess.run(["git", "ls-files", "tests/e2e/*.t"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        for number, line in enumerate(lines, 1):
            command = line
            for before in reversed(lines[max(0, number - 12):number - 1]):  # a call of several lines: its name is the last word
                if not before.endswith(("\\", "|", "(")):
                    break
                command = before + "\n" + command
            name = CHECK_NAME.search(line)
            if name and CHECK.search(command) and FRAGMENT.search(name.group(1)) and not ONLY_VARIABLES.search(name.group(1)):
                found.append(f"{path}:{number}: {name.group(1)}")
    return found


def find_unexplained_folders(paths):
    """Yields folders with more than ten files of code and no README."""
    count = collections.Counter(os.path.dirname(p) for p in paths)
    return (f"{folder}: {n} files" for folder, n in count.items() if n > FOLDER_FILES and not os.path.exists(f"{folder}/README.md"))


def count_code_lines(text):
    """Returns how many lines contain more than comments and space."""
    pattern = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|/\*.*?\*/|//[^\n]*', re.S)
    code = pattern.sub(lambda m: m.group(1) or "\n" * m.group().count("\n"), text)
    return sum(1 for line in code.split("\n") if line.strip())


def opens_with_comment(text):
    """Whether a comment other than the licence line comes before the first line of code, #include and #define aside."""
    for line in text.split("\n")[1:]:
        if line.startswith(("/*", "//")):
            return True
        if line.strip() and not line.startswith("#"):
            return False
    return False


def find_definitions(code):
    """Yields (name, is_static) of each function defined in a file's code."""
    for match in DEFINITION.finditer(code):
        head = match.group(1)
        if "(" not in head:
            continue
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head)
        words = IDENTIFIER.findall(head[: head.index("(")])
        if len(words) >= 2:
            yield words[-1], "static" in words


def find_shared_tags(code):
    """Yields struct tags that are declared in two headers."""
    headers = collections.defaultdict(set)
    for path in code:
        if path.endswith(".h"):
            for tag in re.findall(r"^struct (\w+) \{", code[path], re.M):
                headers[tag].add(path)
    return (f"{tag}: {' '.join(sorted(paths))}" for tag, paths in headers.items() if len(paths) > 1)


def line_limit():
    if os.path.exists(".clang-format"):
        with open(".clang-format", encoding="utf-8") as f:
            found = re.search(r"^ColumnLimit:\s*(\d+)", f.read(), re.M)
            if found and int(found.group(1)):
                return int(found.group(1))
    return LINE_LIMIT


def declared_names(code):
    """Returns the names that a header declares: (those of enums, all others)."""
    enums = set()
    for match in re.finditer(r"\benum\s+(\w+)?\s*\{(.*?)\}", code, re.S):
        enums |= {match.group(1) or ""} | set(re.findall(r"(?:^|,)\s*(\w+)", match.group(2)))
    others = set(re.findall(r"\b(?:struct|union)\s+(\w+)\s*\{", code)) | set(re.findall(r"^#\s*define\s+(\w+)", code, re.M))
    others |= set(re.findall(r"\b(\w+)\s*\(", code)) | set(re.findall(r"^(?:typedef|extern)\b[^;{]*?(\w+)\s*(?:\[[^;]*)?;", code, re.M))
    others -= set(re.findall(r"^#\s*ifndef\s+(\w+)\s+#\s*define\s+\1\s*$", code, re.M))  # the header's guard
    return enums - {""}, others - enums


def find_enum_only_includes(raw, code):
    declared = {p: declared_names(code[p]) for p in code if p.endswith(".h")}
    for path in code:
        words = set(IDENTIFIER.findall(INCLUDE.sub("", code[path])))
        for folder, rest in INCLUDE.findall(raw[path]):
            enums, others = declared.get(f"{folder}/{rest}", (set(), set()))
            if folder != path.split("/")[0] and others and words & enums and not words & others:
                yield f"{path}: {folder}/{rest}"


def find_folder_includes(raw):
    """Yields includes that the table of docs/architecture.md does not allow."""
    with open("docs/architecture.md", encoding="utf-8") as f:
        rows = re.findall(r"^\| (`[^|]*/`[^|]*) \|[^|]*\| ([^|]*) \|$", f.read(), re.M)
    may_use = {folder: {folder, *re.findall(r"`([\w-]+)/`", row), *re.findall(r"[a-z-]+", words)}
               for row, words in rows for folder in re.findall(r"`([\w-]+)/`", row)}
    for path, text in raw.items():
        allowed = may_use.get(path.split("/")[0], set())
        if not allowed or "all" in allowed or "public" in allowed:
            continue
        for used, rest in INCLUDE.findall(text):
            if used not in allowed:
                yield f"{path}: {used}/{rest}"


def find_folder_cycles(raw):
    """Yields the folders of each cycle of includes: the strongly connected components of the folders, by Tarjan's algorithm."""
    uses = collections.defaultdict(set)
    for path, text in raw.items():
        folder = os.path.dirname(path)
        uses[folder] |= {os.path.dirname(f"{top}/{rest}") for top, rest in INCLUDE.findall(text) if f"{top}/{rest}" in raw} - {folder}
    number, lowest, stack, cycles = {}, {}, [], []

    def visit(folder):
        number[folder] = lowest[folder] = len(number)
        stack.append(folder)
        for used in sorted(uses[folder]):
            if used not in number:
                visit(used)
                lowest[folder] = min(lowest[folder], lowest[used])
            elif used in stack:
                lowest[folder] = min(lowest[folder], number[used])
        if lowest[folder] == number[folder]:
            at = stack.index(folder)
            cycles.append(stack[at:])
            del stack[at:]

    for folder in sorted({os.path.dirname(p) for p in raw}):
        if folder not in number:
            visit(folder)
    return (" ".join(sorted(c)) for c in cycles if len(c) > 1)


def find_repeated_file_names(paths):
    """Yields base names of two files; main.c, as main(), is in each program."""
    of_name = collections.defaultdict(list)
    for path in paths:
        of_name[os.path.basename(path)].append(path)
    return (f"{name}: {' '.join(files)}" for name, files in of_name.items() if len(files) > 1 and name != "main.c")


def measure(folders):
    tracked = subprocess.run(["git", "ls-files", "*.c", "*.h"], check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    paths = [p for p in tracked if (p.startswith(tuple(f.rstrip("/") + "/" for f in folders)) if folders
                                    else not p.startswith("tests/"))]
    raw, code = {}, {}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            raw[path] = f.read()
        code[path] = strip_comments_and_strings(raw[path])
    sources = [p for p in paths if p.endswith(".c")]

    defined_in = collections.defaultdict(set)
    external = {}
    functions = []
    for path in sources:
        for name, is_static in find_definitions(code[path]):
            functions.append((name, path))
            defined_in[name].add(path)
            if not is_static and name != "main":
                external[name] = path
    words_of = {p: set(IDENTIFIER.findall(code[p])) for p in paths}
    callers = collections.defaultdict(set)
    for path in sources:
        for name in words_of[path] & external.keys():
            if external[name] != path:
                callers[name].add(path)

    test_callers, test_lines = collections.defaultdict(set), 0
    tests = ["tests/*.c", "tests/*.h", "tests/*.t", "tests/*.sh", "tests/*.py", "tests/*.mjs"]
    for path in subprocess.run(["git", "ls-files", *tests], check=True, stdout=subprocess.PIPE, text=True).stdout.split():
        with open(path, encoding="utf-8") as f:
            text = f.read()
        test_lines += text.count("\n")
        if path.endswith(".c"):
            for name in set(IDENTIFIER.findall(strip_comments_and_strings(text))) & external.keys():
                test_callers[name].add(path)

    users_of_file = collections.defaultdict(set)
    for name, path in external.items():
        users_of_file[path] |= callers[name]
    fan_out, fan_in = collections.defaultdict(set), collections.defaultdict(set)
    for path in paths:
        folder = path.split("/")[0]
        for other, _ in INCLUDE.findall(raw[path]):
            if other != folder:
                fan_out[folder].add(other)
                fan_in[other].add(folder)

    limit = line_limit()
    lines = {p: raw[p].count("\n") for p in paths}
    findings = {
        "duplicate-names": sorted(f"{n}: {' '.join(sorted(ps))}" for n, ps in defined_in.items() if len(ps) > 1 and n != "main"),
        "one-word-names": sorted(f"{n}: {p}" for n, p in functions if "_" not in n and n != "main"),
        "single-caller": sorted(f"{n}: {external[n]} <- {next(iter(callers[n]))}" for n in external if len(callers[n]) == 1),
        "hash-tables": sorted(p for p in sources if PROBE.search(code[p])),
        "single-user-files": sorted(f"{p} <- {next(iter(u))}" for p, u in users_of_file.items() if len(u) == 1),
        "long-lines": [f"{p}:{n}: {len(line.expandtabs(8))}" for p in paths
                       for n, line in enumerate(raw[p].split("\n"), 1) if len(line.expandtabs(8)) > limit],
        "struct-tags": sorted(find_shared_tags(code)),
        "folder-includes": sorted(find_folder_includes(raw)),
        "folder-cycles": sorted(find_folder_cycles(raw)),
        "file-names": sorted(find_repeated_file_names(paths)),
        "enum-only-includes": sorted(find_enum_only_includes(raw, code)),
        "long-test-lines": find_long_test_lines(),
        "unexplained-folders": sorted(find_unexplained_folders(paths)),
        "fragment-check-names": find_fragment_names(),
        "headless-files": sorted(p for p in sources if lines[p] > LONG_FILE and not opens_with_comment(raw[p])),
    }
    total = sum(lines.values())
    code_total = sum(count_code_lines(raw[p]) for p in paths)
    blank_total = sum(1 for p in paths for line in raw[p].split("\n")[:-1] if not line.strip())
    called = [n for n in external if callers[n]]
    duplicated = len(findings["duplicate-names"])
    assertions = sum(len(ASSERTION.findall(code[p])) for p in paths)
    folders_seen = sorted({p.split("/")[0] for p in paths})
    report = {
        "c_files": len(sources),
        "c_file_median_lines": statistics.median(lines[p] for p in sources) if sources else 0,
        "lines": total,
        "code_lines": code_total,
        "comment_lines": total - code_total - blank_total,
        "test_lines": test_lines,
        "functions": len(functions),
        "duplicate_name_percent": percent(duplicated, len(defined_in)),
        "one_word_name_percent": percent(len(findings["one-word-names"]), len(functions)),
        "external_functions": len(external),
        "single_caller_percent": percent(len(findings["single-caller"]), len(called)),
        "single_caller_with_tests_percent": percent(
            sum(len(callers[n] | test_callers[n]) == 1 for n in external), sum(bool(callers[n] | test_callers[n]) for n in external)),
        "single_user_files": len(findings["single-user-files"]),
        "hand_written_hash_table_files": len(findings["hash-tables"]),
        "assertions_per_10000_lines": round(assertions * 10000 / total, 1) if total else 0,
        "long_lines": len(findings["long-lines"]),
        "enum_only_includes": len(findings["enum-only-includes"]),
        "struct_tags_in_two_headers": len(findings["struct-tags"]),
        "folder_cycles": len(findings["folder-cycles"]),
        "repeated_file_names": len(findings["file-names"]),
        "headless_files": len(findings["headless-files"]),
        "long_test_lines": len(findings["long-test-lines"]),
        "unexplained_folders": len(findings["unexplained-folders"]),
        "fragment_check_names": len(findings["fragment-check-names"]),
        "fan_in": {f: len(fan_in[f]) for f in folders_seen},
        "fan_out": {f: len(fan_out[f]) for f in folders_seen},
    }
    return report, findings


def percent(part, whole):
    return round(part * 100 / whole, 1) if whole else 0.0


def main():
    parser = argparse.ArgumentParser(description="Reports the shape of the C source.")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--list", metavar="MEASURE", help="print the findings of one measure")
    parser.add_argument("--check", action="store_true", help="fail when a measure of the whole tree is above its ceiling")
    parser.add_argument("folders", nargs="*", metavar="FOLDER")
    args = parser.parse_args()
    report, findings = measure(args.folders)
    if args.list:
        if args.list not in findings:
            sys.exit(f"shape: unknown measure '{args.list}'; the measures are: {', '.join(findings)}")
        sys.stdout.writelines(line + "\n" for line in findings[args.list])
        return
    if args.check:
        failed = [m for m in CEILING if len(findings[m]) > CEILING[m]]
        for measure_name in failed:
            print(f"shape: {len(findings[measure_name])} {measure_name}, at most {CEILING[measure_name]} are allowed:", file=sys.stderr)
            sys.stderr.writelines(f"  {line}\n" for line in findings[measure_name])
        sys.exit(1 if failed else 0)
    if args.json:
        print(json.dumps(report, indent=2))
        return
    for key, value in report.items():
        if not isinstance(value, dict):
            print(f"{key.replace('_', ' '):32} {value}")
    print(f"\n{'folder':20} {'used by':>8} {'uses':>6}")
    for folder in report["fan_in"]:
        print(f"{folder:20} {report['fan_in'][folder]:8} {report['fan_out'][folder]:6}")


main()
