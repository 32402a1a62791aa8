/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/uncovered.h"

#include <string.h>

#include "common/limits.h"

#define ENTRY_BYTES 64 /* longer than any program's first instructions up to their call */

static bool add(struct uncovered *u, uint64_t start, uint64_t end, const struct unwind_rule *rule)
{
        if (u->count == LIMIT_UNWIND_UNCOVERED)
                return false;
        u->items[u->count++] = (struct uncovered_range){ .start = start, .end = end, .rule = *rule };
        return true;
}

/* [start, end) is in no FDE. */
static void search(const struct cfi_source *source, const struct elf_image *img, uint64_t start, uint64_t end,
                   struct uncovered *u)
{
        const struct cfi_arch *arch = source->arch;
        const uint8_t *bytes, *at, *hit;

        if (end - start < arch->sigreturn_size || !elf_image_bytes_at(img, start, end - start, &bytes))
                return;
        for (at = bytes; (hit = memmem(at, (size_t)(bytes + (end - start) - at), arch->sigreturn, arch->sigreturn_size));
             at = hit + arch->sigreturn_size) {
                uint64_t address = start + (uint64_t)(hit - bytes);

                if (!add(u, address, address + arch->sigreturn_size, &arch->signal))
                        return;
                u->trampolines++;
        }
}

/* Only a C library, or a program that needs none, has trampolines without CFI for them. Go's runtime always has. */
static bool needs_others(const struct elf_image *img)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *g = &img->segments[i];
                struct reader r;
                uint64_t tag, value;

                if (g->type != PT_DYNAMIC || g->offset > img->size || g->file_size > img->size - g->offset)
                        continue;
                reader_init(&r, img->data + g->offset, g->file_size);
                while (reader_u64(&r, &tag) && reader_u64(&r, &value) && tag != DT_NULL) {
                        if (tag == DT_NEEDED)
                                return true;
                }
        }
        return false;
}

bool uncovered_is_go(const struct elf_image *img)
{
        static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (elf_image_section(img, names[i]))
                        return true;
        return false;
}

/* The part of [start, end) that an index of FDEs leaves open, from *pos on; false at the end. */
static bool next_hole(const struct cfi_source *source, size_t *fde, uint64_t *pos, uint64_t end, uint64_t *start_ret,
                      uint64_t *end_ret)
{
        while (*pos < end) {
                bool more = *fde < source->fde_count && source->fdes[*fde].start < end;
                uint64_t start = *pos, stop = more ? source->fdes[*fde].start : end;

                *pos = more ? source->fdes[*fde].end : end;
                *fde += more;
                if (start < stop) {
                        *start_ret = start;
                        *end_ret = stop;
                        return true;
                }
        }
        return false;
}

static bool is_taken(const struct uncovered *u, uint64_t address)
{
        for (size_t i = 0; i < u->count; i++) {
                if (address >= u->items[i].start && address < u->items[i].end)
                        return true;
        }
        return false;
}

static int compare(const void *a, const void *b)
{
        const struct uncovered_range *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

static void add_entry(const struct cfi_source *source, const struct elf_image *img, struct uncovered *u)
{
        static const struct unwind_rule STOP = { .cfa = UNWIND_CFA_STOP };
        uint64_t start = img->entry, end = 0;
        size_t next = cfi_source_find(source, start);

        for (size_t i = 0; i < source->code_count; i++) {
                if (start >= source->code[i].start && start < source->code[i].end)
                        end = source->code[i].end;
        }
        if (start == 0 || end == 0 || is_taken(u, start) || (next < source->fde_count && source->fdes[next].start <= start))
                return;
        if (end - start > ENTRY_BYTES)
                end = start + ENTRY_BYTES;
        if (next < source->fde_count && source->fdes[next].start < end)
                end = source->fdes[next].start;
        for (size_t i = 0; i < u->count; i++) {
                if (u->items[i].start >= start && u->items[i].start < end)
                        end = u->items[i].start;
        }
        u->entries += add(u, start, end, &STOP);
}

enum status uncovered_find(const struct cfi_source *source, const struct elf_image *img, bool is_go,
                           struct uncovered *ret, struct error *err)
{
        size_t searched = is_go || !needs_others(img) ? source->code_count : 0;
        uint64_t done = 0, start, end;

        ret->items = calloc(LIMIT_UNWIND_UNCOVERED, sizeof *ret->items);
        if (!ret->items)
                return error_no_memory(err);
        for (size_t i = 0; i < searched; i++) { /* by start; what overlaps is searched once */
                const struct cfi_code *c = &source->code[i];
                uint64_t pos = c->start > done ? c->start : done;
                size_t fde = cfi_source_find(source, pos);

                while (next_hole(source, &fde, &pos, c->end, &start, &end))
                        search(source, img, start, end, ret);
                done = c->end > done ? c->end : done;
        }
        add_entry(source, img, ret);
        qsort(ret->items, ret->count, sizeof *ret->items, compare);
        return ST_OK;
}

void uncovered_deinit(struct uncovered *u)
{
        free(u->items);
        *u = (struct uncovered){ 0 };
}
