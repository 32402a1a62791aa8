/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_RECORD_CHILD_H
#define CAIRN_CLI_RECORD_CHILD_H

/**
 * @file
 * The command that `cairn record` runs: there before it begins, so that it can be sampled from its first instruction.
 *
 * It is never killed from here. Signals that the terminal sends reach it by themselves; the caller passes on others.
 * Threads: one; start it before there is a second one.
 */
#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

struct record_child {
        const char *name; /* borrowed */
        pid_t pid;        /* 0: none */
        int pidfd;        /* readable when it has ended */
        int go, failure;  /* pipes: written to let it begin; read for why it could not */
        bool ended;
        int status;       /* of waitpid(), once it has ended */
        int exec_errno;   /* why it could not begin; 0 it could */
};

/** Start a process that waits. @param argv  NULL-terminated; borrowed until record_child_go(). */
enum status record_child_start(struct record_child *c, char **argv, struct error *err) MUST_CHECK;

/**
 * Let it begin.
 * @return ST_NOT_FOUND: there is no such command; ST_OS: it cannot be run. Both say why; the process has ended.
 */
enum status record_child_go(struct record_child *c, struct error *err) MUST_CHECK;

/** Take note of its end; false while it runs. */
bool record_child_has_ended(struct record_child *c);

/** The exit status that a shell would give: its own, 128 and the signal that killed it, or why it could not begin. */
int record_child_exit_code(const struct record_child *c);

/** One that has not begun ends; one that runs goes on. */
void record_child_deinit(struct record_child *c);

#define EXIT_NOT_RUNNABLE 126 /* as shells have it */
#define EXIT_NO_COMMAND 127

#endif
