/* SPDX-License-Identifier: Apache-2.0 */
#include "common/stable_clock.h"

#include <pthread.h>

#include "common/clock.h"

#define SECOND_NS INT64_C(1000000000)
#define STEP_NS (STABLE_CLOCK_STEP_S * SECOND_NS)
#define HOLD_NS (STABLE_CLOCK_HOLD_S * SECOND_NS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stable_clock process_clock;

static bool is_near(int64_t a, int64_t b)
{
        return a - b < STEP_NS && b - a < STEP_NS;
}

static void note_step(struct stable_clock *c, int64_t offset_ns, int64_t boot_ns)
{
        if (!is_near(offset_ns, c->last_offset_ns)) {
                c->steps++;
                c->last_step_ns = offset_ns - c->last_offset_ns;
                c->stepped_ns = boot_ns;
        } else if (boot_ns - c->stepped_ns >= HOLD_NS) {
                c->stepped_ns = 0;
        }
        if (!c->stepped_ns || offset_ns < c->low_offset_ns)
                c->low_offset_ns = offset_ns;
        if (!c->stepped_ns || offset_ns > c->high_offset_ns)
                c->high_offset_ns = offset_ns;
        c->last_offset_ns = offset_ns;
}

int64_t stable_clock_read(struct stable_clock *c, int64_t wall_ns, int64_t boot_ns)
{
        int64_t offset_ns = wall_ns - boot_ns;

        if (!c->is_set)
                *c = (struct stable_clock){ .is_set = true, .offset_ns = offset_ns, .last_offset_ns = offset_ns };
        note_step(c, offset_ns, boot_ns);
        if (offset_ns < c->offset_ns + STEP_NS) {
                c->offset_ns = offset_ns;
                c->held_since_ns = 0;
        } else if (!c->held_since_ns || !is_near(offset_ns, c->held_offset_ns)) {
                c->held_offset_ns = offset_ns;
                c->held_since_ns = boot_ns;
        } else if (boot_ns - c->held_since_ns >= HOLD_NS) {
                c->offset_ns = offset_ns;
                c->held_since_ns = 0;
        }
        return boot_ns + c->offset_ns;
}

static int64_t read_locked(int64_t *boot_ns_ret)
{
        *boot_ns_ret = clock_ns(CLOCK_BOOTTIME);
        return stable_clock_read(&process_clock, wall_clock_ns(), *boot_ns_ret);
}

static int64_t get_stable_ns(void)
{
        int64_t boot_ns, ret;

        pthread_mutex_lock(&lock);
        ret = read_locked(&boot_ns);
        pthread_mutex_unlock(&lock);
        return ret;
}

int64_t stable_unix_s(void)
{
        return get_stable_ns() / SECOND_NS;
}

int64_t stable_unix_ms(void)
{
        return get_stable_ns() / (SECOND_NS / 1000);
}

void stable_clock_get_range(int64_t *earliest_ret, int64_t *latest_ret)
{
        int64_t boot_ns;

        pthread_mutex_lock(&lock);
        read_locked(&boot_ns);
        *earliest_ret = boot_ns + process_clock.low_offset_ns;
        *latest_ret = boot_ns + process_clock.high_offset_ns;
        pthread_mutex_unlock(&lock);
}

bool stable_clock_is_held(int64_t *held_s_ret, int64_t *left_s_ret, uint64_t *steps_ret)
{
        int64_t boot_ns;
        bool is_held;

        pthread_mutex_lock(&lock);
        read_locked(&boot_ns);
        is_held = process_clock.held_since_ns != 0;
        *held_s_ret = is_held ? (process_clock.held_offset_ns - process_clock.offset_ns) / SECOND_NS : 0;
        *left_s_ret = is_held ? (process_clock.held_since_ns + HOLD_NS - boot_ns) / SECOND_NS : 0;
        *steps_ret = process_clock.steps;
        pthread_mutex_unlock(&lock);
        return is_held;
}
