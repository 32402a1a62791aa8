/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/libdw_file.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"

/*
 * Names without the leading dot, or "z" for the old form of compressed sections. Other sections do not describe code.
 */
static const char *const needed[] = { "debug_info",  "debug_abbrev",     "debug_line",     "debug_line_str",
                                      "debug_str",   "debug_ranges",     "debug_rnglists", "debug_addr",
                                      "debug_types", "debug_str_offsets" };
#define NEEDED_COUNT (sizeof needed / sizeof *needed)
#define ALIGNMENT 16

static const struct elf_section *find_debug_section(const struct elf_image *img, const char *name)
{
        char full[32];
        const struct elf_section *s;

        snprintf(full, sizeof full, ".%s", name);
        s = elf_image_section(img, full);
        if (s)
                return s;
        snprintf(full, sizeof full, ".z%s", name);
        return elf_image_section(img, full);
}

static bool has_compressed_section(const struct elf_image *img)
{
        for (size_t i = 0; i < img->section_count; i++)
                if (strstr(img->sections[i].name, "debug_") && elf_section_is_compressed(&img->sections[i]))
                        return true;
        return false;
}

/* ---- an ELF file that consists only of sections ---- */

struct container {
        uint8_t *bytes;
        size_t size;
        Elf64_Shdr headers[NEEDED_COUNT + 2]; /* [0] null, then the sections, then their names */
        unsigned count;
        char names[512];
        size_t name_bytes;
};

static bool append_bytes(struct container *c, const void *bytes, size_t n, size_t *offset_ret)
{
        size_t at = (c->size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1), end;
        uint8_t *grown;

        if (__builtin_add_overflow(at, n, &end) || end > LIMIT_SECTION_UNPACKED_BYTES)
                return false;
        grown = realloc(c->bytes, end + 1);
        if (!grown)
                return false;
        memset(grown + c->size, 0, at - c->size);
        if (n)
                memcpy(grown + at, bytes, n);
        c->bytes = grown;
        c->size = end;
        *offset_ret = at;
        return true;
}

static bool append_section(struct container *c, const char *name, const void *bytes, size_t n)
{
        size_t offset, name_at = c->name_bytes;

        if (!append_bytes(c, bytes, n, &offset))
                return false;
        c->name_bytes += (size_t)snprintf(c->names + name_at, sizeof c->names - name_at, ".%s", name) + 1;
        c->headers[c->count++] = (Elf64_Shdr){ .sh_name = (Elf64_Word)name_at,
                                               .sh_type = SHT_PROGBITS,
                                               .sh_offset = offset,
                                               .sh_size = n,
                                               .sh_addralign = 1 };
        return true;
}

/* Writes a number in the image's width and byte order; reads `width` bytes of the host's value. */
static void put_number(uint8_t **p, uint64_t value, unsigned width, bool big_endian)
{
        for (unsigned i = 0; i < width; i++)
                (*p)[i] = (uint8_t)(value >> 8 * (big_endian ? width - 1 - i : i));
        *p += width;
}

static void put_section_header(uint8_t **p, const Elf64_Shdr *h, const struct elf_image *img)
{
        unsigned word = img->is_64 ? 8 : 4;
        bool big = img->big_endian;

        put_number(p, h->sh_name, 4, big);
        put_number(p, h->sh_type, 4, big);
        put_number(p, h->sh_flags, word, big);
        put_number(p, h->sh_addr, word, big);
        put_number(p, h->sh_offset, word, big);
        put_number(p, h->sh_size, word, big);
        put_number(p, h->sh_link, 4, big);
        put_number(p, h->sh_info, 4, big);
        put_number(p, h->sh_addralign, word, big);
        put_number(p, h->sh_entsize, word, big);
}

static void put_file_header(uint8_t *p, const struct container *c, uint64_t headers_at, const struct elf_image *img)
{
        unsigned word = img->is_64 ? 8 : 4;
        bool big = img->big_endian;

        memcpy(p, img->data, EI_NIDENT);
        p += EI_NIDENT;
        put_number(&p, ET_EXEC, 2, big);
        put_number(&p, img->machine, 2, big);
        put_number(&p, EV_CURRENT, 4, big);
        put_number(&p, 0, word, big); /* entry */
        put_number(&p, 0, word, big); /* program headers */
        put_number(&p, headers_at, word, big);
        put_number(&p, 0, 4, big); /* flags */
        put_number(&p, img->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr), 2, big);
        put_number(&p, 0, 2, big);
        put_number(&p, 0, 2, big);
        put_number(&p, img->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr), 2, big);
        put_number(&p, c->count, 2, big);
        put_number(&p, c->count - 1, 2, big); /* index of the section name table: the last section */
}

static enum status fill_image(struct container *c, const struct elf_image *img, struct error *err)
{
        static const uint8_t blank[sizeof(Elf64_Ehdr)];
        size_t offset, size = 0;
        uint8_t *p;

        if (!append_bytes(c, blank, sizeof blank, &offset))
                return error_no_memory(err);
        c->count = 1;
        c->name_bytes = 1;
        for (size_t i = 0; i < NEEDED_COUNT; i++) {
                const struct elf_section *s = find_debug_section(img, needed[i]);
                _cleanup_elf_section_data_ struct elf_section_data d = { 0 };
                enum status st;

                if (!s || !elf_section_has_content(s))
                        continue;
                st = elf_section_data(img, s, LIMIT_SECTION_UNPACKED_BYTES, &d, err);
                if (st)
                        return st;
                if (!append_section(c, needed[i], d.bytes, d.size))
                        return error_set(err, ST_TOO_BIG, "the DWARF of '%s' is too big to unpack", img->name);
        }
        c->name_bytes += (size_t)snprintf(c->names + c->name_bytes, sizeof c->names - c->name_bytes, ".shstrtab") + 1;
        if (!append_bytes(c, c->names, c->name_bytes, &offset))
                return error_no_memory(err);
        c->headers[c->count++] = (Elf64_Shdr){ .sh_name = (Elf64_Word)(c->name_bytes - sizeof ".shstrtab"),
                                               .sh_type = SHT_STRTAB,
                                               .sh_offset = offset,
                                               .sh_size = c->name_bytes,
                                               .sh_addralign = 1 };
        size = c->count * sizeof(Elf64_Shdr);
        {
                _cleanup_free_ uint8_t *headers = calloc(1, size);

                if (!headers)
                        return error_no_memory(err);
                p = headers;
                for (unsigned i = 0; i < c->count; i++)
                        put_section_header(&p, &c->headers[i], img);
                if (!append_bytes(c, headers, size, &offset))
                        return error_no_memory(err);
        }
        put_file_header(c->bytes, c, offset, img);
        return ST_OK;
}

static void find_lines_unpacked(const struct container *c, struct libdw_file *f)
{
        for (unsigned i = 1; i < c->count; i++) {
                if (strcmp(c->names + c->headers[i].sh_name, ".debug_line") == 0) {
                        f->line_section = c->bytes + c->headers[i].sh_offset;
                        f->line_section_size = c->headers[i].sh_size;
                }
        }
}

/* ---- the handle ---- */

static enum status find_lines(const struct elf_image *img, struct libdw_file *f, struct error *err)
{
        const struct elf_section *s = elf_image_section(img, ".debug_line");

        if (!s || !elf_section_has_content(s))
                return ST_OK;
        return elf_section_raw(img, s, &f->line_section, &f->line_section_size, err);
}

void libdw_file_close(struct libdw_file *f)
{
        dwarf_end(f->dwarf);
        elf_end(f->elf);
        free(f->unpacked);
        *f = (struct libdw_file){ 0 };
}

enum status libdw_file_open(const struct elf_image *img, struct libdw_file *ret, struct error *err)
{
        struct libdw_file f = { .big_endian = img->big_endian };
        struct container c = { 0 };
        enum status st = ST_OK;

        if (!find_debug_section(img, "debug_info") && !find_debug_section(img, "debug_line"))
                return error_set(err, ST_NOT_FOUND, "'%s' has no DWARF", img->name);
        elf_version(EV_CURRENT);
        if (has_compressed_section(img)) {
                st = fill_image(&c, img, err);
                f.unpacked = c.bytes;
                if (!st) {
                        find_lines_unpacked(&c, &f);
                        f.elf = elf_memory((char *)c.bytes, c.size);
                }
        } else {
                st = find_lines(img, &f, err);
                f.elf = elf_memory((char *)img->data, img->size); /* libelf then only reads it */
        }
        if (!st && !f.elf)
                st = error_set(err, ST_BAD_DATA, "cannot read '%s': %s", img->name, elf_errmsg(-1));
        if (!st) {
                f.dwarf = dwarf_begin_elf(f.elf, DWARF_C_READ, NULL);
                if (!f.dwarf)
                        st = error_set(err, ST_BAD_DATA, "cannot read the DWARF of '%s': %s", img->name,
                                       dwarf_errmsg(-1));
        }
        if (st) {
                libdw_file_close(&f);
                return st;
        }
        *ret = f;
        return ST_OK;
}
