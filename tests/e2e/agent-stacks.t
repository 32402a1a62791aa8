#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs without frame pointers whose stacks are known: the agent must have all of each, down to _start or to where
# a thread or a context began.
set -eu
agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
here=$PWD/tests

count=0
check() { # NAME COMMAND...
        count=$((count + 1))
        name=$1
        shift
        if "$@"; then echo "ok $count - $name"; else echo "not ok $count - $name"; fi
}

for tool in python3 readelf nm cc c++; do
        command -v $tool > /dev/null || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
if ! missing=$("$agent" --doctor --sampler bpf); then
        echo "1..0 # SKIP the agent cannot profile here: $(echo "$missing" | grep '^fail' | head -1 | tr -s ' ')"
        exit 0
fi

dir=$(mktemp -d)
pid=
cleanup() {
        [ -z "$pid" ] || kill "$pid" 2> /dev/null || true
        rm -rf "$dir"
}
trap cleanup EXIT
cd "$dir"

cat > work.h << 'END'
volatile unsigned long sink;
#define FUNCTION __attribute__((noinline, noclone, noipa))
FUNCTION void burn(int n) { for (int i = 0; i < n; i++) sink += i; }
END
cat > recursion.c << 'END'
#include "work.h"
FUNCTION int down(int n) { if (!n) { burn(3000000); return 1; } int r = down(n - 1); sink += r; return r + 1; }
int main(void) { for (;;) if (!down(200)) return 1; }
END
cat > mutual.c << 'END'
#include "work.h"
int odd(int n);
FUNCTION int even(int n) { if (!n) { burn(3000000); return 1; } int r = odd(n - 1); sink += r; return r; }
FUNCTION int odd(int n) { char b[n * 8 + 8]; b[0] = n; sink += (unsigned long)b; int r = even(n - 1); sink += b[0]; return r; }
int main(void) { for (;;) even(60); }
END
cat > tail.c << 'END'
#include "work.h"
FUNCTION void second(int n) { burn(n + 1); }
FUNCTION void first(int n) { second(n + 1); }
int main(void) { for (;;) first(1000000); }
END
cat > handler.c << 'END'
#include <signal.h>
#include <sys/time.h>
#include "work.h"
FUNCTION void on_alarm(int number) { burn(4000000 + number); sink++; }
FUNCTION void work(void) { burn(1000000); sink++; }
int main(void)
{
        struct sigaction action = { .sa_handler = on_alarm };
        struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };
        sigaction(SIGALRM, &action, 0);
        setitimer(ITIMER_REAL, &timer, 0);
        for (;;) work();
}
END
cat > variable.c << 'END'
#include <alloca.h>
#include <string.h>
#include "work.h"
typedef int wide __attribute__((vector_size(64)));
FUNCTION void use(char *p, int n) { for (int i = 0; i < 300000; i++) sink += p[i % n]; }
FUNCTION void grown(int n) { char *p = alloca(n); memset(p, 1, n); use(p, n); sink += p[0]; }
FUNCTION void aligned(int n)
{
        wide x __attribute__((aligned(128)));
        char *p = alloca(n);
        memset(&x, n, sizeof x);
        p[0] = 1;
        use((char *)&x, 64);
        use(p, 1);
        sink += x[0];
}
int main(void) { for (int i = 0;; i++) { grown(1000 + i % 100); aligned(100 + i % 50); } }
END
cat > context.c << 'END'
#include <ucontext.h>
#include "work.h"
static ucontext_t outside, inside;
static char stack[65536];
FUNCTION void body(void) { for (;;) { burn(300000); swapcontext(&inside, &outside); } }
int main(void)
{
        getcontext(&inside);
        inside.uc_stack.ss_sp = stack;
        inside.uc_stack.ss_size = sizeof stack;
        inside.uc_link = &outside;
        makecontext(&inside, body, 0);
        for (;;) swapcontext(&outside, &inside);
}
END
cat > threads.c << 'END'
#include <pthread.h>
#include "work.h"
FUNCTION void *thread(void *arg) { for (;;) { burn(1000000); sink++; } return arg; }
int main(void)
{
        pthread_t t[3];
        for (int i = 0; i < 3; i++) pthread_create(&t[i], 0, thread, 0);
        pthread_join(t[0], 0);
}
END
cat > loaded.c << 'END'
#include <dlfcn.h>
#include "work.h"
FUNCTION void back(void) { burn(500000); sink++; }
int main(void)
{
        for (;;) {
                void *library = dlopen("./library.so", RTLD_NOW);
                void (*there)(void (*)(void)) = dlsym(library, "there");
                for (int i = 0; i < 2000; i++) there(back);
                dlclose(library);
        }
}
END
echo 'volatile unsigned long count; void there(void (*back)(void)) { back(); count++; }' > library.c
cat > exception.cc << 'END'
#include <stdexcept>
volatile unsigned long sink;
struct guard { ~guard() { sink++; } };
__attribute__((noinline, noclone)) void thrower(int n)
{
        guard g;
        if (n == 0) throw std::runtime_error("x");
        thrower(n - 1);
        sink++;
}
int main() { for (;;) try { thrower(20); } catch (const std::exception &e) { sink += e.what()[0]; } }
END

stripped=-fomit-frame-pointer
cc -O2 $stripped -Wl,--build-id recursion.c -o recursion
cc -O3 $stripped -Wl,--build-id mutual.c -o mutual
cc -O2 $stripped -Wl,--build-id tail.c -o tail
cc -O2 $stripped -Wl,--build-id handler.c -o handler
cc -O2 $stripped -Wl,--build-id variable.c -o variable
cc -O2 $stripped -Wl,--build-id context.c -o context
cc -O2 $stripped -Wl,--build-id -pthread threads.c -o threads
cc -O2 $stripped -Wl,--build-id -shared -fPIC library.c -o library.so
cc -O2 $stripped -Wl,--build-id loaded.c -o loaded -ldl
cc -O2 $stripped -Wl,--build-id -static-pie recursion.c -o staticpie
cc -O2 $stripped -Wl,--build-id -static handler.c -o static
c++ -O2 $stripped -Wl,--build-id exception.cc -o exception

# least PERCENT: of the next program. libgcc's last instructions of a throw move the stack without saying so.
wanted=99.5
least() { wanted=$1; }
# A trampoline has no size in the symbol table, so it is '?'.
# known PROGRAM PATTERN [FILE...]: nearly all of its time has a stack that matches. One tick in a few hundred is much of
# two seconds, so what falls short is sampled for longer.
known() {
        program=$1 pattern=$2
        shift 2
        "./$program" > /dev/null 2>&1 &
        pid=$!
        : > "$program.dump"
        for round in 1 2 3; do
                "$agent" --sampler bpf --log-level error --frequency 199 --duration $((2 * round)) --pid "$pid" \
                        --output "$program.otlp"
                python3 "$here/support/otlp_dump.py" "$program.otlp" >> "$program.dump"
                got=$(python3 "$here/e2e/agent-stacks.py" "$program.dump" "$program" "$pattern" "$program" "$@" \
                        2> "$program.bad")
                if awk -v g="$got" -v w="$wanted" 'BEGIN { exit !(g >= w) }'; then break; fi
        done
        kill "$pid"
        wait "$pid" 2> /dev/null || true
        pid=
        cat "$program.bad"
        check "$program: $got% of the time has its whole stack" awk -v g="$got" -v w="$wanted" 'BEGIN { exit !(g >= w) }'
        wanted=99.5
}

start='main;~;~;_start;'
known recursion "(burn;(down;){201}|(down;)*)$start"
known mutual "(burn;)?((even|odd);)*$start"
known tail "(burn;|first;|second;)?$start"
known handler "(burn;)?(on_alarm;~;)?(burn;)?(work;)?$start"
known variable "(use;|~;)?(grown;|aligned;)?$start"
known context "(~;)*((burn;)?body;~;|$start)"
known threads "(burn;)?thread;~;~;"
known loaded "(~;)*(burn;)?(back;)?(there;)?(~;)*$start" library.so
least 98
known exception "(~;)*(_ZN5guardD.Ev;)?(_Z7throweri.cold;)?(_Z7throweri;)*(main.cold;~;~;_start;|$start)"
known staticpie "(burn;(down;){201}|(down;)*)main;([A-Za-z_]+;){1,3}"
known static "(burn;)?(on_alarm;[?];)?(burn;)?(work;)?main;([A-Za-z_]+;){1,3}"
if command -v musl-gcc > /dev/null; then
        # Its C library has no unwind information: the stack ends at main's caller.
        musl-gcc -O2 $stripped -Wl,--build-id handler.c -o musl
        known musl "(burn;)?(on_alarm;~;)?(burn;)?(work;)?main;~;(_start;)?"
fi
if command -v go > /dev/null; then
        cat > calls.go << 'END'
package main

var sink int

//go:noinline
func burn(n int) int {
	s := 0
	for i := 0; i < n; i++ {
		s += i * i
	}
	return s
}

//go:noinline
func down(n int) int {
	if n == 0 {
		return burn(1000000)
	}
	return down(n-1) + 1
}

func main() {
	for {
		sink += down(30)
	}
}
END
        GOCACHE=$dir/cache GOFLAGS=-mod=mod go build -ldflags '-B 0x0123456789abcdef0123456789abcdef01234567' -o plain calls.go
        cp plain gostripped
        strip gostripped
        known plain "(main.burn;)?(main.down;)*main.main;runtime.main;runtime.goexit.abi0;|(.*;)?runtime.(mstart|goexit|rt0_go|mcall|morestack)[^;]*;"
        known gostripped "~;.*"
fi
if command -v rustc > /dev/null; then
        cat > calls.rs << 'END'
fn read(x: u64) -> u64 { unsafe { std::ptr::read_volatile(&x) } }
#[inline(never)] fn burn(n: u64) -> u64 { let mut s = 0; for i in 0..n { s += read(i) * i; } s }
#[inline(never)] fn down(n: u64) -> u64 { if n == 0 { return burn(1000000) } down(n - 1) + read(1) }
fn main() { loop { if down(20) == 1 { return } } }
END
        rustc -O -C link-arg=-Wl,--build-id -o rust calls.rs
        known rust "(_ZN[^;]*burn[^;]*;)?(_ZN[^;]*down[^;]*;)*([^;]*;)*main;~;~;_start;"
fi
./recursion &
pid=$!
"$agent" --sampler bpf --log-level error --duration 2 --pid $pid --output metrics.otlp --metrics-file metrics
check "tables are counted" grep -qE '^cairn_agent_unwind_tables [1-9]' metrics
echo "1..$count"
