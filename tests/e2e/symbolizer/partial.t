#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A partially unreadable file: the rest is used, and every listing reports the missing parts.
. tests/e2e/lib.sh
for tool in gcc readelf python3 curl zstd; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done

cat >"$tmp/a.c" <<'END'
int other(int);
int main(int argc, char **argv) { (void)argv; return other(argc); }
END
printf '%s\n' 'int other(int x);' 'int other(int x) { return x * 3; }' >"$tmp/b.c"
(cd "$tmp" && gcc -g -gdwarf-4 -O1 -gz=none -Wl,--build-id -o whole a.c b.c) || bail_out "cannot compile"
# The first DIE of the second unit gets an undefined abbreviation.
python3 - "$tmp/whole" "$tmp/broken" <<'END'
import re, subprocess, sys
dump = subprocess.run(["readelf", "--debug-dump=info", sys.argv[1]], capture_output=True, text=True).stdout
sections = subprocess.run(["readelf", "-SW", sys.argv[1]], capture_output=True, text=True).stdout
start = int(re.search(r"\.debug_info\s+PROGBITS\s+\w+\s+(\w+)", sections).group(1), 16)
units = [int(u, 16) for u in re.findall(r"<0><(\w+)>: Abbrev", dump)]
data = bytearray(open(sys.argv[1], "rb").read())
data[start + units[1]] = 0x7f
open(sys.argv[2], "wb").write(data)
END
main=$(nm "$tmp/broken" | awk '$3 == "main" { print $1 }')
other=$(nm "$tmp/broken" | awk '$3 == "other" { print $1 }')
reason='1 of [0-9]+ DWARF units could not be read completely; the first at 0x[0-9a-f]+: bad data'

# ---- files

out=$("$cairn" symbolize -e "$tmp/broken" "$main" "$other" 2>"$tmp/err")
is $? 0 "a broken unit is no failure"
is "$(printf '%s\n' "$out" | sed -n 1p)" main "the intact unit's function is found"
like "$(printf '%s\n' "$out" | sed -n 2p)" 'a\.c:2$' "the intact unit's function has its line"
is "$(printf '%s\n' "$out" | sed -n 3p)" other "the damaged one's comes from the symbols"
is "$(grep -c partial "$tmp/err")" 1 "one line says that symbols are partial"
like "$(cat "$tmp/err")" "^cairn symbolize: symbols are partial: $reason\$" "the message gives the reason"
like "$("$cairn" symbolize --format=json -e "$tmp/broken" "$main" "$other" 2>/dev/null)" "\"partial\":\"$reason\"" \
        "JSON has the reason"
out=$("$cairn" symbolize -e "$tmp/whole" "$main" 2>&1 >/dev/null)
is "$out" "" "nothing is reported for an intact file"

like "$("$cairn" index --data "$tmp/indexed" "$tmp/broken")" "broken: partial: $reason\$" "cairn index says so"
like "$("$cairn" index stat --data "$tmp/indexed" "$tmp/broken")" "^partial: +$reason\$" \
        "cairn index stat says that symbols are partial"
like "$("$cairn" index stat --json --data "$tmp/indexed" "$tmp/broken")" "\"partial\":\"$reason\"" \
        "the JSON of cairn index stat says that symbols are partial"
"$cairn" index --data "$tmp/indexed" "$tmp/whole" >/dev/null
unlike "$("$cairn" index stat --data "$tmp/indexed" "$tmp/broken")" partial "the whole file replaces it"
like "$("$cairn" index --data "$tmp/indexed" "$tmp/broken")" "kept .* which are better" \
        "the partial file does not replace the whole one"

# ---- the service

start_server
put_object debuginfo "$tmp/broken"
wait_metric cairn_objects_partial_total 1
wait_metric cairn_objects_indexed_total 1
like "$(cat "$server_log")" "symbols are partial: $reason" "the service logs it once"
like "$("$cairn" debuginfo list --server "$url")" "partial: $reason\$" "cairn debuginfo list says so"
like "$("$cairn" debuginfo list --server "$url" --json)" "\"partial\":\"$reason\"" \
        "the JSON of cairn debuginfo list says so"
answers 200 "\"quality\":\"dwarf\",\"generation\":[0-9]+,\"partial\":\"$reason\"" "and an answer with its symbols" \
        -H 'Content-Type: application/json' "$url/api/v1/symbolize" \
        -d "{\"objects\":[{\"build_id\":\"$(build_id_of "$tmp/broken")\",\"addresses\":[\"$main\"]}]}"
"$cairn" symbolize --server "$url" --build-id "$(build_id_of "$tmp/broken")" "$main" >/dev/null 2>"$tmp/err"
like "$(cat "$tmp/err")" "^cairn symbolize: symbols are partial: $reason\$" \
        "cairn symbolize says it of a service's symbols too"
is "$("$cairn" symbolize --format=json --server "$url" --build-id "$(build_id_of "$tmp/broken")" "$main" 2>/dev/null |
        jq -c '[.quality, .partial != null]')" \
        '["dwarf",true]' "the JSON of a service's symbols has quality and reason"
done_testing
