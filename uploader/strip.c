/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/strip.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/buf.h"
#include "common/limits.h"

struct stripped {
        const struct elf_image *img;
        uint32_t *numbers;   /* of each section in the new file; 0: left out */
        uint64_t *offsets;
        uint32_t count;      /* sections of the new file, the null section included */
        uint64_t loaded_end; /* what is before it stays where it is */
        uint64_t at;         /* end of what is laid out */
};

static bool begins_with(const char *s, const char *prefix)
{
        return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* What is not loaded, and of no use without what goes. */
static bool is_debug(const struct elf_image *img, const struct elf_section *s)
{
        static const char *const prefixes[] = { ".debug_", ".zdebug_", ".gdb_index", ".gnu_debuglink", ".gnu_debugaltlink",
                                                ".gnu.debuglto_", ".stab", ".line" };
        const struct elf_section *symbols = elf_image_section_of_type(img, SHT_SYMTAB);

        if (s->flags & SHF_ALLOC)
                return false;
        if (s->type == SHT_SYMTAB || s->type == SHT_SYMTAB_SHNDX || s->type == SHT_REL || s->type == SHT_RELA ||
            s->type == SHT_GROUP || (symbols && s->index == symbols->link) || s->index == img->name_section)
                return true;
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
                if (begins_with(s->name, prefixes[i]))
                        return true;
        return false;
}

bool strip_is_useful(const struct elf_image *img)
{
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (s->type == SHT_SYMTAB || (is_debug(img, s) && begins_with(s->name, ".debug_")) || begins_with(s->name, ".zdebug_"))
                        return true;
        }
        return false;
}

static uint64_t align_up(uint64_t v, uint64_t alignment)
{
        if (alignment < 2 || alignment > 4096 || (alignment & (alignment - 1)))
                return v;
        return (v + alignment - 1) & ~(alignment - 1);
}

static uint64_t greater(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static enum status lay_out(struct stripped *x, struct error *err)
{
        const struct elf_image *img = x->img;
        uint64_t end = img->is_64 ? sizeof(Elf64_Ehdr) + img->segment_count * sizeof(Elf64_Phdr)
                                  : sizeof(Elf32_Ehdr) + img->segment_count * sizeof(Elf32_Phdr);

        for (size_t i = 0; i < img->segment_count; i++)
                end = greater(end, img->segments[i].offset + img->segments[i].file_size);
        for (size_t i = 1; i < img->section_count; i++)
                if ((img->sections[i].flags & SHF_ALLOC) && elf_section_has_content(&img->sections[i]))
                        end = greater(end, img->sections[i].offset + img->sections[i].size);
        if (end > img->size)
                return error_set(err, ST_BAD_DATA, "cannot strip '%s': it is cut off", img->name);
        x->loaded_end = x->at = end;
        x->count = 1;
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (is_debug(img, s))
                        continue;
                x->numbers[i] = x->count++;
                x->offsets[i] = s->offset;
                if ((s->flags & SHF_ALLOC) || !elf_section_has_content(s))
                        continue;
                x->offsets[i] = x->at = align_up(x->at, s->alignment);
                x->at += s->size;
        }
        return ST_OK;
}

/* ---- numbers in the byte order of the file ---- */

static void put(const struct elf_image *img, uint8_t *to, unsigned size, uint64_t v)
{
        for (unsigned i = 0; i < size; i++)
                to[img->big_endian ? size - 1 - i : i] = (uint8_t)(v >> 8 * i);
}

static void append(const struct elf_image *img, struct buf *b, unsigned size, uint64_t v)
{
        uint8_t bytes[8];

        put(img, bytes, size, v);
        buf_append(b, bytes, size);
}

struct header {
        uint32_t name, type, link, info;
        uint64_t flags, address, offset, size, alignment, entry_size;
};

static void append_header(const struct elf_image *img, struct buf *b, const struct header *h)
{
        unsigned word = img->is_64 ? 8 : 4;

        append(img, b, 4, h->name);
        append(img, b, 4, h->type);
        append(img, b, word, h->flags);
        append(img, b, word, h->address);
        append(img, b, word, h->offset);
        append(img, b, word, h->size);
        append(img, b, 4, h->link);
        append(img, b, 4, h->info);
        append(img, b, word, h->alignment);
        append(img, b, word, h->entry_size);
}

static uint32_t renumbered(const struct stripped *x, uint32_t number)
{
        return number < x->img->section_count ? x->numbers[number] : 0;
}

/* Is sh_info the number of a section? */
static bool info_is_section(const struct elf_section *s)
{
        return s->type == SHT_REL || s->type == SHT_RELA || (s->flags & SHF_INFO_LINK);
}

static uint32_t add_name(struct buf *names, const char *name)
{
        uint32_t at = (uint32_t)names->size;

        if (!*name)
                return 0;
        buf_append(names, name, strlen(name) + 1);
        return at;
}

static void append_headers(const struct stripped *x, struct buf *headers, struct buf *names, uint64_t link_at, uint64_t link_size,
                           uint64_t names_at)
{
        const struct elf_image *img = x->img;
        struct header last;

        append_header(img, headers, &(struct header){ 0 });
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];
                const struct header h = { .name = x->numbers[i] ? add_name(names, s->name) : 0, .type = s->type, .flags = s->flags,
                                          .address = s->address, .offset = x->offsets[i], .size = s->size,
                                          .link = renumbered(x, s->link),
                                          .info = info_is_section(s) ? renumbered(x, s->info) : s->info,
                                          .alignment = s->alignment, .entry_size = s->entry_size };

                if (x->numbers[i])
                        append_header(img, headers, &h);
        }
        append_header(img, headers, &(struct header){ .name = add_name(names, ".gnu_debuglink"), .type = SHT_PROGBITS,
                                                      .offset = link_at, .size = link_size, .alignment = 4 });
        last = (struct header){ .name = add_name(names, ".shstrtab"), .type = SHT_STRTAB, .offset = names_at, .alignment = 1 };
        last.size = names->size;
        append_header(img, headers, &last);
}

static void set_header(const struct stripped *x, uint8_t *elf, uint64_t headers_at)
{
        const struct elf_image *img = x->img;

        if (img->is_64)
                put(img, elf + offsetof(Elf64_Ehdr, e_shoff), 8, headers_at);
        else
                put(img, elf + offsetof(Elf32_Ehdr, e_shoff), 4, headers_at);
        put(img, elf + (img->is_64 ? offsetof(Elf64_Ehdr, e_shnum) : offsetof(Elf32_Ehdr, e_shnum)), 2, x->count + 2);
        put(img, elf + (img->is_64 ? offsetof(Elf64_Ehdr, e_shstrndx) : offsetof(Elf32_Ehdr, e_shstrndx)), 2, x->count + 1);
}

static enum status write_at(int fd, const void *data, size_t n, uint64_t offset, struct error *err)
{
        const char *bytes = data;

        while (n) {
                ssize_t done = pwrite(fd, bytes, n, (off_t)offset);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done < 0)
                        return error_os(err, errno, "cannot write the stripped file");
                bytes += done;
                offset += (uint64_t)done;
                n -= (size_t)done;
        }
        return ST_OK;
}

static enum status write_contents(const struct stripped *x, int fd, struct error *err)
{
        const struct elf_image *img = x->img;
        enum status st = write_at(fd, img->data, x->loaded_end, 0, err);

        for (size_t i = 1; !st && i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (x->numbers[i] && !(s->flags & SHF_ALLOC) && elf_section_has_content(s))
                        st = write_at(fd, img->data + s->offset, s->size, x->offsets[i], err);
        }
        return st;
}

static enum status write_rest(struct stripped *x, const char *debug_name, uint32_t debug_crc, int fd, struct error *err)
{
        _cleanup_buf_ struct buf link, names, headers;
        uint8_t elf[sizeof(Elf64_Ehdr)];
        uint64_t link_at = align_up(x->at, 4), names_at, headers_at;
        size_t header_size = x->img->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
        enum status st;

        buf_init(&link, KiB(8));
        buf_init(&names, MiB(16));
        buf_init(&headers, MiB(16));
        buf_append(&link, debug_name, strlen(debug_name) + 1);
        while (link.size % 4)
                buf_append_u8(&link, 0);
        append(x->img, &link, 4, debug_crc);
        names_at = link_at + link.size;
        buf_append_u8(&names, 0);
        append_headers(x, &headers, &names, link_at, link.size, names_at);
        headers_at = align_up(names_at + names.size, 8);
        st = link.failed || names.failed || headers.failed ? error_no_memory(err) : ST_OK;
        memcpy(elf, x->img->data, header_size);
        set_header(x, elf, headers_at);
        if (!st)
                st = write_at(fd, link.data, link.size, link_at, err);
        if (!st)
                st = write_at(fd, names.data, names.size, names_at, err);
        if (!st)
                st = write_at(fd, headers.data, headers.size, headers_at, err);
        return st ? st : write_at(fd, elf, header_size, 0, err);
}

enum status strip_write(const struct elf_image *img, const char *debug_name, uint32_t debug_crc, int fd, struct error *err)
{
        struct stripped x = { .img = img };
        enum status st;

        if ((img->type != ET_EXEC && img->type != ET_DYN) || img->section_count < 2 || img->section_count >= SHN_LORESERVE - 2)
                return error_set(err, ST_UNSUPPORTED, "cannot strip '%s': it is no program with section headers", img->name);
        st = elf_image_check_complete(img, err);
        if (st)
                return st;
        x.numbers = calloc(img->section_count, sizeof *x.numbers);
        x.offsets = calloc(img->section_count, sizeof *x.offsets);
        st = x.numbers && x.offsets ? lay_out(&x, err) : error_no_memory(err);
        if (!st)
                st = write_contents(&x, fd, err);
        if (!st)
                st = write_rest(&x, debug_name, debug_crc, fd, err);
        free(x.numbers);
        free(x.offsets);
        return st;
}
