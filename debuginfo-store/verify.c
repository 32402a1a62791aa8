/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/verify.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.h"
#include "common/reader.h"
#include "elf-image/elf_image.h"
#include "sandbox/worker.h"
#include "source-bundle/bundle.h"

/* The answer: quality, code, supplement, source, size of the build-id, its bytes. */
#define ANSWER_MAX (5 + BUILD_ID_MAX)

static enum status look_at_elf(int in, struct verified *ret, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        enum status st = elf_image_from_fd(in, "upload", &img, err);

        if (!st)
                st = elf_image_check_complete(&img, err);
        if (!st)
                *ret = (struct verified){ .build_id = img.build_id, .quality = elf_image_quality(&img),
                                          .has_code = (elf_image_kind(&img) & ELF_KIND_EXECUTABLE) != 0,
                                          .is_supplement = elf_image_is_supplement(&img) };
        return st;
}

static ssize_t read_source(void *context, void *to, size_t n, uint64_t offset, struct error *err)
{
        ssize_t got = pread(*(const int *)context, to, n, (off_t)offset);

        if (got < 0)
                error_os(err, errno, "cannot read the source bundle");
        return got;
}

static enum status look_at_source(int in, struct verified *ret, struct error *err)
{
        struct source_bundle bundle;
        struct stat info;
        enum status st = fstat(in, &info) < 0 ? error_os(err, errno, "cannot look at the source bundle")
                                              : source_bundle_open(read_source, &in, (uint64_t)info.st_size, &bundle, err);

        if (st)
                return st;
        *ret = (struct verified){ .build_id = bundle.build_id, .is_source = true };
        source_bundle_close(&bundle);
        return ST_OK;
}

enum status verify_worker(int in, int out, struct error *err)
{
        _cleanup_buf_ struct buf answer;
        struct verified v;
        char head[16];
        ssize_t n = pread(in, head, sizeof head, 0);
        enum status st = n > 0 && source_bundle_magic(head, (size_t)n) ? look_at_source(in, &v, err) : look_at_elf(in, &v, err);

        if (st)
                return st;
        buf_init(&answer, ANSWER_MAX);
        buf_append_u8(&answer, (uint8_t)v.quality);
        buf_append_u8(&answer, v.has_code);
        buf_append_u8(&answer, v.is_supplement);
        buf_append_u8(&answer, v.is_source);
        buf_append_u8(&answer, v.build_id.size);
        buf_append(&answer, v.build_id.bytes, v.build_id.size);
        st = buf_status(&answer, err, "answer");
        return st ? st : file_write_all(out, answer.data, answer.size, "answer", err);
}

enum status verify_object(int fd, struct verified *ret, struct error *err)
{
        static const char *const args[] = { "verify", NULL };
        _cleanup_close_ int out = memfd_create("verify-answer", MFD_CLOEXEC);
        uint8_t bytes[ANSWER_MAX];
        struct verified v = { 0 };
        struct reader r;
        uint8_t quality, code, supplement, source, id_size;
        const uint8_t *id;
        ssize_t n;
        enum status st;

        if (out < 0)
                return error_os(err, errno, "cannot make a memory file");
        st = worker_run(&(struct worker_job){ .args = args, .fds = (const int[]){ fd, out }, .fd_count = 2 }, err);
        if (st)
                return st;
        n = pread(out, bytes, sizeof bytes, 0);
        reader_init(&r, bytes, n > 0 ? (size_t)n : 0);
        if (!reader_u8(&r, &quality) || !reader_u8(&r, &code) || !reader_u8(&r, &supplement) || !reader_u8(&r, &source) ||
            !reader_u8(&r, &id_size) ||
            !reader_bytes(&r, id_size, &id) || quality > QUALITY_DWARF)
                return reader_error(&r, err, "the verifier's answer");
        v.quality = quality;
        v.has_code = code;
        v.is_supplement = supplement;
        v.is_source = source;
        if (id_size && !build_id_from_bytes(&v.build_id, id, id_size))
                return error_set(err, ST_BAD_DATA, "the verifier's answer is damaged");
        *ret = v;
        return ST_OK;
}
