/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/elf_job.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "elf-image/section_list.h"
#include "sandbox/worker.h"

#define JOB_CPU_S 60

static enum status run_elf_worker(const char *const *args, int fd, const char *dir, const atomic_bool *cancel,
                                  int *out_ret, struct error *err)
{
        _cleanup_close_ int out =
                dir ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : memfd_create("elf-answer", MFD_CLOEXEC);
        const int fds[] = { fd, out };
        struct worker_job job = { .args = args, .fds = fds, .fd_count = 2, .cpu_s = JOB_CPU_S, .cancel = cancel };
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot create a temporary file in '%s'", dir ? dir : "memory");
        st = worker_run(&job, err);
        if (st)
                return st;
        *out_ret = steal_fd(&out);
        return ST_OK;
}

enum status elf_job_read_supplement(int fd, const char *dir, const atomic_bool *cancel, struct elf_supplement *ret,
                                    struct error *err)
{
        static const char *const args[] = { "elf", "supplement", NULL };
        _cleanup_close_ int out = -1;
        struct elf_supplement found = { 0 };
        uint8_t bytes[1 + BUILD_ID_MAX];
        ssize_t n;
        enum status st = run_elf_worker(args, fd, dir, cancel, &out, err);

        if (st)
                return st;
        n = pread(out, bytes, sizeof bytes, 0);
        if (n < 1 || (n > 1 && !build_id_from_bytes(&found.needed, bytes + 1, (size_t)n - 1)))
                return error_set(err, ST_BAD_DATA, "the worker's result is damaged");
        found.is_one = bytes[0];
        *ret = found;
        return ST_OK;
}

enum status elf_job_list_sections(int fd, const char *dir, const atomic_bool *cancel, struct buf *ret,
                                  struct error *err)
{
        static const char *const args[] = { "elf", "sections", NULL };
        _cleanup_close_ int out = -1;
        struct stat info;
        void *to;
        enum status st = run_elf_worker(args, fd, dir, cancel, &out, err);

        if (st)
                return st;
        if (fstat(out, &info) < 0)
                return error_os(err, errno, "cannot stat the worker's result");
        if (info.st_size == 0)
                return ST_OK;
        to = buf_reserve(ret, (size_t)info.st_size);
        if (!to)
                return buf_status(ret, err, "the list of sections");
        if (pread(out, to, (size_t)info.st_size, 0) != info.st_size)
                return error_set(err, ST_BAD_DATA, "the worker's result is truncated");
        buf_commit(ret, (size_t)info.st_size);
        return ST_OK;
}

/* ---- in the worker ---- */

/* One byte that says whether the file is a supplementary file, then the build-id of the file it refers to. */
static enum status write_supplement_answer(const struct elf_image *img, int out, struct error *err)
{
        uint8_t is_one = elf_image_is_supplement(img);
        struct build_id id;
        const char *path;
        enum status st = file_write_all(out, &is_one, 1, "answer", err);

        if (st)
                return st;
        st = elf_image_altlink(img, &path, &id, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        return file_write_all(out, id.bytes, id.size, "answer", err);
}

static enum status write_sections_answer(const struct elf_image *img, int out, struct error *err)
{
        _cleanup_buf_ struct buf b;
        enum status st;

        buf_init(&b, LIMIT_SECTION_TABLES_BYTES);
        st = section_list_write(img, &b, err);
        if (!st)
                st = buf_status(&b, err, "the list of sections");
        return st ? st : file_write_all(out, b.data, b.size, "answer", err);
}

enum status elf_job_run_worker(int argc, char **argv, int in, int out, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = elf_image_from_fd(in, "object", &img, err);

        if (st)
                return st;
        if (argc == 2 && strcmp(argv[1], "supplement") == 0)
                return write_supplement_answer(&img, out, err);
        if (argc == 2 && strcmp(argv[1], "sections") == 0)
                return write_sections_answer(&img, out, err);
        return error_set(err, ST_USAGE, "elf takes supplement or sections");
}
