/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_worker.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "sandbox/worker.h"
#include "symbolizer/extract_ask.h"

static void serve(void *from, int socket)
{
        dwo_ask_answer(from, socket);
}

enum status symbol_table_extract_confined(const struct extract_inputs *in, const atomic_bool *cancel,
                                          struct symbol_table *ret, struct error *err)
{
        const char *const args[] = { "symbols", in->name, NULL };
        _cleanup_close_ int out = memfd_create("symbol-table", MFD_CLOEXEC), ask = -1, answer = -1;
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot make room for a symbol table");
        if (in->dwo.open && (st = dwo_ask_sockets(&ask, &answer, err)))
                return st;
        const int fds[] = { in->debuginfo_fd, in->executable_fd, in->altlink_fd, out, in->dwp_fd > 0 ? in->dwp_fd : -1, ask };
        const struct worker_job job = { .args = args, .fds = fds, .fd_count = sizeof fds / sizeof *fds, .cancel = cancel,
                                        .serve = in->dwo.open ? serve : NULL, .serve_context = (void *)&in->dwo,
                                        .serve_fd = answer };

        st = worker_run(&job, err);
        if (st)
                return st;
        return symbol_table_read(out, in->name, ret, err);
}
