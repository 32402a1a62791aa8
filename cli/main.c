/* SPDX-License-Identifier: Apache-2.0 */
/* The `cairn` program: dispatches to its subcommands, or by its own name to the replacement of another symbolizer. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/drop-in/drop_in.h"
#include "cli/shared/lazy_libraries.h"
#include "common/program/log.h"
#include "common/program/standard_output.h"
#include "sandbox/worker.h"

#define COMMAND_NAME_MAX 16

struct command {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *help;
};

static const struct command commands[] = {
        { "record", command_record, "profile processes of this host, without a service" },
        { "serve", command_serve, "run the service" },
        { "status", command_status, "show the state of a running service" },
        { "doctor", command_doctor, "check this machine, its files and a service, with a fix for each finding" },
        { "config", command_config, "check the configuration file, or show each setting and its origin" },
        { "debuginfo", command_debuginfo, "list and maintain stored debuginfo" },
        { "symbolize", command_symbolize, "resolve addresses of an ELF file or a profile" },
        { "why", command_why, "explain how an address is resolved, or why not" },
        { "index", command_index, "add ELF files to the symbol index, or inspect it" },
        { "resymbolize", command_resymbolize, "look up stored locations again" },
        { "store", command_store, "inspect, check, copy, export and maintain the profile store" },
        { "query", command_query, "print call trees, cost over time, profile types, labels, missing debuginfo" },
        { "top", command_top, "print the most expensive functions" },
        { "flame", command_flame, "write a flame graph: page, folded stacks, JSON, pprof" },
        { "diff", command_diff, "compare two selections of samples, or two recordings" },
        { "gate", command_gate, "fail if a service or a benchmark became slower, for CI" },
        { "import", command_import, "send pprof, OTLP, perf script or folded files to the service" },
        { "scrape", command_scrape, "fetch profiles of programs with HTTP endpoints, and send them to the service" },
        { NULL, NULL, NULL },
};

static const struct command *find_command(const char *name)
{
        for (const struct command *c = commands; c->name; c++)
                if (strcmp(c->name, name) == 0)
                        return c;
        return NULL;
}

/* Number of single-byte edits, a swap of neighbours counting as one, that turn a name into another (Damerau). */
static unsigned count_name_edits(const char *a, const char *b)
{
        unsigned rows[3][COMMAND_NAME_MAX + 1], *last = rows[0], *row = rows[1], *before = rows[2], *spare;
        size_t n = strlen(a), m = strlen(b);

        if (n > COMMAND_NAME_MAX || m > COMMAND_NAME_MAX)
                return COMMAND_NAME_MAX;
        for (size_t j = 0; j <= m; j++)
                last[j] = (unsigned)j;
        for (size_t i = 1; i <= n; i++) {
                row[0] = (unsigned)i;
                for (size_t j = 1; j <= m; j++) {
                        unsigned least = last[j - 1] + (a[i - 1] != b[j - 1]);

                        if (last[j] + 1 < least)
                                least = last[j] + 1;
                        if (row[j - 1] + 1 < least)
                                least = row[j - 1] + 1;
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < least)
                                least = before[j - 2] + 1;
                        row[j] = least;
                }
                spare = before;
                before = last;
                last = row;
                row = spare;
        }
        return last[m];
}

/* Suggests the command whose name differs least, in at most a third of its bytes. */
static void report_unknown_command(const char *name)
{
        const struct command *nearest = NULL;
        unsigned least = COMMAND_NAME_MAX;

        for (const struct command *c = commands; c->name; c++) {
                unsigned edits = count_name_edits(name, c->name);

                if (edits < least && edits * 3 <= strlen(c->name)) {
                        least = edits;
                        nearest = c;
                }
        }
        if (nearest)
                fprintf(stderr, "cairn: unknown command '%s'; did you mean '%s'? (try 'cairn --help')\n", name,
                        nearest->name);
        else
                fprintf(stderr, "cairn: unknown command '%s' (try 'cairn --help')\n", name);
}

static void print_command_list(FILE *out)
{
        fprintf(out, "Usage: cairn COMMAND [OPTION]... [ARGUMENT]...\n\n"
                     "Symbolization and debuginfo for continuous profiling.\n\nCommands:\n");
        for (const struct command *c = commands; c->name; c++)
                fprintf(out, "  %-14s  %s\n", c->name, c->help);
        fprintf(out, "\n'cairn help COMMAND' describes one command; 'cairn --version' prints the version.\n");
}

int command_fail(const char *name, enum status st, const struct error *err)
{
        char program[64];

        snprintf(program, sizeof program, "cairn %s", name);
        log_failure(program, name, err->text);
        return exit_code_from_status(st);
}

/* Symbolize needs its libraries only for some of its options; a worker of it is forked, since memory has no secrets and
 * jobs are often short. */
static int run_command(const struct command *command, int argc, char **argv)
{
        static char program[64];
        struct error err;
        enum status st = ST_OK;

        snprintf(program, sizeof program, "cairn %s", command->name);
        program_invocation_short_name = program; /* of warnings, as of errors */
        if (strcmp(command->name, "symbolize") == 0)
                worker_set_entry(command_worker);
        else
                st = lazy_libraries_load(&err);
        return st ? command_fail(command->name, st, &err) : command->run(argc, argv);
}

int main(int argc, char **argv)
{
        static char help_option[] = "--help";
        const struct command *command;
        int (*run_drop_in)(int drop_in_argc, char **drop_in_argv) = drop_in_find(argc ? argv[0] : "");

        if (argc > 1 && strcmp(argv[1], "worker") == 0)
                return command_worker(argc - 1, argv + 1);
        check_standard_output_at_exit("cairn");
        if (run_drop_in) {
                worker_set_entry(command_worker);
                return run_drop_in(argc, argv);
        }
        if (argc < 2) {
                print_command_list(stderr);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "help") == 0 && argc > 2) { /* cairn help COMMAND is cairn COMMAND --help */
                command = find_command(argv[2]);
                if (command)
                        return command->run(2, (char *[]){ argv[2], help_option, NULL });
                report_unknown_command(argv[2]);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
                print_command_list(stdout);
                return EXIT_DONE;
        }
        if (strcmp(argv[1], "--version") == 0) {
                printf("cairn %s\n", CAIRN_VERSION);
                return EXIT_DONE;
        }
        command = find_command(argv[1]);
        if (!command) {
                report_unknown_command(argv[1]);
                return EXIT_USAGE;
        }
        return run_command(command, argc - 1, argv + 1);
}
