/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfo_store_collect_garbage() has the passes: list the companions that stored objects need, walk all records and
 * apply the rules of age and use (apply_age_rules()), which also adds up the bytes of each rule and collects
 * candidates for its size limit, then remove sorted candidates until each rule fits (apply_size_rules()), expire
 * partial uploads and sweep files without a record. The retention rules themselves are in object_retention.c.
 *
 * Uploads and readers continue meanwhile. An object is removed only if its content, pin and time of use are those that
 * were judged (debuginfo_store_remove_if_unchanged()); otherwise it is kept.
 *
 * Lock: `publish` of the store is held while a file is swept, so that no record for it is created between the test and
 * the removal.
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
/* An object may be put into an object store this long before the commit that names it. */
#define UNCOMMITTED_MS (INT64_C(24) * 3600 * 1000)

/* ---- orphans ---- */

struct sweep {
        struct debuginfo_store *store;
        bool dry_run;
        int64_t before_ms; /* files put later are kept */
        uint64_t *count, *bytes;
};

static bool parse_file_kind(const char *file, enum object_kind *ret)
{
        const char *dash = strchr(file, '-'), *end = strrchr(file, '.');
        char kind[16];

        if (!dash || !end || strcmp(end, ".zst") != 0 || (size_t)(dash - file) >= sizeof kind)
                return false;
        snprintf(kind, sizeof kind, "%.*s", (int)(dash - file), file);
        return object_kind_parse(kind, ret);
}

/* "objects/ab/cdef/KIND-HASH.zst" */
static bool parse_object_key(const char *key, struct build_id *id_ret, enum object_kind *kind_ret)
{
        const char *prefix = key + strlen(OBJECT_FOLDER), *rest = prefix + 3, *file = path_base(key);
        char hex[BUILD_ID_HEX_MAX];
        int n;

        if (strcspn(prefix, "/") != 2 || file <= rest || strcspn(rest, "/") != (size_t)(file - rest) - 1)
                return false;
        n = snprintf(hex, sizeof hex, "%.2s%.*s", prefix, (int)(file - rest) - 1, rest);
        return n > 0 && (size_t)n < sizeof hex && build_id_from_hex(id_ret, hex, (size_t)n) &&
               parse_file_kind(file, kind_ret);
}

/*
 * Whether the table of objects names an object. A commit whose answer was lost may have added it, without a record of
 * this node.
 */
static bool is_in_object_table(const struct debuginfo_store *store, const char *key, const struct object_name *name)
{
        struct stored_object o = { .build_id = name->build_id, .kind = name->kind };
        _cleanup_free_ char *live = NULL;

        if (!store->table || !object_table_find_generation(store->table, name, o.sha256))
                return false;
        live = object_format_key(&o);
        return !live || strcmp(live, key) == 0;
}

/* The caller holds the publish lock, so that no record for the object can be created. */
static enum status sweep_locked(struct sweep *s, const char *key, const struct build_id *id, enum object_kind kind,
                                uint64_t size, struct error *err)
{
        _cleanup_free_ char *live = NULL;
        struct stored_object o;
        enum status st = meta_get(s->store->meta, id, kind, &o, err);

        if (st && st != ST_NOT_FOUND)
                return st;
        if (!st) {
                live = object_format_key(&o);
                if (!live)
                        return error_no_memory(err);
                if (strcmp(live, key) == 0)
                        return ST_OK;
        }
        if (is_in_object_table(s->store, key, &(struct object_name){ *id, kind }))
                return ST_OK;
        st = s->dry_run ? ST_OK : storage_remove(s->store->storage, key, err);
        *s->count += !st;
        *s->bytes += st ? 0 : size;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status sweep_object(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        struct sweep *s = context;
        enum object_kind kind;
        struct build_id id;
        enum status st;

        if (!parse_object_key(key, &id, &kind) || info->modified_ms > s->before_ms)
                return ST_OK;
        pthread_mutex_lock(&s->store->publish);
        st = sweep_locked(s, key, &id, kind, info->size, err);
        pthread_mutex_unlock(&s->store->publish);
        return st;
}

static enum status sweep_orphans(struct debuginfo_store *store, bool dry_run, uint64_t *count_ret, uint64_t *bytes_ret,
                                 struct error *err)
{
        struct sweep s = { .store = store,
                           .dry_run = dry_run,
                           .before_ms = store->is_remote ? storage_now_ms(store->storage) - UNCOMMITTED_MS : INT64_MAX,
                           .count = count_ret,
                           .bytes = bytes_ret };
        enum status st;

        *count_ret = *bytes_ret = 0;
        st = storage_list(store->storage, OBJECT_FOLDER, "", sweep_object, &s, err);
        return st || !store->table || dry_run ? st : object_table_vacuum(store->table, err);
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

struct collection {
        struct debuginfo_store *store;
        const struct gc_options *options;
        struct gc_result *result;
        struct candidate *candidates;
        size_t count, capacity;
        uint64_t rule_bytes[RETENTION_RULES_MAX];
        struct object_name *companions; /* companions of all stored objects, sorted */
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

/* @param removed_ret false: it was replaced, pinned or used since it was listed. */
static enum status collect_object(struct collection *c, const struct stored_object *o, enum gc_reason why,
                                  bool *removed_ret)
{
        enum status st = ST_OK;

        if (!c->options->dry_run)
                st = debuginfo_store_remove_if_unchanged(c->store, o, c->err);
        *removed_ret = !st;
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        assert(why < GC_REASON_COUNT && !o->is_pinned);
        c->result->removed[why]++;
        c->result->removed_bytes += o->stored_bytes;
        if (c->options->removed)
                c->options->removed(c->options->context, o, why);
        return ST_OK;
}

static void count_kept(struct collection *c, const struct stored_object *o)
{
        c->result->objects++;
        c->result->bytes += o->stored_bytes;
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
        bool is_old, is_unused, removed;

        if (rule == p->rule_count) {
                count_kept(c, o);
                return ST_OK;
        }
        is_old = p->rules[rule].age_s && p->now_unix_s - o->stored_unix_s > (int64_t)p->rules[rule].age_s;
        is_unused = p->rules[rule].unused_s && p->now_unix_s - o->used_unix_s > (int64_t)p->rules[rule].unused_s;
        if ((is_old || is_unused) && !is_protected_object(c, o)) {
                enum status st = collect_object(c, o, is_old ? GC_AGE : GC_UNUSED, &removed);

                if (st || removed)
                        return st;
        }
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

static enum status apply_size_rules(struct collection *c)
{
        if (c->count)
                qsort(c->candidates, c->count, sizeof *c->candidates, compare_candidates);
        for (size_t i = 0; i < c->count; i++) {
                const struct candidate *k = &c->candidates[i];
                struct stored_object o;
                bool removed = true; /* by another thread, if it is not found */
                enum status st;

                if (c->rule_bytes[k->rule] <= c->options->rules[k->rule].size_bytes)
                        continue;
                st = debuginfo_store_stat(c->store, &k->name.build_id, k->name.kind, &o, c->err);
                if (!st && is_protected_object(c, &o))
                        continue;
                if (!st)
                        st = collect_object(c, &o, GC_SIZE, &removed);
                if (st && st != ST_NOT_FOUND)
                        return st;
                if (!removed)
                        continue;
                c->rule_bytes[k->rule] -= k->bytes;
                c->result->objects--;
                c->result->bytes -= k->bytes;
        }
        return ST_OK;
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
                st = debuginfo_store_list(store, apply_age_rules, &c, err);
        if (!st)
                st = apply_size_rules(&c);
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
