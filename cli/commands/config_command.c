/* SPDX-License-Identifier: Apache-2.0 */
/* `cairn config`: runs each program that reads the configuration file, to check or print its section. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands/command.h"
#include "cli/shared/programs.h"
#include "common/text/utf8.h"

static const struct usage usage = {
        .synopsis = "cairn config check|show [--config FILE] [serve|agent|upload]...",
        .about = "Check the configuration file and the environment (CAIRN_*), or show each option of a program with\n"
                 "its value and where it is set. Default: all programs that are installed in the same directory as\n"
                 "this one.",
        .examples = "  cairn config check\n"
                    "  cairn config check --config ./cairn.yaml serve\n"
                    "  cairn config show agent",
};

static enum status ask_reader(const struct config_reader *r, const char *what, const char *path, int *code_ret,
                              struct error *err)
{
        char program[PATH_MAX];
        const char *args[6] = { program };
        size_t n = 1;
        int code = EXIT_DONE;
        enum status st = find_sibling_program(r->program, program, err);

        if (st == ST_NOT_FOUND) {
                fprintf(stderr, "cairn config: %s is not installed: section '%s' is not checked\n", r->program,
                        r->section);
                return ST_OK;
        }
        if (r->command)
                args[n++] = r->command;
        args[n++] = what;
        if (path) {
                args[n++] = "--config";
                args[n++] = path;
        }
        if (!st)
                st = run_sibling_program(args, NULL, &code, err);
        if (code > *code_ret)
                *code_ret = code;
        return st;
}

static bool is_wanted(const struct config_reader *r, char **names, int count)
{
        for (int i = 0; i < count; i++)
                if (strcmp(names[i], r->section) == 0)
                        return true;
        return count == 0;
}

static enum status check_names(char **names, int count, struct error *err)
{
        for (int i = 0; i < count; i++) {
                size_t r = 0;

                while (r < CONFIG_READER_COUNT && strcmp(config_readers[r].section, names[i]) != 0)
                        r++;
                if (r == CONFIG_READER_COUNT)
                        return error_set(err, ST_USAGE, "'%s' is not one of serve, agent, upload", PRINTABLE(names[i]));
        }
        return ST_OK;
}

int command_config(int argc, char **argv)
{
        const char *path = NULL, *what = NULL;
        const struct option_spec specs[] = {
                OPTION_STRING("config", 0, "FILE", &path,
                              "configuration file (default /etc/cairn/cairn.yaml, if it exists)"),
                OPTION_END,
        };
        struct error err;
        enum status st = options_parse(&usage, specs, &argc, &argv, &err);
        int code = EXIT_DONE;

        if (!st && argc > 0 && strcmp(argv[0], "check") == 0)
                what = "--check-config";
        else if (!st && argc > 0 && strcmp(argv[0], "show") == 0)
                what = "--print-config";
        else if (!st)
                st = error_set(&err, ST_USAGE, "expected 'check' or 'show' (try 'cairn config --help')");
        if (!st)
                st = check_names(argv + 1, argc - 1, &err);
        for (size_t i = 0; i < CONFIG_READER_COUNT && !st; i++)
                if (is_wanted(&config_readers[i], argv + 1, argc - 1))
                        st = ask_reader(&config_readers[i], what, path, &code, &err);
        return st ? command_fail("config", st, &err) : code;
}
