/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/workers/extract_worker.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "sandbox/worker.h"
#include "symbolizer/workers/dwo_request.h"

struct dwo_service {
        const struct dwarf_dwo_source *from;
        bool was_used;
};

static void serve_dwo(void *context, int socket)
{
        struct dwo_service *s = context;

        s->was_used = true;
        dwo_request_serve(s->from, socket);
}

/* The percentage, then the addresses, in native representation: the reader is the same program. */
static enum status write_address_filter(const struct address_filter *w, int *fd_ret, struct error *err)
{
        _cleanup_close_ int fd = -1;
        uint64_t max_percent;
        enum status st;

        if (!w)
                return ST_OK;
        max_percent = w->max_percent;
        fd = memfd_create("address filter", MFD_CLOEXEC);
        if (fd < 0)
                return error_os(err, errno, "cannot pass addresses to a worker");
        st = file_write_all(fd, &max_percent, sizeof max_percent, "address filter", err);
        if (!st)
                st = file_write_all(fd, w->addresses, w->count * sizeof *w->addresses, "address filter", err);
        if (!st)
                *fd_ret = steal_fd(&fd);
        return st;
}

static uint64_t get_file_size(int fd)
{
        struct stat st;

        return fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

/*
 * Uncompressed files need far less memory than the constant part, whatever their
 * size. Compressed sections are unpacked to memory: the last term bounds a
 * decompression bomb by the size of its input.
 */
static uint64_t compute_data_limit(const struct extract_inputs *in)
{
        uint64_t files = get_file_size(in->debuginfo_fd) + get_file_size(in->executable_fd) +
                         get_file_size(in->altlink_fd) + (in->dwp_fd > 0 ? get_file_size(in->dwp_fd) : 0);
        uint64_t threads = LIMIT_EXTRACT_THREADS;
        cpu_set_t cpus;

        if (sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) < LIMIT_EXTRACT_THREADS)
                threads = (uint64_t)CPU_COUNT(&cpus);
        return LIMIT_EXTRACT_DATA_BYTES + threads * LIMIT_EXTRACT_DATA_THREAD_BYTES + files * LIMIT_EXTRACT_DATA_RATIO;
}

/* @param form  as in extract_job.h; @param path  of a source; NULL none; @param other_files_ret  whether the worker
 * requested .dwo files */
static enum status run_extraction_worker(const struct extract_inputs *in, const char *form, const char *path,
                                         const atomic_bool *cancel, int *fd_ret, bool *other_files_ret,
                                         struct error *err)
{
        const char *const args[] = {
                "symbols", in->name, form, in->file_name || !path ? in->file_name : "", path, NULL
        };
        _cleanup_close_ int out = memfd_create("symbols", MFD_CLOEXEC), ask = -1, answer = -1, filter = -1;
        struct dwo_service dwo_service = { .from = &in->dwo };
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot create a memory file for symbols");
        if (in->dwo.open && (st = dwo_request_create_sockets(&ask, &answer, err)))
                return st;
        st = write_address_filter(in->filter, &filter, err);
        if (st)
                return st;
        const int fds[] = {
                in->debuginfo_fd, in->executable_fd, in->altlink_fd, out, in->dwp_fd > 0 ? in->dwp_fd : -1, ask, filter
        };
        const struct worker_job job = { .args = args,
                                        .fds = fds,
                                        .fd_count = sizeof fds / sizeof *fds,
                                        .cancel = cancel,
                                        .data_bytes = compute_data_limit(in),
                                        .serve = in->dwo.open ? serve_dwo : NULL,
                                        .serve_context = &dwo_service,
                                        .serve_fd = answer };

        st = worker_run(&job, err);
        if (st)
                return st;
        *fd_ret = steal_fd(&out);
        *other_files_ret = dwo_service.was_used;
        return ST_OK;
}

enum status symbol_table_extract_confined(const struct extract_inputs *in, const atomic_bool *cancel,
                                          struct symbol_table *ret, struct error *err)
{
        _cleanup_close_ int fd = -1;
        bool other_files;
        enum status st = run_extraction_worker(in, "table", NULL, cancel, &fd, &other_files, err);

        return st ? st : symbol_table_read(fd, in->name, ret, err);
}

enum status symcache_extract_confined(const struct extract_inputs *in, bool *other_files_ret, struct symcache *ret,
                                      struct error *err)
{
        _cleanup_close_ int fd = -1;
        bool other_files = false;
        const char *form = in->has_relative_paths ? "relative-symcache"
                           : in->with_positions   ? "detailed-symcache"
                                                  : "symcache";
        enum status st = run_extraction_worker(in, form, NULL, NULL, &fd, &other_files, err);

        if (!st)
                st = symcache_open(fd, in->name, ret, err);
        if (!st)
                *other_files_ret = other_files;
        return st;
}

/* Append the output of a worker to ret. */
static enum status read_worker_report(int fd, uint64_t max, struct buf *ret, struct error *err)
{
        uint64_t size = get_file_size(fd);
        void *room;

        if (!size)
                return ST_OK;
        if (size > max)
                return error_set(err, ST_BAD_DATA, "the worker's report has %" PRIu64 " bytes", size);
        room = buf_reserve(ret, size);
        if (room && pread(fd, room, size, 0) != (ssize_t)size)
                return error_set(err, ST_BAD_DATA, "the worker's report is cut off");
        if (room)
                buf_commit(ret, size);
        return buf_status(ret, err, "the worker's report");
}

enum status variables_extract_confined(const struct extract_inputs *in, struct buf *ret, struct error *err)
{
        _cleanup_close_ int fd = -1;
        bool other_files;
        enum status st = run_extraction_worker(in, "variables", NULL, NULL, &fd, &other_files, err);

        return st ? st : read_worker_report(fd, LIMIT_STACK_VARIABLES_BYTES, ret, err);
}

enum status source_extract_confined(const struct extract_inputs *in, const char *path, struct buf *ret,
                                    struct error *err)
{
        const char *form = in->has_relative_paths ? "relative-source" : "source";
        _cleanup_close_ int fd = -1;
        bool other_files;
        enum status st = run_extraction_worker(in, form, path, NULL, &fd, &other_files, err);

        return st ? st : read_worker_report(fd, LIMIT_SOURCE_FILE_BYTES + 1, ret, err);
}
