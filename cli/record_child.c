/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/record_child.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Waits for its turn; without one, because the parent is gone, it ends. */
static _Noreturn void child(char **argv, int go, int failure)
{
        char turn;
        ssize_t n;

        do
                n = read(go, &turn, 1);
        while (n < 0 && errno == EINTR);
        if (n == 1) {
                execvp(argv[0], argv);
                n = errno;
                (void)!write(failure, &(int){ (int)n }, sizeof(int));
        }
        _exit(EXIT_NO_COMMAND);
}

enum status record_child_start(struct record_child *c, char **argv, struct error *err)
{
        _cleanup_close_ int go_read = -1, go_write = -1, failure_read = -1, failure_write = -1;
        int pipes[4];

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return error_os(err, errno, "cannot make a pipe");
        go_read = pipes[0];
        go_write = pipes[1];
        if (pipe2(pipes + 2, O_CLOEXEC) < 0)
                return error_os(err, errno, "cannot make a pipe");
        failure_read = pipes[2];
        failure_write = pipes[3];
        *c = (struct record_child){ .name = argv[0], .pidfd = -1, .go = -1, .failure = -1 };
        c->pid = fork();
        if (c->pid < 0)
                return error_os(err, errno, "cannot start a process");
        if (c->pid == 0) {
                close(go_write);
                child(argv, go_read, failure_write);
        }
        c->go = steal_fd(&go_write);
        c->failure = steal_fd(&failure_read);
        c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
        return c->pidfd < 0 ? error_os(err, errno, "cannot watch process %d", (int)c->pid) : ST_OK;
}

enum status record_child_go(struct record_child *c, struct error *err)
{
        int reason = 0;
        ssize_t n;

        if (write(c->go, "", 1) != 1)
                return error_os(err, errno, "cannot let '%s' begin", c->name);
        cleanup_close(&c->go);
        c->go = -1;
        do
                n = read(c->failure, &reason, sizeof reason); /* closed by a successful exec */
        while (n < 0 && errno == EINTR);
        if (n != sizeof reason)
                return ST_OK;
        (void)waitpid(c->pid, &c->status, 0);
        c->ended = true;
        c->exec_errno = reason;
        error_os(err, reason, "cannot run '%s'", c->name);
        return reason == ENOENT ? ST_NOT_FOUND : ST_OS;
}

bool record_child_has_ended(struct record_child *c)
{
        if (c->pid && !c->ended)
                c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
        return c->ended;
}

int record_child_exit_code(const struct record_child *c)
{
        if (c->exec_errno)
                return c->exec_errno == ENOENT ? EXIT_NO_COMMAND : EXIT_NOT_RUNNABLE;
        return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void record_child_deinit(struct record_child *c)
{
        if (!c->pid)
                return;
        if (c->go >= 0 && !c->ended) {
                close(c->go);
                (void)waitpid(c->pid, &c->status, 0);
        }
        cleanup_close(&c->failure);
        cleanup_close(&c->pidfd);
        *c = (struct record_child){ 0 };
}
