#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A spool from before the first release is refused and not changed; a symcache from before it is replaced.
# data-format.t has the data directories.
. tests/e2e/lib.sh
for tool in python3 xz; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
agent=$CAIRN_BUILD/cairn-agent
cat >"$tmp/scrape.yaml" <<'END'
scrape_configs:
  - job_name: none
    static_configs: [{targets: ["127.0.0.1:1"]}]
END
picture() { (cd "$tmp/spool" && find . ! -name lock -type f -printf '%p %m %s %T@\n' -exec sha256sum {} + | sort); }
checked=0
for archive in tests/corpus/unreleased_directory/*-agent.tar.xz; do
        commit=${archive##*/}
        commit=${commit%-agent.tar.xz}
        rm -rf "$tmp/spool" "$tmp/cache"
        tar -C "$tmp" -xf "$archive" || bail_out "$archive does not unpack"
        picture >"$tmp/before"
        for command in "$agent --pid $$" "$cairn scrape $tmp/scrape.yaml"; do
                # Words of the command are arguments.
                # shellcheck disable=SC2086
                timeout 60 $command --server http://127.0.0.1:1 --spool "$tmp/spool" 2>"$tmp/err"
                code=$?
                name=${command%% --*}
                like "$code $(cat "$tmp/err")" \
                        "^2 .*the spool '$tmp/spool' holds batches of another version of this program" \
                        "$commit: ${name##*/} refuses the spool"
                picture >"$tmp/after"
                ok "  and changes nothing" cmp "$tmp/before" "$tmp/after"
        done
        ls "$tmp/cache" >"$tmp/cached"
        is "$(wc -l <"$tmp/cached")" 1 "$commit: a symcache is in the cache directory"
        address=$(nm "$tmp/program" | awk '$3 == "main" { print $1 }')
        for again in new cached; do
                CAIRN_CACHE_DIR=$tmp/cache "$cairn" symbolize -e "$tmp/program" "0x$address" >"$tmp/out" 2>"$tmp/err"
                is "$(paste -sd ' ' "$tmp/out")" "main ./program.c:2" "  it is symbolized, with a $again symcache"
                is "$(cat "$tmp/err")" "" "  without a message"
        done
        is "$(find "$tmp/cache" -name '*.symcache' | wc -l)" 1 "  the new symcache is another file"
        checked=$((checked + 1))
done
ok "directories of $checked commits were tried" test "$checked" -ge 2
done_testing
