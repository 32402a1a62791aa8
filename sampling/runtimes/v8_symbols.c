/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/v8_symbols.h"

#include <elf.h>
#include <string.h>

#include "common/text.h"

#define PREFIX "v8dbg_"
#define OFFSET_MAX 248 /* of the fields that are read */

/* Numbers of the constants that are read. */
enum {
        SMI_SHIFT,
        FP_FUNCTION,
        FP_CONTEXT,
        FP_BYTECODE,
        FP_OFFSET,
        MAP_TYPE,
        FUNCTION_SHARED,
        SHARED_TYPE,
        SHARED_NAME,
        SHARED_SCRIPT,
        SHARED_RAW_SCRIPT,
        SHARED_SCRIPT_ONLY,
        SHARED_DATA,
        STRING_TYPES,
        SCRIPT_TYPE,
        SCRIPT_SOURCE,
        SCRIPT_NAME,
        SCOPE_TYPE,
        SCOPE_LOCALS,
        SCOPE_FIRST,
        BYTECODE_TYPE,
        BYTECODE_DATA,
        CODE_TYPE,
        CODE_START,
        CODE_SIZE,
        CODE_FLAGS,
        KIND_BASELINE,
        STREAM_TYPE,
        STREAM_START,
        INTERPRETER_DATA_TYPE,
        DEBUG_INFO_TYPE,
        LITERALS,
        INLINING,
        FUNCTION,
        WRAPPED_FUNCTION,
        CONSTANTS,
};

/* A name that ends with two underscores is that of a field, whose type follows. */
static const char *const constant_names[CONSTANTS] = {
        [SMI_SHIFT] = "SmiShiftSize",
        [FP_FUNCTION] = "off_fp_function",
        [FP_CONTEXT] = "off_fp_context",
        [FP_BYTECODE] = "off_fp_bytecode_array",
        [FP_OFFSET] = "off_fp_bytecode_offset",
        [MAP_TYPE] = "class_Map__instance_type__",
        [FUNCTION_SHARED] = "class_JSFunction__shared__",
        [SHARED_TYPE] = "type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE",
        [SHARED_NAME] = "class_SharedFunctionInfo__name_or_scope_info__",
        [SHARED_SCRIPT] = "class_SharedFunctionInfo__script_or_debug_info__",
        [SHARED_RAW_SCRIPT] = "class_SharedFunctionInfo__raw_script__",
        [SHARED_SCRIPT_ONLY] = "class_SharedFunctionInfo__script__",
        [SHARED_DATA] = "class_SharedFunctionInfo__function_data__",
        [STRING_TYPES] = "FirstNonstringType",
        [SCRIPT_TYPE] = "type_Script__SCRIPT_TYPE",
        [SCRIPT_SOURCE] = "class_Script__source__",
        [SCRIPT_NAME] = "class_Script__name__",
        [SCOPE_TYPE] = "type_ScopeInfo__SCOPE_INFO_TYPE",
        [SCOPE_LOCALS] = "scopeinfo_idx_ncontextlocals",
        [SCOPE_FIRST] = "scopeinfo_idx_first_vars",
        [BYTECODE_TYPE] = "type_BytecodeArray__BYTECODE_ARRAY_TYPE",
        [BYTECODE_DATA] = "class_BytecodeArray__data__",
        [CODE_TYPE] = "type_Code__CODE_TYPE",
        [CODE_START] = "class_Code__instruction_start__",
        [CODE_SIZE] = "class_Code__instruction_size__",
        [CODE_FLAGS] = "class_Code__flags__",
        [KIND_BASELINE] = "CodeKindBaseline",
        [STREAM_TYPE] = "type_InstructionStream__INSTRUCTION_STREAM_TYPE",
        [STREAM_START] = "class_InstructionStream__instruction_start__",
        [INTERPRETER_DATA_TYPE] = "type_InterpreterData__INTERPRETER_DATA_TYPE",
        [DEBUG_INFO_TYPE] = "type_DebugInfo__DEBUG_INFO_TYPE",
        [LITERALS] = "DeoptimizationDataLiteralArrayIndex",
        [INLINING] = "DeoptimizationDataInliningPositionsIndex",
        [FUNCTION] = "DeoptimizationDataSharedFunctionInfoIndex",
        [WRAPPED_FUNCTION] = "DeoptimizationDataWrappedSharedFunctionInfoIndex",
};

struct constants {
        int32_t value[CONSTANTS];
        bool known[CONSTANTS];
        int32_t major, minor;
        uint8_t bytecode_sizes[V8_OPERAND_SCALES][256];
};

static bool is_constant_name(const char *name, const char *wanted)
{
        size_t n = strlen(wanted);

        return wanted[n - 1] == '_' ? strncmp(name, wanted, n) == 0 : strcmp(name, wanted) == 0;
}

/* Zeroes are in .bss, of which the file has no bytes. */
static int32_t read_constant(const struct elf_image *img, uint64_t address)
{
        const uint8_t *at;
        int32_t ret = 0;

        if (elf_image_bytes_at(img, address, sizeof ret, &at))
                memcpy(&ret, at, sizeof ret);
        return ret;
}

/* One byte per instruction; before V8 9, whose code has no use for it, it was a word. */
static void read_bytecode_sizes(const struct elf_image *img, const struct elf_symbol *s, struct constants *c)
{
        uint64_t count = s->size / V8_OPERAND_SCALES;
        const uint8_t *at;

        if (s->size % V8_OPERAND_SCALES || count > 256 || !elf_image_bytes_at(img, s->value, s->size, &at))
                return;
        for (uint64_t i = 0; i < V8_OPERAND_SCALES; i++)
                memcpy(c->bytecode_sizes[i], at + i * count, count);
}

static void read_symbol(const struct elf_image *img, const struct elf_symbol *s, struct constants *c)
{
        if (strcmp(s->name, "_ZN2v88internal7Version6major_E") == 0)
                c->major = read_constant(img, s->value);
        else if (strcmp(s->name, "_ZN2v88internal7Version6minor_E") == 0)
                c->minor = read_constant(img, s->value);
        else if (strcmp(s->name, "_ZN2v88internal11interpreter9Bytecodes14kBytecodeSizesE") == 0)
                read_bytecode_sizes(img, s, c);
        if (!starts_with(s->name, PREFIX))
                return;
        for (size_t i = 0; i < CONSTANTS; i++) {
                if (!is_constant_name(s->name + strlen(PREFIX), constant_names[i]))
                        continue;
                c->value[i] = read_constant(img, s->value);
                c->known[i] = true;
        }
}

static bool read_constants(const struct elf_image *img, uint32_t table, struct constants *c)
{
        struct elf_symbol_cursor cursor;
        struct elf_symbol s;

        if (elf_symbols_begin_type(img, table, &cursor, NULL))
                return false;
        while (elf_symbols_next(&cursor, &s))
                if (s.section != SHN_UNDEF && s.type == STT_OBJECT)
                        read_symbol(img, &s, c);
        return c->known[SHARED_TYPE];
}

static int32_t get_constant(const struct constants *c, int number, int32_t otherwise)
{
        return c->known[number] ? c->value[number] : otherwise;
}

/* An offset of a field; 0 when the constant is malformed. */
static uint8_t get_field(const struct constants *c, int number, int32_t otherwise)
{
        int32_t value = get_constant(c, number, otherwise);

        return value > 0 && value <= OFFSET_MAX ? (uint8_t)value : 0;
}

static uint16_t get_type(const struct constants *c, int number)
{
        int32_t value = get_constant(c, number, UINT16_MAX);

        return value > 0 && value <= UINT16_MAX ? (uint16_t)value : UINT16_MAX;
}

#define VERSION(major, minor) ((major) << 8 | (minor))

static int32_t choose_by_version(uint32_t version, uint32_t since, int32_t newer, int32_t older)
{
        return version >= since ? newer : older;
}

static void fill_objects(const struct constants *c, uint32_t v, struct v8_objects *ret)
{
        bool moved_data = v >= VERSION(13, 0); /* a second word of data came before the name */
        int32_t script = get_constant(
                c, SHARED_SCRIPT,
                get_constant(c, SHARED_RAW_SCRIPT, get_constant(c, SHARED_SCRIPT_ONLY, moved_data ? 40 : 32)));
        bool has_streams = c->known[STREAM_TYPE];

        *ret = (struct v8_objects){
                .version = v,
                .string_types = get_type(c, STRING_TYPES),
                .shared_type = get_type(c, SHARED_TYPE),
                .script_type = get_type(c, SCRIPT_TYPE),
                .scope_info_type = get_type(c, SCOPE_TYPE),
                .bytecode_type = get_type(c, BYTECODE_TYPE),
                .code_type = get_type(c, CODE_TYPE),
                .stream_type = get_type(c, has_streams ? STREAM_TYPE : CODE_TYPE),
                .interpreter_data_type = get_type(c, INTERPRETER_DATA_TYPE),
                .debug_info_type = get_type(c, DEBUG_INFO_TYPE),
                .shared_data = get_field(c, SHARED_DATA, 8),
                .shared_name = get_field(c, SHARED_NAME, moved_data ? 24 : 16),
                .shared_script = script > 0 && script <= OFFSET_MAX ? (uint8_t)script : 0,
                .scope_slots = (uint8_t)choose_by_version(v, VERSION(9, 0), 8, 16), /* before, it was a FixedArray */
                .scope_locals_count = get_field(c, SCOPE_LOCALS, 2),
                .scope_first_local = get_field(c, SCOPE_FIRST, 3),
                .script_source = get_field(c, SCRIPT_SOURCE, 8),
                .script_name = get_field(c, SCRIPT_NAME, 16),
                .positions = { .mark_bits = (uint8_t)choose_by_version(v, VERSION(14, 0), 2, 1),
                               .start = (int8_t)choose_by_version(v, VERSION(8, 2), -1, 0) },
                .bytecode_lines = (uint8_t)choose_by_version(v, VERSION(12, 0), 24, 32),
                .bytecode_start = get_field(c, BYTECODE_DATA, 54),
                .code_deoptimization = (uint8_t)choose_by_version(v, VERSION(12, 0), 8, 16),
                .code_lines = (uint8_t)choose_by_version(v, VERSION(12, 0), 16, 24),
                .code_start = get_field(c, CODE_START, has_streams ? 40 : 0),
                .code_size = get_field(c, CODE_SIZE, has_streams ? 56 : 40),
                .code_stream_start = has_streams ? get_field(c, STREAM_START, 0) : 0,
                .code_flags = get_field(c, CODE_FLAGS, 48),
                /* It follows the baseline compiler's in the enumeration. */
                .maglev_kind = v >= VERSION(11, 0) ? (uint8_t)(get_constant(c, KIND_BASELINE, -1) + 1) & 15 : 0,
                .literals_index = get_field(c, LITERALS, 2),
                .inlining_index = get_field(c, INLINING, 7),
                .function_index = get_field(c, c->known[FUNCTION] ? FUNCTION : WRAPPED_FUNCTION, 6),
        };
        memcpy(ret->bytecode_sizes, c->bytecode_sizes, sizeof ret->bytecode_sizes);
}

bool v8_symbols_read(const struct elf_image *img, struct v8_symbols *ret)
{
        struct constants c = { 0 };
        struct v8_symbols found;
        uint32_t version = 0;
        int32_t fp_bytecode;

        memset(&found, 0, sizeof found);
        *ret = found;
        if (!read_constants(img, SHT_DYNSYM, &c))
                return false;
        if (!c.bytecode_sizes[0][0]) /* not exported since 24.11 */
                (void)read_constants(img, SHT_SYMTAB, &c);
        if (c.major > 0 && c.major < 256 && c.minor >= 0 && c.minor < 256)
                version = VERSION((uint32_t)c.major, (uint32_t)c.minor);
        fp_bytecode = -get_constant(&c, FP_BYTECODE, choose_by_version(version, VERSION(8, 9), -32, -24));
        /* With compressed pointers, Smis have no zero bits. */
        if (img->machine != EM_X86_64 || version < VERSION(7, 8) || get_constant(&c, SMI_SHIFT, 0) != 31 ||
            get_constant(&c, FP_FUNCTION, 0) != -16 || get_constant(&c, FP_CONTEXT, 0) != -8 ||
            (fp_bytecode != 24 && fp_bytecode != 32) ||
            get_constant(&c, FP_OFFSET, -fp_bytecode - 8) != -fp_bytecode - 8 || !get_field(&c, FUNCTION_SHARED, 0) ||
            !get_field(&c, MAP_TYPE, 12))
                return true;
        found.layout = (struct v8_layout){ .shared_type = get_type(&c, SHARED_TYPE),
                                           .map_type = get_field(&c, MAP_TYPE, 12),
                                           .function_shared = get_field(&c, FUNCTION_SHARED, 0),
                                           .fp_bytecode = (uint8_t)fp_bytecode };
        fill_objects(&c, version, &found.objects);
        *ret = found;
        return true;
}
