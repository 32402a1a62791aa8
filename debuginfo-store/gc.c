/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/gc.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "debuginfo-store/partial.h"
#include "debuginfo-store/store_internal.h"
#include "debuginfo-store/strays.h"

/* An object that may have to go for its rule's size. */
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
        struct object_name *needs; /* of all stored objects, sorted */
        size_t need_count;
        struct error *err;
};

const char *gc_reason_name(enum gc_reason r)
{
        static const char *const names[GC_REASON_COUNT] = { "age", "unused", "size", "superseded" };

        return names[r];
}

/* Does a stored object need this one? */
static bool is_companion(struct collection *c, const struct stored_object *o)
{
        struct object_name name = { o->build_id, o->kind };
        struct stored_object owner;

        if (o->kind == OBJECT_DWP)
                return meta_get(c->store->meta, &o->build_id, OBJECT_DEBUGINFO, &owner, NULL) == ST_OK ||
                       meta_get(c->store->meta, &o->build_id, OBJECT_EXECUTABLE, &owner, NULL) == ST_OK;
        if (o->kind == OBJECT_DEBUGINFO) /* where older versions put supplementary files */
                name.kind = OBJECT_SUPPLEMENTARY;
        return c->need_count && bsearch(&name, c->needs, c->need_count, sizeof name, object_name_compare);
}

static bool is_protected(struct collection *c, const struct stored_object *o)
{
        if (o->is_pinned)
                c->result->pinned++;
        else if (c->options->needed && c->options->needed(c->options->context, o))
                c->result->needed++;
        else if (is_companion(c, o))
                c->result->companions++;
        else
                return false;
        return true;
}

/* @param removed_ret false: it was replaced, pinned or used meanwhile. */
static enum status drop(struct collection *c, const struct stored_object *o, enum gc_reason why, bool *removed_ret)
{
        enum status st = ST_OK;

        if (!c->options->dry_run)
                st = debuginfo_store_remove_exactly(c->store, o, c->err);
        *removed_ret = !st;
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        c->result->removed[why]++;
        c->result->removed_bytes += o->stored_bytes;
        if (c->options->removed)
                c->options->removed(c->options->context, o, why);
        return ST_OK;
}

static void keep(struct collection *c, const struct stored_object *o)
{
        c->result->objects++;
        c->result->bytes += o->stored_bytes;
}

static enum status add_candidate(struct collection *c, const struct stored_object *o, size_t rule)
{
        if (c->count == c->capacity) {
                size_t capacity = c->capacity ? 2 * c->capacity : 256;
                struct candidate *more = reallocarray(c->candidates, capacity, sizeof *more);

                if (!more)
                        return error_no_memory(c->err);
                c->candidates = more;
                c->capacity = capacity;
        }
        c->candidates[c->count++] = (struct candidate){
                .name = { o->build_id, o->kind }, .bytes = o->stored_bytes, .used_unix_s = o->used_unix_s,
                .rule = (uint8_t)rule, .is_from_upstream = o->source == SOURCE_UPSTREAM,
        };
        return ST_OK;
}

static enum status look(void *context, const struct stored_object *o)
{
        struct collection *c = context;
        const struct gc_options *p = c->options;
        size_t rule = retention_rule_of(p->rules, p->rule_count, o);
        bool is_old, is_unused, removed;

        if (rule == p->rule_count) {
                keep(c, o);
                return ST_OK;
        }
        is_old = p->rules[rule].age_s && p->now_unix_s - o->stored_unix_s > (int64_t)p->rules[rule].age_s;
        is_unused = p->rules[rule].unused_s && p->now_unix_s - o->used_unix_s > (int64_t)p->rules[rule].unused_s;
        if ((is_old || is_unused) && !is_protected(c, o)) {
                enum status st = drop(c, o, is_old ? GC_AGE : GC_UNUSED, &removed);

                if (st || removed)
                        return st;
        }
        keep(c, o);
        c->rule_bytes[rule] += o->stored_bytes;
        if (!p->rules[rule].size_bytes || is_old || is_unused) /* what is protected above is so here */
                return ST_OK;
        return add_candidate(c, o, rule);
}

/* What can be had again first, then what was used longest ago. */
static int order(const void *a, const void *b)
{
        const struct candidate *x = a, *y = b;

        if (x->is_from_upstream != y->is_from_upstream)
                return x->is_from_upstream ? -1 : 1;
        return (x->used_unix_s > y->used_unix_s) - (x->used_unix_s < y->used_unix_s);
}

static enum status shrink(struct collection *c)
{
        if (c->count)
                qsort(c->candidates, c->count, sizeof *c->candidates, order);
        for (size_t i = 0; i < c->count; i++) {
                const struct candidate *k = &c->candidates[i];
                struct stored_object o;
                bool removed = true; /* by somebody else, when it is not found */
                enum status st;

                if (c->rule_bytes[k->rule] <= c->options->rules[k->rule].size_bytes)
                        continue;
                st = debuginfo_store_stat(c->store, &k->name.build_id, k->name.kind, &o, c->err);
                if (!st && is_protected(c, &o))
                        continue;
                if (!st)
                        st = drop(c, &o, GC_SIZE, &removed);
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

enum status debuginfo_store_gc(struct debuginfo_store *store, const struct gc_options *options, struct gc_result *ret,
                               struct error *err)
{
        struct collection c = { .store = store, .options = options, .result = ret, .err = err };
        enum status st;

        *ret = (struct gc_result){ 0 };
        if (options->rule_count > RETENTION_RULES_MAX)
                return error_set(err, ST_USAGE, "more than %d retention rules", RETENTION_RULES_MAX);
        st = debuginfo_store_needs(store, &c.needs, &c.need_count, err);
        if (!st)
                st = debuginfo_store_list(store, look, &c, err);
        if (!st)
                st = shrink(&c);
        free(c.needs);
        free(c.candidates);
        if (!options->dry_run)
                partial_expire(store, options->now_unix_s);
        return st || !options->sweep ? st : strays_sweep(store, options->dry_run, &ret->strays, &ret->stray_bytes, err);
}
