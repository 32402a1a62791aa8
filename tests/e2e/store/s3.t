#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The tables over /store/ and as an S3 bucket: the requests of DuckDB's httpfs, delta-rs and pyarrow get the required
# responses, also for a file that re-symbolization has replaced; hostile requests are refused.
. tests/e2e/lib.sh
for tool in curl gcc jq python3 zstd; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done

id=00112233445566778899aabbccddeeff00112233
start_server --flush-interval 3600
# flush: stopping writes the queue to the tables.
ingest() {
        python3 tests/e2e/profiles.py otlp "$tmp/one.otlp" build_id=$id service=api values="$1" addresses=401000 \
                mapping_file=program
        request -H 'Content-Type: application/x-protobuf' --data-binary "@$tmp/one.otlp" "$url/v1development/profiles"
}
ingest 3
stop_server
start_server --flush-interval 3600
ingest 4
stop_server
printf 'reader-token read\nother-token ingest\n' >"$tmp/tokens"
start_server --flush-interval 3600

# header NAME: of the response in $tmp/headers.
header() { tr -d '\r' <"$tmp/headers" | sed -n "s/^$1: //Ip"; }
ask() { request -D "$tmp/headers" "$@"; }
tag() { printf '%s\n' "$body" | grep -o "<$1>[^<]*</$1>" | sed 's/<[^>]*>//g'; }
list() { ask "$url/cairn?list-type=2&$1"; }

# ---- /store/: conditions and ranges ----

part=$(curl -sS "$url/store/samples/" | jq -r '.tables[0].files[0].path')
size=$(stat -c %s "$data/profiles/tables/${part#/store/}")
ask -I "$url$part"
etag=$(header ETag)
is "$code $(header Content-Length) $(header Accept-Ranges)" "200 $size bytes" "HEAD has the length"
like "$etag" '^"[0-9a-f]+-[0-9a-f]{16}"$' "HEAD has a strong entity tag"
touch -d '2001-01-01' "$data/profiles/tables/${part#/store/}"
ask -I "$url$part"
is "$(header ETag)" "$etag" "the tag does not depend on the file's modification time"
cp "$data/profiles/tables/${part#/store/}" "$tmp/part"
# range RANGE FROM COUNT
range() {
        ask -H "Range: bytes=$1" "$url$part"
        tail -c +$(($2 + 1)) "$tmp/part" | head -c "$3" >"$tmp/want"
        is "$code $(header Content-Range) $(cmp "$tmp/body" "$tmp/want" && echo same)" \
                "206 bytes $2-$(($2 + $3 - 1))/$size same" "the range $1 is answered with its bytes"
}
range 4-11 4 8
range 100- 100 $((size - 100))
range -8 $((size - 8)) 8
range "$((size - 4))-$((size + 100))" $((size - 4)) 4
range "-$((size + 1))" 0 "$size"
ask -H 'Range: bytes=0-1,4-5' "$url$part"
is "$code" 200 "several ranges are answered with everything"
ask -H "Range: bytes=$size-" "$url$part"
is "$code $(header Content-Range)" "416 bytes */$size" "a range past the end is 416"
ask -H "If-None-Match: $etag" "$url$part"
is "$code" 304 "If-None-Match with the tag is 304"
ask -H "If-Match: $etag" -H 'Range: bytes=0-3' "$url$part"
is "$code" 206 "If-Match with the tag is answered"
ask -H 'If-Match: "other"' "$url$part"
is "$code" 412 "If-Match with another tag is 412"
ask -H 'If-Unmodified-Since: Fri, 01 Jan 1999 00:00:00 GMT' "$url$part"
is "$code" 412 "If-Unmodified-Since before the change is 412"
ask -H 'If-Modified-Since: Mon, 01 Jan 2001 00:00:00 GMT' "$url$part"
is "$code" 304 "If-Modified-Since after it is 304"
ask -H 'If-Modified-Since: yesterday' "$url$part"
is "$code" 200 "a malformed date is ignored"

# ---- delta-rs ----

ask "$url/cairn/samples/_delta_log/_last_checkpoint"
is "$code $(tag Code) $(header Content-Type)" "404 NoSuchKey application/xml" "delta-rs: no checkpoint yet"
list 'prefix=samples%2F_delta_log%2F&start-after=samples%2F_delta_log%2F00000000000000000000'
is "$code $(tag IsTruncated) $(tag Key | tr '\n' ' ')" \
        "200 false samples/_delta_log/00000000000000000000.json samples/_delta_log/00000000000000000001.json samples/_delta_log/00000000000000000002.json " \
        "the commits after a name that no key has"
like "$(tag LastModified | head -1)" '^20[0-9-]{8}T[0-9:]{8}\.000Z$' "listed keys have times"
ask "$url/cairn/samples/_delta_log/00000000000000000001.json"
is "$code $(printf '%s\n' "$body" | grep -c '"add"')" "200 1" "a commit of the log is read by its key"
key=$(printf '%s\n' "$body" | jq -r 'select(.add) | .add.path' | sed 's/=/%3D/')
ask -H 'Range: bytes=0-3' "$url/cairn/samples/$key"
is "$code $(cat "$tmp/body") $(header Content-Type)" "206 PAR1 application/octet-stream" \
        "a range of a file, whose = is escaped"

# ---- DuckDB's httpfs ----

list 'encoding-type=url&prefix=samples%2F'
is "$(tag KeyCount) $(tag Key | grep -c '^samples/date%3D20')" "5 2" "httpfs: all keys, encoded"
listed=$(printf '%s\n' "$body" | sed 's/<Contents>/\n/g' | grep "$key" | sed -n 's/.*<ETag>&quot;\(.*\)&quot;<.*/\1/p')
ask -I "$url/cairn/samples/$key"
is "$code $(header ETag)" "200 \"$listed\"" "the tag of the listing is that of the object"
like "$(header Last-Modified)" ' GMT$' "an object has a modification time"
like "$(header x-amz-request-id)" '^[0-9A-F]{16}$' "the answer has a request id"
list 'delimiter=%2F&prefix=samples%2F'
is "$(tag CommonPrefixes | tr '\n' ' ')$(tag Prefix | tail -2 | head -1)" "samples/_delta_log/" \
        "folders with a delimiter"
list ''
is "$(tag KeyCount) $(tag Key | LC_ALL=C sort -c && echo sorted)" "13 sorted" "all tables, in the order of bytes"
all=$(tag Key)

# ---- pyarrow ----

ask -I "$url/cairn/samples"
is "$code" 404 "pyarrow: a table is not an object"
list 'delimiter=%2F&max-keys=1&prefix=samples%2F'
is "$(tag KeyCount) $(tag IsTruncated)" "1 true" "pyarrow: a table is a folder"
ask -H 'x-amz-checksum-mode: enabled' -H "Range: bytes=$((size - 8))-$((size - 1))" "$url/cairn${part#/store}"
is "$code" 206 "pyarrow: the footer of a file is read"
ask -I "$url/cairn"
is "$code $(header x-amz-bucket-region)" "200 us-east-1" "the bucket exists"
ask "$url/cairn?location"
like "$body" '^<LocationConstraint ' "the bucket has a location"

# ---- pages ----

pages=
token=
while :; do
        list "max-keys=2${token:+&continuation-token=$token}"
        pages="$pages$(tag Key) "
        token=$(tag NextContinuationToken)
        [ -n "$token" ] || break
done
is "$(printf '%s' "$pages" | xargs -n1)" "$(printf '%s' "$all" | xargs -n1)" "pages of two keys have all of them once"
list 'delimiter=/&max-keys=1'
list "delimiter=/&max-keys=5&continuation-token=$(tag NextContinuationToken)"
is "$(tag KeyCount)" 3 "a folder is not repeated on the next page"
list 'max-keys=0'
is "$(tag KeyCount) $(tag IsTruncated)" "0 false" "no keys, when none are wanted"
list 'max-keys=100000'
is "$(tag MaxKeys)" 1000 "at most 1000"

# ---- rejected requests ----

for method in PUT POST DELETE; do
        ask -X $method -d x "$url/cairn/samples/_delta_log/00000000000000000009.json"
        is "$code $(tag Code)" "403 AccessDenied" "$method is refused"
done
ask "$url/cairn"
is "$code $(tag Code)" "501 NotImplemented" "a listing of version 1 is refused"
for path in ../lock ..%2f..%2flock samples/..%2f..%2f..%2flock samples/.tmp-x.parquet samples//x.parquet samples/ \
        secrets/a.parquet samples/_delta_log/../../../../lock samples%00/a.parquet; do
        ask --path-as-is "$url/cairn/$path"
        like "$code" '^40[04]$' "the hostile key $path is refused"
done
ask -H 'Range: bytes=99999999999999999999-' "$url/cairn/samples/$key"
is "$code" 200 "a range over 64 bits is ignored"
long=$(printf '%01100d' 0)
for query in "prefix=$long" "start-after=$long" "delimiter=$long" max-keys=-1 max-keys=x encoding-type=xml \
        continuation-token=zz continuation-token=7 continuation-token=00 "continuation-token=$long$long"; do
        list "$query"
        is "$code $(tag Code)" "400 InvalidArgument" "the hostile query ${query%%0000*} is refused"
done
list 'prefix=%3C%26%22%01%3E'
like "$body" '<Prefix>&lt;&amp;&quot;\?&gt;</Prefix>' "reserved characters are escaped"

# ---- a replaced file stays readable for the grace period, with the same tag ----

before=$(curl -sS "$url/store/locations/" | jq -r '.tables[0].files[0].path')
ask -I "$url$before"
etag=$(header ETag)
gcc -g -x c -Wl,--build-id=0x$id -Wl,-Ttext=0x401000 -nostdlib -static -o "$tmp/program" - 2>/dev/null <<'END'
void _start(void) { for (;;) ; }
END
put_object debuginfo "$tmp/program"
wait_metric cairn_resymbolize_locations_total 1
is "$(curl -sS "$url/store/locations/" | grep -c "$before")" 0 "re-symbolization replaces a file"
ask -I -H "If-Match: $etag" "$url$before"
is "$code $(header ETag)" "200 $etag" "the replaced file remains readable"
list 'prefix=locations/'
is "$(tag Key | grep -c "${before#/store/}")" 0 "the replaced file is no longer listed"
ask -H 'Range: bytes=-8' "$url/cairn${before#/store}"
is "$code" 206 "the replaced file remains readable in the bucket"
stop_server

# ---- tokens ----

start_server --token-file "$tmp/tokens" --flush-interval 3600
signed() { printf 'Authorization: AWS4-HMAC-SHA256 Credential=%s/20261120/us-east-1/s3/aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=00' "$1"; }
ask "$url/cairn?list-type=2"
is "$code $(tag Code)" "401 AccessDenied" "a service with tokens refuses anonymous requests"
ask -H "$(signed reader-token)" "$url/cairn?list-type=2&prefix=stacks/"
is "$code" 200 "a token may be the id of the access key"
ask -H "$(signed other-token)" "$url/cairn?list-type=2"
is "$code $(tag Code)" "403 AccessDenied" "it needs the scope read"
for credential in '' / //// x/y; do
        ask -H "Authorization: AWS4-HMAC-SHA256 Credential=$credential" "$url/cairn?list-type=2"
        is "$code" 401 "a malformed credential '$credential'"
done

# ---- a read-only service without tables ----

stop_server
mkdir -p "$tmp/empty/profiles/tables"
cp "$data/format" "$tmp/empty"
data=$tmp/empty
start_server
list 'prefix=samples/'
is "$code $(tag KeyCount)" "200 1" "a table without samples has its first commit"
done_testing
