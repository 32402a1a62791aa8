/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_COLLECTOR_H
#define CAIRN_SERVER_COLLECTOR_H

/**
 * @file
 * Keeps the debuginfo store within its retention rules: at the start, each
 * hour, when what arrived since could break a rule's size by a hundredth, and
 * when what had to stay until it was indexed has been.
 *
 * Threads: any, except start and stop.
 */
#include "debuginfo-store/gc.h"
#include "server/indexer.h"

struct collector;

struct collector_options {
        struct debuginfo_store *objects;    /* these are borrowed */
        struct symbol_index *symbols;
        struct indexer *indexer;
        const struct retention_rule *rules; /* borrowed */
        size_t rule_count;                  /* 0: only what is asked for is done, and objects are counted */
};

enum status collector_start(const struct collector_options *options, struct collector **ret, struct error *err) MUST_CHECK;
/** No collection runs or begins any more; the indexer may still tell. NULL is allowed, as below. */
void collector_stop(struct collector *c);
void collector_destroy(struct collector *c);

/** So many bytes were stored. */
void collector_arrived(struct collector *c, uint64_t stored_bytes);

/** An object was indexed. */
void collector_indexed(struct collector *c);

/** The index has as good ones of these symbols from debuginfo: they go, unless something still needs them. */
void collector_superseded(struct collector *c, const struct stored_object *symbols);

/** Counts in the metrics what a collection that succeeded did. */
void collector_count(const struct gc_result *r);

/** The options of a collection by these rules (NULL: its own), now; the caller may add removed, but needed is taken. */
struct gc_options collector_gc_options(struct collector *c, const struct retention_rule *rules, size_t rule_count);

#endif
