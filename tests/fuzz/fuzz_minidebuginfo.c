/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as .gnu_debugdata of a stripped file. A flag byte determines whether the rest is that section (1) or
 * the file to be compressed into it, since mutations would invalidate the checksums of xz.
 */
#include <assert.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "symbolizer/extraction/extract.h"
#include "symbolizer/extraction/minidebuginfo.h"
#include "tests/support/elf_maker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compress_xz(const uint8_t *data, size_t size, struct buf *ret)
{
        size_t room = lzma_stream_buffer_bound(size), used = 0;

        if (lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, data, size, buf_reserve(ret, room), &used, room))
                abort();
        buf_commit(ret, used);
}

static void make_file(const struct buf *packed, struct buf *ret)
{
        const struct elf_maker_section sections[] = {
                { .name = "" },
                { .name = ".text",
                  .type = SHT_NOBITS,
                  .flags = SHF_ALLOC | SHF_EXECINSTR,
                  .address = 0x401000,
                  .size = 0x1000 },
                { .name = ".gnu_debugdata", .type = SHT_PROGBITS, .content = packed->data, .size = packed->size },
        };

        elf_make(&(struct elf_maker){ .is_64 = true, .type = ET_EXEC, .sections = sections, .section_count = 3 }, ret);
}

static void open_file(const struct buf *file)
{
        struct elf_image outer, inner;
        _cleanup_buf_ struct buf bytes = { 0 };

        if (elf_image_from_memory(file->data, file->size, "fuzz", &outer, NULL))
                abort();
        if (minidebuginfo_open(&outer, &bytes, &inner, NULL) == ST_OK)
                elf_image_close(&inner);
        assert(bytes.size <= LIMIT_MINIDEBUGINFO_BYTES);
        elf_image_close(&outer);
}

static void extract(const struct buf *file)
{
        _cleanup_close_ int fd = memfd_create("fuzz", MFD_CLOEXEC);
        const struct extract_inputs in = { .debuginfo_fd = fd, .executable_fd = -1, .altlink_fd = -1, .name = "fuzz" };
        struct symbol_table t;
        struct error err;

        if (write(fd, file->data, file->size) != (ssize_t)file->size)
                abort();
        if (symbol_table_extract(&in, &t, &err))
                return;
        if (symbol_table_check(&t, &err)) {
                fprintf(stderr, "%s\n", err.text);
                abort();
        }
        symbol_table_deinit(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_buf_ struct buf packed, file;

        buf_init(&packed, MiB(64));
        buf_init(&file, MiB(64));
        if (!size)
                return 0;
        if (data[0] & 1)
                buf_append(&packed, data + 1, size - 1);
        else
                compress_xz(data + 1, size - 1, &packed);
        make_file(&packed, &file);
        open_file(&file);
        extract(&file);
        return 0;
}
