// SPDX-License-Identifier: Apache-2.0
//
// The program of agent-java.t and java-steps.t. java-stacks.py reads the comments: where methods are, and which lines call
// them. Some methods are compiled and inlined, some are called too rarely for that; callbacks are called by Java's
// library, through interfaces, lambdas, reflection and exceptions. -Dsize=N: of the work of one round, 100 by default.
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
    static final int SIZE = Integer.getInteger("size", 100); // = Calls.<clinit>
    static final Shape[] shapes = {
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
        return leaf(20 * SIZE); // -> Calls.leaf
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
            return n > 0 ? thrown(n - 1) : Integer.parseInt("x" + leaf(5 * SIZE)); // -> Calls.thrown Calls.leaf
        } catch (NumberFormatException e) {
            return leaf(5 * SIZE); // -> Calls.leaf
        }
    } // end Calls.thrown

    void round() throws Exception { // = Calls.round
        deep(20); // -> Calls.deep
        lambda(15 * SIZE); // -> Calls.lambda
        sorted(10 * SIZE); // -> Calls.sorted
        reflected(12 * SIZE); // -> Calls.reflected
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
