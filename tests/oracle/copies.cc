// SPDX-License-Identifier: Apache-2.0
// Built twice and linked into one program: inline functions with the same name and size, but different code, lines and
// calls.
// The instructions show which of them is in the program.
#ifdef SECOND
#define FACTOR 1000033

static inline __attribute__((always_inline)) int step(int x)
{
        return x * FACTOR;
}

#else
#define FACTOR 1000003
static inline __attribute__((always_inline)) int step(int x)
{
        return x * FACTOR;
}
#endif

inline __attribute__((noinline)) int copied(int x)
{
#ifdef SECOND
        int y = step(x + 4);

        return step(y) - 5;
#else
        int y = step(x + 2);
        return step(y) - 3;
#endif
}

template <class T> __attribute__((noinline)) T made(T x)
{
#ifdef SECOND


        return step(x) + 7;
#else
        return step(x) + 9;
#endif
}

int other(int x);
#ifdef SECOND
int other(int x)
{
        return copied(x) + made(x);
}
#else
int main(int argc, char **)
{
        return copied(argc) + made(argc) + other(argc);
}
#endif
