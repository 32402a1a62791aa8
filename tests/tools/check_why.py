#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare the unit, DIE offsets and line rows of `cairn why` with llvm-dwarfdump --lookup and libdw.

    check_why.py CAIRN FILE DEBUG-FILE COUNT [--no-libdw]

Uses COUNT addresses spread over the function symbols of DEBUG-FILE that are resolved by DWARF. For each, the unit's
offset, the innermost scope's DIE, the line, the column and the file name must be those of llvm-dwarfdump, and every
scope's DIE and all frames those of libdw. Prints differences; exits with 1 if there is one, or if nothing was
compared.
"""
import json
import os
import re
import subprocess
import sys

cairn, path, debug, wanted = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
with_libdw = "--no-libdw" not in sys.argv


def functions():
    found = []
    for line in subprocess.run(["nm", "-S", debug], capture_output=True, text=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tT" and int(parts[1], 16) > 8:
            found.append((int(parts[0], 16), int(parts[1], 16)))
    return sorted(set(found))


def lookup(address):
    out = subprocess.run(["llvm-dwarfdump", f"--lookup={address:#x}", debug], capture_output=True, text=True).stdout
    dies = re.findall(r"^(0x[0-9a-f]+): +DW_TAG_(\w+)", out, re.M)
    unit = re.search(r"^(0x[0-9a-f]+): Compile Unit", out, re.M)
    line = re.search(r"Line info: file '([^']*)', line (\d+), column (\d+)", out)
    scopes = [int(d, 16) for d, tag in dies if tag in ("subprogram", "inlined_subroutine")]
    return (int(unit.group(1), 16) if unit else None, scopes[-1] if scopes else None,
            (os.path.basename(line.group(1)), int(line.group(2)), int(line.group(3))) if line else None)


def report(addresses):
    args = [cairn, "why", "--json", path, *[f"{a:#x}" for a in addresses]]
    if with_libdw:
        args.insert(2, "--second-opinion")
    run = subprocess.run(args, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"# cairn why: {run.stderr}")
    return json.loads(run.stdout)["results"]


everything = functions()
step = max(1, len(everything) // wanted)
addresses = [start + size * (i % 4) // 4 for i, (start, size) in enumerate(everything[::step])][:wanted]
compared = differ = 0
for result in [r for at in range(0, len(addresses), 64) for r in report(addresses[at:at + 64])]:
    if result.get("source") != "dwarf":
        continue
    address = int(result["address"], 16)
    scopes = [int(s["die"], 16) for s in result["scopes"]]
    row = result.get("line_row")
    ours = (int(result["unit"]["offset"], 16), scopes[0],
            (os.path.basename(row["file"]), row["line"], row["column"]) if row else None)
    theirs = lookup(address)
    opinion = result.get("second_opinion")
    compared += 1
    # LLVM prints a unit's DIE for an address in a lexical block that inlines nothing; then it names no scope.
    if ours[0] != theirs[0] or (theirs[1] is not None and ours[1] != theirs[1]) or (theirs[2] and ours[2] != theirs[2]):
        differ += 1
        print(f"# {address:#x}: ours {ours}, llvm-dwarfdump {theirs}")
    elif with_libdw and (not opinion["agrees"] or [int(f["die"], 16) for f in opinion["frames"]] != scopes):
        differ += 1
        print(f"# {address:#x}: ours {[hex(s) for s in scopes]}, libdw {opinion['frames']}")
    elif not result["unit_gives_frames"]:
        differ += 1
        print(f"# {address:#x}: the unit does not give the frames of the answer")
print(f"# {compared} addresses compared, {differ} differ")
sys.exit(1 if differ or not compared else 0)
