#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make release builds only from the tagged commit, with checksums and notes; a dry run reports problems.
. tests/e2e/lib.sh
for tool in git make xz sha256sum; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

# The current sources, in a repository of their own.
mkdir "$tmp/src"
if git rev-parse -q --git-dir >/dev/null 2>&1; then
        git ls-files -co --exclude-standard -z
else
        find . -path ./build -prune -o -type f -printf '%P\0'
fi | xargs -0 sh -c 'for f; do [ ! -e "$f" ] || printf "%s\\0" "$f"; done' sh | tar -c --null -T - |
        tar -x -C "$tmp/src"
cd "$tmp/src" || bail_out "no sources"
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null
export XZ_LEVEL=-0
unset MAKEFLAGS MAKELEVEL MAKEOVERRIDES
commit() { git add -A && git commit -q -m "$1" || bail_out "git commit fails"; }
git init -q . && commit first
version=$(sed -n 's/^VERSION := //p' Makefile)
sed -i "0,/^## /s/^## .*/## $version (not released)/" CHANGELOG.md
git diff --quiet || commit unreleased

# refuses PATTERN NAME: a release fails with this message, and builds nothing.
refuses() {
        make release TARBALL=1 >"$tmp/out" 2>&1
        is $? 2 "$2 is refused"
        like "$(cat "$tmp/out")" "release: $1" "  the message gives the reason: $1"
        ok "  and nothing is built" test ! -e build/release
}
refuses "HEAD is not the commit of the tag v$version" "a commit without a tag"
ok "a dry run builds it" make release DRY_RUN=1 TARBALL=1
like "$ok_out" "would be refused: HEAD is not the commit" "  a dry run says what a release would refuse"
like "$ok_out" "would be refused: the first heading of CHANGELOG.md is '## $version \(not released\)'" "  all of it"
rm -r build/release
git tag "v$version"
refuses "the first heading of CHANGELOG.md is" "a changelog without a date"
sed -i "0,/^## /s/^## .*/## $version (2026-12-24)/" CHANGELOG.md
refuses "there are changes that are not committed" "a change that is not committed"
commit dated
refuses "HEAD is not the commit of the tag" "a commit after the tag"
git tag -f "v$version" >/dev/null 2>&1
sed -i "1s/([^)]*)/(99.0.0)/" debian/changelog
commit other
git tag -f "v$version" >/dev/null 2>&1
refuses "debian/changelog has the version 99.0.0" "another version of the packages"
git reset -q --hard HEAD~1
git tag -f "v$version" >/dev/null 2>&1

ok "the commit of the tag is released" make release TARBALL=1
unlike "$ok_out" 'refused' "  without an objection"
is "$(ls build/release | paste -sd ' ')" "NOTES.md SHA256SUMS cairn-$version.tar.xz" "  as tarball, notes and checksums"
ok "  the checksums are right" sh -c 'cd build/release && sha256sum --strict -c SHA256SUMS'
is "$(wc -l <build/release/SHA256SUMS)" 2 "  all released files have a checksum"
is "$(sed -n 1p build/release/NOTES.md)" "## $version (2026-12-24)" "  the notes are the changelog's part"
is "$(grep -c '^## ' build/release/NOTES.md)" 1 "  the notes have only the part of this version"
tar -tf "build/release/cairn-$version.tar.xz" >"$tmp/list"
is "$(sed "s|^cairn-$version/||; /\/\$/d; /^\$/d" "$tmp/list" | sort | sha256sum)" \
        "$(git ls-files | sort | sha256sum)" "  the tarball has the committed files"
cp "build/release/cairn-$version.tar.xz" "$tmp/first"
ok "  and is made" make release TARBALL=1
ok "  the same again" cmp "$tmp/first" "build/release/cairn-$version.tar.xz"
cd / && done_testing
