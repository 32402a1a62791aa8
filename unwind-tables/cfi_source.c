/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/cfi_source.h"

#include <inttypes.h>
#include <string.h>

#include "common/limits.h"
#include "unwind-tables/cfi_pointer.h"

#define HDR_TABLE_ENCODING (CFI_PE_DATAREL | 0x0b) /* sdata4: all linkers write this one */

static int compare_code(const void *a, const void *b)
{
        const struct cfi_code *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

static enum status find_code(const struct elf_image *img, struct cfi_source *s, struct error *err)
{
        s->code = calloc(img->segment_count ? img->segment_count : 1, sizeof *s->code);
        if (!s->code)
                return error_no_memory(err);
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *g = &img->segments[i];
                struct cfi_code c = { .start = g->address };

                if (g->type == PT_LOAD && (g->flags & PF_X) && g->memory_size &&
                    !__builtin_add_overflow(g->address, g->memory_size, &c.end) && c.end <= INT64_MAX)
                        s->code[s->code_count++] = c;
        }
        qsort(s->code, s->code_count, sizeof *s->code, compare_code);
        return ST_OK;
}

static bool is_code(const struct cfi_source *s, uint64_t start, uint64_t end)
{
        for (size_t i = 0; i < s->code_count; i++) {
                if (start >= s->code[i].start && end <= s->code[i].end)
                        return true;
        }
        return false;
}

static enum status add_fde(struct cfi_source *s, const struct cfi_fde *fde, struct error *err)
{
        s->fdes_seen++;
        if (fde->start == 0 || fde->start == fde->end) {
                s->fdes_discarded++;
                return ST_OK;
        }
        if (!is_code(s, fde->start, fde->end)) {
                s->fdes_outside++;
                return ST_OK;
        }
        if (s->fde_count == s->fde_capacity) {
                size_t capacity = s->fde_capacity ? s->fde_capacity * 2 : 1024;
                struct cfi_fde *fdes;

                if (capacity > LIMIT_UNWIND_FDES)
                        return error_set(err, ST_TOO_BIG, "more than %u FDEs", (unsigned)LIMIT_UNWIND_FDES);
                fdes = realloc(s->fdes, capacity * sizeof *fdes);
                if (!fdes)
                        return error_no_memory(err);
                s->fdes = fdes;
                s->fde_capacity = capacity;
        }
        s->fdes[s->fde_count++] = *fde;
        return ST_OK;
}

static enum status take(struct cfi_source *s, enum status st, const struct cfi_fde *fde, struct error *err)
{
        if (st == ST_OK)
                return add_fde(s, fde, err);
        if (st == ST_UNSUPPORTED) {
                s->fdes_seen++;
                s->fdes_unreadable++;
                return ST_OK;
        }
        return st == ST_NOT_FOUND ? ST_OK : st;
}

/* Empty records in the middle are walked over: linkers leave those of single input files. */
static enum status walk(struct cfi_source *s, struct cfi_section *section, struct error *err)
{
        size_t pos = 0;

        while (pos < section->size) {
                struct cfi_fde fde;
                enum status st = take(s, cfi_section_next(section, &pos, &fde, err), &fde, err);

                if (st)
                        return st;
        }
        return ST_OK;
}

/* The file's bytes from an address to the end of its segment. */
static bool rest_of_segment(const struct elf_image *img, uint64_t address, const uint8_t **ret, size_t *size_ret)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                const struct elf_segment *g = &img->segments[i];
                uint64_t size;

                if (g->type != PT_LOAD || address < g->address || address - g->address >= g->file_size)
                        continue;
                size = g->file_size - (address - g->address);
                *size_ret = size;
                return elf_image_bytes_at(img, address, size, ret);
        }
        return false;
}

/* Without section headers, the sorted table of .eh_frame_hdr says where every FDE is. */
static enum status walk_hdr(struct cfi_source *s, const struct elf_image *img, const struct elf_segment *hdr,
                            struct error *err)
{
        const uint8_t *bytes, *frames;
        uint8_t version, frame_encoding, count_encoding, table_encoding;
        uint64_t frame, count;
        size_t frames_size;
        struct reader r;

        if (!elf_image_bytes_at(img, hdr->address, hdr->file_size, &bytes))
                return error_at(err, ST_BAD_DATA, hdr->offset, "segment PT_GNU_EH_FRAME does not lie in the file");
        reader_init(&r, bytes, hdr->file_size);
        r.base = hdr->offset;
        if (!reader_u8(&r, &version) || !reader_u8(&r, &frame_encoding) || !reader_u8(&r, &count_encoding) ||
            !reader_u8(&r, &table_encoding) || version != 1 ||
            !cfi_pointer(&r, frame_encoding, hdr->address, hdr->address, &frame))
                return reader_error(&r, err, ".eh_frame_hdr");
        if (!rest_of_segment(img, frame, &frames, &frames_size))
                return error_at(err, ST_BAD_DATA, hdr->offset, ".eh_frame_hdr points to 0x%" PRIx64
                                " for .eh_frame, which is not in the file", frame);
        cfi_section_init(&s->eh, s->arch, frames, frames_size, frame, true);
        if (table_encoding != HDR_TABLE_ENCODING || !cfi_pointer(&r, count_encoding, hdr->address, hdr->address, &count))
                return error_at(err, ST_UNSUPPORTED, hdr->offset, ".eh_frame_hdr has no table of the usual encoding");
        for (uint64_t i = 0; i < count; i++) {
                uint64_t start, address;
                struct cfi_fde fde;
                enum status st;
                size_t pos;

                if (!cfi_pointer(&r, table_encoding, hdr->address, hdr->address, &start) ||
                    !cfi_pointer(&r, table_encoding, hdr->address, hdr->address, &address))
                        return reader_error(&r, err, ".eh_frame_hdr");
                pos = address - frame;
                st = address < frame || pos >= frames_size ? ST_UNSUPPORTED :
                                                             cfi_section_next(&s->eh, &pos, &fde, NULL);
                st = take(s, st == ST_BAD_DATA ? ST_UNSUPPORTED : st, &fde, err);
                if (st)
                        return st;
        }
        return ST_OK;
}

static const struct elf_segment *hdr_segment(const struct elf_image *img)
{
        for (size_t i = 0; i < img->segment_count; i++) {
                if (img->segments[i].type == PT_GNU_EH_FRAME)
                        return &img->segments[i];
        }
        return NULL;
}

static enum status read_eh_frame(struct cfi_source *s, const struct elf_image *img, struct error *err)
{
        const struct elf_section *section = elf_image_section(img, ".eh_frame");
        const struct elf_segment *hdr = hdr_segment(img);
        const uint8_t *bytes;
        enum status st;
        size_t size;

        if (section && elf_section_has_content(section)) {
                st = elf_section_raw(img, section, &bytes, &size, err);
                if (st)
                        return st;
                cfi_section_init(&s->eh, s->arch, bytes, size, section->address, true);
                return walk(s, &s->eh, err);
        }
        /* With section headers but no content this is a debug file: its segments are not in it. */
        return hdr && !section ? walk_hdr(s, img, hdr, err) : ST_OK;
}

static enum status read_debug_frame(struct cfi_source *s, const struct elf_image *img, struct error *err)
{
        const struct elf_section *section = elf_image_section(img, ".debug_frame");
        enum status st;

        if (!section)
                section = elf_image_section(img, ".zdebug_frame");
        if (!section || !elf_section_has_content(section))
                return ST_OK;
        st = elf_section_data(img, section, LIMIT_SECTION_UNPACKED_BYTES, &s->debug_data, err);
        if (st)
                return st;
        cfi_section_init(&s->debug, s->arch, s->debug_data.bytes, s->debug_data.size, section->address, false);
        return walk(s, &s->debug, err);
}

static int compare_fdes(const void *a, const void *b)
{
        const struct cfi_fde *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return 0;
}

/* Linkers keep FDEs in the order of addresses, so this mostly looks. */
static void sort_fdes(struct cfi_fde *fdes, size_t count)
{
        size_t i = 1;

        while (i < count && fdes[i - 1].start <= fdes[i].start)
                i++;
        if (i < count)
                qsort(fdes, count, sizeof *fdes, compare_fdes);
}

/*
 * Leave of .debug_frame's FDEs those that .eh_frame does not cover, then make
 * all of them disjoint: a function ends where the next begins.
 */
static void merge(struct cfi_source *s, size_t eh_count)
{
        size_t kept = eh_count, out = 0;

        sort_fdes(s->fdes, eh_count);
        for (size_t i = eh_count; i < s->fde_count; i++) {
                struct cfi_fde fde = s->fdes[i];
                size_t low = 0, high = eh_count;

                while (low < high) {
                        size_t mid = low + (high - low) / 2;

                        if (s->fdes[mid].start <= fde.start)
                                low = mid + 1;
                        else
                                high = mid;
                }
                if (low > 0 && s->fdes[low - 1].end > fde.start)
                        s->fdes_double++;
                else
                        s->fdes[kept++] = fde;
        }
        s->fde_count = kept;
        if (kept > eh_count)
                sort_fdes(s->fdes, kept);
        for (size_t i = 0; i < s->fde_count; i++) {
                struct cfi_fde *last = out ? &s->fdes[out - 1] : NULL;

                if (last && last->start == s->fdes[i].start) {
                        s->fdes_double++;
                        continue;
                }
                if (last && last->end > s->fdes[i].start)
                        last->end = s->fdes[i].start;
                s->fdes[out++] = s->fdes[i];
        }
        s->fde_count = out;
}

enum status cfi_source_open(const struct elf_image *img, struct cfi_source *ret, struct error *err)
{
        struct cfi_source s = { .arch = cfi_arch_of(img->machine) };
        enum status st;
        size_t eh_count;

        if (!s.arch || !img->is_64 || img->big_endian)
                return error_set(err, ST_UNSUPPORTED, "cannot read unwind information of '%s': not a 64-bit "
                                 "little-endian x86-64 or aarch64 file", img->name);
        if (img->type != ET_EXEC && img->type != ET_DYN)
                return error_set(err, ST_UNSUPPORTED, "cannot read unwind information of '%s': not a linked program or "
                                 "library", img->name);
        st = find_code(img, &s, err);
        if (!st)
                st = read_eh_frame(&s, img, err);
        eh_count = s.fde_count;
        if (!st)
                st = read_debug_frame(&s, img, err);
        if (st) {
                cfi_source_deinit(&s);
                return error_prefix(err, st, "cannot read unwind information of '%s'", img->name);
        }
        merge(&s, eh_count);
        *ret = s;
        return ST_OK;
}

void cfi_source_deinit(struct cfi_source *s)
{
        cfi_section_deinit(&s->eh);
        cfi_section_deinit(&s->debug);
        elf_section_data_free(&s->debug_data);
        free(s->fdes);
        free(s->code);
        *s = (struct cfi_source){ 0 };
}

size_t cfi_source_find(const struct cfi_source *s, uint64_t address)
{
        size_t low = 0, high = s->fde_count;

        while (low < high) {
                size_t mid = low + (high - low) / 2;

                if (s->fdes[mid].end <= address)
                        low = mid + 1;
                else
                        high = mid;
        }
        return low;
}
