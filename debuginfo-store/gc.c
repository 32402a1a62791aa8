/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo_store_collect_garbage() has the passes: list the companions that stored objects need, walk all records and
 * apply the rules of age and use (apply_age_rules()), which also adds up the bytes of each rule and collects
 * candidates for its size limit, then remove sorted candidates until each rule fits (apply_size_rules()), expire
 * partial uploads and sweep files without a record. The retention rules themselves are in object_retention.c.
 *
 * Uploads and readers continue meanwhile. An object is removed only if its content, pin and time of use are those that
 * were judged (debuginfo_store_remove_unchanged()); otherwise it is kept. Removals from an object store are made in
 * batches, each of which is one commit.
 *
 * Sweeping local files: `publish` of the store is held for each, so that no record for it is created between the test
 * and the removal. Sweeping an object store needs no lock: no commit names a key that was put a day ago and is not in
 * the table that is read first, since an object is named within seconds of its put, under a key of its own.
 *
 * Order: orphans, retention, superseded symbol files (independent of the passes).
 */
#include "debuginfo-store/gc.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/memory/array.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/partial.h"

#define OBJECT_FOLDER "objects/"
#define SYMBOL_TABLE_FOLDER "symbols/"
/* An object may be put into an object store this long before the commit that names it. */
#define UNCOMMITTED_MS (INT64_C(24) * 3600 * 1000)

/* ---- orphans ---- */

struct sweep {
        struct debuginfo_store *store;
        bool dry_run;
        int64_t before_ms; /* of an object store: what was put later is kept */
        uint64_t *count, *bytes;
};

/* The caller holds the publish lock, so that no record for the object can be created. */
static enum status is_live_record(const struct sweep *s, const char *key, const struct stored_object *named, bool *ret,
                                  struct error *err)
{
        _cleanup_free_ char *live = NULL;
        struct stored_object o;
        enum status st = meta_get(s->store->meta, &named->build_id, named->kind, &o, err);

        *ret = false;
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        live = object_format_key(&o);
        *ret = live && strcmp(live, key) == 0;
        return live ? ST_OK : error_no_memory(err);
}

static enum status sweep_key(struct sweep *s, const char *key, uint64_t size, struct error *err)
{
        enum status st = s->dry_run ? ST_OK : storage_remove(s->store->storage, key, err);

        *s->count += !st;
        *s->bytes += st ? 0 : size;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status sweep_local_object(void *context, const char *key, const struct storage_info *info,
                                      struct error *err)
{
        struct sweep *s = context;
        struct stored_object named;
        enum status st;
        bool is_live;

        if (!object_parse_key(key, &named) || named.kind == OBJECT_ROW_SYMBOL_TABLE)
                return ST_OK;
        pthread_mutex_lock(&s->store->publish);
        st = is_live_record(s, key, &named, &is_live, err);
        if (!st && !is_live)
                st = sweep_key(s, key, info->size, err);
        pthread_mutex_unlock(&s->store->publish);
        return st;
}

static enum status sweep_remote_object(void *context, const char *key, const struct storage_info *info,
                                       struct error *err)
{
        struct sweep *s = context;
        struct stored_object named, live;

        if (info->modified_ms > s->before_ms || !object_parse_key(key, &named))
                return ST_OK;
        if (object_table_find_put(s->store->table, &(struct object_name){ named.build_id, named.kind }, &live) &&
            live.put_id == named.put_id && memcmp(live.sha256, named.sha256, OBJECT_GENERATION_BYTES) == 0)
                return ST_OK;
        return sweep_key(s, key, info->size, err);
}

static enum status sweep_remote_folder(struct sweep *s, const char *folder, struct error *err)
{
        uint64_t unfinished = 0;
        enum status st = storage_list(s->store->storage, folder, "", sweep_remote_object, s, err);

        return st || s->dry_run ? st
                                : storage_remove_unfinished(s->store->storage, folder, s->before_ms, &unfinished, err);
}

static enum status sweep_remote_objects(struct sweep *s, struct error *err)
{
        enum status st = s->dry_run ? object_table_follow(s->store->table, NULL, err)
                                    : object_table_vacuum(s->store->table, err);

        s->before_ms = storage_now_ms(s->store->storage) - UNCOMMITTED_MS;
        if (!st)
                st = sweep_remote_folder(s, OBJECT_FOLDER, err);
        return st ? st : sweep_remote_folder(s, SYMBOL_TABLE_FOLDER, err);
}

static enum status sweep_orphans(struct debuginfo_store *store, bool dry_run, uint64_t *count_ret, uint64_t *bytes_ret,
                                 struct error *err)
{
        struct sweep s = { .store = store, .dry_run = dry_run, .count = count_ret, .bytes = bytes_ret };

        *count_ret = *bytes_ret = 0;
        if (store->is_remote) /* a read-only store does not know what the table names */
                return store->table ? sweep_remote_objects(&s, err) : ST_OK;
        return storage_list(store->storage, OBJECT_FOLDER, "", sweep_local_object, &s, err);
}

/* ---- retention ---- */

/* An object that its rule's size limit may remove. */
struct candidate {
        struct object_name name;
        uint64_t bytes;
        int64_t used_unix_s;
        uint8_t rule;
        bool is_from_upstream;
};

/* An object that is to be removed. */
struct removal {
        enum gc_reason why;
        uint8_t rule;
};

struct collection {
        struct debuginfo_store *store;
        const struct gc_options *options;
        struct gc_result *result;
        struct candidate *candidates;
        size_t count, capacity;
        uint64_t rule_bytes[RETENTION_RULES_MAX];
        /* The next batch of removals; of an object store one commit. */
        struct stored_object *doomed;
        struct removal *removals; /* of each */
        size_t doomed_count, batch;
        uint64_t doomed_bytes[RETENTION_RULES_MAX]; /* that its rule's size limit removes */
        struct object_name *companions;             /* companions of all stored objects, sorted */
        size_t companion_count;
        struct error *err;
};

const char *gc_reason_name(enum gc_reason r)
{
        static const char *const names[GC_REASON_COUNT] = { "age", "unused", "size", "superseded" };

        return names[r];
}

/* Whether a stored object requires this one. */
static bool is_needed_companion(struct collection *c, const struct stored_object *o)
{
        const struct object_name name = { o->build_id, o->kind };
        struct stored_object owner;

        if (o->kind == OBJECT_DWP)
                return meta_get(c->store->meta, &o->build_id, OBJECT_DEBUGINFO, &owner, NULL) == ST_OK ||
                       meta_get(c->store->meta, &o->build_id, OBJECT_EXECUTABLE, &owner, NULL) == ST_OK;
        return c->companion_count &&
               bsearch(&name, c->companions, c->companion_count, sizeof name, object_name_compare);
}

static bool is_protected_object(struct collection *c, const struct stored_object *o)
{
        if (o->is_pinned)
                c->result->pinned++;
        else if (c->options->needed && c->options->needed(c->options->context, o))
                c->result->needed++;
        else if (is_needed_companion(c, o))
                c->result->companions++;
        else
                return false;
        return true;
}

static void count_kept(struct collection *c, const struct stored_object *o)
{
        c->result->objects++;
        c->result->bytes += o->stored_bytes;
}

static void count_removed(struct collection *c, const struct stored_object *o, const struct removal *r)
{
        assert(r->why < GC_REASON_COUNT && !o->is_pinned);
        c->result->removed[r->why]++;
        c->result->removed_bytes += o->stored_bytes;
        if (c->options->removed)
                c->options->removed(c->options->context, o, r->why);
}

/* An object that was counted as kept is no longer stored. */
static void discount_kept(struct collection *c, size_t rule, uint64_t bytes)
{
        c->rule_bytes[rule] -= bytes;
        c->result->objects--;
        c->result->bytes -= bytes;
}

/* Those that were replaced, pinned or used since they were listed are kept. */
static enum status remove_doomed_objects(struct collection *c)
{
        bool removed[OBJECT_COMMIT_CHANGES];
        enum status st = ST_OK;

        memset(removed, true, sizeof removed);
        if (c->doomed_count && !c->options->dry_run)
                st = debuginfo_store_remove_unchanged(c->store, c->doomed, c->doomed_count, removed, c->err);
        for (size_t i = 0; i < c->doomed_count; i++) {
                const struct stored_object *o = &c->doomed[i];
                const struct removal *r = &c->removals[i];

                if (removed[i])
                        count_removed(c, o, r);
                if (removed[i] && r->why == GC_SIZE)
                        discount_kept(c, r->rule, o->stored_bytes);
                if (!removed[i] && r->why != GC_SIZE) {
                        count_kept(c, o);
                        c->rule_bytes[r->rule] += o->stored_bytes;
                }
        }
        c->doomed_count = 0;
        memset(c->doomed_bytes, 0, sizeof c->doomed_bytes);
        return st;
}

static enum status doom_object(struct collection *c, const struct stored_object *o, enum gc_reason why, size_t rule)
{
        c->doomed[c->doomed_count] = *o;
        c->removals[c->doomed_count++] = (struct removal){ why, (uint8_t)rule };
        c->doomed_bytes[rule] += why == GC_SIZE ? o->stored_bytes : 0;
        return c->doomed_count == c->batch ? remove_doomed_objects(c) : ST_OK;
}

static enum status add_gc_candidate(struct collection *c, const struct stored_object *o, size_t rule)
{
        if (!array_reserve(&c->candidates, &c->capacity, c->count))
                return error_no_memory(c->err);
        c->candidates[c->count++] = (struct candidate){
                .name = { o->build_id, o->kind },
                .bytes = o->stored_bytes,
                .used_unix_s = o->used_unix_s,
                .rule = (uint8_t)rule,
                .is_from_upstream = o->source == SOURCE_UPSTREAM,
        };
        return ST_OK;
}

static enum status apply_age_rules(void *context, const struct stored_object *o)
{
        struct collection *c = context;
        const struct gc_options *p = c->options;
        size_t rule = retention_find_rule(p->rules, p->rule_count, o);
        bool is_old, is_unused;

        if (rule == p->rule_count) {
                count_kept(c, o);
                return ST_OK;
        }
        is_old = p->rules[rule].age_s && p->now_unix_s - o->stored_unix_s > (int64_t)p->rules[rule].age_s;
        is_unused = p->rules[rule].unused_s && p->now_unix_s - o->used_unix_s > (int64_t)p->rules[rule].unused_s;
        if ((is_old || is_unused) && !is_protected_object(c, o))
                return doom_object(c, o, is_old ? GC_AGE : GC_UNUSED, rule);
        count_kept(c, o);
        c->rule_bytes[rule] += o->stored_bytes;
        if (!p->rules[rule].size_bytes || is_old || is_unused) /* protected above, also from these */
                return ST_OK;
        return add_gc_candidate(c, o, rule);
}

/* Objects that can be fetched from upstreams again first, then least recently used. */
static int compare_candidates(const void *a, const void *b)
{
        const struct candidate *x = a, *y = b;

        if (x->is_from_upstream != y->is_from_upstream)
                return x->is_from_upstream ? -1 : 1;
        return (x->used_unix_s > y->used_unix_s) - (x->used_unix_s < y->used_unix_s);
}

/* Whether the objects of a rule exceed its limit, without those that are to be removed. */
static enum status exceeds_size_rule(struct collection *c, size_t rule, bool *ret)
{
        const uint64_t limit = c->options->rules[rule].size_bytes;
        enum status st = ST_OK;

        /* Removals that fail leave more to remove. */
        if (c->rule_bytes[rule] > limit && c->rule_bytes[rule] - c->doomed_bytes[rule] <= limit)
                st = remove_doomed_objects(c);
        *ret = c->rule_bytes[rule] > limit;
        return st;
}

static enum status apply_size_rules(struct collection *c)
{
        if (c->count)
                qsort(c->candidates, c->count, sizeof *c->candidates, compare_candidates);
        for (size_t i = 0; i < c->count; i++) {
                const struct candidate *k = &c->candidates[i];
                struct stored_object o;
                bool exceeds;
                enum status st = exceeds_size_rule(c, k->rule, &exceeds);

                if (st)
                        return st;
                if (!exceeds)
                        continue;
                st = debuginfo_store_stat(c->store, &k->name.build_id, k->name.kind, &o, c->err);
                if (st == ST_NOT_FOUND) { /* removed by another thread */
                        discount_kept(c, k->rule, k->bytes);
                        continue;
                }
                if (!st && !is_protected_object(c, &o))
                        st = doom_object(c, &o, GC_SIZE, k->rule);
                if (st)
                        return st;
        }
        return ST_OK;
}

static enum status apply_retention_rules(struct collection *c)
{
        enum status st;

        /* Of local files each removal is seen by the next decision. */
        c->batch = c->store->is_remote ? OBJECT_COMMIT_CHANGES : 1;
        c->doomed = calloc(c->batch, sizeof *c->doomed);
        c->removals = calloc(c->batch, sizeof *c->removals);
        if (!c->doomed || !c->removals)
                return error_no_memory(c->err);
        st = debuginfo_store_list(c->store, apply_age_rules, c, c->err);
        if (!st)
                st = remove_doomed_objects(c);
        if (!st)
                st = apply_size_rules(c);
        return st ? st : remove_doomed_objects(c);
}

enum status debuginfo_store_collect_garbage(struct debuginfo_store *store, const struct gc_options *options,
                                            struct gc_result *ret, struct error *err)
{
        struct collection c = { .store = store, .options = options, .result = ret, .err = err };
        enum status st;

        *ret = (struct gc_result){ 0 };
        if (options->rule_count > RETENTION_RULES_MAX)
                return error_set(err, ST_USAGE, "more than %d retention rules", RETENTION_RULES_MAX);
        st = debuginfo_store_list_companions(store, &c.companions, &c.companion_count, err);
        if (!st)
                st = apply_retention_rules(&c);
        free(c.doomed);
        free(c.removals);
        free(c.companions);
        free(c.candidates);
        if (!options->dry_run)
                partial_expire(store, options->now_unix_s);
        return st || !options->sweep ? st
                                     : sweep_orphans(store, options->dry_run, &ret->orphans, &ret->orphan_bytes, err);
}

/* ---- superseded symbol files ---- */

static const enum object_kind better_kinds[] = { OBJECT_DEBUGINFO, OBJECT_EXECUTABLE };

#define BETTER_KINDS (sizeof better_kinds / sizeof *better_kinds)

static bool is_as_good_stored(struct debuginfo_store *store, const struct stored_object *symbols)
{
        struct stored_object o;

        for (size_t i = 0; i < BETTER_KINDS; i++)
                if (!meta_get(store->meta, &symbols->build_id, better_kinds[i], &o, NULL) &&
                    o.quality >= symbols->quality)
                        return true;
        return false;
}

static bool is_in_aliases(const struct build_id *ids, size_t count, const struct build_id *id)
{
        while (count && !build_id_equal(&ids[count - 1], id))
                count--;
        return count > 0;
}

/* Whether each alias of the symbol file is also an alias of the debuginfo or executable. */
static enum status shares_aliases(struct debuginfo_store *store, const struct build_id *id, bool *ret,
                                  struct error *err)
{
        struct build_id own[OBJECT_ALIASES_MAX], others[BETTER_KINDS * OBJECT_ALIASES_MAX];
        const struct link_databases *links;
        size_t count, other_count = 0, n;
        MDB_txn *txn;
        enum status st = meta_begin_links_read(store->meta, &txn, &links, err);
        int rc;

        if (st)
                return st;
        rc = links_list_aliases(links, txn, &(struct object_name){ *id, OBJECT_SYMBOLS }, own, &count);
        for (size_t i = 0; !rc && i < BETTER_KINDS; i++) {
                rc = links_list_aliases(links, txn, &(struct object_name){ *id, better_kinds[i] }, others + other_count,
                                        &n);
                other_count += n;
        }
        mdb_txn_abort(txn);
        if (rc)
                return meta_set_error(err, rc, "cannot read the aliases of an object");
        while (count && is_in_aliases(others, other_count, &own[count - 1]))
                count--;
        *ret = count == 0;
        return ST_OK;
}

static bool is_kept_by_retention(const struct stored_object *o, const struct retention_rule *rules, size_t count)
{
        size_t i = retention_find_rule(rules, count, o);

        return i < count && !rules[i].age_s && !rules[i].unused_s && !rules[i].size_bytes;
}

enum status debuginfo_store_remove_superseded(struct debuginfo_store *store, const struct stored_object *symbols,
                                              const struct retention_rule *rules, size_t rule_count, struct error *err)
{
        struct stored_object now;
        bool shares = false;
        enum status st = debuginfo_store_stat(store, &symbols->build_id, OBJECT_SYMBOLS, &now, err);

        if (st)
                return st;
        if (memcmp(now.sha256, symbols->sha256, sizeof now.sha256) != 0 || now.is_pinned ||
            is_kept_by_retention(&now, rules, rule_count) || !is_as_good_stored(store, &now))
                return error_set(err, ST_NOT_FOUND, "the symbol file is still needed");
        st = shares_aliases(store, &now.build_id, &shares, err);
        if (!st && !shares)
                st = error_set(err, ST_NOT_FOUND, "the symbol file has an alias that no other object has");
        return st ? st : debuginfo_store_remove_if_unchanged(store, &now, err);
}
