/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/split_go.h"

#include "symbolizer/sources/go_tables.h"

/* The range from the first call of all inline trees to the end of the last one. */
static bool find_inline_trees(const struct go_pclntab *t, struct split_range *ret)
{
        uint64_t begin = UINT64_MAX, end = 0;
        struct go_steps steps = { 0 };

        for (uint64_t i = 0; t->inlining && i < t->function_count; i++) {
                struct go_function f;

                if (!go_pclntab_get_function(t, i, &f) || !f.tree || !go_steps_read(t, &f, f.inline_table, &steps))
                        continue;
                for (size_t k = 0; k < steps.count; k++) {
                        struct go_inlined_call call;
                        uint64_t behind;

                        if (steps.items[k].value < 0 ||
                            !go_read_inlined_call(t, &f, (uint32_t)steps.items[k].value, &call))
                                continue;
                        behind = f.tree + ((uint64_t)steps.items[k].value + 1) * go_inlined_call_bytes(t);
                        begin = f.tree < begin ? f.tree : begin;
                        end = behind > end ? behind : end;
                }
        }
        go_steps_deinit(&steps);
        *ret = (struct split_range){ begin, end > begin ? end - begin : 0 };
        return ret->size > 0;
}

size_t split_find_go_ranges(const struct elf_image *img, struct split_range ret[static SPLIT_GO_RANGES_MAX])
{
        struct go_tables tables;
        size_t count = 0;

        if (go_tables_find(img, &tables, NULL))
                return 0;
        count += find_inline_trees(&tables.pclntab, &ret[count]);
        if (count && tables.module_size)
                ret[count++] = (struct split_range){ tables.module_address, tables.module_size };
        go_tables_deinit(&tables);
        return count;
}
