/* SPDX-License-Identifier: Apache-2.0 */
#include "unwind-tables/cfi_section.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "unwind-tables/cfi_pointer.h"
#include "unwind-tables/cfi_program.h"

void cfi_section_init(struct cfi_section *s, const struct cfi_arch *arch, const void *data, size_t size,
                      uint64_t address, bool is_eh)
{
        *s = (struct cfi_section){ .arch = arch, .data = data, .size = size, .address = address, .is_eh = is_eh };
}

void cfi_section_deinit(struct cfi_section *s)
{
        for (size_t i = 0; i < s->cie_count; i++)
                free(s->cies[i]);
        free(s->cies);
        free(s->slots);
        free(s->slot_offsets);
        *s = (struct cfi_section){ 0 };
}

/* A record without its length: its id, whether that is 8 bytes wide, and where the id is. */
struct record {
        struct reader r; /* behind the id */
        uint64_t id;
        size_t id_offset;
        bool is_wide, is_cie;
};

/* ST_NOT_FOUND for an empty record. */
static enum status read_record(const struct cfi_section *s, size_t *pos, struct record *ret, struct error *err)
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

static bool read_augmentation(struct reader *r, const char *text, struct cfi_cie *cie)
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
                case 'L': /* the encoding of handlers' data, which we do not read */
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

static bool read_cie(const struct cfi_section *s, struct record *rec, struct cfi_cie *cie)
{
        struct reader *r = &rec->r;
        uint8_t version, address_size, segment_size, ra;
        const char *augmentation;

        if (!reader_u8(r, &version) || (version != 1 && version != 3 && version != 4) || !reader_cstr(r, &augmentation))
                return false;
        if (version == 4 && (!reader_u8(r, &address_size) || !reader_u8(r, &segment_size) || address_size != 8 ||
                             segment_size != 0))
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
        return read_augmentation(r, augmentation, cie) && cfi_program_initial(r, s->arch, cie) == ST_OK;
}

static size_t slot_of(const struct cfi_section *s, uint64_t offset)
{
        size_t i = (offset * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (s->slot_count - 1);

        while (s->slots[i] && s->slot_offsets[i] != offset)
                i = (i + 1) & (s->slot_count - 1);
        return i;
}

static enum status grow(struct cfi_section *s)
{
        struct cfi_section old = *s;
        size_t capacity = s->cie_capacity ? s->cie_capacity * 2 : 64;
        struct cfi_cie **cies = realloc(s->cies, capacity * sizeof *cies);
        uint64_t *offsets;
        uint32_t *slots;

        if (!cies)
                return ST_NO_MEMORY;
        s->cies = cies;
        offsets = calloc(capacity * 2, sizeof *offsets);
        slots = calloc(capacity * 2, sizeof *slots);
        if (!offsets || !slots) {
                free(offsets);
                free(slots);
                return ST_NO_MEMORY;
        }
        s->slot_offsets = offsets;
        s->slots = slots;
        s->slot_count = capacity * 2;
        s->cie_capacity = capacity;
        for (size_t i = 0; i < old.slot_count; i++) {
                if (old.slots[i]) {
                        size_t slot = slot_of(s, old.slot_offsets[i]);

                        slots[slot] = old.slots[i];
                        offsets[slot] = old.slot_offsets[i];
                }
        }
        free(old.slot_offsets);
        free(old.slots);
        return ST_OK;
}

/* The CIE at an offset; its state says whether it could be read. */
static enum status cie_at(struct cfi_section *s, uint64_t offset, const struct cfi_cie **ret, struct error *err)
{
        struct record rec;
        struct cfi_cie *cie;
        size_t pos = offset, slot;

        if (s->cie_count == s->cie_capacity) {
                if (s->cie_count >= LIMIT_UNWIND_CIES)
                        return error_set(err, ST_TOO_BIG, "more than %u CIEs", (unsigned)LIMIT_UNWIND_CIES);
                if (grow(s))
                        return error_no_memory(err);
        }
        slot = slot_of(s, offset);
        if (s->slots[slot]) {
                *ret = s->cies[s->slots[slot] - 1];
                return ST_OK;
        }
        cie = calloc(1, sizeof *cie);
        if (!cie)
                return error_no_memory(err);
        if (read_record(s, &pos, &rec, NULL) || !rec.is_cie || !read_cie(s, &rec, cie))
                cie->state = ST_BAD_DATA;
        s->cies[s->cie_count++] = cie;
        s->slots[slot] = (uint32_t)s->cie_count;
        s->slot_offsets[slot] = offset;
        *ret = cie;
        return ST_OK;
}

static bool read_fde(const struct cfi_section *s, struct record *rec, const struct cfi_cie *cie, struct cfi_fde *ret)
{
        struct reader *r = &rec->r;
        uint64_t here = s->address + (uint64_t)(r->data - s->data), size;
        struct cfi_fde fde = { .cie = cie };

        if (!cfi_pointer(r, cie->pointer_encoding, here, 0, &fde.start) ||
            !cfi_pointer(r, cie->pointer_encoding & 0x0f, here, 0, &size) ||
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

enum status cfi_section_next(struct cfi_section *s, size_t *pos, struct cfi_fde *ret, struct error *err)
{
        const struct cfi_cie *cie = NULL;
        struct record rec;
        size_t next = *pos;
        enum status st;

        if (next >= s->size)
                return ST_NOT_FOUND;
        st = read_record(s, &next, &rec, err);
        if (st && st != ST_NOT_FOUND)
                return st;
        if (st || rec.is_cie) {
                *pos = next;
                return ST_NOT_FOUND;
        }
        if (s->is_eh && rec.id > rec.id_offset) { /* the distance back from the id to its CIE */
                *pos = next;
                return ST_UNSUPPORTED;
        }
        st = cie_at(s, s->is_eh ? rec.id_offset - rec.id : rec.id, &cie, err);
        if (st)
                return st;
        *pos = next;
        return cie->state == ST_OK && read_fde(s, &rec, cie, ret) ? ST_OK : ST_UNSUPPORTED;
}
