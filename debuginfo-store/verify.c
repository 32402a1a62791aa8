/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/verify.h"

#include <sys/mman.h>

#include "common/file.h"
#include "common/reader.h"
#include "elf-image/elf_image.h"
#include "sandbox/worker.h"

/* The answer: quality, code, supplement, size of the build-id, its bytes. */
#define ANSWER_MAX (4 + BUILD_ID_MAX)

enum status verify_worker(int in, int out, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_buf_ struct buf answer;
        enum status st;

        buf_init(&answer, ANSWER_MAX);
        st = elf_image_from_fd(in, "upload", &img, err);
        if (!st)
                st = elf_image_check_complete(&img, err);
        if (st)
                return st;
        buf_append_u8(&answer, (uint8_t)elf_image_quality(&img));
        buf_append_u8(&answer, (elf_image_kind(&img) & ELF_KIND_EXECUTABLE) != 0);
        buf_append_u8(&answer, elf_image_is_supplement(&img));
        buf_append_u8(&answer, img.build_id.size);
        buf_append(&answer, img.build_id.bytes, img.build_id.size);
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
        uint8_t quality, code, supplement, id_size;
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
        if (!reader_u8(&r, &quality) || !reader_u8(&r, &code) || !reader_u8(&r, &supplement) || !reader_u8(&r, &id_size) ||
            !reader_bytes(&r, id_size, &id) || quality > QUALITY_DWARF)
                return reader_error(&r, err, "the verifier's answer");
        v.quality = quality;
        v.has_code = code;
        v.is_supplement = supplement;
        if (id_size && !build_id_from_bytes(&v.build_id, id, id_size))
                return error_set(err, ST_BAD_DATA, "the verifier's answer is damaged");
        *ret = v;
        return ST_OK;
}
