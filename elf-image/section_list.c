/* SPDX-License-Identifier: Apache-2.0 */
#include "elf-image/section_list.h"

#include <string.h>

#include "common/reader.h"

enum status section_list_write(const struct elf_image *img, struct buf *to, struct error *err)
{
        for (size_t i = 1; i < img->section_count && !to->failed; i++) {
                const struct elf_section *s = &img->sections[i];
                const uint8_t *bytes;
                enum status st;
                size_t n;

                if (!s->name[0] || !elf_section_has_content(s))
                        continue;
                st = elf_section_raw(img, s, &bytes, &n, err);
                if (st)
                        return st;
                buf_append(to, s->name, strlen(s->name) + 1);
                buf_append_uleb128(to, s->offset);
                buf_append_uleb128(to, n);
        }
        return ST_OK;
}

enum status section_list_find(const void *list, size_t n, const char *name, uint64_t *offset_ret, uint64_t *size_ret,
                              struct error *err)
{
        uint64_t offset, size;
        struct reader r;
        const char *one;

        reader_init(&r, list, n);
        while (reader_left(&r)) {
                if (!reader_cstr(&r, &one) || !reader_uleb128(&r, &offset) || !reader_uleb128(&r, &size))
                        return error_set(err, ST_BAD_DATA, "a list of sections is damaged");
                if (strcmp(one, name) != 0)
                        continue;
                *offset_ret = offset;
                *size_ret = size;
                return ST_OK;
        }
        return error_set(err, ST_NOT_FOUND, "the file has no section '%.100s'", name);
}
