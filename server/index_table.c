/* SPDX-License-Identifier: Apache-2.0 */
#include "server/index_table.h"

#include "common/log.h"
#include "symbolizer/extract_worker.h"

static bool is_better(const struct symbol_table *a, const struct symbol_table *b)
{
        return a->quality != b->quality ? a->quality > b->quality : !a->partial && b->partial;
}

/* A symbol file may come of better files than those that are here, and of companions that are not here. */
enum status index_table_make(const struct extract_inputs *elf, int symbols_fd, const atomic_bool *cancel,
                             struct symbol_table *ret, bool *superseded_ret, struct error *err)
{
        const struct extract_inputs file = { .debuginfo_fd = symbols_fd, .executable_fd = -1, .altlink_fd = -1, .name = elf->name };
        struct symbol_table of_elf = { 0 }, of_file;
        enum status st, file_st;
        struct error why;

        *superseded_ret = false;
        if (elf->debuginfo_fd < 0 && elf->executable_fd < 0)
                return symbol_table_extract_confined(&file, cancel, ret, err);
        st = symbol_table_extract_confined(elf, cancel, &of_elf, err);
        if (symbols_fd >= 0) {
                file_st = symbol_table_extract_confined(&file, cancel, &of_file, &why);
                if (!file_st && (st || is_better(&of_file, &of_elf))) {
                        symbol_table_deinit(&of_elf);
                        *ret = of_file;
                        return ST_OK;
                }
                if (!file_st) {
                        symbol_table_deinit(&of_file);
                        *superseded_ret = !of_elf.partial;
                } else if (atomic_load(cancel)) { /* asked again after the next start, with both */
                        symbol_table_deinit(&of_elf);
                        *err = why;
                        return file_st;
                } else {
                        log_warn("index", "%s: its symbol file is left out: %s", elf->name, why.text);
                }
        }
        if (!st)
                *ret = of_elf;
        return st;
}
