#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cairn symbolize caches extracted symbols: the cache is used again, but never if it is stale, damaged or owned by
# another user.
cd "$(dirname "$0")/../../.." || exit 1
. tests/e2e/lib.sh
for tool in gcc nm truncate; do
        command -v $tool >/dev/null || skip_all "$tool is not installed"
done
cd "$tmp" || exit 1
# A symcache belongs to one version of the program: after a concurrent rebuild cached ones would not be found.
cp "$cairn" "$tmp/cairn" && cairn=$tmp/cairn
unset CAIRN_CACHE_DIR
XDG_CACHE_HOME=$tmp/xdg
export XDG_CACHE_HOME
cache=$XDG_CACHE_HOME/cairn

program() { # NAME FUNCTION
        printf '__attribute__((noinline)) int %s(int x)\n{\n        return x * 3;\n}\nint main(int c, char **v)\n{\n        return %s(c) + !v;\n}\n' \
                "$2" "$2" >"$1.c"
        gcc -O1 -g -o "$1.new" "$1.c" && mv "$1.new" "$1"
        nm "$1" | awk 'NF == 3 && $2 ~ /[Tt]/ { print $1 }' >"$1.list"
}

# Modified long enough ago that a later change has different times.
is_settled() { [ "$(($(date +%s%N) - $(stat -c %.9Z "$1" | tr -d .)))" -gt 100000000 ]; }

# ask FILE [OPTION]...: resolves all its symbols, so that the whole file is read; sets $from.
ask() {
        asked=$1; shift
        "$cairn" symbolize --verbose -e "$asked" "$@" <"$asked.list" >got 2>err || diag "$(cat err)"
        from=$(sed -n 's/^cairn symbolize: symbols come from //p' err)
}
symcaches() { find "$cache" -name '*.symcache' 2>/dev/null | wc -l; }

program prog first
wait_for "the file's time to pass" is_settled prog

ask prog --no-cache
cp got want
is "$from" "the units that cover the addresses" "without a cache only the units that cover the addresses are read"
is "$(symcaches)" 0 "nothing is cached with --no-cache"
ok "a function is found" grep -q '^first$' want

ask prog
is "$from" "the whole file" "the first time a file is read"
is "$(symcaches)" 1 "the file's symbols are cached"
is "$(stat -c %a "$cache") $(stat -c %a "$cache"/*.symcache)" "700 600" "only for this user"
ask prog
is "$from" "the cache" "the second time it is not"
ok "with the same results" cmp want got
for format in llvm json; do
        ask prog --format=$format; cp got got.cache
        ask prog --format=$format --no-cache
        ok "also as $format" cmp got got.cache
done

# Changed files are never resolved from the cache.
program prog second
ask prog
is "$from" "the whole file" "a file that was replaced is read again"
ok "with its new names" grep -q '^second$' got
program prog second
wait_for "the file's time to pass" is_settled prog
ask prog
cp got want
before=$(stat -c %Y prog)
sed 's/second/sEcond/g' prog >prog.edited && cat prog.edited >prog && touch -d "@$before" prog
ask prog
is "$from" "the whole file" "a file changed in place, with the same size and time, is read again"
ok "with its new names" grep -q '^sEcond$' got
wait_for "the file's time to pass" is_settled prog
ask prog
cp got want
ask prog
is "$from" "the cache" "the settled file is cached again"

# Damaged symcaches.
symcache=$(find "$cache" -name '*.symcache' -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
cp "$symcache" good
damage() { # NAME
        ask prog
        is "$from" "the whole file" "$1: it is read again"
        ok "with the same results" cmp want got
        ask prog
        is "$from" "the cache" "$1: it is cached again"
}
truncate -s 100 "$symcache"
damage "a symcache that is cut off"
: >"$symcache"
damage "an empty symcache"
printf 'XXXXXXXX' | dd of="$symcache" bs=1 seek=40 conv=notrunc 2>/dev/null
damage "a damaged header"
size=$(stat -c %s good)
head -c $((size - 4096)) /dev/zero | tr '\0' '\377' | dd of="$symcache" bs=4096 seek=1 conv=notrunc 2>/dev/null
ask prog
ok "a damaged body: the same results" cmp want got
ask prog
is "$from" "the cache" "the file with the damaged symcache is cached again"
ok "undamaged" cmp good "$symcache"

# Directories that must not be used.
rm -rf "$cache"; mkdir "$tmp/elsewhere"; ln -s "$tmp/elsewhere" "$cache"
ask prog
is "$from $(find "$tmp/elsewhere" -type f | wc -l)" "the units that cover the addresses 0" \
        "a link in place of the directory is not followed"
rm "$cache"; mkdir -m 777 "$cache"; chmod 777 "$cache"
ask prog
is "$from $(symcaches)" "the units that cover the addresses 0" "a directory writable by others is not used"
rm -rf "$cache"
XDG_CACHE_HOME=relative ask prog
is "$(ls -d relative 2>/dev/null)" "" "a relative directory is not used"
(unset XDG_CACHE_HOME HOME; ask prog; cmp -s want got)
is $? 0 "without HOME it works"
CAIRN_CACHE_DIR='' ask prog
is "$(symcaches)" 0 "an empty CAIRN_CACHE_DIR turns it off"
CAIRN_CACHE_DIR=$tmp/mine ask prog
is "$(find "$tmp/mine" -name '*.symcache' | wc -l)" 1 "CAIRN_CACHE_DIR names another directory"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
        mkdir "$tmp/theirs"; chown 65534:65534 "$tmp/theirs"
        XDG_CACHE_HOME=$tmp/theirs ask prog
        is "$(find "$tmp/theirs" -mindepth 1 | wc -l)" 0 "root writes nothing to another user's cache"
fi

# Concurrent processes.
rm -rf "$cache"
for i in 1 2 3 4; do
        "$cairn" symbolize -e prog <prog.list >"got.$i" 2>&1 &
        eval "job$i=$!"
done
# shellcheck disable=SC2154  # set by eval
for pid in $job1 $job2 $job3 $job4; do wait "$pid"; done
ok "concurrent processes give the same results" sh -c 'for i in 1 2 3 4; do cmp want got.$i || exit 1; done'
is "$(find "$cache" -type f | wc -l)" 1 "concurrent processes leave one symcache and nothing else"

# A few addresses of a file with many units: only units that cover them are read, and the result is not cached.
rm -rf "$cache"
"$cairn" symbolize -e "$cairn" --verbose "$(nm "$cairn" | awk '$3 == "main" { print $1 }')" >got 2>err
is "$(sed -n 's/.*come from //p' err) $(head -1 got) $(symcaches)" "the units that cover the addresses main 0" \
        "one address of a big file"
done_testing
