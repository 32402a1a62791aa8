#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Writes the assembly of functions that load their library at the first call (cli/shared/lazy_libraries.h), one for each
# function of the libraries that the objects use.
#   scripts/lazy-libraries.sh stubs|references "-lcurl -lelf" OBJECT-OR-ARCHIVE... >lazy_libraries.S
# "references" writes a list of the same functions instead: a shared library made of it and linked with the libraries
# shows that they have all of them, and is what dpkg-shlibdeps and ldd read in place of the program.
set -eu
export LC_ALL=C
kind=$1 libraries=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm --undefined-only "$@" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u >"$work/undefined"
nm --defined-only "$@" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u >"$work/own"
comm -23 "$work/undefined" "$work/own" >"$work/used"
for library in $libraries; do
        file=$("${CC:-gcc}" -print-file-name="lib${library#-l}.so")
        soname=$(readelf -d "$file" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
        [ -n "$soname" ] || { echo "lazy-libraries: '$file' has no soname" >&2; exit 1; }
        nm -D --defined-only "$file" | awk -v used="$work/used" -v soname="$soname" '
                BEGIN { while ((getline name < used) > 0) is_used[name] = 1 }
                { name = $NF; sub("@.*", "", name) }
                !(name in is_used) || is_written[name]++ { next }
                $(NF - 1) !~ /[TWi]/ {
                        print "lazy-libraries: " soname " has the variable " name ": link it" >"/dev/stderr"
                        exit 1
                }
                { print soname, name }'
done >"$work/functions"
awk 'seen[$2]++ { print "lazy-libraries: " $2 " is in two libraries" >"/dev/stderr"; exit 1 }' "$work/functions"
awk -v kind="$kind" '
        kind == "references" {
                if (NR == 1) print ".data"
                print ".quad " $2
                next
        }
        NR == 1 { print "#include \"cli/shared/lazy_stub.inc\"" }
        $1 != library { library = $1; libraries[++library_count] = library }
        { print "lazy_function " $2 ", " count++; names[count] = $2; of[count] = library_count - 1 }
        END {
                if (kind == "references") {
                        print ".section .note.GNU-stack,\"\",%progbits"
                        exit
                }
                print "lazy_begin_tables " count ", " library_count
                print "lazy_libraries:"
                for (i = 1; i <= library_count; i++) print "lazy_text \"" libraries[i] "\""
                print "lazy_names:"
                for (i = 1; i <= count; i++) print "lazy_text \"" names[i] "\""
                print "lazy_library_of:"
                for (i = 1; i <= count; i++) print ".byte " of[i]
                print ".section .note.GNU-stack,\"\",%progbits"
        }' "$work/functions"
