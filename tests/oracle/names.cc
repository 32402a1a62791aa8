// SPDX-License-Identifier: Apache-2.0
// Functions whose linkage names only some demanglers read, or none: of C++20 (constraints, explicit objects, lambdas with
// template parameters), and ones that are set by hand.
#if __cplusplus >= 202002L
template <class T> concept Number = requires(T a) { a + a; };
#define CONSTRAINED Number
#else
#define CONSTRAINED class
#endif

namespace app {
template <CONSTRAINED T> [[gnu::noinline]] T fold(const T *values, int count)
{
        T sum = 0;
        for (int i = 0; i < count; i++)
                sum = sum * 3 + values[i];
        return sum;
}

struct Chain {
        int first;
        template <CONSTRAINED... T> [[gnu::noinline]] int join(T... rest) const { return (first + ... + int(rest)); }
#if __cplusplus > 202002L && __cpp_explicit_this_parameter
        [[gnu::noinline]] int follow(this const Chain &self, int n)
        {
                int sum = self.first;
                for (int i = 0; i < n; i++)
                        sum = sum * 5 + i;
                return sum;
        }
#endif
};

int unreadable(int n) __asm__("_ZN3app4runEQQQi"); // an encoding that no demangler knows
[[gnu::noinline]] int unreadable(int n)
{
        int sum = 1;
        for (int i = 0; i < n; i++)
                sum = sum * 7 + i;
        return sum;
}
} // namespace app

int main(int argc, char **)
{
        const int values[] = { argc, 2, 3 };
        const double fractions[] = { double(argc), 2.5 };
        app::Chain chain{ argc };
        int sum = app::fold(values, 3) + int(app::fold(fractions, 2)) + chain.join(1, 2.5, 'c') + app::unreadable(argc);
#if __cplusplus > 202002L && __cpp_explicit_this_parameter
        sum += chain.follow(argc);
#endif
#if __cplusplus >= 202002L
        sum += [&]<Number T>(T x) { return int(x) + sum; }(2.5f);
#endif
        return sum;
}
