/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_worker.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "sandbox/worker.h"
#include "symbolizer/extract_ask.h"

struct service {
        const struct dwarf_dwo_source *from;
        bool was_asked;
};

static void serve(void *context, int socket)
{
        struct service *s = context;

        s->was_asked = true;
        dwo_ask_answer(s->from, socket);
}

/* The percentage, then the addresses, as they are in memory: the reader is this very program. */
static enum status hand_over(const struct wanted *w, int *fd_ret, struct error *err)
{
        _cleanup_close_ int fd = -1;
        uint64_t max_percent;
        enum status st;

        if (!w)
                return ST_OK;
        max_percent = w->max_percent;
        fd = memfd_create("wanted", MFD_CLOEXEC);
        if (fd < 0)
                return error_os(err, errno, "cannot hand addresses to a worker");
        st = file_write_all(fd, &max_percent, sizeof max_percent, "wanted", err);
        if (!st)
                st = file_write_all(fd, w->addresses, w->count * sizeof *w->addresses, "wanted", err);
        if (!st)
                *fd_ret = steal_fd(&fd);
        return st;
}

/* @param form "table" or "book"; @param other_files_ret whether it asked for single files of split DWARF */
static enum status run(const struct extract_inputs *in, const char *form, const atomic_bool *cancel, int *fd_ret,
                       bool *other_files_ret, struct error *err)
{
        const char *const args[] = { "symbols", in->name, form, NULL };
        _cleanup_close_ int out = memfd_create("symbols", MFD_CLOEXEC), ask = -1, answer = -1, wanted = -1;
        struct service service = { .from = &in->dwo };
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot make room for symbols");
        if (in->dwo.open && (st = dwo_ask_sockets(&ask, &answer, err)))
                return st;
        st = hand_over(in->wanted, &wanted, err);
        if (st)
                return st;
        const int fds[] = { in->debuginfo_fd, in->executable_fd, in->altlink_fd, out, in->dwp_fd > 0 ? in->dwp_fd : -1, ask,
                            wanted };
        const struct worker_job job = { .args = args, .fds = fds, .fd_count = sizeof fds / sizeof *fds, .cancel = cancel,
                                        .serve = in->dwo.open ? serve : NULL, .serve_context = &service,
                                        .serve_fd = answer };

        st = worker_run(&job, err);
        if (st)
                return st;
        *fd_ret = steal_fd(&out);
        *other_files_ret = service.was_asked;
        return ST_OK;
}

enum status symbol_table_extract_confined(const struct extract_inputs *in, const atomic_bool *cancel,
                                          struct symbol_table *ret, struct error *err)
{
        _cleanup_close_ int fd = -1;
        bool other_files;
        enum status st = run(in, "table", cancel, &fd, &other_files, err);

        return st ? st : symbol_table_read(fd, in->name, ret, err);
}

enum status symbol_book_extract_confined(const struct extract_inputs *in, bool *other_files_ret, struct symbol_book *ret,
                                         struct error *err)
{
        _cleanup_close_ int fd = -1;
        bool other_files = false;
        enum status st = run(in, "book", NULL, &fd, &other_files, err);

        if (!st)
                st = symbol_book_open(fd, in->name, ret, err);
        if (!st)
                *other_files_ret = other_files;
        return st;
}
