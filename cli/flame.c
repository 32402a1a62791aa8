/* SPDX-License-Identifier: Apache-2.0 */
/* cairn flame: stacks as a flame graph page, folded text, JSON or pprof. */
#include <string.h>

#include "cli/ask.h"
#include "cli/command.h"

static const struct usage usage = {
        .synopsis = "cairn flame [--server URL | --data DIR | --profile FILE] [--from T] [--to T] [--type T] [--format F] "
                    "[--output FILE] [SELECTOR]",
        .about = "Write a flame graph. The format follows from the file's name (.html, .json, .pb.gz, .txt, "
                 "otherwise folded) unless --format says it; on standard output it is folded stacks.",
        .examples = "  cairn flame --output cpu.html '{service.name=\"api\"}'\n"
                    "  cairn flame | flamegraph.pl > cpu.svg\n"
                    "  cairn flame --format text --callees-of PyEval_EvalCode\n",
};

static bool ends_in(const char *text, const char *end)
{
        size_t n = strlen(text), m = strlen(end);

        return n >= m && strcmp(text + n - m, end) == 0;
}

static const char *format_of(const char *output)
{
        static const char *const endings[][2] = {
                { ".html", "html" },   { ".htm", "html" },    { ".json", "json" },
                { ".pb.gz", "pprof" }, { ".pprof", "pprof" }, { ".txt", "text" }
        };

        for (size_t i = 0; output && i < sizeof endings / sizeof *endings; i++)
                if (ends_in(output, endings[i][0]))
                        return endings[i][1];
        return "folded";
}

static enum status write_flame(const struct ask_options *o, const char *format, struct ask_params *params,
                               const char *output, struct error *err)
{
        static const char *const formats[][2] = { { "folded", "folded" },
                                                  { "pprof", "pprof" },
                                                  { "html", "flame" },
                                                  { "json", "flame" },
                                                  { "text", "flame" } };

        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
                if (strcmp(formats[i][0], format) != 0)
                        continue;
                if (strcmp(formats[i][1], "flame") == 0)
                        ask_param(params, "format", format);
                if (strcmp(format, "pprof") == 0 && (!output || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO))
                        return error_set(err, ST_USAGE, "pprof is binary: give --output FILE");
                return ask_and_write(o, formats[i][1], params, output, err);
        }
        return error_set(err, ST_USAGE, "format '%.40s' is none of html, folded, json, pprof, text", format);
}

int command_flame(int argc, char **argv)
{
        struct ask_options o = { 0 };
        struct ask_params params = { 0 };
        const char *format = NULL, *output = NULL, *callees = NULL, *callers = NULL, *max_nodes = NULL, *names = NULL,
                   *selector;
        const struct option_spec specs[] = {
                ASK_OPTIONS(&o),
                OPTION_STRING("format", 0, "F", &format, "html, folded, json, pprof or text"),
                OPTION_STRING("output", 'o', "FILE", &output, "write to this file"),
                OPTION_STRING("callees-of", 0, "FUNCTION", &callees, "only what this function calls"),
                OPTION_STRING("callers-of", 0, "FUNCTION", &callers, "only what calls this function, upside down"),
                OPTION_STRING("max-nodes", 0, "N", &max_nodes, "leave out the smallest nodes past N; 0: none"),
                OPTION_STRING("names", 0, "N", &names, "short or full; by default short in html, full elsewhere"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);

        if (!st)
                st = ask_selector(argc, argv, &selector, &err);
        if (!st) {
                ask_param(&params, "selector", selector);
                ask_param(&params, "callees_of", callees);
                ask_param(&params, "callers_of", callers);
                ask_param(&params, "max_nodes", max_nodes);
                ask_param(&params, "names", names);
                st = write_flame(&o, format ? format : format_of(output), &params, output, &err);
        }
        return st ? command_fail("flame", st, &err) : EXIT_DONE;
}
