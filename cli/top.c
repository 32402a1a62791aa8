/* SPDX-License-Identifier: Apache-2.0 */
/* cairn top: which functions cost most. */
#include "cli/ask.h"
#include "cli/command.h"

static const struct usage usage = {
        .synopsis = "cairn top [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] [--limit N] [--json] "
                    "[SELECTOR]",
        .about = "Print the functions that cost most: flat is what was spent in the function itself, cumulative "
                 "also what it called. Inlined functions count as functions.",
        .examples = "  cairn top\n"
                    "  cairn top --from now-5m '{comm=\"python3\"}'\n"
                    "  cairn top --json --limit 10 --type memory --data ./cairn-data\n",
};

int command_top(int argc, char **argv)
{
        struct ask_options o = { 0 };
        struct ask_params params = { 0 };
        const char *limit = NULL, *selector, *output = NULL, *names = NULL, *function = NULL;
        bool json = false;
        const struct option_spec specs[] = {
                ASK_OPTIONS(&o),
                OPTION_STRING("limit", 'n', "N", &limit, "rows; 30 by default, all with --json"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to this file"),
                OPTION_STRING("function", 0, "REGEX", &function,
                              "only functions with such a name, whole: full, short or linkage"),
                OPTION_STRING("names", 0, "N", &names, "full (default) or short, without parameters and arguments"),
                OPTION_FLAG("json", 0, &json,
                            "print a JSON array of {function, file, line, flat, cumulative, ...}"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st)
                st = ask_selector(argc, argv, &selector, &err);
        if (!st) {
                ask_param(&params, "selector", selector);
                ask_param(&params, "limit", limit);
                ask_param(&params, "function", function);
                ask_param(&params, "names", names);
                ask_param(&params, "format", json ? "rows" : "text");
                st = ask_and_write(&o, "top", &params, output, &err);
        }
        return st ? command_fail("top", st, &err) : EXIT_DONE;
}
