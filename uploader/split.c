/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split_write() has three steps: lay_out_split() chooses an offset for each section, write_split_headers() writes the
 * headers, copy_section_contents() the contents that are kept. Sections keep their numbers, so that links between them
 * need no change.
 *
 * Two layouts: compact, with contents one after another, and in place, with loaded sections at their old offsets and
 * the others in the gaps. The compact one is always computed, since it bounds the size; the one in place is used if it
 * is possible and not much longer. Sections that are left out become NOBITS, except those that contain ranges to keep:
 * they keep their size, with holes in the file.
 *
 * Order: the choice of sections, layouts, headers, contents, split_write().
 */
#include "uploader/split.h"

#include <assert.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "common/limits.h"
#include "common/text.h"
#include "uploader/elf_headers.h"

#ifndef SHT_GNU_SFRAME
#define SHT_GNU_SFRAME 0x6ffffff4
#endif

#define COPY_SLICE_BYTES MiB(8)
#define SPLIT_GAPS_MAX 64        /* sections that stay at their offsets, and one */
#define SPLIT_HOLES_BYTES MiB(1) /* a file may be this much longer than twice its content */

/* Loaded sections needed for names and unwinding. */
static bool is_useful_when_loaded(const struct elf_section *s)
{
        static const char *const names[] = {
                ".eh_frame",
                ".eh_frame_hdr",
                ".gosymtab",
                ".gopclntab",
                ".data.rel.ro.gosymtab",
                ".data.rel.ro.gopclntab",
                ".go.buildinfo",
                ".go.module",
                ".gnu_debugdata",
                ".gnu_debuglink",
                ".gnu_debugaltlink",
                ".interp",
        };

        switch (s->type) {
        case SHT_NOTE:
        case SHT_DYNSYM:
        case SHT_STRTAB:
        case SHT_REL:
        case SHT_RELA:
        case SHT_GNU_SFRAME:
                return true;
        }
        if (starts_with(s->name, ".plt") || strcmp(s->name, ".iplt") == 0)
                return true;
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                if (strcmp(s->name, names[i]) == 0)
                        return true;
        }
        return false;
}

bool split_keeps_section(const struct elf_image *img, const struct elf_section *s)
{
        const struct elf_section *target;

        if (!elf_section_has_content(s))
                return false;
        if (s->flags & SHF_ALLOC)
                return is_useful_when_loaded(s);
        if (s->type != SHT_REL && s->type != SHT_RELA)
                return true;
        /* Relocations of a .ko or of --emit-relocs: useless without their target section. */
        target = elf_image_section_at(img, s->info);
        return !target || target->index == 0 ||
               (elf_section_has_content(target) && (!(target->flags & SHF_ALLOC) || is_useful_when_loaded(target)));
}

bool split_is_needed(const struct elf_image *img)
{
        return elf_image_kind(img) & ELF_KIND_EXECUTABLE;
}

struct split_layout {
        struct split_range ranges[SPLIT_GO_RANGES_MAX]; /* ranges of sections that are otherwise left out */
        size_t range_count;
        uint64_t *offsets; /* of each section in the new file */
        uint64_t program_headers, section_headers;
};

/* Intersect a section with a range; false when they are disjoint. */
static bool intersect_range(const struct elf_section *s, const struct split_range *r, uint64_t *at_ret,
                            uint64_t *size_ret)
{
        uint64_t begin = r->address > s->address ? r->address : s->address;
        uint64_t end = r->address + r->size < s->address + s->size ? r->address + r->size : s->address + s->size;

        if (begin >= end)
                return false;
        *at_ret = begin - s->address;
        *size_ret = end - begin;
        return true;
}

static bool is_kept_in_part(const struct split_layout *l, const struct elf_image *img, const struct elf_section *s)
{
        uint64_t at, size;

        if (split_keeps_section(img, s) || !elf_section_has_content(s) || !(s->flags & SHF_ALLOC) ||
            (s->flags & SHF_EXECINSTR) || elf_section_is_compressed(s))
                return false;
        for (size_t i = 0; i < l->range_count; i++)
                if (intersect_range(s, &l->ranges[i], &at, &size))
                        return true;
        return false;
}

static bool has_content_in_split(const struct split_layout *l, const struct elf_image *img, const struct elf_section *s)
{
        return split_keeps_section(img, s) || is_kept_in_part(l, img, s);
}

/* Room for content between two sections that stay where they are. */
struct split_gap {
        uint64_t at, end;
};

static bool stays_in_place(const struct split_layout *l, const struct elf_image *img, const struct elf_section *s)
{
        return (s->flags & SHF_ALLOC) && s->size && has_content_in_split(l, img, s);
}

/* The gaps around the sections that stay in place, in the order of the file; none when these are many or overlap. */
static size_t find_split_gaps(const struct elf_image *img, const struct split_layout *l, uint64_t headers_end,
                              struct split_gap gaps[SPLIT_GAPS_MAX])
{
        size_t count = 1;

        gaps[0] = (struct split_gap){ headers_end, UINT64_MAX };
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];
                size_t at = 0;

                if (!stays_in_place(l, img, s))
                        continue;
                while (at < count && gaps[at].end < s->offset + s->size)
                        at++;
                if (count == SPLIT_GAPS_MAX || at == count || gaps[at].at > s->offset)
                        return 0;
                memmove(&gaps[at + 1], &gaps[at], (count - at) * sizeof *gaps);
                gaps[at].end = s->offset;
                gaps[++at].at = s->offset + s->size;
                count++;
        }
        return count;
}

/*
 * Kept sections that are loaded stay at their offsets, so that they lie in their segments, as gdb and eu-unstrip
 * expect; the others fill the gaps between them. False when that is not possible, or wastes too much.
 */
static bool lay_out_in_place(const struct elf_image *img, const struct split_layout *l, uint64_t headers_end,
                             uint64_t most, uint64_t *offsets, uint64_t *end_ret)
{
        struct split_gap gaps[SPLIT_GAPS_MAX];
        size_t count = img->segment_count ? find_split_gaps(img, l, headers_end, gaps) : 0, gap;

        if (!count)
                return false;
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];
                uint64_t at = s->offset;

                if (!(s->flags & SHF_ALLOC) && has_content_in_split(l, img, s)) {
                        for (gap = 0; gap < count; gap++) {
                                at = align_file_offset(gaps[gap].at, s->alignment);
                                if (at <= gaps[gap].end && s->size <= gaps[gap].end - at)
                                        break;
                        }
                        gaps[gap].at = at + s->size; /* the last gap has no end */
                }
                offsets[i] = at;
        }
        if (gaps[count - 1].at > most)
                return false;
        *end_ret = gaps[count - 1].at;
        return true;
}

/* Place contents one after another, in section table order. */
static enum status lay_out_compactly(const struct elf_image *img, const struct split_layout *l, uint64_t *end,
                                     struct error *err)
{
        uint64_t at = *end;

        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (has_content_in_split(l, img, s))
                        at = align_file_offset(at, s->alignment);
                l->offsets[i] = at;
                /* Each section was checked to end inside the input, but they may overlap, so their sum is bounded
                 * separately. */
                if (has_content_in_split(l, img, s))
                        at += s->size;
                if (at > LIMIT_OBJECT_BYTES || (!img->is_64 && at > UINT32_MAX))
                        return error_set(err, ST_TOO_BIG,
                                         "cannot split '%s': its sections overlap, together they are over 0x%" PRIx64
                                         " bytes",
                                         img->name, at);
        }
        *end = at;
        return ST_OK;
}

static enum status lay_out_split(const struct elf_image *img, struct split_layout *l, struct error *err)
{
        _cleanup_free_ uint64_t *offsets = calloc(img->section_count, sizeof *offsets);
        uint64_t headers_end, end, most;
        enum status st;

        l->program_headers = img->is_64 ? sizeof(Elf64_Ehdr) : sizeof(Elf32_Ehdr);
        headers_end = l->program_headers + img->segment_count * (img->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr));
        end = headers_end;
        l->offsets = calloc(img->section_count, sizeof *l->offsets);
        if (!l->offsets || !offsets)
                return error_no_memory(err);
        st = lay_out_compactly(img, l, &end, err);
        if (st)
                return st;
        most = 2 * end + SPLIT_HOLES_BYTES;
        if (most > LIMIT_OBJECT_BYTES)
                most = LIMIT_OBJECT_BYTES;
        if (!img->is_64 && most > UINT32_MAX)
                most = UINT32_MAX;
        if (lay_out_in_place(img, l, headers_end, most, offsets, &end)) {
                free(l->offsets);
                l->offsets = steal_ptr(offsets);
        }
        l->section_headers = align_file_offset(end, 8);
        return ST_OK;
}

/* Offset in the new file of a byte of the original; false when it is left out. */
static bool find_moved_offset(const struct elf_image *img, const struct split_layout *l, uint64_t offset, uint64_t *ret)
{
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];

                if (offset >= s->offset && offset - s->offset < s->size && split_keeps_section(img, s)) {
                        *ret = l->offsets[i] + (offset - s->offset);
                        return true;
                }
        }
        return false;
}

/*
 * PT_LOAD is unchanged: it translates file offsets of the original. Other segments (notes, .eh_frame_hdr) move with
 * their bytes, or become empty.
 */
static void move_segment(const struct elf_image *img, const struct split_layout *l, GElf_Phdr *p)
{
        uint64_t first, last;

        if (p->p_type == PT_LOAD || p->p_filesz == 0)
                return;
        if (p->p_type == PT_PHDR)
                p->p_offset = l->program_headers;
        else if (find_moved_offset(img, l, p->p_offset, &first) &&
                 find_moved_offset(img, l, p->p_offset + p->p_filesz - 1, &last) && last - first == p->p_filesz - 1)
                p->p_offset = first;
        else
                p->p_filesz = 0;
}

static GElf_Phdr make_split_segment(const struct elf_image *img, const struct split_layout *l,
                                    const struct elf_segment *s)
{
        GElf_Phdr p = make_program_header(s);

        move_segment(img, l, &p);
        return p;
}

/* Names keep their offsets in the section of names. */
static GElf_Shdr make_split_section(const struct elf_image *img, const struct split_layout *l,
                                    const struct elf_section *s, const uint8_t *names)
{
        GElf_Shdr h = { .sh_name = *s->name ? (uint32_t)((const uint8_t *)s->name - names) : 0,
                        .sh_type = s->type,
                        .sh_flags = s->flags,
                        .sh_addr = s->address,
                        .sh_offset = l->offsets[s->index],
                        .sh_size = s->size,
                        .sh_link = s->link,
                        .sh_info = s->info,
                        .sh_addralign = s->alignment,
                        .sh_entsize = s->entry_size };

        if (s->type != SHT_NULL && !has_content_in_split(l, img, s)) {
                h.sh_type = SHT_NOBITS;
                h.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
        }
        return h;
}

static enum status write_split_headers(const struct elf_image *img, int fd, const struct split_layout *l,
                                       struct error *err)
{
        _cleanup_free_ GElf_Phdr *programs = calloc(img->segment_count + 1, sizeof *programs);
        _cleanup_free_ GElf_Shdr *sections = calloc(img->section_count, sizeof *sections);
        const struct elf_headers h = { .program_offset = l->program_headers,
                                       .programs = programs,
                                       .program_count = img->segment_count,
                                       .section_offset = l->section_headers,
                                       .sections = sections,
                                       .section_count = img->section_count,
                                       .name_section = img->name_section };
        const uint8_t *names;
        size_t size;
        enum status st = elf_section_raw(img, &img->sections[img->name_section], &names, &size, err);

        if (st)
                return st;
        if (!programs || !sections)
                return error_no_memory(err);
        for (size_t i = 0; i < img->segment_count; i++)
                programs[i] = make_split_segment(img, l, &img->segments[i]);
        for (size_t i = 1; i < img->section_count; i++)
                sections[i] = make_split_section(img, l, &img->sections[i], names);
        return elf_headers_write(img, &h, fd, err);
}

/* Release the copied pages of the mapping. */
static void release_mapped_pages(const struct elf_image *img, const uint8_t *bytes, size_t n)
{
        uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
        uintptr_t from = ((uintptr_t)bytes + page - 1) & ~(page - 1);
        uintptr_t to = ((uintptr_t)bytes + n) & ~(page - 1);

        if (img->map.data && from < to)
                madvise((void *)from, to - from, MADV_DONTNEED);
}

static enum status copy_section_bytes(const struct elf_image *img, const uint8_t *bytes, size_t size, int fd,
                                      uint64_t offset, struct error *err)
{
        while (size) {
                size_t want = size < COPY_SLICE_BYTES ? size : COPY_SLICE_BYTES;
                ssize_t n = pwrite(fd, bytes, want, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot split '%s': cannot write the temporary file", img->name);
                release_mapped_pages(img, bytes, (size_t)n);
                bytes += n;
                offset += (uint64_t)n;
                size -= (size_t)n;
        }
        return ST_OK;
}

/* Copy the whole section, or of a partly kept section the ranges, with holes between them. */
static enum status copy_section_content(const struct elf_image *img, const struct elf_section *s, int fd,
                                        const struct split_layout *l, struct error *err)
{
        uint64_t offset = l->offsets[s->index], at, part;
        const uint8_t *bytes;
        size_t size;
        enum status st = elf_section_raw(img, s, &bytes, &size, err);

        if (!st && split_keeps_section(img, s))
                return copy_section_bytes(img, bytes, size, fd, offset, err);
        for (size_t i = 0; !st && i < l->range_count; i++)
                if (intersect_range(s, &l->ranges[i], &at, &part))
                        st = copy_section_bytes(img, bytes + at, part, fd, offset + at, err);
        return st;
}

static enum status copy_section_contents(const struct elf_image *img, int fd, const struct split_layout *l,
                                         struct error *err)
{
        for (size_t i = 1; i < img->section_count; i++) {
                const struct elf_section *s = &img->sections[i];
                enum status st = has_content_in_split(l, img, s) ? copy_section_content(img, s, fd, l, err) : ST_OK;

                if (st)
                        return st;
        }
        return ST_OK;
}

enum status split_write(const struct elf_image *img, const struct split_range *ranges, size_t range_count, int fd,
                        uint64_t *size_ret, struct error *err)
{
        struct split_layout l = { .range_count = range_count };
        off_t size;
        enum status st;

        if (img->section_count < 2)
                return error_set(err, ST_UNSUPPORTED, "cannot split '%s': it has no section headers", img->name);
        assert(range_count <= SPLIT_GO_RANGES_MAX);
        if (range_count)
                memcpy(l.ranges, ranges, range_count * sizeof *ranges);
        st = elf_image_check_complete(img, err);
        if (!st)
                st = lay_out_split(img, &l, err);
        if (!st)
                st = write_split_headers(img, fd, &l, err);
        if (!st)
                st = copy_section_contents(img, fd, &l, err);
        free(l.offsets);
        if (st)
                return st;
        size = lseek(fd, 0, SEEK_END);
        if (size < 0)
                return error_os(err, errno, "cannot split '%s'", img->name);
        *size_ret = (uint64_t)size;
        return ST_OK;
}
