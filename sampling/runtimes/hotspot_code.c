/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/hotspot_code.h"

#include <string.h>

#include "common/text/utf8.h"
#include "sampling/runtimes/hotspot_streams.h"

#define SCOPE_BYTES 16     /* of three numbers */
#define FIRST_PC_OFFSET -1 /* of a PcDesc before all addresses */

struct pc_desc {
        int32_t offset; /* of the address in the code */
        int32_t scope;  /* 0: none */
        int32_t objects, flags;
};
_Static_assert(sizeof(struct pc_desc) == 16, "no padding");

/* The tables of a compiled method. */
struct nmethod {
        uint64_t code, method, pcs, scopes, metadata;
        uint64_t pc_count;
        int32_t frame_complete; /* offset at which the frame is set up */
};

/* A copy of the blob. */
struct blob {
        uint64_t address;
        uint8_t bytes[LIMIT_HOTSPOT_BLOB];
        uint16_t size;
};

static uint64_t get_blob_field(const struct blob *b, struct hotspot_slot field)
{
        return (uint64_t)hotspot_get_field(b->bytes, b->size, field);
}

/* The address that a field states, itself or by its distance from the base. */
static uint64_t get_blob_address(const struct blob *b, struct hotspot_slot field, uint64_t base)
{
        uint64_t value = get_blob_field(b, field);

        return field.size == 8 ? value : base + value;
}

/* Find the tables of compiled code; native methods may have none. False: it is of no method. */
static bool find_nmethod_tables(const struct hotspot_objects *o, const struct blob *b, struct nmethod *ret)
{
        uint64_t tables = o->immutable.size ? get_blob_field(b, o->immutable) : b->address, end;
        struct nmethod n = { .code = get_blob_address(b, o->blob_code, b->address),
                             .method = get_blob_field(b, o->method),
                             .frame_complete = (int32_t)get_blob_field(b, o->blob_frame_complete) };

        n.scopes =
                o->scopes_address.size ? get_blob_field(b, o->scopes_address) : get_blob_address(b, o->scopes, tables);
        n.pcs = get_blob_address(b, o->pcs, tables);
        end = o->pcs_end.size ? get_blob_address(b, o->pcs_end, tables) : n.scopes;
        if (o->metadata.size == 2) /* from the data section */
                n.metadata = b->address + get_blob_field(b, o->blob_data) + get_blob_field(b, o->metadata);
        else if (o->metadata.size)
                n.metadata = get_blob_address(b, o->metadata, b->address);
        else
                n.metadata = get_blob_field(b, o->blob_mutable) + get_blob_field(b, o->blob_relocation);
        if (end > n.pcs && end - n.pcs <= LIMIT_HOTSPOT_PC_DESCS * sizeof(struct pc_desc))
                n.pc_count = (end - n.pcs) / sizeof(struct pc_desc);
        *ret = n;
        return n.method;
}

/* Find the first entry whose address is not before the offset. False: there is none. */
static bool find_pc_desc(const struct process_memory *m, const struct nmethod *n, int64_t offset, struct pc_desc *ret)
{
        uint64_t low = 0, high = n->pc_count;
        struct pc_desc found = { .scope = -1 }, d;

        while (low < high) {
                uint64_t middle = low + (high - low) / 2;

                if (!m->read(m->ctx, n->pcs + middle * sizeof d, &d, sizeof d))
                        return false;
                if (d.offset < offset) {
                        low = middle + 1;
                } else {
                        high = middle;
                        found = d;
                }
        }
        *ret = found;
        return found.scope > 0;
}

/*
 * Whether the tables are there, which begin with a mark. Code that was freed, but not replaced yet, may have lost those
 * that are in memory of their own.
 */
static bool has_pc_descs(const struct process_memory *m, const struct nmethod *n)
{
        struct pc_desc first;

        return n->pc_count && m->read(m->ctx, n->pcs, &first, sizeof first) && first.offset == FIRST_PC_OFFSET;
}

static bool read_scope_at(const struct process_memory *m, const struct hotspot_objects *o, uint64_t address,
                          struct hotspot_scope *ret)
{
        uint8_t bytes[SCOPE_BYTES];

        return m->read(m->ctx, address, bytes, sizeof bytes) &&
               hotspot_read_scope(bytes, sizeof bytes, o->number_base, ret);
}

/* Add the scope at the offset and those into which it was inlined, up to that of the method itself. */
static bool read_scopes(const struct process_memory *m, const struct hotspot_objects *o, const struct nmethod *n,
                        uint32_t offset, struct hotspot_place *ret)
{
        struct hotspot_scope s;

        ret->count = 0;
        while (offset && ret->count < LIMIT_HOTSPOT_INLINED) {
                if (!read_scope_at(m, o, n->scopes + offset, &s) || !s.method ||
                    !m->read(m->ctx, n->metadata + (s.method - 1) * 8ull, &ret->methods[ret->count], 8))
                        return false;
                ret->bytecodes[ret->count++] = s.bytecode;
                offset = s.caller;
        }
        return ret->count && ret->methods[ret->count - 1] == n->method;
}

static void locate_in_nmethod(const struct process_memory *m, const struct hotspot_objects *o, const struct nmethod *n,
                              uint64_t pc, bool is_exact, struct hotspot_place *ret)
{
        int64_t offset = (int64_t)(pc - n->code);
        struct pc_desc d;

        if (!(is_exact && offset < n->frame_complete) && find_pc_desc(m, n, offset, &d) &&
            read_scopes(m, o, n, (uint32_t)d.scope, ret))
                return;
        ret->methods[0] = n->method;
        ret->bytecodes[0] = is_exact && offset < n->frame_complete ? 0 : -1;
        ret->count = 1;
}

static bool read_blob_name(const struct process_memory *m, uint64_t address, char *ret)
{
        size_t n = LIMIT_HOTSPOT_STUB_NAME - 1;

        memset(ret, 0, LIMIT_HOTSPOT_STUB_NAME);
        while (n > 7 && !m->read(m->ctx, address, ret, n)) /* the last bytes of a mapping */
                n /= 2;
        ret[n > 7 ? n : 0] = 0;
        utf8_mask_controls(ret);
        return *ret && utf8_valid(ret, strlen(ret));
}

enum hotspot_code_state hotspot_code_locate(const struct process_memory *m, const struct hotspot_objects *o,
                                            uint64_t blob, uint64_t position, struct hotspot_place *ret)
{
        uint64_t pc = blob + (position & (HOTSPOT_CODE_EXACT - 1));
        struct blob b = { .address = blob, .size = o->blob_bytes };
        struct nmethod n;

        ret->count = 0;
        if (!m->read(m->ctx, blob, b.bytes, b.size) || !read_blob_name(m, get_blob_field(&b, o->blob_name), ret->stub))
                return HOTSPOT_CODE_UNREADABLE;
        if ((get_blob_field(&b, o->compilation) & 0x7fffffff) != position >> 32) /* of a stub: bytes of its code */
                return HOTSPOT_CODE_FREED;
        if (strcmp(ret->stub, "nmethod") != 0 && strcmp(ret->stub, "native nmethod") != 0) {
                if (o->call_stub && pc == o->call_stub)
                        memcpy(ret->stub, "call_stub", sizeof "call_stub");
                return HOTSPOT_CODE_FOUND;
        }
        if (!find_nmethod_tables(o, &b, &n))
                return HOTSPOT_CODE_UNREADABLE;
        if (strcmp(ret->stub, "nmethod") == 0 && !has_pc_descs(m, &n))
                return HOTSPOT_CODE_FREED;
        locate_in_nmethod(m, o, &n, pc, position & HOTSPOT_CODE_EXACT, ret);
        return HOTSPOT_CODE_FOUND;
}
