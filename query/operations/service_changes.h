/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_OPERATIONS_SERVICE_CHANGES_H
#define CAIRN_QUERY_OPERATIONS_SERVICE_CHANGES_H

/**
 * @file
 * The changes of the functions of one service: which functions cost more or less since an hour, and why.
 *
 * What is compared is the share of a function's self cost in the cost of its service, so traffic does not count. A
 * share also falls because another function grew; that is corrected by the common factor of all functions.
 *
 * Threads: no shared state.
 */
#include <stdint.h>

#include "common/memory/memory_budget.h"
#include "common/threads/work_meter.h"
#include "query/engine/change_points.h"

#define NO_CHANGE_TEXT UINT32_MAX

/* The cost of a function in an hour. Texts are numbers of the caller. */
struct hour_cost {
        uint32_t service, function, build, version; /* NO_CHANGE_TEXT: unknown */
        uint32_t hour;                              /* since the first one */
        int64_t self, total;
        uint64_t self_samples;
};

enum change_state {
        CHANGE_REGRESSION,
        CHANGE_IMPROVEMENT,
        CHANGE_WENT_AWAY, /* the level is as before again; or this is how it became so */
        CHANGE_MOVED,     /* the cost was that of another function, or is now */
        CHANGE_DILUTED,   /* only the rest of the service changed */
        CHANGE_DAILY,     /* the same hours of the days before had the new level */
        CHANGE_STATES
};

enum change_cause { CAUSE_NONE, CAUSE_BUILD, CAUSE_VERSION, CAUSE_OTHER_BUILD };

struct service_change {
        uint32_t service, function;
        enum change_state state;
        enum change_cause cause;
        uint32_t hour, returned_at; /* returned_at: of CHANGE_WENT_AWAY */
        double before, after;       /* shares of self cost in the cost of the service */
        double total_before, total_after;
        double difference;               /* of shares, as if only this function had changed */
        double cost;                     /* of the difference: units an hour */
        double p;                        /* corrected for all tests of the service */
        uint32_t moved_to;               /* function with the opposite change; NO_CHANGE_TEXT */
        uint32_t builds[2], versions[2]; /* before and after; NO_CHANGE_TEXT. Of CAUSE_OTHER_BUILD only builds[1] */
};

struct service_changes {
        struct service_change *items; /* owned */
        size_t count, capacity;
        uint64_t services, tested; /* services, and functions that were tested */
        struct memory_reservation memory;
};
void service_changes_deinit(struct service_changes *c);

struct service_changes_request {
        const struct hour_cost *costs; /* of one service, sorted by function, then hour; borrowed */
        size_t count;
        size_t hours;      /* costs[].hour is below it */
        double min_change; /* relative, as 0.05 */
        struct work_meter *meter;
};

/** Add the changes of one service, in all states. @return ST_NO_MEMORY, ST_TOO_BIG, the status of the meter. */
enum status service_changes_add(struct service_changes *c, const struct service_changes_request *request,
                                struct error *err) MUST_CHECK;

#endif
