/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_GC_THREAD_H
#define CAIRN_PIPELINE_GC_THREAD_H

/**
 * @file
 * Garbage collection thread: applies the retention rules to the debuginfo store at the start, every hour, after uploads
 * that could exceed a size rule by one percent, and when an object that was kept until indexing is indexed. At the
 * start and daily it removes symbols of unused objects from the index (pipeline/symbol_expiry.h).
 *
 * Threads: any, except start and stop.
 */
#include "debuginfo-store/gc.h"
#include "pipeline/indexer.h"

struct gc_thread;

struct gc_thread_options {
        const char *tenant; /* owner of the store, for the log; NULL: the shared store. This and the pointers below are
                               borrowed */
        struct debuginfo_store *objects;
        struct symbol_index *symbols;
        struct indexer *indexer;
        const struct retention_rule *rules;  /* copied; at most RETENTION_RULES_MAX */
        size_t rule_count;                   /* 0: collections only on request, but objects are counted */
        struct profile_store *const *stores; /* whose samples keep symbols in the index */
        size_t store_count;
        uint64_t keep_symbols_s;       /* of unused objects; 0: forever */
        void (*hourly)(void *context); /* called at start and every hour, for other expiry; may be NULL */
        void *context;
};

enum status gc_thread_start(const struct gc_thread_options *options, struct gc_thread **ret,
                            struct error *err) MUST_CHECK;
/**
 * Stops collections; the indexer may still notify until gc_thread_destroy(). NULL is allowed, also in
 * gc_thread_destroy().
 */
void gc_thread_stop(struct gc_thread *g);
void gc_thread_destroy(struct gc_thread *g);

/** Replace the rules; if they differ, a collection starts soon. A running collection ends with the previous rules. */
void gc_thread_set_rules(struct gc_thread *g, const struct retention_rule *rules, size_t count);

/** An object of this many stored bytes was added. */
void gc_thread_count_arrival(struct gc_thread *g, uint64_t stored_bytes);

/** An object was indexed. */
void gc_thread_notify_indexed(struct gc_thread *g);

/**
 * The index has symbols from debuginfo that are as good as this symbol file's: remove it, unless it is still needed.
 */
void gc_thread_remove_superseded(struct gc_thread *g, const struct stored_object *symbols);

/** Update the metrics after a successful collection. */
void gc_thread_publish_metrics(struct gc_thread *g, const struct gc_result *r);

/** A copy of the rules, constant while it is used. */
struct gc_rules {
        struct retention_rule items[RETENTION_RULES_MAX];
        size_t count;
};
/** The rules in effect. */
void gc_thread_get_rules(struct gc_thread *g, struct gc_rules *ret);

/**
 * Options of a collection by these rules, borrowed, at the current time; the caller may set `removed` but not `needed`.
 */
struct gc_options gc_thread_collection_options(struct gc_thread *g, const struct retention_rule *rules,
                                               size_t rule_count);

#endif
