#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Recordings of perf: a stripped program gets names and lines by build-ids from mmap events, from the file's own table,
# and from perf inject.
. tests/e2e/lib.sh
for tool in gcc perf strip; do
        command -v $tool >/dev/null || {
                [ -z "${CAIRN_NEED_ORACLES:-}" ] || bail_out "$tool is not installed: scripts/deps.sh all"
                skip_all "$tool is not installed"
        }
done
cat >"$tmp/work.c" <<'END'
volatile unsigned long sink;
__attribute__((noinline)) void burn(int n)
{
        for (int i = 0; i < n; i++)
                sink += i;
}
__attribute__((noinline)) int work(int n) { burn(n); return n + sink; }
int main(void)
{
        for (int i = 0; i < 300; i++)
                work(1000000);
        return 0;
}
END
gcc -O2 -g -fno-omit-frame-pointer -Wl,--build-id -o "$tmp/work.debug" "$tmp/work.c"
strip -o "$tmp/work" "$tmp/work.debug"
perf record -q -e cpu-clock -F 500 -g -o "$tmp/table.data" "$tmp/work" >/dev/null 2>"$tmp/err" ||
        skip_all "perf cannot record here: $(head -1 "$tmp/err")"
perf record -q -e cpu-clock -F 500 -g --buildid-mmap -o "$tmp/mmap.data" "$tmp/work" >/dev/null 2>&1
perf record -q -e cpu-clock -F 500 -g --no-buildid -o "$tmp/none.data" "$tmp/work" >/dev/null 2>&1
perf inject -b -i "$tmp/none.data" -o "$tmp/inject.data" 2>/dev/null
script() { perf script --show-mmap-events -i "$1" 2>/dev/null; }
list() { perf buildid-list -i "$1" 2>/dev/null; }

start_server
"$CAIRN_BUILD/cairn-upload" --server "$url" --executables "$tmp/work.debug" >/dev/null 2>&1 ||
        bail_out "cairn-upload fails"
wait_metric cairn_objects_indexed_total 1 # both at once, or the debuginfo first
# imported NAME: imports the text; samples of burn must have its line.
imported() {
        like "$("$cairn" import --server "$url" --label service.name="$1" - <"$tmp/text" 2>&1)" \
                ': perf, [1-9].* sent$' "the samples are imported: $1"
        top=$("$cairn" top --server "$url" --from now-1h --type process_cpu "{service.name=\"$1\"}" 2>/dev/null)
        like "$top" ' burn +.*work\.c:[2-5]' "  a stripped function has its name and line"
}
script "$tmp/mmap.data" >"$tmp/text"
imported build-ids-of-mmap-events
{ list "$tmp/table.data"; script "$tmp/table.data"; } >"$tmp/text"
imported build-ids-of-the-table
{ list "$tmp/inject.data"; script "$tmp/inject.data"; } >"$tmp/text"
imported build-ids-of-perf-inject
script "$tmp/table.data" | "$cairn" import --server "$url" --label service.name=none - >/dev/null
unlike "$("$cairn" top --server "$url" --from now-1h --type process_cpu '{service.name="none"}')" ' burn ' \
        "without build-ids it has none"
# Fields and records that are not used, and a process without a name.
cat >"$tmp/nameless.c" <<'END'
#include <sys/prctl.h>
volatile unsigned long sink;
int main(void)
{
        prctl(PR_SET_NAME, "");
        for (int i = 0; i < 100000000; i++)
                sink += i;
        return 0;
}
END
gcc -O1 -g -fno-omit-frame-pointer -o "$tmp/nameless" "$tmp/nameless.c"
perf record -q -e cpu-clock -F 500 -g --namespaces -o "$tmp/nameless.data" "$tmp/nameless" >/dev/null 2>&1
for fields in '-F +srcline' '-F +insn' '-F +misc' '--show-namespace-events --show-task-events'; do
        # shellcheck disable=SC2086
        perf script -i "$tmp/nameless.data" $fields >"$tmp/text" 2>/dev/null
        like "$("$cairn" top --profile "$tmp/text" 2>&1)" ' main( |$)' "perf script $fields is read"
done
perf script -i "$tmp/nameless.data" -F comm,pid,tid,event,ip,sym,dso >"$tmp/text" 2>/dev/null
like "$("$cairn" import --dry-run "$tmp/text" 2>&1)" "without the field time; print it with 'perf script -F .time'" \
        "a missing field is named"
done_testing
