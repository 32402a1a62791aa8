/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Precision and recall of the operation changes, on services of random series in which the truth is known.
 *
 * A service has FUNCTIONS functions whose shares move slowly from hour to hour (a first-order autoregressive process),
 * some with a daily pattern, and traffic that is ten times greater by day. Samples are drawn by Poisson's distribution.
 * Into each service one event of every kind is planted, at random hours and with random functions and sizes:
 *  - a function that costs more from a new build on, and one that does without a new build: to be found;
 *  - one that costs more for some hours, and one whose cost moves to another function: not to be found.
 *
 * CAIRN_CHANGE_SEEDS sets the number of services; `make check-changes` uses 200. The seeds from FIRST_SEED on were
 * chosen before anything was tried on them: try changes of the search with others (CAIRN_CHANGE_FIRST_SEED).
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_node.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "profile-formats/profile_type.h"
#include "query/operations/service_changes.h"
#include "query/query.h"
#include "tests/support/random_draw.h"
#include "tests/support/suite.h"

#define HOUR_NS (INT64_C(3600) * 1000000000)
#define NOW (INT64_C(472223) * HOUR_NS) /* the end of an hour */
#define TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define PERIOD_NS 52631578
#define DAY 24
#define FUNCTIONS 40
#define MOVED_FROM (FUNCTIONS)   /* events have functions of their own */
#define MOVED_TO (FUNCTIONS + 1) /* called by MOVED_FROM */
#define FIRST_SEED 610000

enum planted { BY_BUILD, WITHOUT_BUILD, TRANSIENT, MOVED, PLANTED };

/* An event: the function costs `factor` as much in [from, to). */
struct event {
        unsigned function;
        int from, to;
        double factor;
};

struct service {
        int hours;
        struct event events[PLANTED];
        bool has_events;
        int build_hour; /* from which the program is another build */
};

/* ---- a service ---- */

static double draw_between(double low, double high)
{
        return low + (high - low) * draw_uniform();
}

static unsigned draw_free_function(const struct service *s, int count)
{
        for (;;) {
                unsigned ret = (unsigned)draw_between(1, FUNCTIONS);
                bool is_free = true;

                for (int i = 0; i < count; i++)
                        is_free = is_free && s->events[i].function != ret;
                if (is_free)
                        return ret;
        }
}

/* Shares of functions fall from 10% to 1%. */
static double get_planned_share(unsigned function)
{
        return function >= FUNCTIONS ? 0.03 : fmax(0.01, 0.1 * exp(-0.08 * function));
}

static void draw_service(struct service *s, bool has_events)
{
        *s = (struct service){ .hours = (int)draw_between(4, 10) * DAY, .has_events = has_events };
        s->build_hour = (int)draw_between(DAY, s->hours - 8);
        for (int i = 0; i < PLANTED; i++) {
                struct event *e = &s->events[i];

                e->function = draw_free_function(s, i);
                e->from = i == BY_BUILD || i == MOVED ? s->build_hour : (int)draw_between(DAY, s->hours - 12);
                e->to = s->hours;
                e->factor = draw_between(1.15, 1.6);
        }
        s->events[TRANSIENT].to = s->events[TRANSIENT].from + (int)draw_between(4, 9);
        s->events[MOVED].function = MOVED_FROM;
}

static double get_event_factor(const struct service *s, unsigned function, int hour)
{
        double ret = 1;

        for (int i = 0; s->has_events && i < MOVED; i++)
                if (s->events[i].function == function && hour >= s->events[i].from && hour < s->events[i].to)
                        ret *= s->events[i].factor;
        return ret;
}

static uint32_t add_change_text(struct profile *p, const char *text)
{
        uint32_t ret;

        ck_assert_int_eq(profile_add_string(p, text, strlen(text), &ret, NULL), ST_OK);
        return ret;
}

static uint32_t add_change_location(struct profile *p, unsigned function, uint32_t mapping)
{
        struct profile_line line = { 0 };
        struct profile_location l = {
                .mapping = mapping, .line_count = 1, .kind = ADDRESS_OBJECT, .address = function + 1
        };
        char name[32];
        uint32_t ret;

        snprintf(name, sizeof name, "function_%u", function);
        line.function = add_change_text(p, name);
        ck_assert_int_eq(profile_add_line(p, &line, &l.first_line, NULL), ST_OK);
        ck_assert_int_eq(profile_add_location(p, &l, &ret, NULL), ST_OK);
        return ret;
}

static void add_change_sample(struct profile *p, unsigned function, uint32_t mapping, int64_t at, double mean)
{
        struct profile_sample s = { .value = draw_poisson(mean) * PERIOD_NS, .time_unix_ns = at, .label_count = 1 };
        struct profile_label label = { .key = add_change_text(p, "service.name"), .value = add_change_text(p, "api") };
        uint32_t locations[2] = { add_change_location(p, function, mapping) }, number, count = 1;

        if (!s.value)
                return;
        if (function == MOVED_TO)
                locations[count++] = add_change_location(p, MOVED_FROM, mapping);
        ck_assert_int_eq(profile_add_stack(p, locations, count, &s.stack, NULL), ST_OK);
        ck_assert_int_eq(profile_type_add_id(p, TYPE, PERIOD_NS, &s.type, NULL), ST_OK);
        ck_assert_int_eq(profile_add_label_set(p, &label, 1, &s.first_label, NULL), ST_OK);
        ck_assert_int_eq(profile_add_sample(p, &s, &number, NULL), ST_OK);
}

static uint32_t add_change_mapping(struct profile *p, uint8_t build)
{
        struct profile_mapping m = { .build_id = { .size = 20, .bytes = { build, 1, 2, 3 } },
                                     .file = add_change_text(p, "/usr/bin/api") };
        uint32_t ret;

        ck_assert_int_eq(profile_add_mapping(p, &m, &ret, NULL), ST_OK);
        return ret;
}

static void simulate_hours(const struct service *s, struct profile *p)
{
        double drift[FUNCTIONS + 2], traffic = 1;
        uint32_t mappings[2];

        ck_assert_int_eq(profile_init(p, LIMIT_PROFILE_MEMORY_BYTES, NULL), ST_OK);
        mappings[0] = add_change_mapping(p, 0xaa);
        mappings[1] = add_change_mapping(p, 0xbb);
        for (unsigned f = 0; f < FUNCTIONS + 2; f++)
                drift[f] = draw_normal();
        for (int hour = 0; hour < s->hours; hour++) {
                const double day = sin(2 * M_PI * hour / DAY);

                traffic = exp(1.15 * day + 0.1 * draw_normal()); /* ten times between night and day */
                for (unsigned f = 0; f < FUNCTIONS + 2; f++) {
                        double share = get_planned_share(f) * get_event_factor(s, f, hour);
                        bool has_moved = s->has_events && hour >= s->events[MOVED].from;

                        drift[f] = 0.6 * drift[f] + 0.8 * draw_normal();
                        share *= 1 + 0.02 * drift[f] + (f % 5 == 4 ? 0.2 * day : 0);
                        share *= f == MOVED_FROM ? (has_moved ? 0.5 : 1) : f == MOVED_TO ? (has_moved ? 1 : 0.5) : 1;
                        add_change_sample(p, f, mappings[hour >= s->build_hour],
                                          NOW - (s->hours - hour) * HOUR_NS + HOUR_NS / 2,
                                          share * traffic * 3600 * 19 * 4);
                }
        }
}

/* ---- the answers ---- */

static const char *get_change_param(void *context, const char *name)
{
        (void)context;
        return strcmp(name, "limit") == 0 ? "1000" : NULL;
}

static void run_changes(const struct service *s, struct buf *ret)
{
        _cleanup_profile_ struct profile p = { 0 };
        const struct profile *profiles[1] = { &p };
        const struct query_input in = { .param = get_change_param };
        const struct profile_query query = { profiles, 1, "changes", &in };
        struct query_answer answer;
        struct error err = { 0 };

        simulate_hours(s, &p);
        buf_init(ret, MiB(4));
        ck_assert_msg(query_run_profiles(&query, ret, &answer, &err) == ST_OK, "%s", err.text);
}

static uint64_t get_number_of_environment(const char *name, uint64_t fallback)
{
        const char *text = getenv(name);

        ck_assert(!text || parse_uint(text, &fallback));
        return fallback;
}

struct score {
        unsigned found[PLANTED], attributed, early_or_late, wrong, services_with_wrong;
};

/* The event that a row is, PLANTED: none. */
static enum planted find_event(const struct service *s, const struct json_node *row)
{
        char name[32];

        for (int i = 0; s->has_events && i < PLANTED; i++) {
                snprintf(name, sizeof name, "function_%u", s->events[i].function);
                if (strcmp(json_node_text(row, "function"), name) == 0)
                        return (enum planted)i;
        }
        return PLANTED;
}

static void score_service(const struct service *s, struct score *score)
{
        _cleanup_buf_ struct buf b;
        struct arena a;
        const struct json_node *root, *row;
        bool has_wrong = false;

        run_changes(s, &b);
        root = json_node_parse(b.data, b.size, &a);
        ck_assert_ptr_nonnull(root);
        for (struct json_node_list l = json_node_list(root, "rows"); (row = json_node_next(&l));) {
                const enum planted event = find_event(s, row);
                int64_t hour = (int64_t)(json_node_uint(row, "time_ms") * 1000000 - (uint64_t)NOW) / HOUR_NS + s->hours;
                bool is_right = event <= WITHOUT_BUILD && strcmp(json_node_text(row, "state"), "regression") == 0 &&
                                hour >= s->events[event].from - 4 && hour <= s->events[event].from + 4;

                if (is_right) {
                        score->found[event]++;
                        score->attributed += event == BY_BUILD && strcmp(json_node_text(row, "cause"), "build") == 0 &&
                                             strncmp(json_node_text(row, "build_before"), "aa", 2) == 0 &&
                                             strncmp(json_node_text(row, "build_after"), "bb", 2) == 0;
                } else {
                        score->wrong++;
                        score->found[event < PLANTED ? event : TRANSIENT] += event == TRANSIENT || event == MOVED;
                        has_wrong = true;
                        printf("# wrong: %s event %d %s hour %d of %d, build %d\n", json_node_text(row, "function"),
                               (int)event, json_node_text(row, "state"), (int)hour, s->hours, s->build_hour);
                }
        }
        score->services_with_wrong += has_wrong;
        arena_deinit(&a);
}

static void score_services(bool has_events, unsigned *services_ret, struct score *ret)
{
        unsigned services = (unsigned)get_number_of_environment("CAIRN_CHANGE_SEEDS", 6);
        uint64_t first = get_number_of_environment("CAIRN_CHANGE_FIRST_SEED", FIRST_SEED);

        *ret = (struct score){ 0 };
        for (unsigned i = 0; i < services; i++) {
                struct service s;

                random_state = (first + i) * 0xd1342543de82ef95u;
                draw_service(&s, has_events);
                score_service(&s, ret);
        }
        *services_ret = services;
}

START_TEST(planted_changes_are_found_and_no_others)
{
        struct score s;
        unsigned services, right;

        score_services(true, &services, &s);
        right = s.found[BY_BUILD] + s.found[WITHOUT_BUILD];
        printf("# of %u services: %u changes by a build found, %u of them with the build; %u without a build found; "
               "wrong: %u, of which went away %u, moved %u\n",
               services, s.found[BY_BUILD], s.attributed, s.found[WITHOUT_BUILD], s.wrong, s.found[TRANSIENT],
               s.found[MOVED]);
        printf("# precision %.1f%%, recall %.1f%%\n", 100.0 * right / (right + s.wrong),
               100.0 * right / (2 * services));
        ck_assert_uint_ge(right * 20, (right + s.wrong) * 19);
        ck_assert_uint_ge(right * 10, 2 * services * 9);
        ck_assert_uint_ge(s.attributed * 20, s.found[BY_BUILD] * 19);
}
END_TEST

START_TEST(services_without_changes_rarely_have_one)
{
        struct score s;
        unsigned services;

        score_services(false, &services, &s);
        printf("# %u of %u services without a change have one\n", s.services_with_wrong, services);
        ck_assert(s.services_with_wrong * 20 <= services || s.services_with_wrong == 1);
}
END_TEST

/* ---- work ---- */

#define YEAR_HOURS (366 * 24)
#define COSTLY_FUNCTIONS 30

static enum status continue_work(void *context, struct error *err)
{
        (void)context;
        (void)err;
        return ST_OK;
}

/* The costliest step, daily patterns, must not be left out of what can be interrupted. */
START_TEST(work_grows_with_hours_and_functions)
{
        const size_t count = (size_t)YEAR_HOURS * COSTLY_FUNCTIONS;
        struct hour_cost *costs = calloc(count, sizeof *costs);
        struct service_changes found = { .memory.use = MEMORY_QUERIES };
        struct work_meter meter;
        struct error err;

        ck_assert_ptr_nonnull(costs);
        for (uint32_t i = 0; i < count; i++)
                costs[i] = (struct hour_cost){ .function = i / YEAR_HOURS,
                                               .hour = i % YEAR_HOURS,
                                               .build = NO_CHANGE_TEXT,
                                               .version = NO_CHANGE_TEXT,
                                               .self = 100,
                                               .total = 100,
                                               .self_samples = 10 };
        work_meter_init(&meter, continue_work, NULL);
        ck_assert_int_eq(service_changes_add(&found,
                                             &(struct service_changes_request){ .costs = costs,
                                                                                .count = count,
                                                                                .hours = YEAR_HOURS,
                                                                                .min_change = 0.05,
                                                                                .meter = &meter },
                                             &err),
                         ST_OK);
        ck_assert_uint_eq(found.tested, COSTLY_FUNCTIONS);
        /* 64 units of an hour for its pattern, and as many for its changes */
        ck_assert_uint_ge(meter.checks, COSTLY_FUNCTIONS * 3 / 2);
        service_changes_deinit(&found);
        free(costs);
}
END_TEST

TEST_SUITE("changes", work_grows_with_hours_and_functions, planted_changes_are_found_and_no_others,
           services_without_changes_rarely_have_one)
