/* SPDX-License-Identifier: Apache-2.0 */
/* The `cairn` program: dispatches to its subcommands. */
#include <stdio.h>
#include <string.h>

#include "cli/commands/command.h"
#include "common/program/log.h"
#include "common/program/standard_output.h"
#include "sandbox/worker.h"

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

static void print_command_list(FILE *out)
{
        fprintf(out, "Usage: cairn COMMAND [OPTION]... [ARGUMENT]...\n\n"
                     "Symbolization and debuginfo for continuous profiling.\n\nCommands:\n");
        for (const struct command *c = commands; c->name; c++)
                fprintf(out, "  %-14s  %s\n", c->name, c->help);
        fprintf(out, "\n'cairn COMMAND --help' describes one command; 'cairn --version' prints the version.\n");
}

int command_fail(const char *name, enum status st, const struct error *err)
{
        char program[64];

        snprintf(program, sizeof program, "cairn %s", name);
        log_failure(program, name, err->text);
        return exit_code_from_status(st);
}

int main(int argc, char **argv)
{
        const struct command *command;

        if (argc > 1 && strcmp(argv[1], "worker") == 0)
                return command_worker(argc - 1, argv + 1);
        check_standard_output_at_exit("cairn");
        if (argc < 2) {
                print_command_list(stderr);
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
                fprintf(stderr, "cairn: unknown command '%s' (try 'cairn --help')\n", argv[1]);
                return EXIT_USAGE;
        }
        if (strcmp(command->name, "symbolize") == 0)
                worker_set_entry(command_worker); /* fork without exec: memory has no secrets, jobs are often short */
        return command->run(argc - 1, argv + 1);
}
