/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/worker_unwind.h"

#include "cli/command.h"

int worker_unwind_tables(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return worker_unwind();
}
