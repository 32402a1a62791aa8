#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Offsets of fields of C structures: those that the compiler computes.
. tests/e2e/lib.sh

cat >"$tmp/program.c" <<'C'
#include <stddef.h>
#include <stdio.h>

struct incomplete;
struct inner {
        char a;
        long b[3];
};
typedef struct {
        int kind : 3, rest : 29;
        union {
                char narrow;
                struct {
                        short first, second;
                };
        };
        const struct inner nested;
        struct incomplete *link;
        struct inner *pointer;
} record;

record here;

int main(void)
{
        printf("record.second %zu %zu\n", offsetof(record, second), sizeof here.second);
        printf("record.nested.b %zu %zu\n", offsetof(record, nested.b), sizeof here.nested.b);
        printf("record.link %zu %zu\n", offsetof(record, link), sizeof here.link);
        printf("inner %zu %zu\n", (size_t)0, sizeof(struct inner));
        return here.kind;
}
C
gcc -g -Wl,--build-id=sha1 -o "$tmp/program" "$tmp/program.c"
id=$(build_id_of "$tmp/program")
"$tmp/program" >"$tmp/want"

start_server
"$cairn" debuginfo offsets "$id" record.link --server "$url" >/dev/null 2>&1
is $? 1 "an object that is not stored is a failure"
"${CAIRN_BUILD:-$PWD/build}/cairn-upload" --server "$url" "$tmp/program" >/dev/null 2>&1
"$cairn" debuginfo offsets "$id" record.second record.nested.b record.link inner --server "$url" | tr -s ' ' >"$tmp/got"
is "$(sed 's/ *$//' "$tmp/got")" "$(cat "$tmp/want")" \
        "fields of typedefs, unnamed and nested structures have the compiler's offsets"
json=$("$cairn" debuginfo offsets "$id" record.kind incomplete nothing.x record.absent record.pointer.b \
        --server "$url" --json)
is "$(printf '%s' "$json" | jq -r '[.fields[].state] | join(" ")')" "bit_field no_struct no_struct no_field no_field" \
        "fields that are not found have a state"
"$cairn" debuginfo offsets "$id" nothing.x --server "$url" >/dev/null 2>&1
is $? 1 "a field that is not found is a failure"
"$cairn" debuginfo offsets "$id" record..x --server "$url" >/dev/null 2>&1
is $? 64 "a malformed field is a usage error"
stop_server
is "$("$cairn" debuginfo offsets "$id" record.link --data "$data" | tr -s ' ' | cut -d ' ' -f 2,3)" \
        "$(sed -n 's/record.link //p' "$tmp/want")" "a data directory gives the same"
done_testing
