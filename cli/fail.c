/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "cli/command.h"
#include "common/utf8.h"
#include "sandbox/worker.h"

int command_fail(const char *name, enum status st, const struct error *err)
{
        fprintf(stderr, "cairn %s: %s\n", name, PRINTABLE(err->text));
        return exit_code_of(st);
}

int worker_fail(enum status st, const struct error *err)
{
        fprintf(stderr, "%s\n", PRINTABLE(err->text));
        return worker_exit_code(st);
}
