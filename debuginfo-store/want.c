/* SPDX-License-Identifier: Apache-2.0 */
/* What uploaders ask before they send. */
#include <stdlib.h>

#include "common/cleanup.h"
#include "debuginfo-store/store_internal.h"

static enum status find_rival(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                              struct stored_object *ret, struct error *err)
{
        return kind == OBJECT_SYMBOLS ? object_rival(store, id, kind, ret, err) : debuginfo_store_find(store, id, kind, ret, err);
}

/* @param rival_ret what is as good, when the object is not wanted. */
static enum status answer(struct debuginfo_store *store, struct object_question *q, struct object_name *rival_ret, struct error *err)
{
        struct stored_object have;
        struct build_id owner;
        enum status st = find_rival(store, &q->build_id, q->kind, &have, err);

        if (st == ST_NOT_FOUND && debuginfo_store_resolve(store, &q->build_id, &owner, NULL) == ST_OK)
                st = find_rival(store, &owner, q->kind, &have, err);
        if (st && st != ST_NOT_FOUND)
                return st;
        q->is_wanted = st || q->quality > have.quality;
        q->reason = st ? "unknown" : q->is_wanted ? "better" : "same_or_better";
        if (!q->is_wanted)
                *rival_ret = (struct object_name){ have.build_id, have.kind };
        return ST_OK;
}

enum status debuginfo_store_want(struct debuginfo_store *store, struct object_question *questions, size_t count, struct error *err)
{
        _cleanup_free_ struct object_name *rivals = calloc(count + 1, sizeof *rivals);
        _cleanup_free_ struct object_question **unwanted = calloc(count + 1, sizeof *unwanted);
        size_t n = 0;
        enum status st = rivals && unwanted ? ST_OK : error_no_memory(err);

        for (size_t i = 0; !st && i < count; i++) {
                if (questions[i].reason)
                        continue;
                st = answer(store, &questions[i], &rivals[n], err);
                if (!st && !questions[i].is_wanted)
                        unwanted[n++] = &questions[i];
        }
        if (!st)
                st = debuginfo_store_used(store, rivals, n, err);
        for (size_t i = 0; !st && i < n; i++) /* what went before its use was noted is wanted after all */
                st = answer(store, unwanted[i], &rivals[i], err);
        return st;
}
