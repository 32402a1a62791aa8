/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two layers. cfi_section_next() iterates over the records of one section: CIEs are parsed on first use and cached by
 * offset, FDEs are returned. cfi_source_open() collects the FDEs of .eh_frame, then of .debug_frame, in one array;
 * merge_debug_frame() sorts it and makes the FDEs disjoint.
 *
 * An unreadable FDE of known length is counted and skipped. A record whose length exceeds its section ends a walk with
 * ST_BAD_DATA, since the next record cannot be found. Without section headers the table of .eh_frame_hdr locates each
 * FDE, so that there such a record is skipped as well.
 *
 * Order: records, CIEs, FDEs, then code segments, the two sections, merging, open and find.
 */
#include "unwind-tables/cfi_source.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "common/search.h"
#include "unwind-tables/cfi_pointer.h"
#include "unwind-tables/cfi_program.h"

static void cfi_section_init(struct cfi_section *s, const struct cfi_arch *arch, const void *data, size_t size,
                             uint64_t address, bool is_eh)
{
        *s = (struct cfi_section){ .arch = arch, .data = data, .size = size, .address = address, .is_eh = is_eh };
}

static void cfi_section_deinit(struct cfi_section *s)
{
        for (size_t i = 0; i < s->cie_count; i++)
                free(s->cies[i]);
        free(s->cies);
        hash_table_deinit(&s->cies_by_offset);
        *s = (struct cfi_section){ 0 };
}

/* A record after its length field. */
struct record {
        struct reader r; /* after the id */
        uint64_t id;
        size_t id_offset;
        bool is_wide, is_cie;
};

/* Read one record. ST_NOT_FOUND for an empty one. */
static enum status read_cfi_record(const struct cfi_section *s, size_t *pos, struct record *ret, struct error *err)
{
        const char *what = s->is_eh ? "a record of .eh_frame" : "a record of .debug_frame";
        struct record rec = { 0 };
        struct reader r;
        uint32_t u32;
        uint64_t length;

        reader_init(&r, s->data, s->size);
        if (!reader_seek(&r, *pos) || !reader_u32(&r, &u32))
                return reader_error(&r, err, what);
        length = u32;
        if (u32 == 0) {
                *pos = r.pos;
                return ST_NOT_FOUND;
        }
        if (u32 == UINT32_MAX) {
                rec.is_wide = true;
                if (!reader_u64(&r, &length))
                        return reader_error(&r, err, what);
        }
        rec.id_offset = r.pos;
        if (!reader_sub(&r, length, &rec.r))
                return reader_error(&r, err, what);
        if (rec.is_wide && !s->is_eh) {
                if (!reader_u64(&rec.r, &rec.id))
                        return reader_error(&rec.r, err, what);
                rec.is_cie = rec.id == UINT64_MAX;
        } else {
                if (!reader_u32(&rec.r, &u32))
                        return reader_error(&rec.r, err, what);
                rec.id = u32;
                rec.is_cie = s->is_eh ? u32 == 0 : u32 == UINT32_MAX;
        }
        *pos = r.pos;
        *ret = rec;
        return ST_OK;
}

static bool parse_augmentation(struct reader *r, const char *text, struct cfi_cie *cie)
{
        struct reader data;
        uint64_t size;
        uint8_t encoding;

        if (!*text)
                return true;
        if (*text != 'z' || !reader_uleb128(r, &size) || !reader_sub(r, size, &data))
                return false;
        cie->has_augmentation_size = true;
        for (text++; *text; text++) {
                switch (*text) {
                case 'L': /* encoding of the LSDA pointer, unused */
                        if (!reader_u8(&data, &encoding))
                                return false;
                        break;
                case 'P':
                        if (!reader_u8(&data, &encoding) || !cfi_pointer_skip(&data, encoding))
                                return false;
                        break;
                case 'R':
                        if (!reader_u8(&data, &cie->pointer_encoding))
                                return false;
                        break;
                case 'S':
                        cie->is_signal = true;
                        break;
                case 'B': /* return addresses are signed with the B key */
                case 'G': /* memory tags */
                        break;
                default:
                        return false;
                }
        }
        return true;
}

static bool parse_cie(const struct cfi_section *s, struct record *rec, struct cfi_cie *cie)
{
        struct reader *r = &rec->r;
        uint8_t version, address_size, segment_size, ra;
        const char *augmentation;

        if (!reader_u8(r, &version) || (version != 1 && version != 3 && version != 4) || !reader_cstr(r, &augmentation))
                return false;
        if (version == 4 &&
            (!reader_u8(r, &address_size) || !reader_u8(r, &segment_size) || address_size != 8 || segment_size != 0))
                return false;
        if (!reader_uleb128(r, &cie->code_align) || !reader_sleb128(r, &cie->data_align))
                return false;
        if (version == 1) {
                if (!reader_u8(r, &ra))
                        return false;
                cie->ra = ra;
        } else if (!reader_uleb128(r, &cie->ra)) {
                return false;
        }
        return parse_augmentation(r, augmentation, cie) && cfi_program_run_initial(r, s->arch, cie) == ST_OK;
}

static bool equal_cie_offset(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct cfi_section *s = context;

        return memcmp(&s->cies[entry]->offset, key, size) == 0;
}

/* The CIE at an offset; its state says whether it could be parsed. */
static enum status get_cie(struct cfi_section *s, uint64_t offset, const struct cfi_cie **ret, struct error *err)
{
        uint32_t hash = hash_table_hash(&offset, sizeof offset), i;
        struct record rec;
        struct cfi_cie *cie;
        size_t pos = offset;
        enum status st;

        if (hash_table_find(&s->cies_by_offset, hash, equal_cie_offset, s, &offset, sizeof offset, &i)) {
                *ret = s->cies[i];
                return ST_OK;
        }
        assert(s->cie_count == s->cies_by_offset.count);
        if (s->cie_count >= LIMIT_UNWIND_CIES)
                return error_set(err, ST_TOO_BIG, "more than %u CIEs", (unsigned)LIMIT_UNWIND_CIES);
        st = hash_table_reserve(&s->cies_by_offset, err);
        if (st)
                return st;
        cie = array_reserve(&s->cies, &s->cie_capacity, s->cie_count) ? calloc(1, sizeof *cie) : NULL;
        if (!cie)
                return error_no_memory(err);
        cie->offset = offset;
        if (read_cfi_record(s, &pos, &rec, NULL) || !rec.is_cie || !parse_cie(s, &rec, cie))
                cie->state = ST_BAD_DATA;
        hash_table_insert(&s->cies_by_offset, hash, (uint32_t)s->cie_count);
        s->cies[s->cie_count++] = cie;
        *ret = cie;
        return ST_OK;
}

static bool parse_fde(const struct cfi_section *s, struct record *rec, const struct cfi_cie *cie, struct cfi_fde *ret)
{
        struct reader *r = &rec->r;
        uint64_t here = s->address + (uint64_t)(r->data - s->data), size;
        struct cfi_fde fde = { .cie = cie };

        if (!cfi_pointer_read(r, cie->pointer_encoding, here, 0, &fde.start) ||
            !cfi_pointer_read(r, cie->pointer_encoding & 0x0f, here, 0, &size) ||
            __builtin_add_overflow(fde.start, size, &fde.end))
                return false;
        if (cie->has_augmentation_size && (!reader_uleb128(r, &size) || !reader_skip(r, size)))
                return false;
        fde.program = r->data + r->pos;
        fde.program_size = reader_left(r);
        fde.program_address = here + r->pos;
        *ret = fde;
        return true;
}

/*
 * Read the record at *pos and move *pos past it. ST_OK with an FDE; ST_NOT_FOUND for a CIE, an empty record and the
 * end; ST_UNSUPPORTED for an unreadable FDE of known length (*pos moves); ST_BAD_DATA for a record outside the
 * section, ST_TOO_BIG past LIMIT_UNWIND_CIES, ST_NO_MEMORY: *pos stays.
 */
static enum status cfi_section_next(struct cfi_section *s, size_t *pos, struct cfi_fde *ret, struct error *err)
{
        const struct cfi_cie *cie = NULL;
        struct record rec;
        size_t next = *pos;
        enum status st;

        if (next >= s->size)
                return ST_NOT_FOUND;
        st = read_cfi_record(s, &next, &rec, err);
        if (st && st != ST_NOT_FOUND)
                return st;
        if (st || rec.is_cie) {
                *pos = next;
                return ST_NOT_FOUND;
        }
        if (s->is_eh && rec.id > rec.id_offset) { /* the id is the distance back to the CIE */
                *pos = next;
                return ST_UNSUPPORTED;
        }
        st = get_cie(s, s->is_eh ? rec.id_offset - rec.id : rec.id, &cie, err);
        if (st)
                return st;
        *pos = next;
        return cie->state == ST_OK && parse_fde(s, &rec, cie, ret) ? ST_OK : ST_UNSUPPORTED;
}

#define HDR_TABLE_ENCODING (CFI_PE_DATAREL | 0x0b) /* sdata4, the only encoding that linkers write */

static int compare_code_starts(const void *a, const void *b)
{
        const struct cfi_code *x = a, *y = b;

        return x->start < y->start ? -1 : x->start > y->start;
}

static enum status collect_code_segments(const struct elf_image *img, struct cfi_source *s, struct error *err)
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
        qsort(s->code, s->code_count, sizeof *s->code, compare_code_starts);
        return ST_OK;
}

static bool is_in_code_segment(const struct cfi_source *s, uint64_t start, uint64_t end)
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
        if (!is_in_code_segment(s, fde->start, fde->end)) {
                s->fdes_outside++;
                return ST_OK;
        }
        if (s->fde_count == LIMIT_UNWIND_FDES)
                return error_set(err, ST_TOO_BIG, "more than %u FDEs", (unsigned)LIMIT_UNWIND_FDES);
        if (!array_reserve(&s->fdes, &s->fde_capacity, s->fde_count))
                return error_no_memory(err);
        s->fdes[s->fde_count++] = *fde;
        return ST_OK;
}

static enum status count_or_add_fde(struct cfi_source *s, enum status st, const struct cfi_fde *fde, struct error *err)
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

/* Skip empty records in the middle, which linkers copy from input files. */
static enum status read_section_fdes(struct cfi_source *s, struct cfi_section *section, struct error *err)
{
        size_t pos = 0;

        while (pos < section->size) {
                struct cfi_fde fde;
                enum status st = count_or_add_fde(s, cfi_section_next(section, &pos, &fde, err), &fde, err);

                if (st)
                        return st;
        }
        return ST_OK;
}

/* The bytes of the file from an address to the end of its segment. */
static bool get_segment_rest(const struct elf_image *img, uint64_t address, const uint8_t **ret, size_t *size_ret)
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

/* Without section headers, the sorted table of .eh_frame_hdr locates all FDEs. */
static enum status read_eh_frame_hdr(struct cfi_source *s, const struct elf_image *img, const struct elf_segment *hdr,
                                     struct error *err)
{
        const uint8_t *bytes, *frames;
        uint8_t version, frame_encoding, count_encoding, table_encoding;
        uint64_t frame, count;
        size_t frames_size;
        struct reader r;

        if (!elf_image_bytes_at(img, hdr->address, hdr->file_size, &bytes))
                return error_at(err, ST_BAD_DATA, hdr->offset, "segment PT_GNU_EH_FRAME is not in the file");
        reader_init(&r, bytes, hdr->file_size);
        r.base = hdr->offset;
        if (!reader_u8(&r, &version) || !reader_u8(&r, &frame_encoding) || !reader_u8(&r, &count_encoding) ||
            !reader_u8(&r, &table_encoding) || version != 1 ||
            !cfi_pointer_read(&r, frame_encoding, hdr->address, hdr->address, &frame))
                return reader_error(&r, err, ".eh_frame_hdr");
        if (!get_segment_rest(img, frame, &frames, &frames_size))
                return error_at(err, ST_BAD_DATA, hdr->offset,
                                ".eh_frame_hdr points to 0x%" PRIx64 " for .eh_frame, which is not in the file", frame);
        cfi_section_init(&s->eh, s->arch, frames, frames_size, frame, true);
        if (table_encoding != HDR_TABLE_ENCODING ||
            !cfi_pointer_read(&r, count_encoding, hdr->address, hdr->address, &count))
                return error_at(err, ST_UNSUPPORTED, hdr->offset, ".eh_frame_hdr has no table of the usual encoding");
        for (uint64_t i = 0; i < count; i++) {
                uint64_t start, address;
                struct cfi_fde fde;
                enum status st;
                size_t pos;

                if (!cfi_pointer_read(&r, table_encoding, hdr->address, hdr->address, &start) ||
                    !cfi_pointer_read(&r, table_encoding, hdr->address, hdr->address, &address))
                        return reader_error(&r, err, ".eh_frame_hdr");
                pos = address - frame;
                st = address < frame || pos >= frames_size ? ST_UNSUPPORTED
                                                           : cfi_section_next(&s->eh, &pos, &fde, NULL);
                st = count_or_add_fde(s, st == ST_BAD_DATA ? ST_UNSUPPORTED : st, &fde, err);
                if (st)
                        return st;
        }
        return ST_OK;
}

static const struct elf_segment *find_eh_frame_hdr(const struct elf_image *img)
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
        const struct elf_segment *hdr = find_eh_frame_hdr(img);
        const uint8_t *bytes;
        enum status st;
        size_t size;

        if (section && elf_section_has_content(section)) {
                st = elf_section_raw(img, section, &bytes, &size, err);
                if (st)
                        return st;
                cfi_section_init(&s->eh, s->arch, bytes, size, section->address, true);
                return read_section_fdes(s, &s->eh, err);
        }
        /* The section headers of a debug file have no content, and its segments are in the executable. */
        return hdr && !section ? read_eh_frame_hdr(s, img, hdr, err) : ST_OK;
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
        return read_section_fdes(s, &s->debug, err);
}

static int compare_fdes(const void *a, const void *b)
{
        const struct cfi_fde *x = a, *y = b;

        if (x->start != y->start)
                return x->start < y->start ? -1 : 1;
        return 0;
}

/* Linkers sort FDEs by address, so this is usually a single pass. */
static void sort_fdes(struct cfi_fde *fdes, size_t count)
{
        size_t i = 1;

        while (i < count && fdes[i - 1].start <= fdes[i].start)
                i++;
        if (i < count)
                qsort(fdes, count, sizeof *fdes, compare_fdes);
}

/*
 * Drop the FDEs of .debug_frame that .eh_frame covers, then make all FDEs disjoint: a function ends where the next
 * one starts.
 */
static void merge_debug_frame(struct cfi_source *s, size_t eh_count)
{
        size_t kept = eh_count, out = 0;

        sort_fdes(s->fdes, eh_count);
        for (size_t i = eh_count; i < s->fde_count; i++) {
                struct cfi_fde fde = s->fdes[i];
                size_t next = find_lower_bound(j, 0, eh_count, s->fdes[j].start <= fde.start);

                if (next > 0 && s->fdes[next - 1].end > fde.start)
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
        struct cfi_source s = { .arch = cfi_arch_find(img->machine) };
        enum status st;
        size_t eh_count;

        if (!s.arch || !img->is_64 || img->big_endian)
                return error_set(err, ST_UNSUPPORTED,
                                 "cannot read unwind information of '%s': not a 64-bit "
                                 "little-endian x86-64 or aarch64 file",
                                 img->name);
        if (img->type != ET_EXEC && img->type != ET_DYN)
                return error_set(err, ST_UNSUPPORTED,
                                 "cannot read unwind information of '%s': not a linked program or "
                                 "library",
                                 img->name);
        st = collect_code_segments(img, &s, err);
        if (!st)
                st = read_eh_frame(&s, img, err);
        eh_count = s.fde_count;
        if (!st)
                st = read_debug_frame(&s, img, err);
        if (st) {
                cfi_source_deinit(&s);
                return error_prefix(err, st, "cannot read unwind information of '%s'", img->name);
        }
        merge_debug_frame(&s, eh_count);
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

size_t cfi_source_find_fde(const struct cfi_source *s, uint64_t address)
{
        size_t at = find_lower_bound(i, 0, s->fde_count, s->fdes[i].end <= address);

        return at;
}
