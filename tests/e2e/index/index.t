#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn index and its subcommands stat, dump and verify on a program compiled here.
set -eu
cairn=${CAIRN_BUILD:-$PWD/build}/cairn
count=0
ok() { # STATUS NAME
        count=$((count + 1))
        if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
}
check() { # NAME COMMAND...
        name=$1
        shift
        if "$@"; then ok 0 "$name"; else ok 1 "$name"; fi
}
for tool in cc c++ strip python3; do
        command -v $tool > /dev/null || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
member() { # FILE NAME
        python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"
}
quietly() { "$@" > out 2>&1; }
exit_of() {
        code=0
        "$@" > out 2> err || code=$?
        echo $code
}

cat > prog.c << 'END'
static inline __attribute__((always_inline)) int inner(int x) { return x * 3 + 1; }
__attribute__((noinline)) int outer(int x) { return inner(x) + inner(x + 1); }
int main(int argc, char **argv) { (void)argv; return outer(argc); }
END
cc -g -O1 -Wl,--build-id -o prog prog.c
strip -o stripped prog

check "a stripped file is indexed with its remaining symbols" quietly "$cairn" index stripped
"$cairn" index stat --json stripped > before.json
check "its quality is below DWARF" [ "$(member before.json quality)" != dwarf ]
check "the unstripped file replaces it" quietly "$cairn" index prog
"$cairn" index stat --json stripped > after.json
check "quality is DWARF now, by the same build-id" [ "$(member after.json quality)" = dwarf ]
check "the generation grew" [ "$(member after.json generation)" -gt "$(member before.json generation)" ]
check "there are ranges" [ "$(member after.json ranges)" -gt 5 ]
check "there are functions" [ "$(member after.json functions)" -ge 3 ]
check "there is a file" [ "$(member after.json files)" -ge 1 ]
check "bytes are counted" [ "$(member after.json index_bytes)" -gt 100 ]
"$cairn" index stripped > kept
check "the worse file does not replace the better symbols" grep -q better kept
"$cairn" index stat --json prog > named.json
"$cairn" index stat --json "$(member after.json build_id)" > again.json
check "a build-id names the same object" cmp -s named.json again.json

check "bytes are reported by kind" quietly "$cairn" index stat prog
check "among them sites" grep -q "sites [1-9]" out
check "the index is consistent" quietly "$cairn" index verify
check "and the amount verified is reported" quietly "$cairn" index verify --json
check "with no problem" [ "$(member out shared_blocks)" -eq 0 ]

cat > dumped.py << 'END'
# Compares the dump of an object, as text and JSON, with a fresh extraction of the file, at both ends of each range and
# after each range without a successor.
import json, subprocess, sys
cairn, file = sys.argv[1:3]
def run(*arguments, **more):
    return subprocess.run([cairn, *arguments], check=True, capture_output=True, text=True, **more).stdout
ranges = [json.loads(line) for line in run("index", "dump", "--json", file).splitlines()]
text = ""
for r in ranges:
    text += "%s\t%s\n" % (r["start"], r["end"])
    for f in r["frames"]:
        text += "\t%s\t%s\t%s\t%d%s\n" % (f["function"], f["linkage_name"], f["file"], f["line"],
                                           "\tinlined" if f["inlined"] else "")
assert text == run("index", "dump", file)
want, before = {}, 0
for i, r in enumerate(ranges):
    start, end = int(r["start"], 16), int(r["end"], 16)
    assert before <= start < end and r["frames"], r
    if before < start:
        want[before] = []
    want[start] = want[end - 1] = r["frames"]
    before = end
want[before] = []
asked = "".join("%#x\n" % address for address in want)
answers = json.loads(run("symbolize", "-e", file, "--format=json", input=asked))["results"]
assert len(answers) == len(want)
names = ("function", "file", "line", "inlined")
for address, answer in zip(want, answers):
    got = [tuple(f[name] for name in names) for f in answer["frames"]]
    assert int(answer["address"], 16) == address and got == [tuple(f[name] for name in names)
                for f in want[address]], answer
assert len(ranges) == json.loads(run("index", "stat", "--json", file))["ranges"]
print(len(ranges), sum(len(r["frames"]) > 1 for r in ranges),
      sum(bool(f["linkage_name"]) for r in ranges for f in r["frames"]))
END
cat > prog.cc << 'END'
#include <algorithm>
#include <string>
#include <vector>
namespace shop {
struct Cart { std::vector<std::string> names; void sort() { std::sort(names.begin(), names.end()); } };
}
int main(int argc, char **argv)
{
        shop::Cart c;
        for (int i = 0; i < argc; i++)
                c.names.push_back(argv[i]);
        c.sort();
        return (int)c.names.size();
}
END
check "a dump agrees with a fresh extraction" quietly python3 dumped.py "$cairn" prog
c++ -g -O2 -Wl,--build-id -o prog-cc prog.cc
"$cairn" index prog-cc > /dev/null
python3 dumped.py "$cairn" prog-cc > sums
check "also for C++, in several chunks" [ -s sums ]
check "with inlined calls and linkage names" awk '{ exit !($1 > 500 && $2 > 500 && $3 > 500) }' sums
"$cairn" index dump --json prog-cc > lines
check "and where functions are declared" grep \
        -q '"function":"main","linkage_name":"","file":"[^"]*/prog.cc","line":[0-9]*,"start_line":7,' lines
"$cairn" index dump prog-cc > first
"$cairn" index dump "$("$cairn" index stat --json prog-cc | sed 's/.*"build_id":"\([0-9a-f]*\)".*/\1/')" > by-id
check "a build-id selects the dumped object" cmp -s first by-id
"$cairn" index --data again prog-cc prog > /dev/null
"$cairn" index dump --data again prog-cc > second
check "the same file in another index gives the same dump" cmp -s first second
"$cairn" index prog-cc > /dev/null
"$cairn" index dump prog-cc > second
check "also after it was indexed again" cmp -s first second
check "a dump that cannot be written is a failure" [ "$(exit_of sh -c "$cairn index dump prog-cc > /dev/full")" -eq 1 ]
check "an object that is not in the index cannot be dumped" \
        [ "$(exit_of "$cairn" index dump --data again stripped-other)" -eq 64 ]
check "not an unknown build-id either" [ "$(exit_of "$cairn" index dump 00112233)" -eq 1 ]

check "a file that is not ELF is bad data" [ "$(exit_of "$cairn" index prog.c)" -eq 2 ]
check "and says so with the file's name" grep -q "prog.c.*not an ELF" err
check "a good file beside it is indexed" [ "$(exit_of "$cairn" index --data other prog.c prog)" -eq 2 ]
check "as its stat says" quietly "$cairn" index stat --data other prog
mkdir -p tree/sub/.build-id elsewhere empty
cp prog tree/sub/plain.txt
cp prog.c tree/sub/prog
cp stripped "tree/sub/.build-id/a b.debug"
echo 'int other(int x) { return x + 1; } int main(void) { return other(1); }' > other.c
cc -g -O1 -Wl,--build-id -o elsewhere/other other.c
ln -s "$dir/elsewhere/other" tree/link
ln -s "$dir/elsewhere" tree/links
ln -s tree way
check "a directory is indexed" quietly "$cairn" index --data trees --json way
check "by content, with an object a line" python3 - << 'END'
import json
lines = [json.loads(line) for line in open("out")]
assert [line["file"] for line in lines] == ["way/sub/.build-id/a b.debug", "way/sub/plain.txt"], lines
assert lines[0]["quality"] != "dwarf" and lines[1]["quality"] == "dwarf", lines
assert all(line["replaced"] and line["file_bytes"] > 1000 for line in lines), lines
END
check "symbolic links out of it are not followed" \
        [ "$(exit_of "$cairn" index stat --data trees elsewhere/other)" -eq 1 ]
check "files and directories mix" quietly "$cairn" index --data trees elsewhere/other tree
check "and are summed up" grep -qx "3 files: 2 indexed, 1 kept as they were, 0 failed; .* MB/s" out
check "a directory without ELF files is a failure" [ "$(exit_of "$cairn" index --data trees empty)" -eq 1 ]
check "a failed file has its error in JSON" [ "$(exit_of "$cairn" index --data trees --json prog.c prog)" -eq 2 ]
check "beside the others" python3 - << 'END'
import json
bad, good = [json.loads(line) for line in open("out")]
assert bad["file"] == "prog.c" and "not an ELF" in bad["error"], bad
assert good["file"] == "prog" and good["quality"] == "dwarf", good
END
cat > terminal.py << 'END'
import os, pty, re, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
data = b""
try:
    while chunk := os.read(fd, 65536):
        data += chunk
except OSError:
    pass
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 2
lines = data.decode().replace("\r\n", "\n").split("\n")
steps = lines[0].split("\r\033[K")[1:] + lines[1].split("\r\033[K")[1:]
assert re.fullmatch(r"0/3 files, \d+\.\d MB/s: prog\.c", steps[0]), lines
assert any(re.fullmatch(r"2/3 files, \d+\.\d MB/s: tree/sub/plain\.txt", s) for s in steps), lines
assert len(lines) == 3 and "prog.c" in lines[0] and lines[1].endswith(" MB/s") and "1 failed" in lines[1], lines
END
check "on a terminal one line shows the progress" python3 terminal.py "$cairn" index --data terminal prog.c tree

check "an unknown build-id is a failure" [ "$(exit_of "$cairn" index stat 00112233)" -eq 1 ]
check "no index is a failure" [ "$(exit_of "$cairn" index stat --data nowhere prog)" -eq 1 ]
check "and nothing is made of it" [ ! -e nowhere ]
check "no argument is a usage error" [ "$(exit_of "$cairn" index)" -eq 64 ]
echo "1..$count"
