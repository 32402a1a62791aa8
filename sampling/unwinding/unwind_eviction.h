/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_UNWINDING_UNWIND_EVICTION_H
#define CAIRN_SAMPLING_UNWINDING_UNWIND_EVICTION_H

/**
 * @file
 * LRU eviction of unwind tables that no process uses, when their owner's quota or the BPF maps are full.
 *
 * An evicted table is requested again when a process maps its file. Its space is reusable after unwinder_reclaim().
 *
 * Threads: those of the unwinder.
 */
#include "sampling/unwinding/unwinder.h"

/** Evict unused tables of the owner until the built table fits the owner's quota. False when it cannot fit. */
bool unwind_evict_for_quota(struct unwinder *u, uint32_t owner, const struct unwind_table *built);

/** Evict unused tables of any owner until `rows` rows are free or all tables are in use. */
void unwind_evict_rows(struct unwinder *u, uint64_t rows);

/** The rows that a loaded table occupies. */
uint64_t unwind_count_loaded_rows(const struct unwind_loaded_table *p);

#endif
