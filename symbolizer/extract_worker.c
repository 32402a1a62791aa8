/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_worker.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "sandbox/worker.h"

enum status symbol_table_extract_confined(const struct extract_inputs *in, const atomic_bool *cancel,
                                          struct symbol_table *ret, struct error *err)
{
        const char *const args[] = { "symbols", in->name, NULL };
        _cleanup_close_ int out = memfd_create("symbol-table", MFD_CLOEXEC);
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot make room for a symbol table");
        const int fds[] = { in->debuginfo_fd, in->executable_fd, in->altlink_fd, out };
        const struct worker_job job = { .args = args, .fds = fds, .fd_count = 4, .cancel = cancel };

        st = worker_run(&job, err);
        if (st)
                return st;
        return symbol_table_read(out, in->name, ret, err);
}
