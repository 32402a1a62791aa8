/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables are read once: each row whose type and field have a number below is kept. fill_...() then copy the fields
 * into the layout; where versions have different fields for one thing, the first one found counts.
 */
#include "sampling/runtimes/hotspot_layout.h"

#include <string.h>

#include "common/limits.h"
#include "common/text.h"

#define STRUCT_STRIDE 48
#define TYPE_STRIDE 40
#define NAME_MAX_BYTES 40

/* A row of VMStructs. */
struct struct_row {
        uint64_t type, field, field_type; /* addresses of texts */
        uint32_t is_static;
        uint32_t reserved;
        uint64_t offset;  /* of a field of an object */
        uint64_t address; /* of a static one */
};
_Static_assert(sizeof(struct struct_row) == STRUCT_STRIDE, "no padding");

/* A row of VMTypes. */
struct type_row {
        uint64_t name, super;
        uint32_t flags[4];
        uint64_t size;
};
_Static_assert(sizeof(struct type_row) == TYPE_STRIDE, "no padding");

#define FIELDS(X)                                                                                                      \
        X(ONE_HEAP, "CodeCache", "_heap")                                                                              \
        X(HEAPS, "CodeCache", "_heaps")                                                                                \
        X(ARRAY_LENGTH, "GrowableArrayBase", "_len")                                                                   \
        X(OLD_ARRAY_LENGTH, "GenericGrowableArray", "_len")                                                            \
        X(ARRAY_DATA, "GrowableArray<int>", "_data")                                                                   \
        X(HEAP_MEMORY, "CodeHeap", "_memory")                                                                          \
        X(HEAP_SEGMENTS, "CodeHeap", "_segmap")                                                                        \
        X(HEAP_SEGMENT_BITS, "CodeHeap", "_log2_segment_size")                                                         \
        X(SPACE_LOW, "VirtualSpace", "_low")                                                                           \
        X(SPACE_HIGH_BOUNDARY, "VirtualSpace", "_high_boundary")                                                       \
        X(INTERPRETER, "AbstractInterpreter", "_code")                                                                 \
        X(QUEUE_BUFFER, "StubQueue", "_stub_buffer")                                                                   \
        X(QUEUE_BYTES, "StubQueue", "_buffer_limit")                                                                   \
        X(CALL_STUB, "StubRoutines", "_call_stub_return_address")                                                      \
        X(MAJOR_VERSION, "Abstract_VM_Version", "_vm_major_version")                                                   \
        X(BLOB_NAME, "CodeBlob", "_name")                                                                              \
        X(BLOB_FRAME_SIZE, "CodeBlob", "_frame_size")                                                                  \
        X(BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset")                                                   \
        X(BLOB_CODE_BEGIN, "CodeBlob", "_code_begin")                                                                  \
        X(BLOB_CODE_OFFSET, "CodeBlob", "_code_offset")                                                                \
        X(BLOB_DATA_OFFSET, "CodeBlob", "_data_offset")                                                                \
        X(BLOB_MUTABLE, "CodeBlob", "_mutable_data")                                                                   \
        X(BLOB_RELOCATION, "CodeBlob", "_relocation_size")                                                             \
        X(METHOD, "nmethod", "_method")                                                                                \
        X(OLD_METHOD, "CompiledMethod", "_method")                                                                     \
        X(COMPILATION, "nmethod", "_compile_id")                                                                       \
        X(ORIGINAL_PC, "nmethod", "_orig_pc_offset")                                                                   \
        X(DEOPT_BEGIN, "CompiledMethod", "_deopt_handler_begin")                                                       \
        X(DEOPT_BEGIN_8, "nmethod", "_deoptimize_offset")                                                              \
        X(DEOPT_OFFSET, "nmethod", "_deopt_handler_offset")                                                            \
        X(DEOPT_ENTRY, "nmethod", "_deopt_handler_entry_offset")                                                       \
        X(IMMUTABLE, "nmethod", "_immutable_data")                                                                     \
        X(IMMUTABLE_BYTES, "nmethod", "_immutable_data_size")                                                          \
        X(SCOPES_BEGIN, "CompiledMethod", "_scopes_data_begin")                                                        \
        X(SCOPES_OFFSET, "nmethod", "_scopes_data_offset")                                                             \
        X(PCS, "nmethod", "_scopes_pcs_offset")                                                                        \
        X(DEPENDENCIES, "nmethod", "_dependencies_offset")                                                             \
        X(METADATA, "nmethod", "_metadata_offset")                                                                     \
        X(METHOD_CONST, "Method", "_constMethod")                                                                      \
        X(METHOD_ENTRY, "Method", "_i2i_entry")                                                                        \
        X(CONST_CONSTANTS, "ConstMethod", "_constants")                                                                \
        X(CONST_FLAGS, "ConstMethod", "_flags")                                                                        \
        X(NEW_CONST_FLAGS, "ConstMethod", "_flags._flags")                                                             \
        X(CONST_CODE_BYTES, "ConstMethod", "_code_size")                                                               \
        X(CONST_NAME, "ConstMethod", "_name_index")                                                                    \
        X(CONST_WORDS, "ConstMethod", "_constMethod_size")                                                             \
        X(CONSTANTS_HOLDER, "ConstantPool", "_pool_holder")                                                            \
        X(CONSTANTS_FILE, "ConstantPool", "_source_file_name_index")                                                   \
        X(CLASS_CONSTANTS, "InstanceKlass", "_constants")                                                              \
        X(CLASS_FILE, "InstanceKlass", "_source_file_name_index")                                                      \
        X(CLASS_NAME, "Klass", "_name")                                                                                \
        X(SYMBOL_LENGTH, "Symbol", "_length")                                                                          \
        X(SYMBOL_TEXT, "Symbol", "_body")                                                                              \
        X(NEW_SYMBOL_TEXT, "Symbol", "_body[0]")

enum {
#define NUMBER(number, type, field) number,
        FIELDS(NUMBER)
#undef NUMBER
                FIELD_COUNT
};

static const struct {
        const char *type, *field;
} field_names[FIELD_COUNT] = {
#define NAME(number, type, field) [number] = { type, field },
        FIELDS(NAME)
#undef NAME
};

enum { SIZE_HEAP_BLOCK, SIZE_NMETHOD, SIZE_PC_DESC, SIZE_CONST_METHOD, SIZE_CONSTANT_POOL, SIZE_COUNT };

static const char *const size_names[SIZE_COUNT] = { [SIZE_HEAP_BLOCK] = "HeapBlock",
                                                    [SIZE_NMETHOD] = "nmethod",
                                                    [SIZE_PC_DESC] = "PcDesc",
                                                    [SIZE_CONST_METHOD] = "ConstMethod",
                                                    [SIZE_CONSTANT_POOL] = "ConstantPool" };

struct tables {
        const struct process_memory *memory;
        struct hotspot_slot fields[FIELD_COUNT];
        uint64_t addresses[FIELD_COUNT]; /* of static ones */
        uint64_t sizes[SIZE_COUNT];
};

/* ---- tables ---- */

/* Read a text of at most NAME_MAX_BYTES - 1 bytes; a longer one is cut off. */
static bool read_table_text(const struct process_memory *m, uint64_t address, char *ret)
{
        size_t n = NAME_MAX_BYTES - 1;

        memset(ret, 0, NAME_MAX_BYTES);
        while (n > 7 && !m->read(m->ctx, address, ret, n)) /* the last bytes of a mapping */
                n /= 2;
        ret[n] = 0;
        return address && n > 7;
}

/* Bytes of a field of this C++ type: pointers, size_t and the like have 8. */
static uint16_t get_hotspot_type_size(const char *type)
{
        static const struct {
                const char *name;
                uint16_t size;
        } types[] = { { "int", 4 },           { "jint", 4 },     { "u4", 4 },
                      { "uint", 4 },          { "uint32_t", 4 }, { "u2", 2 },
                      { "int16_t", 2 },       { "u1", 1 },       { "uint8_t", 1 },
                      { "unsigned int", 4 },  { "short", 2 },    { "uint16_t", 2 },
                      { "bool", 1 },          { "int32_t", 4 },  { "unsigned short", 2 },
                      { "unsigned char", 1 }, { "ushort", 2 },   { "jushort", 2 } };

        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
                if (strcmp(types[i].name, type) == 0)
                        return types[i].size;
        return 8;
}

static void keep_struct_row(struct tables *t, const struct struct_row *row, const char *type)
{
        char field[NAME_MAX_BYTES] = "", field_type[NAME_MAX_BYTES];

        for (size_t i = 0; i < FIELD_COUNT; i++) {
                if (strcmp(type, field_names[i].type) != 0)
                        continue;
                if (!*field && !read_table_text(t->memory, row->field, field))
                        return;
                if (strcmp(field, field_names[i].field) != 0)
                        continue;
                if (!row->field_type || !read_table_text(t->memory, row->field_type, field_type))
                        *field_type = 0;
                t->addresses[i] = row->is_static ? row->address : 0;
                t->fields[i] =
                        (struct hotspot_slot){ row->is_static || row->offset > UINT16_MAX - 8 ? UINT16_MAX - 8
                                                                                              : (uint16_t)row->offset,
                                               get_hotspot_type_size(field_type) };
                return;
        }
}

/* False when the table cannot be read. */
static bool read_struct_table(struct tables *t, uint64_t at)
{
        char type[NAME_MAX_BYTES] = "";
        uint64_t type_address = 0;
        struct struct_row row;

        for (size_t i = 0; i < LIMIT_HOTSPOT_ROWS; i++, at += STRUCT_STRIDE) {
                if (!t->memory->read(t->memory->ctx, at, &row, sizeof row))
                        return false;
                if (!row.type)
                        return true;
                if (row.type != type_address && !read_table_text(t->memory, row.type, type))
                        return false;
                type_address = row.type;
                keep_struct_row(t, &row, type);
        }
        return false;
}

static bool read_type_table(struct tables *t, uint64_t at)
{
        char name[NAME_MAX_BYTES];
        struct type_row row;

        for (size_t i = 0; i < LIMIT_HOTSPOT_ROWS; i++, at += TYPE_STRIDE) {
                if (!t->memory->read(t->memory->ctx, at, &row, sizeof row))
                        return false;
                if (!row.name)
                        return true;
                if (!read_table_text(t->memory, row.name, name))
                        return false;
                for (size_t k = 0; k < SIZE_COUNT; k++)
                        if (strcmp(name, size_names[k]) == 0)
                                t->sizes[k] = row.size;
        }
        return false;
}

static bool read_table_word(const struct tables *t, uint64_t address, uint64_t *ret)
{
        return address && t->memory->read(t->memory->ctx, address, ret, sizeof *ret);
}

/* The value of a field of the object, or of a static one if that is 0. */
static bool read_table_field(const struct tables *t, int number, uint64_t object, uint64_t *ret)
{
        uint64_t address = object ? object + t->fields[number].offset : t->addresses[number], value = 0;

        if (!t->fields[number].size || !address ||
            !t->memory->read(t->memory->ctx, address, &value, t->fields[number].size))
                return false;
        *ret = value;
        return true;
}

/* ---- code cache ---- */

static bool read_heap(const struct tables *t, uint64_t heap, struct hotspot_heap *ret)
{
        uint64_t memory = heap + t->fields[HEAP_MEMORY].offset, segments = heap + t->fields[HEAP_SEGMENTS].offset;
        uint64_t start, end, map, bits;

        if (!read_table_field(t, SPACE_LOW, memory, &start) ||
            !read_table_field(t, SPACE_HIGH_BOUNDARY, memory, &end) ||
            !read_table_field(t, SPACE_LOW, segments, &map) || !read_table_field(t, HEAP_SEGMENT_BITS, heap, &bits))
                return false;
        if (!start || !map || end <= start || end - start > UINT32_MAX || end > SAMPLE_FRAME_ADDRESS_MAX || bits > 20)
                return false;
        *ret = (struct hotspot_heap){ start, map, (uint32_t)(end - start), (uint32_t)bits };
        return true;
}

/* Find the heaps. False when they do not exist yet, or are malformed. */
static bool find_heaps(const struct tables *t, struct hotspot_process *p)
{
        int length_field = t->fields[ARRAY_LENGTH].size ? ARRAY_LENGTH : OLD_ARRAY_LENGTH;
        uint64_t heaps[HOTSPOT_HEAPS_MAX], array, length, data, end = 0;

        if (t->fields[HEAPS].size) {
                if (!read_table_field(t, HEAPS, 0, &array) || !array ||
                    !read_table_field(t, length_field, array, &length) || !length || length > HOTSPOT_HEAPS_MAX ||
                    !read_table_field(t, ARRAY_DATA, array, &data) ||
                    !t->memory->read(t->memory->ctx, data, heaps, length * sizeof *heaps))
                        return false;
        } else {
                length = 1;
                if (!read_table_field(t, ONE_HEAP, 0, &heaps[0]) || !heaps[0])
                        return false;
        }
        p->code = UINT64_MAX;
        for (size_t i = 0; i < length; i++) {
                struct hotspot_heap *h = &p->heaps[i];

                if (!read_heap(t, heaps[i], h))
                        return false;
                p->code = h->start < p->code ? h->start : p->code;
                end = h->start + h->bytes > end ? h->start + h->bytes : end;
        }
        if (end - p->code > UINT32_MAX)
                return false;
        p->code_bytes = (uint32_t)(end - p->code);
        return true;
}

static bool find_interpreter(const struct tables *t, struct hotspot_process *p)
{
        uint64_t queue, start, bytes;

        if (!read_table_field(t, INTERPRETER, 0, &queue) || !queue ||
            !read_table_field(t, QUEUE_BUFFER, queue, &start) || !read_table_field(t, QUEUE_BYTES, queue, &bytes) ||
            start - p->code >= p->code_bytes || !bytes || bytes > p->code_bytes)
                return false;
        p->interpreter = start;
        p->interpreter_bytes = (uint32_t)bytes;
        return true;
}

/* ---- fields ---- */

/* The first of two fields that this version has. */
static struct hotspot_slot choose_field(const struct tables *t, int first, int second)
{
        return t->fields[first].size ? t->fields[first] : t->fields[second];
}

static void fill_process(const struct tables *t, struct hotspot_process *p)
{
        struct hotspot_slot code = choose_field(t, BLOB_CODE_BEGIN, BLOB_CODE_OFFSET),
                            deopt = choose_field(t, DEOPT_BEGIN, DEOPT_BEGIN_8);

        if (!deopt.size)
                deopt = choose_field(t, DEOPT_OFFSET, DEOPT_ENTRY);
        p->block_header = (uint16_t)t->sizes[SIZE_HEAP_BLOCK];
        p->blob_frame_size = t->fields[BLOB_FRAME_SIZE].offset;
        p->blob_frame_complete = t->fields[BLOB_FRAME_COMPLETE].offset;
        p->frame_complete_is_short = t->fields[BLOB_FRAME_COMPLETE].size == 2;
        p->blob_code = code.offset;
        p->code_is_pointer = code.size == 8;
        p->blob_deopt = deopt.offset;
        p->deopt_is_pointer = deopt.size == 8;
        p->blob_original_pc = t->fields[ORIGINAL_PC].offset;
        p->blob_compilation = t->fields[COMPILATION].offset;
        p->method_entry = t->fields[METHOD_ENTRY].offset;
        p->method_const = t->fields[METHOD_CONST].offset;
        p->const_bytes = (uint8_t)t->sizes[SIZE_CONST_METHOD];
        p->const_code_bytes = (uint8_t)t->fields[CONST_CODE_BYTES].offset;
        p->frame_bytecode = t->fields[HEAPS].size ? 8 : 7;
}

static void fill_hotspot_objects(const struct tables *t, struct hotspot_objects *o)
{
        const struct hotspot_slot *f = t->fields;

        *o = (struct hotspot_objects){
                .version = o->version,
                .call_stub = o->call_stub,
                .blob_bytes = (uint16_t)t->sizes[SIZE_NMETHOD],
                .pc_desc_bytes = (uint16_t)t->sizes[SIZE_PC_DESC],
                .blob_name = f[BLOB_NAME],
                .blob_code = choose_field(t, BLOB_CODE_BEGIN, BLOB_CODE_OFFSET),
                .blob_frame_complete = f[BLOB_FRAME_COMPLETE],
                .blob_data = f[BLOB_DATA_OFFSET],
                .blob_mutable = f[BLOB_MUTABLE],
                .blob_relocation = f[BLOB_RELOCATION],
                .method = choose_field(t, METHOD, OLD_METHOD),
                .compilation = f[COMPILATION],
                .immutable = f[IMMUTABLE],
                .immutable_bytes = f[IMMUTABLE_BYTES],
                .scopes_address = f[SCOPES_BEGIN],
                .scopes = f[SCOPES_OFFSET],
                .pcs = f[PCS],
                .pcs_end = f[IMMUTABLE].size ? (struct hotspot_slot){ 0 } : f[DEPENDENCIES],
                .metadata = f[METADATA],
                .method_entry = f[METHOD_ENTRY],
                .method_const = f[METHOD_CONST],
                .const_constants = f[CONST_CONSTANTS],
                .const_flags = choose_field(t, CONST_FLAGS, NEW_CONST_FLAGS),
                .const_code_bytes = f[CONST_CODE_BYTES],
                .const_name = f[CONST_NAME],
                .const_words = f[CONST_WORDS],
                .const_bytes = (uint16_t)t->sizes[SIZE_CONST_METHOD],
                .constants_holder = f[CONSTANTS_HOLDER],
                .constants_file = f[CONSTANTS_FILE],
                .constants_bytes = (uint16_t)t->sizes[SIZE_CONSTANT_POOL],
                .class_constants = f[CLASS_CONSTANTS],
                .class_name = f[CLASS_NAME],
                .class_file = f[CLASS_FILE],
                .symbol_length = f[SYMBOL_LENGTH],
                .symbol_text = choose_field(t, NEW_SYMBOL_TEXT, SYMBOL_TEXT).offset,
                .number_base = o->version >= 20,
        };
}

/* Whether the tables have all fields that are needed, with the sizes that the BPF program reads. */
static bool has_all_fields(const struct tables *t, const struct hotspot_layout *l)
{
        const struct hotspot_objects *o = &l->objects;
        const struct hotspot_process *p = &l->process;
        const struct hotspot_slot needed[] = {
                o->blob_name,        o->blob_code,           o->blob_frame_complete,
                o->method,           o->compilation,         o->pcs,
                o->method_const,     o->const_constants,     o->const_name,
                o->const_code_bytes, o->constants_holder,    o->class_name,
                o->class_constants,  o->const_flags,         o->symbol_length,
                o->const_words,      t->fields[ORIGINAL_PC], t->fields[METHOD_ENTRY],
        };

        for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
                if (!needed[i].size)
                        return false;
        return t->fields[BLOB_FRAME_SIZE].size == 4 && t->fields[ORIGINAL_PC].size == 4 && o->compilation.size == 4 &&
               (o->scopes_address.size || o->scopes.size) && (o->metadata.size || o->blob_mutable.size) &&
               (o->immutable.size || o->pcs_end.size) && o->pc_desc_bytes == 16 &&
               o->blob_bytes <= LIMIT_HOTSPOT_BLOB && o->blob_bytes >= 64 &&
               o->const_bytes <= LIMIT_HOTSPOT_CONST_METHOD && o->const_bytes >= 32 && o->const_code_bytes.size == 2 &&
               o->const_code_bytes.offset <= o->const_bytes - 2 && t->sizes[SIZE_HEAP_BLOCK] <= 64 &&
               p->blob_frame_size <= HOTSPOT_BLOB_BYTES - 8 && p->blob_frame_complete <= HOTSPOT_BLOB_BYTES - 8 &&
               p->blob_code <= HOTSPOT_BLOB_BYTES - 8 && p->blob_deopt <= HOTSPOT_BLOB_BYTES - 8 &&
               t->sizes[SIZE_CONSTANT_POOL] <= 256;
}

/* The version of Java; 0: unknown. JDK 8 states that of HotSpot instead, and has one heap. */
static uint32_t find_java_version(const struct tables *t)
{
        uint64_t version;

        if (t->fields[ONE_HEAP].size)
                return 8;
        return read_table_field(t, MAJOR_VERSION, 0, &version) && version < 1000 ? (uint32_t)version : 0;
}

static enum hotspot_attach refuse_hotspot(struct runtime_refusal *ret, enum runtime_refusal_reason reason,
                                          const char *text)
{
        *ret = (struct runtime_refusal){ reason, text };
        return HOTSPOT_REFUSED;
}

enum hotspot_attach hotspot_layout_find(const struct process_memory *m, const struct hotspot_symbols *s,
                                        struct hotspot_layout *ret, struct runtime_refusal *refusal_ret)
{
        struct tables t = { .memory = m };
        struct hotspot_layout found;
        uint64_t structs, types, struct_stride, type_stride;

        memset(&found, 0, sizeof found);
        if (!read_table_word(&t, s->structs, &structs) || !read_table_word(&t, s->types, &types) ||
            !read_table_word(&t, s->struct_stride, &struct_stride) ||
            !read_table_word(&t, s->type_stride, &type_stride))
                return refuse_hotspot(refusal_ret, REFUSAL_MEMORY, "its memory cannot be read");
        if (!structs || !types)
                return HOTSPOT_STARTING;
        if (struct_stride != STRUCT_STRIDE || type_stride != TYPE_STRIDE)
                return refuse_hotspot(refusal_ret, REFUSAL_BUILD, "its tables for debuggers have another form");
        if (!read_struct_table(&t, structs) || !read_type_table(&t, types))
                return refuse_hotspot(refusal_ret, REFUSAL_MEMORY, "its tables for debuggers cannot be read");
        if (!t.sizes[SIZE_NMETHOD] || !t.addresses[INTERPRETER]) /* filled in by an initializer */
                return HOTSPOT_STARTING;
        found.objects.version = find_java_version(&t);
        if (found.objects.version < 8)
                return refuse_hotspot(refusal_ret, REFUSAL_VERSION, "its version is unknown");
        fill_process(&t, &found.process);
        (void)read_table_field(&t, CALL_STUB, 0, &found.objects.call_stub);
        fill_hotspot_objects(&t, &found.objects);
        if (!has_all_fields(&t, &found))
                return refuse_hotspot(refusal_ret, REFUSAL_BUILD, "its tables for debuggers lack fields");
        if (!find_heaps(&t, &found.process) || !find_interpreter(&t, &found.process))
                return HOTSPOT_STARTING;
        found.objects.code = found.process.code;
        found.objects.code_bytes = found.process.code_bytes;
        *ret = found;
        return HOTSPOT_ATTACHED;
}

int64_t hotspot_get_field(const uint8_t *object, size_t size, struct hotspot_slot field)
{
        union {
                int64_t word;
                int32_t i;
                uint16_t s;
                uint8_t b;
        } value = { 0 };

        if (!field.size || field.offset > size || field.size > size - field.offset)
                return 0;
        memcpy(&value, object + field.offset, field.size);
        switch (field.size) {
        case 8:
                return value.word;
        case 4:
                return value.i;
        case 2:
                return value.s;
        default:
                return value.b;
        }
}
