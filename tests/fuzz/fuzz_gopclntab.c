/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arbitrary bytes as the only data of a Go program: extraction must not crash, and the resulting table must keep its
 * invariants.
 */
#include <assert.h>
#include <stdlib.h>

#include "symbolizer/sources/source_go.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        enum { TEXT = 0x1000, DATA = 0x20000 };
        struct elf_segment segments[] = {
                { .type = PT_LOAD, .flags = PF_R | PF_X, .address = TEXT, .memory_size = 0x10000 },
                { .type = PT_LOAD, .flags = PF_R | PF_W, .address = DATA, .file_size = size, .memory_size = size },
        };
        const struct elf_image img = { .data = data,
                                       .size = size,
                                       .name = (char[]){ "fuzz" },
                                       .is_64 = true,
                                       .big_endian = size && data[0] == 0xff,
                                       .segments = segments,
                                       .segment_count = 2,
                                       .type = ET_EXEC,
                                       .machine = EM_X86_64,
                                       .build_id_kind = ELF_BUILD_ID_GO };
        struct symbol_table_builder b;
        struct symbol_table t = { 0 };
        struct code_map code;
        struct error err;
        struct go_summary go;

        if (code_map_from_image(&img, &code, NULL))
                abort();
        symbol_table_builder_init(&b);
        if (fill_from_go_table(&img, &code, &b, &go, &err) == ST_OK &&
            symbol_table_builder_finish(&b, &t, &err) == ST_OK) {
                if (symbol_table_check(&t, &err)) {
                        fprintf(stderr, "%s\n", err.text);
                        abort();
                }
                assert(go.used == (t.range_count > 0));
                symbol_table_deinit(&t);
        }
        symbol_table_builder_deinit(&b);
        code_map_deinit(&code);
        return 0;
}
