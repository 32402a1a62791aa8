#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Java and native frames in the order of their calls, with names, files and lines, of unmodified programs.
# JAVAS: paths of further programs java to run, separated by blanks.
. tests/e2e/lib.sh
. tests/e2e/agent/profile-program.sh

agent=${CAIRN_BUILD:-$PWD/build}/cairn-agent
[ "$(uname -m)" = x86_64 ] || skip_all "Java frames are read on x86-64"
java=$(command -v java) || skip_all "java is not installed"
command -v javac >/dev/null || skip_all "javac is not installed"
"$agent" --sampler bpf --doctor >"$tmp/doctor" 2>&1 ||
        skip_all "the agent cannot profile here: $(grep '^fail' "$tmp/doctor" | head -1 | tr -s ' ')"

# java-stacks.py reads the comments: where methods are, and which lines call them. Some methods are compiled and
# inlined, some are called too rarely for that; callbacks are called by Java's library, through interfaces, lambdas,
# reflection and exceptions.
mkdir "$tmp/src"
cat >"$tmp/src/Calls.java" <<'JAVA'
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.function.IntUnaryOperator;

public class Calls implements Runnable { // = Calls.<init> // end Calls.<init>
    interface Shape {
        double area(int n);
    }
    static class Square implements Shape { // = Calls$Square.<init> // end Calls$Square.<init>
        public double area(int n) { // = Calls$Square.area
            return Calls.spin(n); // -> Calls.spin
        } // end Calls$Square.area
    }
    static class Circle implements Shape { // = Calls$Circle.<init> // end Calls$Circle.<init>
        public double area(int n) { // = Calls$Circle.area
            return Calls.spin(n) * 3; // -> Calls.spin
        } // end Calls$Circle.area
    }
    static volatile long sink;
    static final Shape[] shapes = { // = Calls.<clinit>
        new Square(), new Circle() // -> Calls$Square.<init> Calls$Circle.<init>
    }; // end Calls.<clinit>
    static Method method;

    static double spin(int n) { // = Calls.spin
        double x = 0;
        for (int i = 0; i < n; i++) {
            x += größe語(i); // -> Calls.größe語
        }
        return x;
    } // end Calls.spin

    static double größe語(int i) { // = Calls.größe語
        return Math.sqrt(i * (double) i + 1) % 7;
    } // end Calls.größe語

    static int deep(int n) { // = Calls.deep
        if (n > 0)
            return deep(n - 1) + 1; // -> Calls.deep
        return leaf(2000); // -> Calls.leaf
    } // end Calls.deep

    static int leaf(int n) { // = Calls.leaf
        sink += (long) shapes[n & 1].area(n); // -> Calls$Square.area Calls$Circle.area
        sink += (long) shapes[1 - (n & 1)].area(n); // -> Calls$Square.area Calls$Circle.area
        return 1;
    } // end Calls.leaf

    static int lambda(int n) { // = Calls.lambda
        IntUnaryOperator op = i -> leaf(i); // = Calls.lambda$lambda$0 // end Calls.lambda$lambda$0 // -> Calls.leaf
        return op.applyAsInt(n); // -> Calls.lambda$lambda$0
    } // end Calls.lambda

    static int sorted(int n) { // = Calls.sorted
        Integer[] a = { 3, 1, 2 };
        Arrays.sort(a, (p, q) -> { // -> Calls.lambda$sorted$1
            leaf(n); // = Calls.lambda$sorted$1 // -> Calls.leaf
            return p - q;
        }); // end Calls.lambda$sorted$1
        return a[0];
    } // end Calls.sorted

    static int reflected(int n) throws Exception { // = Calls.reflected
        return (Integer) method.invoke(null, n); // -> Calls.leaf
    } // end Calls.reflected

    synchronized void copied(int n) throws Exception { // = Calls.copied
        long[] a = new long[n], b;
        for (int i = 0; i < 100; i++) {
            b = a.clone();
            System.arraycopy(b, 1, a, 0, n - 1);
            Arrays.fill(b, i);
            sink += b[i] + String.valueOf(sink).hashCode();
        }
    } // end Calls.copied

    static int thrown(int n) { // = Calls.thrown
        try {
            return n > 0 ? thrown(n - 1) : Integer.parseInt("x" + leaf(500)); // -> Calls.thrown Calls.leaf
        } catch (NumberFormatException e) {
            return leaf(500); // -> Calls.leaf
        }
    } // end Calls.thrown

    void round() throws Exception { // = Calls.round
        deep(20); // -> Calls.deep
        lambda(1500); // -> Calls.lambda
        sorted(1000); // -> Calls.sorted
        reflected(1200); // -> Calls.reflected
        copied(2000); // -> Calls.copied
        thrown(3); // -> Calls.thrown
    } // end Calls.round

    public void run() { // = Calls.run
        try {
            while (true)
                round(); // -> Calls.round
        } catch (Exception e) {
            throw new RuntimeException(e);
        }
    } // end Calls.run

    public static void main(String[] args) throws Exception { // = Calls.main
        method = Calls.class.getDeclaredMethod("leaf", int.class);
        if (args.length > 0) {
            Class<?> builder = Class.forName("java.lang.Thread$Builder");
            Object virtual = Thread.class.getMethod("ofVirtual").invoke(null);
            builder.getMethod("start", Runnable.class).invoke(virtual, new Calls()); // -> Calls.<init>
            Thread.sleep(1000000);
        }
        new Calls().run(); // -> Calls.run Calls.<init>
    } // end Calls.main
}
JAVA
javac -J-XX:TieredStopAtLevel=1 -encoding UTF-8 -g:lines,source --release 8 -d "$tmp/src" "$tmp/src/Calls.java" \
        2>"$tmp/javac" ||
        cat "$tmp/javac"

start_java() {
        "$@" &
        program=$!
        background_pids=$program
}

# check_java WHAT JAVA OPTION...: the options end with the class and its arguments.
check_java() {
        what=$1
        shift
        start_java "$@"
        profile named
        kill "$program"
        python3 tests/e2e/agent/java-stacks.py "$tmp/named.otlp" "$tmp/src/Calls.java" >"$tmp/stacks"
        sed 's/^/# /' "$tmp/stacks"
        ok "$what: samples have frames of the program" test "$(value samples)" -ge 100
        is "$(value wrong)" 0 "$what: no frame has a wrong method, line or caller"
        ok "$what: stacks begin at the program's start" test "$(value whole)" -ge $(($(value samples) * 99 / 100))
        ok "$what: callers have lines" test "$(value without_line)" -le $(($(value callers) / 50))
        ok "$what: methods are readable" test "$(value unreadable)" -le $(($(value samples) / 100))
        is "$(count 'cairn_agent_java_processes_total{result="read"}')" 1 "$what: the process is counted"
        ok "$what: frames are counted" test "$(count 'cairn_agent_java_frames_total{result="named"}')" -gt 100
        complete=$(count 'cairn_agent_user_stacks_ended_total{end="complete"}')
        all=$(awk '/^cairn_agent_user_stacks_ended_total/ { n += $2 } END { print n }' "$tmp/metrics")
        ok "$what: stacks are whole, those before the process was known aside" test "$complete" -ge $((all * 95 / 100))
}

# check_version JAVA
check_version() {
        version=$("$1" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p')
        check_java "$version, interpreted" "$1" -Xint -XX:+UseParallelGC -cp "$tmp/src" Calls
        check_java "$version, compiled by C1" "$1" -XX:TieredStopAtLevel=1 -XX:+UseG1GC -cp "$tmp/src" Calls
        check_java "$version, compiled by C2" "$1" -XX:-TieredCompilation -XX:+UseSerialGC -cp "$tmp/src" Calls
        check_java "$version, without inlining" "$1" -XX:-Inline -cp "$tmp/src" Calls
        case $version in
        1.8.* | 11.*) ;;
        *) check_java "$version, by default, with ZGC" "$1" -XX:+UseZGC -cp "$tmp/src" Calls ;;
        esac
        case $version in
        21.* | 2[2-9]*) check_java "$version, in a virtual thread" "$1" -cp "$tmp/src" Calls virtual ;;
        esac
}

check_version "$java"
for other in ${JAVAS:-}; do
        check_version "$other"
done

start_java "$java" -cp "$tmp/src" Calls
profile none --runtimes python
unlike "$(cat "$tmp/none.dump")" 'Calls\.' "--runtimes python leaves the native frames"
profile hidden --no-source-paths --runtimes java
like "$(cat "$tmp/hidden.dump")" 'Calls\.main' "--no-source-paths keeps names"
unlike "$(strings -a "$tmp/hidden.otlp")" '[a-z][.]java' "--no-source-paths leaves out files"
kill "$program"

# A program that looks like one with HotSpot whose tables have another form.
cat >"$tmp/other.c" <<'C'
static char *table[16];
void *gHotSpotVMStructs = table, *gHotSpotVMTypes = table;
unsigned long gHotSpotVMStructEntryArrayStride = 56, gHotSpotVMTypeEntryArrayStride = 40;
int main(void)
{
        for (volatile int i = 0;; i++)
                ;
}
C
${CC:-cc} -rdynamic -o "$tmp/other" "$tmp/other.c"
start_java "$tmp/other"
profile refused
"$agent" --doctor >"$tmp/doctor"
kill "$program"
is "$(count 'cairn_agent_runtimes_refused_total{runtime="java",reason="build"}')" 1 \
        "tables of another form are refused, and counted with the reason"
like "$(cat "$tmp/doctor")" "process $program .other.: Java is not read: its tables for debuggers" \
        "--doctor names the process with the reason"
done_testing
