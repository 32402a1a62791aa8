/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/extraction/minidebuginfo.h"

#include <lzma.h>

#include "common/limits.h"

#define DECODER_MEMORY MiB(128)
#define STEP KiB(256)

static enum status unpack_xz(const struct elf_image *img, const uint8_t *packed, size_t size, struct buf *bytes,
                             struct error *err)
{
        lzma_stream stream = LZMA_STREAM_INIT;
        lzma_ret r = lzma_stream_decoder(&stream, DECODER_MEMORY, 0);
        enum status st = ST_OK;

        stream.next_in = packed;
        stream.avail_in = size;
        while (r == LZMA_OK && !st) {
                stream.next_out = buf_reserve(bytes, STEP);
                stream.avail_out = STEP;
                if (!stream.next_out) {
                        st = buf_status(bytes, err, ".gnu_debugdata");
                        break;
                }
                r = lzma_code(&stream, LZMA_FINISH);
                buf_commit(bytes, STEP - stream.avail_out);
        }
        lzma_end(&stream);
        if (!st && r != LZMA_STREAM_END)
                return error_set(err, ST_BAD_DATA, "cannot unpack .gnu_debugdata of '%s' (xz error %d)", img->name, r);
        return st;
}

enum status minidebuginfo_open(const struct elf_image *img, struct buf *bytes, struct elf_image *ret, struct error *err)
{
        const struct elf_section *s = elf_image_section(img, ".gnu_debugdata");
        const uint8_t *packed;
        enum status st;
        size_t size;

        if (!s || !elf_section_has_content(s))
                return error_set(err, ST_NOT_FOUND, "'%s' has no .gnu_debugdata", img->name);
        buf_init(bytes, LIMIT_MINIDEBUGINFO_BYTES);
        st = elf_section_raw(img, s, &packed, &size, err);
        if (!st)
                st = unpack_xz(img, packed, size, bytes, err);
        if (!st)
                st = elf_image_from_memory(bytes->data, bytes->size, img->name, ret, err);
        return st;
}
