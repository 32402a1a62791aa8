/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_UNWINDER_INTERNAL_H
#define CAIRN_AGENT_UNWINDER_INTERNAL_H

/**
 * @file
 * The tables of an unwinder, by number: which are there, are being made, or are the same as another.
 */
#include "agent/unwinder.h"
#include "common/sha256.h"

enum table_state { TABLE_UNKNOWN, TABLE_WAITING, TABLE_READY, TABLE_SAME, TABLE_NONE, TABLE_FREE };

struct unwinder_table {
        enum table_state state;
        uint32_t owner;    /* for the quota */
        uint32_t users;    /* processes */
        uint64_t used_at;  /* the unwinder's clock */
        struct unwind_placed placed;
        uint32_t same_as;  /* number of the table with this content, TABLE_SAME */
        uint8_t content[SHA256_BYTES]; /* once it was built */
};

static inline struct unwinder_table *unwinder_table(struct unwinder *u, uint32_t number)
{
        return &u->tables[number - 1];
}

/** The number of the object's table, made if need be; 0 without memory. */
uint32_t unwinder_table_number(struct unwinder *u, const struct object *o);

/** The number of the table that has the content. */
uint32_t unwinder_table_resolve(const struct unwinder *u, uint32_t number);

/** Ask for the table of what is mapped there unless that was done. Parameters as of unwinder_process(). */
void unwinder_table_want(struct unwinder *u, int proc_fd, const char *container, const struct proc_mapping *m, uint32_t number);

#endif
