/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extract_worker.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/file.h"
#include "common/limits.h"
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

static uint64_t size_of(int fd)
{
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/*
 * What is made of files that are not packed takes far less than the first part
 * of it, whatever their size; packed sections are memory, so that the rest
 * bounds what a bomb gets by what was sent.
 */
static uint64_t data_limit(const struct extract_inputs *in)
{
        uint64_t files = size_of(in->debuginfo_fd) + size_of(in->executable_fd) + size_of(in->altlink_fd) +
                         (in->dwp_fd > 0 ? size_of(in->dwp_fd) : 0);
        uint64_t threads = LIMIT_EXTRACT_THREADS;
        cpu_set_t cpus;

        if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) < LIMIT_EXTRACT_THREADS)
                threads = (uint64_t)CPU_COUNT(&cpus);
        return LIMIT_EXTRACT_DATA_BYTES + threads * LIMIT_EXTRACT_DATA_THREAD_BYTES + files * LIMIT_EXTRACT_DATA_RATIO;
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
                                        .data_bytes = data_limit(in),
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
