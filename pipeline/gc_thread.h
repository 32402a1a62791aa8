/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_GC_THREAD_H
#define CAIRN_PIPELINE_GC_THREAD_H

/**
 * @file
 * Garbage collection thread: applies the retention rules to the debuginfo store at the start, every hour, after uploads
 * that could exceed a size rule by one percent, and when an object that was kept until it was indexed has been.
 *
 * Threads: any, except start and stop.
 */
#include "debuginfo-store/gc.h"
#include "pipeline/indexer.h"

struct gc_thread;

struct gc_thread_options {
        const char *tenant; /* whose store it is, for the log; NULL: that which tenants share. Borrowed, as are these */
        struct debuginfo_store *objects;
        struct symbol_index *symbols;
        struct indexer *indexer;
        const struct retention_rule *rules; /* copied; at most RETENTION_RULES_MAX */
        size_t rule_count;                  /* 0: only requested collections, and objects are counted */
        void (*hourly)(void *context);      /* called at the start and every hour, for other expiry; NULL: not called */
        void *context;
};

enum status gc_thread_start(const struct gc_thread_options *options, struct gc_thread **ret,
                            struct error *err) MUST_CHECK;
/** Stops collections; the indexer may still notify until gc_thread_destroy(). NULL is allowed, as below. */
void gc_thread_stop(struct gc_thread *c);
void gc_thread_destroy(struct gc_thread *c);

/** Replace the rules, and collect by them soon if they differ. A collection that runs ends with the previous ones. */
void gc_thread_set_rules(struct gc_thread *c, const struct retention_rule *rules, size_t count);

/** An object of so many bytes was stored. */
void gc_thread_count_arrival(struct gc_thread *c, uint64_t stored_bytes);

/** An object was indexed. */
void gc_thread_notify_indexed(struct gc_thread *c);

/**
 * The index has symbols from debuginfo that are as good as this symbol file's: remove it, unless it is still needed.
 */
void gc_thread_remove_superseded(struct gc_thread *c, const struct stored_object *symbols);

/** Update the metrics after a successful collection. */
void gc_thread_publish_metrics(struct gc_thread *c, const struct gc_result *r);

/** Rules that do not change while they are used. */
struct gc_rules {
        struct retention_rule items[RETENTION_RULES_MAX];
        size_t count;
};
/** The configured rules of now. */
void gc_thread_get_rules(struct gc_thread *c, struct gc_rules *ret);

/** Options of a collection by these rules, borrowed, at the current time; the caller may set removed, but not needed.
 */
struct gc_options gc_thread_collection_options(struct gc_thread *c, const struct retention_rule *rules,
                                               size_t rule_count);

#endif
