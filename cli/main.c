/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The `cairn` program: finds the subcommand and hands over.
 */
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "sandbox/worker.h"

struct command {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *help;
};

static const struct command commands[] = {
        { "record", command_record, "profile processes of this host, with no service" },
        { "serve", command_serve, "run the service" },
        { "debuginfo", command_debuginfo, "which objects are stored, and which are missing" },
        { "symbolize", command_symbolize, "names, files and lines of addresses of an ELF file" },
        { "why", command_why, "how an address was resolved, or why it was not" },
        { "index", command_index, "put the symbols of ELF files into the index, or say what it has" },
        { "resymbolize", command_resymbolize, "look stored locations up again" },
        { "store", command_store, "say what the profile store holds" },
        { "query", command_query, "call trees, cost over time, profile types, labels, missing debuginfo" },
        { "top", command_top, "the functions that cost most" },
        { "flame", command_flame, "a flame graph: page, folded stacks, JSON, pprof" },
        { "diff", command_diff, "compare two selections" },
        { "import", command_import, "send pprof, OTLP, perf script or folded files to the service" },
        { NULL, NULL, NULL },
};

static const struct command workers[] = {
        { "symbols", worker_symbols, "make a symbol table of ELF files" },
        { "verify", worker_verify, "say what an uploaded file is" },
        { "explain", worker_explain, "say why addresses of ELF files are what they are" },
        { "elf", worker_elf, "answer a small question about an ELF file" },
        { "objects", worker_objects, "say which ELF files these are" },
        { "unwind", worker_unwind_tables, "make unwind tables of ELF files" },
        { "scan", worker_scan, "say what scanned files hold" },
        { "member", worker_member, "take one member out of an archive" },
        { "source-names", worker_source_names, "which sources debuginfo names" },
        { "fetch", worker_fetch, "get one object from one upstream" },
        { NULL, NULL, NULL },
};

static const struct command *find(const struct command *table, const char *name)
{
        for (; table->name; table++)
                if (strcmp(table->name, name) == 0)
                        return table;
        return NULL;
}

static void print_help(FILE *out)
{
        fprintf(out, "Usage: cairn COMMAND [OPTION]... [ARGUMENT]...\n\n"
                     "Symbolization and debuginfo for continuous profiling.\n\nCommands:\n");
        for (const struct command *c = commands; c->name; c++)
                fprintf(out, "  %-14s  %s\n", c->name, c->help);
        fprintf(out, "\n'cairn COMMAND --help' describes one command; 'cairn --version' prints the version.\n");
}

int command_worker(int argc, char **argv)
{
        const struct command *worker = argc > 1 ? find(workers, argv[1]) : NULL;

        if (!worker) {
                fprintf(stderr, "cairn worker: workers are started by other commands, not by hand\n");
                return EXIT_USAGE;
        }
        return worker->run(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
        const struct command *command;

        if (argc < 2) {
                print_help(stderr);
                return EXIT_USAGE;
        }
        if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
                print_help(stdout);
                return EXIT_DONE;
        }
        if (strcmp(argv[1], "--version") == 0) {
                printf("cairn %s\n", CAIRN_VERSION);
                return EXIT_DONE;
        }
        if (strcmp(argv[1], "worker") == 0)
                return command_worker(argc - 1, argv + 1);
        command = find(commands, argv[1]);
        if (!command) {
                fprintf(stderr, "cairn: unknown command '%s' (try 'cairn --help')\n", argv[1]);
                return EXIT_USAGE;
        }
        if (strcmp(command->name, "symbolize") == 0)
                worker_set_entry(command_worker); /* it has nothing to hide, and its job is often short */
        return command->run(argc - 1, argv + 1);
}
