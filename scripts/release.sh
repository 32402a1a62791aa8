#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds a release in build/release/: the tarball, the Debian packages, SHA256SUMS, and NOTES.md with the first section of
# the changelog.
#   scripts/release.sh VERSION [dry-run] [tarball]
# Refuses to run on any other commit than that of the tag vVERSION; with dry-run, it reports this and continues. With
# tarball, it does not build the packages.
set -eu
cd "$(dirname "$0")/.."
version=$1
shift
dry= packages=1
for word; do
        case $word in
        dry-run) dry=1 ;;
        tarball) packages= ;;
        *)
                echo "usage: scripts/release.sh VERSION [dry-run] [tarball]" >&2
                exit 64
                ;;
        esac
done
: "${MAKE:=make}"

# refuse TEXT: ends a release; a dry run continues.
refuse() {
        if [ -z "$dry" ]; then
                echo "release: $1" >&2
                exit 1
        fi
        echo "release: would be refused: $1" >&2
}
[ -z "$(git status --porcelain)" ] || refuse "there are changes that are not committed"
[ "$(git rev-parse -q --verify "v$version^{commit}" || :)" = "$(git rev-parse HEAD)" ] ||
        refuse "HEAD is not the commit of the tag v$version: git tag -s v$version"
heading=$(grep -m 1 '^## ' CHANGELOG.md)
case $heading in
"## $version ("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]")") ;;
*) refuse "the first heading of CHANGELOG.md is '$heading', not '## $version (YYYY-MM-DD)'" ;;
esac
changelog=$(sed -n '1s/^cairn (\([^)]*\)).*/\1/p' debian/changelog)
[ "$changelog" = "$version" ] || refuse "debian/changelog has the version $changelog"
api=$(sed -n 's/^  version: //p' docs/openapi.yaml)
[ "$api" = "$version" ] || refuse "docs/openapi.yaml has the version $api"

rm -rf build/release
if [ "$packages" ]; then
        "$MAKE" --no-print-directory deb # makes the tarball too
else
        "$MAKE" --no-print-directory dist
fi
mkdir -p build/release
cp "build/cairn-$version.tar.xz" build/release/
[ -z "$packages" ] || cp build/deb/*.deb build/release/
awk '/^## / { n++ } n == 1' CHANGELOG.md >build/release/NOTES.md
(cd build/release && find . -type f ! -name 'SHA256SUMS*' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS.new && mv SHA256SUMS.new SHA256SUMS)
echo "build/release:"
ls -l build/release
