/* SPDX-License-Identifier: Apache-2.0 */
#include "server/index_load_named.h"

#include "symbolizer/index_alias.h"
#include "symbolizer/index_load.h"

#define NAMES_MAX (1 + 3 * OBJECT_ALIASES_MAX) /* debuginfo, executable and symbols may differ in what is known of them */

/* The index changes between expect and changed, so a crash at any point heals later. */
enum status index_load_named(const struct index_load_into *to, const struct symbol_table *table, bool *replaced_ret,
                             struct error *err)
{
        struct build_id names[NAMES_MAX] = { table->build_id };
        bool changed[NAMES_MAX] = { false };
        size_t alias_count, expected = 0;
        uint64_t generation;
        enum status st = debuginfo_store_aliases(to->objects, &table->build_id, names + 1, NAMES_MAX - 1, &alias_count, err);

        if (st)
                return st;
        for (; !st && expected < 1 + alias_count; expected++)
                st = healer_expect(to->healer, &names[expected], err);
        pthread_mutex_lock(to->write);
        if (!st)
                st = symbol_index_alias(to->symbols, &names[0], names + 1, alias_count, changed + 1, err);
        if (!st)
                st = symbol_index_load(to->symbols, table, replaced_ret, &generation, err);
        pthread_mutex_unlock(to->write);
        for (size_t i = 0; i < expected; i++)
                healer_changed(to->healer, &names[i], !st && (*replaced_ret || changed[i]));
        return st;
}
