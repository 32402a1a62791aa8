/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/random_draw.h"

#include <math.h>

uint64_t random_state;

/* Source: S. Vigna, splitmix64. */
double draw_uniform(void)
{
        uint64_t z = random_state += 0x9e3779b97f4a7c15u;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return ((double)((z ^ (z >> 31)) >> 11) + 0.5) / 9007199254740992.0;
}

double draw_normal(void)
{
        return sqrt(-2 * log(draw_uniform())) * cos(2 * M_PI * draw_uniform());
}

int64_t draw_poisson(double mean)
{
        double limit = exp(-mean), product = draw_uniform();
        int64_t n = 0;

        if (mean > 30) {
                double x = round(mean + sqrt(mean) * draw_normal());

                return x > 0 ? (int64_t)x : 0;
        }
        for (; product > limit; n++)
                product *= draw_uniform();
        return n;
}
