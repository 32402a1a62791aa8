/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the only data of a Go program: no crash, and whatever table comes out keeps its invariants. */
#include <assert.h>
#include <stdlib.h>

#include "symbolizer/source_go.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        enum { TEXT = 0x1000, DATA = 0x20000 };
        struct elf_section sections[] = {
                { .name = "" },
                { .name = ".text", .index = 1, .type = SHT_NOBITS, .flags = SHF_ALLOC | SHF_EXECINSTR, .address = TEXT,
                  .size = 0x10000 },
                { .name = ".gopclntab", .index = 2, .type = SHT_PROGBITS, .flags = SHF_ALLOC, .address = DATA, .size = size },
        };
        struct elf_segment segment = { .type = PT_LOAD, .flags = PF_R | PF_W, .address = DATA, .file_size = size,
                                       .memory_size = size };
        const struct elf_image img = { .data = data, .size = size, .name = (char[]){ "fuzz" }, .is_64 = true,
                                       .big_endian = size && data[0] == 0xff, .sections = sections, .section_count = 3,
                                       .segments = &segment, .segment_count = 1, .type = ET_EXEC,
                                       .machine = EM_X86_64 };
        struct symbol_table_builder b;
        struct symbol_table t = { 0 };
        struct code_map code;
        struct error err;
        bool used;

        if (code_map_from_image(&img, &code, NULL))
                abort();
        symbol_table_builder_init(&b);
        if (source_go_fill(&img, &code, &b, &used, &err) == ST_OK && symbol_table_builder_finish(&b, &t, &err) == ST_OK) {
                if (symbol_table_check(&t, &err)) {
                        fprintf(stderr, "%s\n", err.text);
                        abort();
                }
                assert(used == (t.range_count > 0));
                symbol_table_deinit(&t);
        }
        symbol_table_builder_deinit(&b);
        code_map_deinit(&code);
        return 0;
}
