/* SPDX-License-Identifier: Apache-2.0 */
/* `cairn config`: asks each program that reads the configuration file what it makes of its section. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/commands/command.h"
#include "common/utf8.h"

static const struct usage usage = {
        .synopsis = "cairn config check|show [--config FILE] [serve|agent|upload]...",
        .about = "Checks the configuration file and the environment (CAIRN_*), or shows each option of a program with "
                 "its value and\nwhere it is set. Without names: all programs that are installed beside this one.",
        .examples = "  cairn config check\n"
                    "  cairn config check --config ./cairn.yaml serve\n"
                    "  cairn config show agent",
};

static const struct reader {
        const char *section, *program, *command; /* command: NULL or a subcommand of the program */
} readers[] = { { "serve", "cairn", "serve" }, { "agent", "cairn-agent", NULL }, { "upload", "cairn-upload", NULL } };

#define READER_COUNT (sizeof readers / sizeof *readers)

/* The program of this name in the folder of the one that runs. */
static enum status find_program(const char *name, char ret[PATH_MAX], struct error *err)
{
        ssize_t n = readlink("/proc/self/exe", ret, PATH_MAX - 1);
        char *slash;

        if (n <= 0)
                return error_os(err, errno, "cannot read '/proc/self/exe'");
        ret[n] = 0;
        slash = strrchr(ret, '/');
        if (!slash || (size_t)(slash + 1 - ret) + strlen(name) >= PATH_MAX)
                return error_set(err, ST_USAGE, "the path of this program is too long");
        memcpy(slash + 1, name, strlen(name) + 1);
        return ST_OK;
}

static enum status ask_reader(const struct reader *r, const char *what, const char *path, int *code_ret,
                              struct error *err)
{
        char program[PATH_MAX];
        const char *args[6] = { r->program };
        size_t n = 1;
        pid_t child;
        int status;
        enum status st = find_program(r->program, program, err);

        if (st)
                return st;
        if (access(program, X_OK) != 0) {
                fprintf(stderr, "cairn config: %s is not installed here: section '%s' is not looked at\n", r->program,
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
        fflush(stdout);
        child = fork();
        if (child < 0)
                return error_os(err, errno, "cannot start '%s'", program);
        if (child == 0) {
                execv(program, (char *const *)args);
                _exit(EXIT_FAILED);
        }
        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        return error_os(err, errno, "cannot wait for '%s'", program);
        if (!WIFEXITED(status) || WEXITSTATUS(status) > *code_ret)
                *code_ret = WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
        return ST_OK;
}

static bool is_wanted(const struct reader *r, char **names, int count)
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

                while (r < READER_COUNT && strcmp(readers[r].section, names[i]) != 0)
                        r++;
                if (r == READER_COUNT)
                        return error_set(err, ST_USAGE, "'%s' is none of serve, agent, upload", PRINTABLE(names[i]));
        }
        return ST_OK;
}

int command_config(int argc, char **argv)
{
        const char *path = NULL, *what = NULL;
        const struct option_spec specs[] = {
                OPTION_STRING("config", 0, "FILE", &path, "the file (/etc/cairn/cairn.yaml if there is one)"),
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
                st = error_set(&err, ST_USAGE, "say 'check' or 'show' (try 'cairn config --help')");
        if (!st)
                st = check_names(argv + 1, argc - 1, &err);
        for (size_t i = 0; i < READER_COUNT && !st; i++)
                if (is_wanted(&readers[i], argv + 1, argc - 1))
                        st = ask_reader(&readers[i], what, path, &code, &err);
        return st ? command_fail("config", st, &err) : code;
}
