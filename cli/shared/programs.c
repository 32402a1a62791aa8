/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXEC_FAILED 127 /* as in a shell; so is the next */
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
        return access(ret, X_OK) == 0 ? ST_OK : error_set(err, ST_NOT_FOUND, "%s is not installed", name);
}

_Noreturn static void exec_sibling_program(const char *const *args, int out, int errors)
{
        if (out >= 0 && (dup2(out, STDOUT_FILENO) < 0 || dup2(errors, STDERR_FILENO) < 0))
                _exit(EXEC_FAILED);
        execv(args[0], (char *const *)args);
        _exit(EXEC_FAILED);
}

/* Output beyond the buffer's max is read and discarded. False at the end. */
static bool read_program_part(int in, struct buf *to)
{
        char part[4096];
        ssize_t n = read(in, part, sizeof part);
        size_t room = to->max - to->size;

        if (n > 0)
                buf_append(to, part, (size_t)n < room ? (size_t)n : room);
        return n > 0 || (n < 0 && errno == EINTR);
}

static void read_program_output(const int *in, struct program_output *to)
{
        struct buf *const bufs[2] = { &to->out, &to->errors };
        struct pollfd fds[2] = { { .fd = in[0], .events = POLLIN }, { .fd = in[1], .events = POLLIN } };

        while (fds[0].fd >= 0 || fds[1].fd >= 0) {
                int ready = poll(fds, 2, -1);

                if (ready < 0 && errno != EINTR)
                        return;
                for (unsigned i = 0; i < 2 && ready > 0; i++)
                        if (fds[i].revents && !read_program_part(in[i], bufs[i]))
                                fds[i].fd = -1;
        }
}

static enum status open_output_pipes(int ends[2], int in[2], struct error *err)
{
        int both[2];

        for (unsigned i = 0; i < 2; i++) {
                if (pipe2(both, O_CLOEXEC) < 0)
                        return error_os(err, errno, "cannot create a pipe");
                in[i] = both[0];
                ends[i] = both[1];
        }
        return ST_OK;
}

static void close_pipe_ends(int ends[2])
{
        for (unsigned i = 0; i < 2; i++) {
                if (ends[i] >= 0)
                        close(ends[i]);
                ends[i] = -1;
        }
}

enum status run_sibling_program(const char *const *args, struct program_output *output, int *code_ret,
                                struct error *err)
{
        int in[2] = { -1, -1 }, ends[2] = { -1, -1 }, status;
        enum status st = output ? open_output_pipes(ends, in, err) : ST_OK;
        pid_t child = -1;

        fflush(stdout);
        if (!st) {
                child = fork();
                if (child < 0)
                        st = error_os(err, errno, "cannot start '%s'", args[0]);
        }
        if (child == 0)
                exec_sibling_program(args, ends[0], ends[1]);
        close_pipe_ends(ends);
        if (!st && output)
                read_program_output(in, output);
        close_pipe_ends(in);
        if (st)
                return st;
        while (waitpid(child, &status, 0) < 0)
                if (errno != EINTR)
                        return error_os(err, errno, "cannot wait for '%s'", args[0]);
        *code_ret = WIFEXITED(status) ? WEXITSTATUS(status) : SIGNAL_CODE + WTERMSIG(status);
        return ST_OK;
}
