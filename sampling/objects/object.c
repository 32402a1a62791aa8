/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/objects/object.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"

#define PAGE ((uint64_t)4096) /* the smallest page size of both architectures */
#define NOTES_MAX KiB(64)
#define NOTE_SECTIONS_MAX 64 /* section headers searched; notes come first */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_ORDER ELFDATA2LSB
#else
#define OUR_ORDER ELFDATA2MSB
#endif

/* The fields of both header classes that are used. */
struct header {
        bool is_64;
        uint64_t table_offset, sections_offset;
        unsigned count, section_count; /* section_count 0: none, or of an unexpected entry size */
};

static enum status read_object_header(object_read_fn *read, void *ctx, struct header *ret, struct error *err)
{
        union {
                unsigned char ident[EI_NIDENT];
                Elf32_Ehdr e32;
                Elf64_Ehdr e64;
        } h = { 0 };
        size_t entry;

        if (!read(ctx, 0, &h, sizeof h.e32) || memcmp(h.ident, ELFMAG, SELFMAG) != 0)
                return error_set(err, ST_BAD_DATA, "not an ELF file");
        if (h.ident[EI_DATA] != OUR_ORDER || (h.ident[EI_CLASS] != ELFCLASS32 && h.ident[EI_CLASS] != ELFCLASS64))
                return error_set(err, ST_BAD_DATA, "an ELF file of an unsupported class or byte order");
        ret->is_64 = h.ident[EI_CLASS] == ELFCLASS64;
        if (ret->is_64 && !read(ctx, 0, &h, sizeof h.e64))
                return error_set(err, ST_BAD_DATA, "the ELF header is truncated");
        ret->table_offset = ret->is_64 ? h.e64.e_phoff : h.e32.e_phoff;
        ret->count = ret->is_64 ? h.e64.e_phnum : h.e32.e_phnum;
        ret->sections_offset = ret->is_64 ? h.e64.e_shoff : h.e32.e_shoff;
        if ((ret->is_64 ? h.e64.e_shentsize : h.e32.e_shentsize) ==
            (ret->is_64 ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr)))
                ret->section_count = ret->is_64 ? h.e64.e_shnum : h.e32.e_shnum;
        entry = ret->is_64 ? h.e64.e_phentsize : h.e32.e_phentsize;
        if (ret->count > LIMIT_ELF_SEGMENTS)
                return error_set(err, ST_TOO_BIG, "more than %d segments", LIMIT_ELF_SEGMENTS);
        if (ret->count && entry != (ret->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)))
                return error_set(err, ST_BAD_DATA, "segment headers of %zu bytes", entry);
        return ST_OK;
}

static bool read_program_header(object_read_fn *read, void *ctx, const struct header *h, unsigned i, Elf64_Phdr *ret)
{
        Elf32_Phdr p;
        uint64_t offset;

        if (__builtin_add_overflow(h->table_offset, i * (h->is_64 ? sizeof *ret : sizeof p), &offset))
                return false;
        if (h->is_64)
                return read(ctx, offset, ret, sizeof *ret);
        if (!read(ctx, offset, &p, sizeof p))
                return false;
        *ret = (Elf64_Phdr){ .p_type = p.p_type,
                             .p_flags = p.p_flags,
                             .p_offset = p.p_offset,
                             .p_vaddr = p.p_vaddr,
                             .p_filesz = p.p_filesz,
                             .p_memsz = p.p_memsz,
                             .p_align = p.p_align };
        return true;
}

static void read_build_id_of_segment(object_read_fn *read, void *ctx, const Elf64_Phdr *p, struct object *o,
                                     enum elf_build_id_kind *best)
{
        _cleanup_free_ void *notes = NULL;
        struct elf_note_cursor cursor;
        enum elf_build_id_kind kind;
        struct build_id id;

        if (*best == ELF_BUILD_ID_GNU || p->p_filesz == 0 || p->p_filesz > NOTES_MAX)
                return;
        notes = malloc(p->p_filesz);
        if (!notes || !read(ctx, p->p_offset, notes, p->p_filesz))
                return;
        elf_notes_begin(&cursor, notes, p->p_filesz, p->p_align, OUR_ORDER == ELFDATA2MSB);
        if (elf_notes_build_id(&cursor, &id, &kind) && (*best == ELF_BUILD_ID_NONE || kind == ELF_BUILD_ID_GNU)) {
                o->build_id = id;
                *best = kind;
        }
        o->has_placeholder_id |= cursor.has_placeholder;
}

/* The GNU note of Go programs is not part of a note segment. */
static void read_build_id_of_sections(object_read_fn *read, void *ctx, const struct header *h, struct object *o,
                                      enum elf_build_id_kind *best)
{
        for (unsigned i = 0; i < h->section_count && i < NOTE_SECTIONS_MAX && *best == ELF_BUILD_ID_GO; i++) {
                Elf64_Phdr notes = { 0 };
                Elf64_Shdr s;
                Elf32_Shdr s32;
                uint64_t offset;
                bool good;

                if (__builtin_add_overflow(h->sections_offset, i * (h->is_64 ? sizeof s : sizeof s32), &offset))
                        return;
                good = h->is_64 ? read(ctx, offset, &s, sizeof s) : read(ctx, offset, &s32, sizeof s32);
                if (!good)
                        return;
                if (!h->is_64)
                        s = (Elf64_Shdr){ .sh_type = s32.sh_type,
                                          .sh_offset = s32.sh_offset,
                                          .sh_size = s32.sh_size,
                                          .sh_addralign = s32.sh_addralign };
                if (s.sh_type != SHT_NOTE)
                        continue;
                notes.p_offset = s.sh_offset;
                notes.p_filesz = s.sh_size;
                notes.p_align = s.sh_addralign;
                read_build_id_of_segment(read, ctx, &notes, o, best);
        }
}

enum status object_read(object_read_fn *read, void *ctx, struct object *ret, struct error *err)
{
        enum elf_build_id_kind best = ELF_BUILD_ID_NONE;
        struct object o = { 0 };
        struct header h = { 0 };
        enum status st = read_object_header(read, ctx, &h, err);

        if (st)
                return st;
        o.segments = calloc(h.count ? h.count : 1, sizeof *o.segments);
        if (!o.segments)
                return error_no_memory(err);
        for (unsigned i = 0; i < h.count; i++) {
                Elf64_Phdr p;

                if (!read_program_header(read, ctx, &h, i, &p)) {
                        object_deinit(&o);
                        return error_set(err, ST_BAD_DATA, "the segment table is truncated");
                }
                if (p.p_type == PT_LOAD && p.p_filesz)
                        o.segments[o.segment_count++] = (struct load_segment){
                                .offset = p.p_offset,
                                .file_size = p.p_filesz,
                                .address = p.p_vaddr,
                                .executable = p.p_flags & PF_X,
                        };
                else if (p.p_type == PT_NOTE)
                        read_build_id_of_segment(read, ctx, &p, &o, &best);
        }
        read_build_id_of_sections(read, ctx, &h, &o, &best);
        *ret = o;
        return ST_OK;
}

static bool read_object_fd(void *ctx, uint64_t offset, void *to, size_t n)
{
        size_t done = 0;

        while (done < n) {
                ssize_t got = pread(*(int *)ctx, (char *)to + done, n - done, (off_t)(offset + done));

                if (got < 0 && errno == EINTR)
                        continue;
                if (got <= 0)
                        return false;
                done += (size_t)got;
        }
        return true;
}

enum status object_read_fd(int fd, struct object *ret, struct error *err)
{
        return object_read(read_object_fd, &fd, ret, err);
}

struct memory {
        const uint8_t *data;
        size_t size;
};

static bool read_object_memory(void *ctx, uint64_t offset, void *to, size_t n)
{
        const struct memory *m = ctx;

        if (offset > m->size || n > m->size - offset)
                return false;
        memcpy(to, m->data + offset, n);
        return true;
}

enum status object_read_memory(const void *data, size_t size, struct object *ret, struct error *err)
{
        struct memory m = { data, size };

        return object_read(read_object_memory, &m, ret, err);
}

void object_deinit(struct object *o)
{
        free(o->segments);
        *o = (struct object){ 0 };
}

bool object_find_address(const struct object *o, uint64_t file_offset, uint64_t *ret)
{
        const struct load_segment *found = NULL;
        int found_score = 0;

        for (size_t i = 0; i < o->segment_count; i++) {
                const struct load_segment *s = &o->segments[i];
                uint64_t first_page = s->offset & ~(PAGE - 1);
                bool exact = file_offset >= s->offset && file_offset - s->offset < s->file_size;
                bool in_pages = exact || (file_offset >= first_page && file_offset < s->offset) ||
                                (file_offset > s->offset && file_offset - s->offset - s->file_size < PAGE &&
                                 (file_offset & ~(PAGE - 1)) < s->offset + s->file_size);
                int score = exact ? 4 : in_pages ? 2 : 0;

                score += score && s->executable;
                if (score > found_score) {
                        found = s;
                        found_score = score;
                }
        }
        if (!found)
                return false;
        *ret = file_offset - found->offset + found->address;
        return true;
}

bool object_find_mapped_address(const struct object *o, uint64_t file_offset, bool executable, uint64_t *ret)
{
        bool found = false;

        for (size_t i = 0; i < o->segment_count; i++) {
                const struct load_segment *s = &o->segments[i];
                uint64_t first_page = s->offset & ~(PAGE - 1);

                if (file_offset < first_page || file_offset >= s->offset + s->file_size ||
                    (found && s->executable != executable))
                        continue;
                *ret = file_offset - s->offset + s->address;
                found = true;
                if (s->executable == executable)
                        break;
        }
        return found;
}

bool object_find_code_address(const struct object *o, uint64_t file_offset, uint64_t size, uint64_t *ret)
{
        for (size_t i = 0; i < o->segment_count; i++) {
                const struct load_segment *s = &o->segments[i];

                if (s->executable && s->offset < file_offset + size && file_offset < s->offset + s->file_size) {
                        *ret = file_offset - s->offset + s->address;
                        return true;
                }
        }
        return false;
}
