/* SPDX-License-Identifier: Apache-2.0 */
#include "disassembler/disassemble_job.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "disassembler/disassemble_internal.h"
#include "sandbox/worker.h"

#define JOB_CPU_S 20
#define JOB_DATA_BYTES MiB(1024)

static enum status write_request(int fd, const struct disassemble_request *q, struct error *err)
{
        const struct disassemble_message m = {
                .start = q->start, .end = q->end, .address_count = (uint32_t)q->address_count, .is_att = q->is_att
        };
        enum status st = file_write_all(fd, &m, sizeof m, "request", err);

        return st ? st : file_write_all(fd, q->addresses, q->address_count * sizeof *q->addresses, "request", err);
}

static enum status read_answer(int fd, struct disassembly *ret, struct error *err)
{
        _cleanup_buf_ struct buf b = { 0 };
        struct stat info;
        void *to;

        if (fstat(fd, &info) < 0)
                return error_os(err, errno, "cannot stat the worker's answer");
        buf_init_budget(&b, LIMIT_DISASSEMBLY_ANSWER_BYTES, MEMORY_QUERIES);
        to = buf_reserve(&b, (size_t)info.st_size);
        if (!to)
                return buf_status(&b, err, "the disassembly");
        if (pread(fd, to, (size_t)info.st_size, 0) != info.st_size)
                return error_set(err, ST_BAD_DATA, "the worker's answer is cut off");
        return disassembly_read(to, (size_t)info.st_size, ret, err);
}

enum status disassemble_file(const struct disassemble_request *q, struct disassembly *ret, struct error *err)
{
        static const char *const args[] = { "disassemble", NULL };
        _cleanup_close_ int request = memfd_create("disassemble-request", MFD_CLOEXEC);
        _cleanup_close_ int answer = memfd_create("disassemble-answer", MFD_CLOEXEC);
        const int fds[] = { q->executable_fd, q->symbols_fd, request, answer };
        const struct worker_job job = { .args = args,
                                        .fds = fds,
                                        .fd_count = sizeof fds / sizeof *fds,
                                        .data_bytes = JOB_DATA_BYTES,
                                        .file_bytes = LIMIT_DISASSEMBLY_ANSWER_BYTES,
                                        .cpu_s = JOB_CPU_S,
                                        .cancel = q->cancel };
        enum status st;

        if (request < 0 || answer < 0)
                return error_os(err, errno, "cannot create a file in memory");
        st = write_request(request, q, err);
        if (!st)
                st = worker_run(&job, err);
        return st ? st : read_answer(answer, ret, err);
}
