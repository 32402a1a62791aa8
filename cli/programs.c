/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXEC_FAILED 127 /* as of a shell, and so is the next */
#define SIGNAL_CODE 128

const struct config_reader config_readers[CONFIG_READER_COUNT] = { { "serve", "cairn", "serve" },
                                                                   { "agent", "cairn-agent", NULL },
                                                                   { "upload", "cairn-upload", NULL } };

enum status find_sibling_program(const char *name, char ret[static PATH_MAX], struct error *err)
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
        return access(ret, X_OK) == 0 ? ST_OK : error_set(err, ST_NOT_FOUND, "%s is not installed here", name);
}

_Noreturn static void exec_sibling_program(const char *const *args, int out)
{
        if (out >= 0 && (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0))
                _exit(EXEC_FAILED);
        execv(args[0], (char *const *)args);
        _exit(EXEC_FAILED);
}

static void read_program_output(int in, struct buf *out)
{
        char part[4096];
        ssize_t n;

        while ((n = read(in, part, sizeof part)) > 0 || (n < 0 && errno == EINTR))
                if (n > 0 && out->size + (size_t)n <= out->max)
                        buf_append(out, part, (size_t)n);
}

enum status run_sibling_program(const char *const *args, struct buf *out, int *code_ret, struct error *err)
{
        int ends[2] = { -1, -1 }, status;
        pid_t child;

        if (out && pipe2(ends, O_CLOEXEC) < 0)
                return error_os(err, errno, "cannot create a pipe");
        fflush(stdout);
        child = fork();
        if (child == 0)
                exec_sibling_program(args, ends[1]);
        if (out)
                close(ends[1]);
        if (child > 0 && out)
                read_program_output(ends[0], out);
        if (out)
                close(ends[0]);
        if (child < 0)
                return error_os(err, errno, "cannot start '%s'", args[0]);
        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        return error_os(err, errno, "cannot wait for '%s'", args[0]);
        *code_ret = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_CODE + WTERMSIG(status);
        return ST_OK;
}
