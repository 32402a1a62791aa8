#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Labels of goroutines (pprof.Do): each sample of a function has the label that only goroutines in this function have,
# for the ways to link a Go program. GO_VERSIONS="1.19.13 1.27.1" adds toolchains, which Go downloads.
. tests/e2e/lib.sh
. tests/e2e/agent/profile-program.sh

agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
[ "$(uname -m)" = x86_64 ] || skip_all "labels of Go are read on x86-64"
for tool in go cc nm strip python3; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

mkdir "$tmp/source"
cp tests/e2e/agent/go-labels.go tests/e2e/agent/go-labels-cgo.go "$tmp/source"
printf 'module labels\n\ngo 1.18\n' >"$tmp/source/go.mod"

# build_go CGO ARGUMENT...: $tmp/program.
build_go() {
        files=go-labels.go
        [ "$1" = 0 ] || files="$files go-labels-cgo.go"
        export CGO_ENABLED="$1"
        shift
        # shellcheck disable=SC2086
        (cd "$tmp/source" && GOFLAGS=-mod=mod go build "$@" -o "$tmp/program" $files 2>"$tmp/go.log") ||
                bail_out "cannot build: $(head -1 "$tmp/go.log")"
}

start_program() {
        : >"$tmp/started"
        "$tmp/program" >"$tmp/started" &
        program=$!
        background_pids=$program
        wait_for "the program" test -s "$tmp/started"
}

# check_labels WHAT FUNCTION...: of the program, whose symbols are in $tmp/symbols.
check_labels() {
        what=$1
        shift
        start_program
        profile labels
        kill "$program"
        python3 tests/e2e/agent/go-stacks.py "$tmp/symbols" "$tmp/labels.dump" >"$tmp/judged"
        is "$(awk '{ n += $4 } END { print n + 0 }' "$tmp/judged")" 0 \
                "$what: no sample has the label of another goroutine's function"
        for name in "$@"; do
                # shellcheck disable=SC2046
                set -- $(awk -v name="$name" '$1 == name { print $2, $3 }' "$tmp/judged")
                ok "  samples of $name have its label, those before the process was known aside" \
                        test "${1:-0}" -gt 0 -a "${1:-0}" -ge $((2 * ${2:-0}))
        done
        is "$(count 'cairn_agent_context_processes_total{of="goroutines"}')" 1 "  the process is counted"
}

labeled="alpha beta outer inner many allocate"
build_go 0
cp "$tmp/program" "$tmp/symbols"
# shellcheck disable=SC2086
check_labels "linked statically" $labeled
like "$(cat "$tmp/labels.dump")" 'kind=test.*work=alpha' "all labels of a set are read"
unlike "$(cat "$tmp/labels.dump")" 'work=outer.*depth=|depth=.*work=outer' "labels of an inner set end with it"
like "$(cat "$tmp/labels.dump")" 'long=é{64};' "long values are cut at a character"
unlike "$(cat "$tmp/labels.dump")" 'kkkk=|empty=' "long keys and empty values are left out"
like "$(cat "$tmp/labels.dump")" 'span_id=0102030405060708;.*trace_id=0102030405060708090a0b0c0d0e0f10.*work=many' \
        "trace and span among the labels become the link"
start_program
profile none --no-request-context
unlike "$(cat "$tmp/none.dump")" 'work=' "--no-request-context leaves them out"
"$agent" --doctor >"$tmp/doctor"
like "$(cat "$tmp/doctor")" 'labels of [1-9][0-9]* Go programs? are read' "--doctor counts them"
kill "$program"

build_go 0 -ldflags=-w
check_labels "linked statically, without DWARF" alpha many
build_go 0 -buildmode=pie
cp "$tmp/program" "$tmp/symbols"
check_labels "PIE" alpha many
build_go 1
cp "$tmp/program" "$tmp/symbols"
# shellcheck disable=SC2086
check_labels "with cgo" $labeled in_c
strip "$tmp/program"
check_labels "with cgo, stripped" alpha in_c
build_go 1 -buildmode=pie
cp "$tmp/program" "$tmp/symbols"
check_labels "with cgo, PIE" alpha in_c
build_go 1 -ldflags '-linkmode external -extldflags -static'
cp "$tmp/program" "$tmp/symbols"
check_labels "with cgo, linked statically" alpha in_c

# Its variable is one of several, and nothing tells which.
strip "$tmp/program"
start_program
"$agent" --doctor >"$tmp/doctor"
like "$(cat "$tmp/doctor")" \
        "process $program .*its set of labels \(pprof.Do\) is not read: it is stripped, and has other thread-local" \
        "--doctor names a program whose variable is not found"
profile refused
unlike "$(cat "$tmp/refused.dump")" 'work=' "  it has no labels"
is "$(count 'cairn_agent_contexts_refused_total{reason="symbols"}')" 1 "  it is counted"
kill "$program"

# A version that nobody knows, without DWARF.
build_go 0 -ldflags=-w
sed -i 's/go1\.[0-9][0-9]\./go1.99./g' "$tmp/program"
start_program
profile unknown
unlike "$(cat "$tmp/unknown.dump")" 'work=' "a program of an unknown version has no labels"
is "$(count 'cairn_agent_contexts_refused_total{reason="version"}')" 1 "  it is counted"
kill "$program"
build_go 0
cp "$tmp/program" "$tmp/symbols"
sed -i 's/go1\.[0-9][0-9]\./go1.99./g' "$tmp/program"
check_labels "unknown version with DWARF" alpha many

# ---- other versions ----

for version in ${GO_VERSIONS:-}; do
        export GOTOOLCHAIN="go$version"
        build_go 0 -ldflags=-w
        cp "$tmp/program" "$tmp/symbols"
        check_labels "Go $version by the table" alpha many
        build_go 1
        cp "$tmp/program" "$tmp/symbols"
        check_labels "Go $version by DWARF, with cgo" alpha many in_c
done
done_testing
