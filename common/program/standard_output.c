/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program/standard_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/exit_code.h"

static const char *program_name;

static void close_standard_output(void)
{
        bool failed = ferror(stdout);

        errno = 0;
        /* Without output, failing to close an unopened stdout is not an error. */
        if (__fpending(stdout) || failed)
                failed |= fflush(stdout) != 0;
        if (fclose(stdout) && errno != EBADF)
                failed = true;
        if (!failed)
                return;
        fprintf(stderr, "%s: cannot write standard output%s%s\n", program_name, errno ? ": " : "",
                errno ? strerror(errno) : "");
        _exit(EXIT_FAILED);
}

void check_standard_output_at_exit(const char *program)
{
        int fd;

        do
                fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && fd <= STDERR_FILENO);
        if (fd >= 0)
                close(fd);
        program_name = program;
        atexit(close_standard_output);
}
