/* SPDX-License-Identifier: Apache-2.0 */
#include "sampling/runtimes/context_symbols.h"

#include <elf.h>
#include <string.h>

#include "common/reader.h"

#define RELA_BYTES 24
#define GO_VARIABLE "runtime.tlsg"
#define GO_VARIABLE_BYTES 8

/* Find a thread-local variable among the symbols of one type. False: there is none. */
static bool find_context_variable(const struct elf_image *img, uint32_t type, const char *name, struct elf_symbol *ret,
                                  uint64_t *index_ret)
{
        struct elf_symbol_cursor cursor;

        if (elf_symbols_begin_type(img, type, &cursor, NULL))
                return false;
        while (elf_symbols_next(&cursor, ret)) {
                *index_ret = cursor.index - 1;
                if (ret->type == STT_TLS && ret->section != SHN_UNDEF && strcmp(ret->name, name) == 0)
                        return true;
        }
        return false;
}

static const struct elf_segment *find_segment(const struct elf_image *img, uint32_t type)
{
        for (size_t i = 0; i < img->segment_count; i++)
                if (img->segments[i].type == type)
                        return &img->segments[i];
        return NULL;
}

/* Whether DT_FLAGS_1 says that the file is a program: those that are linked statically have no PT_INTERP. */
static bool is_marked_program(const struct elf_image *img)
{
        const struct elf_segment *dynamic = find_segment(img, PT_DYNAMIC);
        struct reader r;
        const uint8_t *bytes;
        uint64_t tag, value;

        if (!dynamic || !elf_image_bytes_at(img, dynamic->address, dynamic->file_size, &bytes))
                return false;
        reader_init(&r, bytes, dynamic->file_size);
        while (reader_u64(&r, &tag) && reader_u64(&r, &value) && tag != DT_NULL)
                if (tag == DT_FLAGS_1)
                        return value & DF_1_PIE;
        return false;
}

/* The block of a program ends at the thread pointer, rounded up to its alignment. */
static bool set_program_offset(const struct elf_image *img, struct context_symbols *s)
{
        const struct elf_segment *tls = find_segment(img, PT_TLS);
        uint64_t alignment = tls && tls->alignment ? tls->alignment : 1;

        if (!tls || (alignment & (alignment - 1)) || s->offset >= tls->memory_size)
                return false;
        s->program_offset = s->offset - ((tls->memory_size + alignment - 1) & ~(alignment - 1));
        return true;
}

/* Note the words of one relocation. Those without a symbol are of a variable that no other file can replace. */
static void note_relocation(struct context_symbols *s, uint64_t symbol, uint64_t place, uint64_t info, uint64_t addend)
{
        bool is_named = info >> 32 == symbol, is_local = !(info >> 32);

        switch ((uint32_t)info) {
        case R_X86_64_TLSDESC:
                if (is_named || (is_local && addend == s->offset))
                        s->descriptor_slot = place;
                break;
        case R_X86_64_TPOFF64:
                if (is_named || (is_local && addend == s->offset))
                        s->offset_slot = place;
                break;
        case R_X86_64_DTPMOD64:
                if (is_named || is_local)
                        s->module_slot = place;
        }
}

static void find_relocations(const struct elf_image *img, uint64_t symbol, struct context_symbols *s)
{
        for (uint64_t i = 0; i < img->section_count; i++) {
                const struct elf_section *section = elf_image_section_at(img, i);
                uint64_t place, info, addend;
                struct reader r;
                const uint8_t *bytes;
                size_t size;

                if (section->type != SHT_RELA || !(section->flags & SHF_ALLOC) || section->entry_size != RELA_BYTES ||
                    elf_section_raw(img, section, &bytes, &size, NULL))
                        continue;
                reader_init(&r, bytes, size);
                while (reader_u64(&r, &place) && reader_u64(&r, &info) && reader_u64(&r, &addend))
                        note_relocation(s, symbol, place, info, addend);
        }
}

/* @param index  of the variable among the dynamic symbols; UINT64_MAX: it is none of them. */
static void set_variable_place(const struct elf_image *img, uint64_t offset, uint64_t index,
                               struct context_symbols *ret)
{
        struct context_symbols found = { .offset = offset };

        found.is_program = img->type == ET_EXEC || find_segment(img, PT_INTERP) || is_marked_program(img);
        if (!found.is_program)
                find_relocations(img, index, &found);
        else if (!set_program_offset(img, &found))
                return;
        found.is_defined = 1;
        *ret = found;
}

void context_symbols_read(const struct elf_image *img, struct context_symbols *ret)
{
        struct elf_symbol symbol;
        uint64_t index = 0;

        *ret = (struct context_symbols){ 0 };
        if (!img->is_64 || img->big_endian || img->machine != EM_X86_64 || !find_segment(img, PT_TLS))
                return;
        /* Programs that are linked statically at a fixed address have no dynamic symbols. */
        if (find_context_variable(img, SHT_DYNSYM, CONTEXT_VARIABLE, &symbol, &index) ||
            (!find_segment(img, PT_DYNAMIC) &&
             find_context_variable(img, SHT_SYMTAB, CONTEXT_VARIABLE, &symbol, &index)))
                set_variable_place(img, symbol.value, index, ret);
}

/*
 * Go's own linker puts the variable directly below the thread pointer. If it links statically, the runtime sets the
 * thread pointer, and the file has no thread-local segment. Another linker keeps the symbol, unless it is stripped.
 */
void context_symbols_read_go(const struct elf_image *img, struct context_symbols *ret)
{
        const struct elf_segment *tls = find_segment(img, PT_TLS);
        struct elf_symbol symbol;
        uint64_t index;

        *ret = (struct context_symbols){ 0 };
        if (!img->is_64 || img->big_endian || img->machine != EM_X86_64)
                return;
        if (!tls)
                *ret = (struct context_symbols){ .is_defined = 1,
                                                 .is_program = 1,
                                                 .program_offset = (uint64_t)-GO_VARIABLE_BYTES };
        else if (find_context_variable(img, SHT_SYMTAB, GO_VARIABLE, &symbol, &index))
                set_variable_place(img, symbol.value, UINT64_MAX, ret);
        else if (tls->memory_size == GO_VARIABLE_BYTES) /* there is no other */
                set_variable_place(img, 0, UINT64_MAX, ret);
}
