# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154  # what tests/e2e/lib.sh sets
#
# To be sourced with a running service: two builds of a program whose sources differ, "old" and "new", with samples.

# With $has_moved set, each build is made in a directory of its own.
has_moved=${has_moved:-}
mkdir -p "$tmp/src" "$tmp/src-old" "$tmp/src-new" "$tmp/old" "$tmp/new"
cat >"$tmp/old/app.c" <<'END'
volatile int sink;
int work(int x)
{
        sink += x;
        sink -= 1;
        for (int i = 0; i < x; i++)
                sink ^= i;
        return sink;
}
int main(void) { return work(3); }
END
cat >"$tmp/new/app.c" <<'END'
/* A comment of
 * two lines. */
volatile int sink;
int work(int x)
{
        sink += x;
        for (int i = 0; i < x; i++)
                sink ^= i * 2;
        sink |= 4;
        return sink;
}
int main(void) { return work(3); }
END
# build NAME: the program of a version
build() {
        source=$tmp/src${has_moved:+-$1}
        cp "$tmp/$1/app.c" "$source/app.c"
        gcc -g -O0 -Wl,--build-id -o "$tmp/$1/app" "$source/app.c" || bail_out "cannot build a program"
        "$CAIRN_BUILD/cairn-upload" --server "$url" --sources "$source" "$tmp/$1/app" >"$tmp/upload.log" 2>&1 ||
                bail_out "cannot upload: $(cat "$tmp/upload.log")"
}
# sample NAME LINE VALUE
sample() {
        address=$(objdump --dwarf=decodedline "$tmp/$1/app" |
                awk -v line="$2" '$1 == "app.c" && $2 == line { sub("0x", "", $3); print $3; exit }')
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" "build_id=$(build_id_of "$tmp/$1/app")" \
                "addresses=$address" "values=$3" service=lines mapping_file=app
        "$cairn" import --server "$url" --time now --label "version=$1" "$tmp/one.otlp" >"$tmp/import.log" 2>&1 ||
                bail_out "cannot import: $(cat "$tmp/import.log")"
}
build old
build new
wait_metric cairn_objects_indexed_total 2
for line in 4:10 5:20 6:30 7:40 8:50; do sample old ${line%:*} ${line#*:}; done
for line in 6:11 7:31 8:44 9:5 10:51; do sample new ${line%:*} ${line#*:}; done
