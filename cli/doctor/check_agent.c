/* SPDX-License-Identifier: Apache-2.0 */
/* The findings of `cairn-agent --doctor`, on a host where the agent is installed. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/doctor/doctor_checks.h"
#include "cli/shared/programs.h"
#include "common/json/json_value.h"
#include "common/limits.h"

/* Without root an error is only a warning: the unit runs the agent as root. */
static enum finding_state judge_agent_item(const char *state, bool can_profile)
{
        if (strcmp(state, finding_state_name(FINDING_OK)) == 0)
                return FINDING_OK;
        return strcmp(state, finding_state_name(FINDING_ERROR)) == 0 && !can_profile && geteuid() == 0
                       ? FINDING_ERROR
                       : FINDING_WARNING;
}

static void report_agent_items(const struct json_value *root, bool can_profile, struct findings *f)
{
        struct json_value list, item;
        struct json_scan items;

        if (!json_value_member(root, "items", &list) || !json_value_open_array(&list, &items))
                return;
        while (json_value_next(&items, &item)) {
                char name[40] = "", state[16] = "", found[300] = "", fix[300] = "";

                json_value_text(&item, "name", name, sizeof name);
                json_value_text(&item, "state", state, sizeof state);
                json_value_text(&item, "found", found, sizeof found);
                json_value_text(&item, "fix", fix, sizeof fix);
                report_finding(f, judge_agent_item(state, can_profile), name, fix, "%s", found);
        }
}

/* @param args  run the agent's own doctor. */
static void report_agent(const char *const *args, struct program_output *said, struct findings *f)
{
        char sampler[16] = "";
        struct json_value root;
        bool can_profile = false;
        struct error err;
        int code;

        if (run_sibling_program(args, said, &code, &err) ||
            json_value_parse(said->out.data, said->out.size, &root, &err)) {
                report_finding(f, FINDING_ERROR, "cairn-agent", "see what 'cairn-agent --doctor' prints", "%s",
                               said->errors.size && buf_cstr(&said->errors) ? buf_cstr(&said->errors) : err.text);
                return;
        }
        json_value_bool(&root, "can_profile", &can_profile);
        json_value_text(&root, "sampler", sampler, sizeof sampler);
        if (can_profile)
                report_finding(f, FINDING_OK, "profiling", "", "the agent can profile here, by %s", sampler);
        else
                report_finding(f, geteuid() == 0 ? FINDING_ERROR : FINDING_WARNING, "profiling",
                               "fix the findings below, or do without the agent on this host",
                               "the agent cannot profile here");
        report_agent_items(&root, can_profile, f);
}

void check_agent(const struct examined *x, struct findings *f)
{
        char program[PATH_MAX];
        const char *args[] = {
                program, "--doctor", "--json", x->config_path ? "--config" : NULL, x->config_path, NULL
        };
        struct program_output said;
        struct error err;

        if (find_sibling_program("cairn-agent", program, &err)) {
                report_finding(f, FINDING_SKIPPED, "cairn-agent", "", "%s", err.text);
                return;
        }
        if (geteuid() != 0)
                report_finding(f, FINDING_SKIPPED, "rights", "",
                               "checked with this user's rights: run this as root to check with those of the unit");
        buf_init(&said.out, KiB(256));
        buf_init(&said.errors, KiB(16));
        report_agent(args, &said, f);
        buf_deinit(&said.out);
        buf_deinit(&said.errors);
}
