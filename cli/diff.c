/* SPDX-License-Identifier: Apache-2.0 */
/* cairn diff: two selections side by side. */
#include <string.h>

#include "cli/ask.h"
#include "cli/command.h"
#include "common/limits.h"

static const struct usage usage = {
        .synopsis =
                "cairn diff [--server URL | --data DIR | --profile FILE] [--base-from T] [--base-to T] [--base SELECTOR] [--from T] "
                "[--to T] [--type T] [--format F] [--output FILE] [SELECTOR]\n"
                "       cairn diff [--format F] [--output FILE] BEFORE AFTER",
        .about = "Compare two selections: before (the base) and after. What the base leaves open is the same as "
                 "after. Functions are sorted by how much their flat cost changed. Two files, as cairn record writes "
                 "them, are compared here, without a service.",
        .examples = "  cairn diff --base-from now-2h --base-to now-1h '{service.name=\"api\"}'\n"
                    "  cairn diff --base '{version=\"1\"}' '{version=\"2\"}' --output diff.html\n"
                    "  cairn diff before.otlp after.otlp\n",
};

static const char *format_of(const char *output)
{
        const char *dot = output ? strrchr(output, '.') : NULL;

        return dot && strcmp(dot, ".html") == 0 ? "html" : dot && strcmp(dot, ".json") == 0 ? "json" : "text";
}

static enum status compare_files(const char *before, const char *after, const struct ask_options *o,
                                 struct ask_params *params, const char *output, struct error *err)
{
        _cleanup_buf_ struct buf answer;
        enum status st;

        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        ask_param(params, "type", o->type);
        st = ask_difference(before, after, params, &answer, err);
        return st ? st : ask_write(&answer, output, err);
}

int command_diff(int argc, char **argv)
{
        struct ask_options o = { 0 };
        struct ask_params params = { 0 };
        const char *base = NULL, *from = NULL, *to = NULL, *limit = NULL, *format = NULL, *output = NULL, *names = NULL,
                   *function = NULL, *selector = NULL;
        bool json = false;
        const struct option_spec specs[] = {
                ASK_OPTIONS(&o),
                OPTION_STRING("base", 0, "SELECTOR", &base, "selector of the base"),
                OPTION_STRING("base-from", 0, "T", &from, "start of the base"),
                OPTION_STRING("base-to", 0, "T", &to, "end of the base"),
                OPTION_STRING("limit", 'n', "N", &limit, "rows; 30 by default, all with --json"),
                OPTION_STRING("format", 0, "F", &format,
                              "text, rows (JSON of the table), json (flame graph) or html"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to this file"),
                OPTION_STRING("function", 0, "REGEX", &function,
                              "in tables only functions with such a name, whole: full, short or linkage"),
                OPTION_STRING("names", 0, "N", &names, "short or full; by default short in html, full elsewhere"),
                OPTION_FLAG("json", 0, &json, "the same as --format rows"),
                OPTION_END,
        };
        struct error err;
        bool files;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        files = argc == 2;
        if (!st && !files)
                st = ask_selector(argc, argv, &selector, &err);
        if (!st && !files && !base && !from && !to)
                st = error_set(&err, ST_USAGE, "what to compare with? give --base, --base-from or --base-to, or two files");
        if (!st && files && (base || from || to || o.service.server || o.data || o.profile))
                st = error_set(&err, ST_USAGE, "two files are compared whole, and here");
        if (!st) {
                ask_param(&params, "selector", selector);
                ask_param(&params, "base_selector", base);
                ask_param(&params, "base_from", from);
                ask_param(&params, "base_to", to);
                ask_param(&params, "limit", limit);
                ask_param(&params, "function", function);
                ask_param(&params, "names", names);
                ask_param(&params, "format", json ? "rows" : format ? format : format_of(output));
                st = files ? compare_files(argv[0], argv[1], &o, &params, output, &err)
                           : ask_and_write(&o, "diff", &params, output, &err);
        }
        return st ? command_fail("diff", st, &err) : EXIT_DONE;
}
