/* SPDX-License-Identifier: Apache-2.0 */
#include "server/clock_watch.h"

#include <inttypes.h>

#include "common/log.h"
#include "common/metrics.h"
#include "common/stable_clock.h"

static struct metric steps = METRIC_COUNTER("cairn_clock_steps_total", "Steps of the wall clock by a minute or more.", "");
static struct metric held = METRIC_GAUGE("cairn_clock_held_seconds", "Seconds by which the wall clock stepped forward and that do not count as age yet.", "");

void clock_watch_look(struct clock_watch *w)
{
        int64_t held_s, left_s;
        uint64_t count;
        bool is_held = stable_clock_is_held(&held_s, &left_s, &count);

        metric_register(&steps);
        metric_set(&held, held_s);
        if (count == w->steps)
                return;
        metric_add(&steps, (int64_t)(count - w->steps));
        w->steps = count;
        if (is_held)
                log_warn("clock", "the wall clock stepped forward by %" PRId64 " s; what is deleted by age is kept for %" PRId64
                         " s more, in case it was wrong: check the time synchronization, or restart to believe it", held_s, left_s);
        else
                log_warn("clock", "the wall clock was set; check the time synchronization");
}
