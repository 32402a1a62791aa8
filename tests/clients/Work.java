/* SPDX-License-Identifier: Apache-2.0 */
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** Computes, allocates, waits for a lock and parks for the given number of seconds. */
public class Work {
    static volatile long sink;
    static final Object lock = new Object();

    static class Node {
        byte[] bytes = new byte[4096];
    }

    static void burn(int n) {
        long sum = 0;
        for (int i = 0; i < n; i++) {
            sum += Math.sqrt(i);
        }
        sink += sum;
    }

    static void allocate(int n) {
        List<Node> nodes = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            nodes.add(new Node());
        }
        sink += nodes.size();
    }

    static int deep(int n) {
        if (n == 0) {
            burn(2000000);
            return 1;
        }
        return deep(n - 1) + 1;
    }

    static void hold() {
        for (int i = 0; i < 30; i++) {
            synchronized (lock) {
                try {
                    Thread.sleep(20);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }
    }

    public static void main(String[] arguments) {
        long end = System.currentTimeMillis() + Integer.parseInt(arguments[0]) * 1000L;

        new Thread(Work::hold, "holder").start();
        while (System.currentTimeMillis() < end) {
            deep(20);
            allocate(2000);
            synchronized (lock) {
                sink++;
            }
            LockSupport.parkNanos(15000000L);
        }
    }
}
