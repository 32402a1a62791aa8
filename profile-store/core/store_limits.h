/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_STORE_CORE_STORE_LIMITS_H
#define CAIRN_PROFILE_STORE_CORE_STORE_LIMITS_H

/**
 * @file
 * The limits that a store applies to its samples. They can be replaced while the store is open
 * (profile_store_set_limits()); work in progress keeps the limits it began with by a reference.
 *
 * The rules found to select no row of a file are recorded with the generation of the rules (table_part.done_rules), so
 * that a record about replaced rules does not apply to the new ones.
 *
 * Threads: any.
 */
#include <stdatomic.h>

#include "profile-store/profile_store.h"

struct store_limits {
        atomic_uint references;
        uint16_t generation; /* counts replacements of the rules */
        struct sample_limits limits;
        void (*release)(void *context); /* called when the last reference is released; NULL: nothing is owned */
        void *context;
};

/** With one reference. @return NULL when memory runs out. */
struct store_limits *store_limits_create(const struct sample_limits *limits, uint16_t generation);
/** The current limits of a store, with a reference. */
struct store_limits *store_limits_acquire(struct profile_store *s);
void store_limits_release(struct store_limits *l); /* NULL is allowed */

/* ---- done rules: generation in the upper 16 bits, one bit per rule in the lower 16 ---- */

_Static_assert(LABEL_RULES_MAX <= 16, "a note has 16 bits for rules");

static inline uint32_t make_done_rules(uint16_t generation, uint32_t rules)
{
        return (uint32_t)generation << 16 | (rules & 0xffff);
}

/** The rules that a note marks as done; 0 if it is of another generation. */
static inline uint32_t get_done_rules(uint32_t note, uint16_t generation)
{
        return note >> 16 == generation ? note & 0xffff : 0;
}

/** The rules that are done in both notes, with the generation of the first. */
static inline uint32_t intersect_done_rules(uint32_t a, uint32_t b)
{
        return make_done_rules((uint16_t)(a >> 16), a & get_done_rules(b, (uint16_t)(a >> 16)));
}

/** The rules that are done in either note, with the generation of the first. */
static inline uint32_t unite_done_rules(uint32_t a, uint32_t b)
{
        return make_done_rules((uint16_t)(a >> 16), a | get_done_rules(b, (uint16_t)(a >> 16)));
}

/** Add rules to a note; a note of another generation is replaced. */
static inline void add_done_rules(_Atomic uint32_t *note, uint16_t generation, uint32_t rules)
{
        uint32_t old = atomic_load(note);

        while (!atomic_compare_exchange_weak(note, &old,
                                             make_done_rules(generation, get_done_rules(old, generation) | rules)))
                ;
}

#endif
