/* SPDX-License-Identifier: Apache-2.0 */
/*
 * False alarms and power of the operation gate, on simulated services of which the truth is known.
 *
 * A service runs on hosts for 30 minutes, with CORES cores each, sampled at 19 Hz. Each function has a share of the CPU
 * time; it differs between hosts, by a factor that a host keeps, and moves slowly (a first-order autoregressive process
 * of intervals of 10 seconds), so that intervals depend on each other as in real services. Samples are drawn by
 * Poisson's distribution. The side after runs on the same hosts, on others, or on some of both.
 *
 * CAIRN_GATE_SEEDS sets the number of runs of each test; `make check-gate` uses 200. The seeds from FIRST_SEED on were
 * chosen before anything was tried on them, and the gate is not tuned by their results: try changes of it with others
 * (CAIRN_GATE_FIRST_SEED).
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/text/number_text.h"
#include "profile-formats/profile_type.h"
#include "query/query.h"
#include "tests/support/random_draw.h"
#include "tests/support/suite.h"

#define NOW (INT64_C(1700000000) * 1000000000)
#define MINUTES 30
#define CORES 2
#define FUNCTIONS 60
#define TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
#define PERIOD_NS 52631578
#define SLOWED 3 /* the function that becomes slower: 10% of the total */
#define RARE 59  /* under 1% */
#define FIRST_SEED 930000

static bool has_no_period; /* then the number of samples is unknown */
static bool has_namesake;  /* SLOWED and RARE have one name, in different files */

static uint64_t run_seed;

/* ---- a service ---- */

struct simulation {
        unsigned hosts;
        unsigned moved;  /* of them are others on the side after */
        double slowdown; /* of the function SLOWED on the side after, as 0.05 */
};

static uint32_t add_gate_text(struct profile *p, const char *text)
{
        uint32_t ret;

        ck_assert_int_eq(profile_add_string(p, text, strlen(text), &ret, NULL), ST_OK);
        return ret;
}

static uint32_t add_gate_stack(struct profile *p, unsigned function)
{
        struct profile_line line = { 0 };
        struct profile_location l = { .mapping = PROFILE_NONE, .line_count = 1, .kind = ADDRESS_NONE };
        uint32_t location, ret;
        char name[32];

        snprintf(name, sizeof name, "function_%u", function);
        if (function == RARE && has_namesake) {
                snprintf(name, sizeof name, "function_%u", SLOWED);
                line.file = add_gate_text(p, "other.c");
        }
        line.function = add_gate_text(p, name);
        ck_assert_int_eq(profile_add_line(p, &line, &l.first_line, NULL), ST_OK);
        ck_assert_int_eq(profile_add_location(p, &l, &location, NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(p, &location, 1, &ret, NULL), ST_OK);
        return ret;
}

static void add_gate_sample(struct profile *p, const char *host, const char *side, uint32_t stack, int64_t at,
                            int64_t count)
{
        struct profile_sample s = { .value = count * PERIOD_NS, .time_unix_ns = at, .stack = stack, .label_count = 2 };
        struct profile_label labels[] = { { .key = add_gate_text(p, "host.name"), .value = add_gate_text(p, host) },
                                          { .key = add_gate_text(p, "version"), .value = add_gate_text(p, side) } };
        uint32_t number;

        ck_assert_int_eq(profile_type_add_id(p, TYPE, has_no_period ? 0 : PERIOD_NS, &s.type, NULL), ST_OK);
        ck_assert_int_eq(profile_add_label_set(p, labels, 2, &s.first_label, NULL), ST_OK);
        ck_assert_int_eq(profile_add_sample(p, &s, &number, NULL), ST_OK);
}

/* Shares fall as those of real services; the first is the runtime. */
static double get_function_share(unsigned function)
{
        static const double greatest[] = { 0.2, 0.12, 0.11, 0.1 };

        return function < 4 ? greatest[function] : 0.47 * exp(-0.06 * function) / 10.7;
}

/* What is special about a function on a host: the same on both sides. */
static double draw_host_factor(unsigned host, unsigned function)
{
        const uint64_t kept = random_state;
        double ret;

        random_state = (run_seed << 32 | host << 16 | function) * 0xd1342543de82ef95u;
        draw_uniform();
        ret = exp(0.02 * draw_normal());
        random_state = kept;
        return ret;
}

/* Samples of one function on one host: three blocks of 10 minutes. */
static void simulate_function(struct profile *p, unsigned number, const char *side, unsigned function, double factor)
{
        double host_factor = draw_host_factor(number, function), moving = draw_normal();
        uint32_t stack = add_gate_stack(p, function);
        char host[24];

        snprintf(host, sizeof host, "host-%u", number);
        for (int block = 0; block < MINUTES / 10; block++) {
                double sum = 0;

                for (int interval = 0; interval < 60; interval++) {
                        moving = 0.8 * moving + 0.6 * draw_normal();
                        sum += 1 + 0.1 * moving;
                }
                sum = draw_poisson(fmax(0, sum) * 10 * 19 * CORES * get_function_share(function) * host_factor *
                                   factor);
                if (sum > 0)
                        add_gate_sample(p, host, side, stack,
                                        NOW - (MINUTES * 60 - block * 600 - 1) * INT64_C(1000000000), (int64_t)sum);
        }
}

static void simulate_service(const struct simulation *s, struct profile *p)
{
        ck_assert_int_eq(profile_init(p, LIMIT_PROFILE_MEMORY_BYTES, NULL), ST_OK);
        for (unsigned side = 0; side < 2; side++) {
                for (unsigned i = 0; i < s->hosts; i++)
                        for (unsigned f = 0; f < FUNCTIONS; f++)
                                simulate_function(p, side ? i + s->moved : i, side ? "2" : "1", f,
                                                  side && f == SLOWED ? 1 + s->slowdown : 1);
        }
}

/* ---- the gate ---- */

static const char *gate_rules, *gate_part;

static const char *gate_param(void *context, const char *name)
{
        (void)context;
        if (strcmp(name, "selector") == 0)
                return "{version=\"2\"}";
        if (strcmp(name, "base_selector") == 0)
                return "{version=\"1\"}";
        if (strcmp(name, "part") == 0)
                return gate_part;
        return strcmp(name, "fail_if") == 0 ? gate_rules : NULL;
}

static char *run_gate_query(const struct simulation *s)
{
        _cleanup_profile_ struct profile p = { 0 };
        const struct profile *profiles[1] = { &p };
        const struct query_input in = { .param = gate_param };
        const struct profile_query query = { profiles, 1, "gate", &in };
        struct query_answer answer;
        struct buf b;
        struct error err = { 0 };

        run_seed = random_state;
        simulate_service(s, &p);
        buf_init(&b, MiB(4));
        ck_assert_msg(query_run_profiles(&query, &b, &answer, &err) == ST_OK, "%s", err.text);
        ck_assert_ptr_nonnull(buf_cstr(&b));
        return (char *)b.data;
}

static unsigned get_seed_count(void)
{
        const char *text = getenv("CAIRN_GATE_SEEDS");
        uint64_t n = 8;

        ck_assert(!text || parse_uint(text, &n));
        return (unsigned)n;
}

static bool has_text(const char *answer, const char *text)
{
        return strstr(answer, text) != NULL;
}

static uint64_t get_first_seed(void)
{
        const char *text = getenv("CAIRN_GATE_FIRST_SEED");
        uint64_t n = FIRST_SEED;

        ck_assert(!text || parse_uint(text, &n));
        return n;
}

/* Of runs: those with a failed rule, those in which SLOWED failed, and other functions that failed. */
struct alarms {
        unsigned runs, slowed, others;
};

static struct alarms count_alarms(const struct simulation *s, unsigned seeds)
{
        struct alarms ret = { 0 };

        for (unsigned seed = 0; seed < seeds; seed++) {
                _cleanup_free_ char *answer = NULL;
                const char *slowed;

                random_state = get_first_seed() + seed;
                answer = run_gate_query(s);
                ret.runs += has_text(answer, "\"state\":\"failed\"");
                slowed = strstr(answer, "{\"function\":\"function_3\"");
                slowed = slowed ? strstr(slowed, "\"is_failure\":") : NULL;
                ret.slowed += slowed && strncmp(slowed, "\"is_failure\":true", 17) == 0;
                for (const char *at = answer; (at = strstr(at, "\"is_failure\":true")); at++)
                        ret.others++;
        }
        ret.others -= ret.slowed;
        return ret;
}

/* The hosts of a side, and how many of them are others on the side after. */
static const struct simulation layouts[] = { { 20, 0, 0 }, { 20, 10, 0 }, { 20, 20, 0 }, { 3, 0, 0 }, { 3, 3, 0 } };

START_TEST(equal_services_rarely_have_an_alarm)
{
        unsigned seeds = get_seed_count();

        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
                struct alarms a = count_alarms(&layouts[i], seeds);

                printf("# %u hosts, %u moved: %u of %u runs without a change have an alarm\n", layouts[i].hosts,
                       layouts[i].moved, a.runs, seeds);
                ck_assert(a.runs * 20 <= seeds || a.runs == 1);
        }
}
END_TEST

START_TEST(one_function_that_is_5_percent_slower_is_found)
{
        unsigned seeds = get_seed_count();

        for (size_t i = 0; i < sizeof layouts / sizeof *layouts && layouts[i].hosts == 20; i++) {
                const struct simulation s = { 20, layouts[i].moved, 0.05 };
                struct alarms a = count_alarms(&s, seeds);

                printf("# 20 hosts, %u moved: found in %u of %u runs; %u other functions\n", s.moved, a.slowed, seeds,
                       a.others);
                ck_assert_uint_ge(a.slowed * 10, seeds * 9);
                ck_assert_uint_le(a.others * 20, seeds + 20); /* false discoveries: at most 5% of those reported */
        }
}
END_TEST

START_TEST(hosts_of_both_sides_are_pairs)
{
        static const char *const pairs[] = { "\"clusters\":20,\"clusters_after\":20,\"pairs\":20,", "\"pairs\":10,",
                                             "\"pairs\":0,", "\"clusters\":6,\"clusters_after\":6,\"pairs\":6,",
                                             "\"clusters\":3,\"clusters_after\":3,\"pairs\":0," };

        for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
                _cleanup_free_ char *answer = NULL;

                random_state = 3;
                answer = run_gate_query(&layouts[i]);
                ck_assert_msg(has_text(answer, pairs[i]), "%.600s", answer);
        }
}
END_TEST

START_TEST(stacks_are_named_where_samples_are_unknown)
{
        for (int i = 0; i < 2; i++) {
                _cleanup_free_ char *answer = NULL;

                random_state = 1;
                has_no_period = i;
                answer = run_gate_query(&(struct simulation){ .hosts = 3 });
                has_no_period = false;
                ck_assert_int_eq(has_text(answer, ",\"samples_are\":\"stacks\",\"total_after\":"), i);
                ck_assert_int_eq(has_text(answer, ",\"samples_after_are\":\"stacks\","), i);
        }
}
END_TEST

START_TEST(few_hosts_are_divided_into_parts_of_10_minutes)
{
        _cleanup_free_ char *answer = NULL;

        random_state = 1;
        answer = run_gate_query(&(struct simulation){ .hosts = 3, .slowdown = 0.5 });
        ck_assert_msg(has_text(answer, "\"clusters_are\":\"parts\",\"clusters\":6,\"clusters_after\":6,"), "%.600s",
                      answer);
        ck_assert(has_text(answer, "\"rows\":[{\"function\":\"function_3\""));
        ck_assert(has_text(answer, "\"is_failure\":true"));
}
END_TEST

START_TEST(a_change_too_small_to_be_seen_is_unknown)
{
        _cleanup_free_ char *answer = NULL;

        random_state = 8;
        gate_rules = "total>0.01%,function>0.01%,function_3>0.01%,function_3>900%";
        answer = run_gate_query(&(struct simulation){ .hosts = 20 });
        gate_rules = NULL;
        ck_assert(has_text(answer, "{\"rule\":\"total>0.01%\",\"state\":\"unknown\""));
        ck_assert(has_text(answer, "{\"rule\":\"function>0.01%\",\"state\":\"unknown\""));
        ck_assert(has_text(answer, "{\"rule\":\"function_3>0.01%\",\"state\":\"unknown\""));
        ck_assert(has_text(answer, "{\"rule\":\"function_3>900%\",\"state\":\"passed\""));
}
END_TEST

START_TEST(a_rare_function_of_the_same_name_does_not_hide_what_is_seen)
{
        _cleanup_free_ char *answer = NULL;

        random_state = 7;
        gate_rules = "function_3>900%";
        has_namesake = true;
        answer = run_gate_query(&(struct simulation){ .hosts = 20 });
        has_namesake = false;
        gate_rules = NULL;
        ck_assert_msg(has_text(answer, "{\"rule\":\"function_3>900%\",\"state\":\"passed\""), "%.600s", answer);
}
END_TEST

START_TEST(one_host_is_compared_with_thresholds_only)
{
        _cleanup_free_ char *answer = NULL;

        random_state = 9;
        gate_part = "none";
        gate_rules = "function_3>20%,total>900%";
        answer = run_gate_query(&(struct simulation){ .hosts = 1, .slowdown = 1 });
        gate_rules = gate_part = NULL;
        ck_assert(has_text(answer, "{\"rule\":\"function_3>20%\",\"state\":\"failed\""));
        ck_assert(has_text(answer, "{\"rule\":\"total>900%\",\"state\":\"passed\""));
}
END_TEST

START_TEST(malformed_rules_are_refused)
{
        static const char *const rules[] = { "total",     ">5%",       "total>x%",  "total>5",
                                             "total>-1%", "total>5%%", "total>nan%" };
        _cleanup_profile_ struct profile p = { 0 };
        const struct profile *profiles[1] = { &p };
        const struct query_input in = { .param = gate_param };
        const struct profile_query query = { profiles, 1, "gate", &in };

        simulate_service(&(struct simulation){ .hosts = 1 }, &p);
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
                _cleanup_buf_ struct buf b;
                struct query_answer answer;
                struct error err;

                buf_init(&b, MiB(4));
                gate_rules = rules[i];
                ck_assert_msg(query_run_profiles(&query, &b, &answer, &err) == ST_USAGE, "%s", rules[i]);
        }
        gate_rules = NULL;
}
END_TEST

TEST_SUITE("gate", equal_services_rarely_have_an_alarm, one_function_that_is_5_percent_slower_is_found,
           hosts_of_both_sides_are_pairs, few_hosts_are_divided_into_parts_of_10_minutes,
           stacks_are_named_where_samples_are_unknown, a_change_too_small_to_be_seen_is_unknown,
           a_rare_function_of_the_same_name_does_not_hide_what_is_seen, one_host_is_compared_with_thresholds_only,
           malformed_rules_are_refused)
