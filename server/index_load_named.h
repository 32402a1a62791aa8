/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_INDEX_LOAD_NAMED_H
#define CAIRN_SERVER_INDEX_LOAD_NAMED_H

/**
 * @file
 * Loading a symbol table so that the object is found by its aliases too, and
 * what was stored under any of its names is healed.
 *
 * Threads: any; they wait for each other.
 */
#include <pthread.h>

#include "debuginfo-store/store.h"
#include "server/healer.h"
#include "symbolizer/symbol_table.h"

struct index_load_into {
        struct debuginfo_store *objects; /* knows the aliases */
        struct symbol_index *symbols;
        struct healer *healer;
        pthread_mutex_t *write;          /* the index has one writer at a time */
};

/** As symbol_index_load(). */
enum status index_load_named(const struct index_load_into *to, const struct symbol_table *table, bool *replaced_ret,
                             struct error *err) MUST_CHECK;

#endif
