/* SPDX-License-Identifier: Apache-2.0 */
/* cairn query: call trees, series, and what there is to ask for. */
#include "cli/ask.h"
#include "cli/command.h"

static const struct usage usage = {
        .synopsis = "cairn query [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] "
                    "[--types | --labels | --values LABEL | --series | --missing] [--json] [SELECTOR]",
        .about = "Print the merged call tree of the samples that a selector matches, or their cost over time, or "
                 "what profile types, labels and values there are, or which objects lack debuginfo.",
        .examples = "  cairn query '{comm=~\"post.*\"}'\n"
                    "  cairn query --series --step 1m '{service.name=\"api\"}'\n"
                    "  cairn query --values comm\n"
                    "  cairn query --missing\n",
};

int command_query(int argc, char **argv)
{
        struct ask_options o = { 0 };
        struct ask_params params = { 0 };
        bool types = false, labels = false, series = false, missing = false, json = false;
        const char *values = NULL, *step = NULL, *limit = NULL, *selector, *output = NULL, *operation;
        const struct option_spec specs[] = {
                ASK_OPTIONS(&o),
                OPTION_FLAG("types", 0, &types, "list the profile types"),
                OPTION_FLAG("labels", 0, &labels, "list the label names"),
                OPTION_STRING("values", 0, "LABEL", &values, "list the values of a label"),
                OPTION_FLAG("series", 0, &series, "print the cost over time"),
                OPTION_STRING("step", 0, "DURATION", &step, "of --series: 15s, 1m, ..."),
                OPTION_FLAG("missing", 0, &missing, "list objects without debuginfo, the most sampled first"),
                OPTION_STRING("limit", 'n', "N", &limit, "rows at most"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to this file"),
                OPTION_FLAG("json", 0, &json, "print JSON"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st && types + labels + series + missing + (values != NULL) > 1)
                st = error_set(&err, ST_USAGE,
                               "--types, --labels, --values, --series and --missing exclude each other");
        if (!st)
                st = ask_selector(argc, argv, &selector, &err);
        if (!st) {
                operation = types     ? "types"
                            : labels  ? "labels"
                            : values  ? "values"
                            : series  ? "series"
                            : missing ? "missing"
                                      : "flame";
                ask_param(&params, "selector", selector);
                ask_param(&params, "name", values);
                ask_param(&params, "step", step);
                ask_param(&params, "limit", limit);
                ask_param(&params, "format", json ? "json" : "text");
                st = ask_and_write(&o, operation, &params, output, &err);
        }
        return st ? command_fail("query", st, &err) : EXIT_DONE;
}
