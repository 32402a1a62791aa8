// SPDX-License-Identifier: Apache-2.0
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
