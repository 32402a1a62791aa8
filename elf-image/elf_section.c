/* SPDX-License-Identifier: Apache-2.0 */
/* Sections and their content: borrowed from the file, or decompressed with libdeflate or zstd. */
#include <assert.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <string.h>
#include <zstd.h>

#include "common/limits.h"
#include "common/reader.h"
#include "common/text.h"
#include "elf-image/elf_image.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

const struct elf_section *elf_image_section(const struct elf_image *img, const char *name)
{
        for (size_t i = 1; i < img->section_count; i++) {
                if (strcmp(img->sections[i].name, name) == 0)
                        return &img->sections[i];
        }
        return NULL;
}

const struct elf_section *elf_image_section_at(const struct elf_image *img, uint64_t index)
{
        return index < img->section_count ? &img->sections[index] : NULL;
}

const struct elf_section *elf_image_section_of_type(const struct elf_image *img, uint32_t type)
{
        for (size_t i = 1; i < img->section_count; i++) {
                if (img->sections[i].type == type)
                        return &img->sections[i];
        }
        return NULL;
}

bool elf_section_has_content(const struct elf_section *s)
{
        assert(s);
        return s->type != SHT_NOBITS && s->type != SHT_NULL && s->size > 0;
}

bool elf_section_is_code(const struct elf_section *s)
{
        return (s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR);
}

static bool has_gnu_header(const struct elf_section *s)
{
        return starts_with(s->name, ".zdebug_") && !(s->flags & SHF_COMPRESSED);
}

bool elf_section_is_compressed(const struct elf_section *s)
{
        return s->type != SHT_NOBITS && ((s->flags & SHF_COMPRESSED) || has_gnu_header(s));
}

enum status elf_section_raw(const struct elf_image *img, const struct elf_section *s, const uint8_t **ret,
                            size_t *size_ret, struct error *err)
{
        if (s->type == SHT_NOBITS || s->type == SHT_NULL || s->size == 0) {
                *ret = NULL;
                *size_ret = 0;
                return ST_OK;
        }
        if (s->offset > img->size || s->size > img->size - s->offset)
                return error_at(err, ST_BAD_DATA, img->size,
                                "cannot read '%s': cut off: section '%.64s' (0x%" PRIx64 " bytes at 0x%" PRIx64
                                ") ends past the file's 0x%zx bytes",
                                img->name, s->name, s->size, s->offset, img->size);
        *ret = img->data + s->offset;
        *size_ret = s->size;
        return ST_OK;
}

/* Read the header of compressed bytes: Elf32_Chdr, Elf64_Chdr, or "ZLIB" and a big-endian size. */
static bool read_compression_header(struct reader *r, bool is_64, bool gnu, uint32_t *algorithm, uint64_t *size)
{
        const uint8_t *magic;
        uint32_t reserved, size32, align32;
        uint64_t align;

        if (gnu) {
                *algorithm = ELFCOMPRESS_ZLIB;
                r->big_endian = true;
                return reader_bytes(r, 4, &magic) && memcmp(magic, "ZLIB", 4) == 0 && reader_u64(r, size);
        }
        if (is_64)
                return reader_u32(r, algorithm) && reader_u32(r, &reserved) && reader_u64(r, size) &&
                       reader_u64(r, &align);
        if (!reader_u32(r, algorithm) || !reader_u32(r, &size32) || !reader_u32(r, &align32))
                return false;
        *size = size32;
        return true;
}

/* By libdeflate, which takes a third of zlib's time: the sizes of both sides are known. */
static bool inflate_section(const uint8_t *from, size_t from_size, uint8_t *to, size_t to_size)
{
        struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
        bool ok = d && libdeflate_zlib_decompress(d, from, from_size, to, to_size, NULL) == LIBDEFLATE_SUCCESS;

        libdeflate_free_decompressor(d);
        return ok;
}

static bool decompress_section(uint32_t algorithm, const uint8_t *from, size_t from_size, uint8_t *to, size_t to_size)
{
        if (algorithm == ELFCOMPRESS_ZLIB)
                return inflate_section(from, from_size, to, to_size);
        return ZSTD_decompress(to, to_size, from, from_size) == to_size;
}

static const uint8_t empty_content[1];

enum status elf_section_data(const struct elf_image *img, const struct elf_section *s, size_t max,
                             struct elf_section_data *ret, struct error *err)
{
        const uint8_t *raw, *packed;
        size_t raw_size, packed_size;
        uint64_t size;
        uint32_t algorithm;
        struct reader r;
        _cleanup_free_ uint8_t *to = NULL;
        enum status st = elf_section_raw(img, s, &raw, &raw_size, err);

        if (st)
                return st;
        if (!elf_section_is_compressed(s)) {
                *ret = (struct elf_section_data){ .bytes = raw_size ? raw : empty_content, .size = raw_size };
                return ST_OK;
        }
        reader_init(&r, raw, raw_size);
        r.base = s->offset;
        r.big_endian = img->big_endian;
        if (!read_compression_header(&r, img->is_64, has_gnu_header(s), &algorithm, &size))
                return error_at(err, ST_BAD_DATA, s->offset,
                                "cannot unpack section '%.64s' of '%s': its header is malformed", s->name, img->name);
        if (algorithm != ELFCOMPRESS_ZLIB && algorithm != ELFCOMPRESS_ZSTD)
                return error_at(err, ST_UNSUPPORTED, s->offset,
                                "cannot unpack section '%.64s' of '%s': unknown compression %u", s->name, img->name,
                                algorithm);
        if (size > max)
                return error_at(err, ST_TOO_BIG, s->offset,
                                "cannot unpack section '%.64s' of '%s': %" PRIu64
                                " bytes unpacked, at most %zu are allowed",
                                s->name, img->name, size, max);
        packed_size = reader_left(&r);
        if (size > LIMIT_SECTION_UNPACKED_FREE_BYTES && size / LIMIT_SECTION_UNPACKED_RATIO > packed_size)
                return error_at(err, ST_BAD_DATA, s->offset,
                                "cannot unpack section '%.64s' of '%s': %zu packed bytes cannot be the %" PRIu64
                                " it claims",
                                s->name, img->name, packed_size, size);
        if (size == 0) {
                *ret = (struct elf_section_data){ .bytes = empty_content };
                return ST_OK;
        }
        if (!reader_bytes(&r, packed_size, &packed))
                return reader_error(&r, err, s->name);
        to = malloc(size);
        if (!to)
                return error_no_memory(err);
        if (!decompress_section(algorithm, packed, packed_size, to, size))
                return error_at(err, ST_BAD_DATA, s->offset,
                                "cannot unpack section '%.64s' of '%s': broken, or not the 0x%" PRIx64
                                " bytes it claims",
                                s->name, img->name, size);
        ret->size = size;
        ret->bytes = ret->owned = steal_ptr(to);
        return ST_OK;
}

void elf_section_data_free(struct elf_section_data *d)
{
        free(d->owned);
        *d = (struct elf_section_data){ 0 };
}
