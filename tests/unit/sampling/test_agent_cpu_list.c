/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sampling/samplers/cpu_list.h"
#include "tests/support/suite.h"

#define COUNT 12

START_TEST(lists_are_ranges_and_single_numbers)
{
        static const struct {
                const char *text, *cpus;
        } cases[] = {
                { "0\n", "#..........." },
                { "0-3\n", "####........" },
                { "0,2-3,11\n", "#.##.......#" },
                { "0-1", "##.........." },
                { "10-400\n", "..........##" },
                { "5-5\n", "....."
                           "#......" },
                { "\n", "............" },
                { "", "............" },
                { "0-18446744073709551615\n", "############" },
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                bool cpus[COUNT];
                char got[COUNT + 1] = "";
                struct error err;

                ck_assert_int_eq(cpu_list_parse(cases[i].text, strlen(cases[i].text), cpus, COUNT, &err), ST_OK);
                for (size_t cpu = 0; cpu < COUNT; cpu++)
                        got[cpu] = cpus[cpu] ? '#' : '.';
                ck_assert_msg(strcmp(got, cases[i].cpus) == 0, "'%s': %s", cases[i].text, got);
        }
}
END_TEST

START_TEST(malformed_list_leaves_result_unchanged)
{
        static const char *const texts[] = {
                "x", "0-", "3-1", "0,,1", "0-1x", "99999999999999999999", "-1", ",", " 0"
        };

        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
                bool cpus[COUNT] = { true };
                struct error err;

                ck_assert_msg(cpu_list_parse(texts[i], strlen(texts[i]), cpus, COUNT, &err) == ST_BAD_DATA, "'%s'",
                              texts[i]);
                ck_assert(cpus[0] && !cpus[1]);
        }
}
END_TEST

START_TEST(this_host_has_a_cpu)
{
        size_t count = (size_t)sysconf(_SC_NPROCESSORS_CONF), online = 0;
        bool *cpus = calloc(count, sizeof *cpus);
        struct error err;

        ck_assert_msg(cpu_list_online(cpus, count, &err) == ST_OK, "%s", err.text);
        for (size_t cpu = 0; cpu < count; cpu++)
                online += cpus[cpu];
        ck_assert_uint_ge(online, 1);
        free(cpus);
}
END_TEST

TEST_SUITE("agent_cpu_list", lists_are_ranges_and_single_numbers, malformed_list_leaves_result_unchanged,
           this_host_has_a_cpu)
