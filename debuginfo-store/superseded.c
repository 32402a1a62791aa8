/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/superseded.h"

#include <string.h>

#include "debuginfo-store/store_internal.h"

static const enum object_kind better_kinds[] = { OBJECT_DEBUGINFO, OBJECT_EXECUTABLE };

#define BETTER_KINDS (sizeof better_kinds / sizeof *better_kinds)

static bool is_as_good_stored(struct debuginfo_store *store, const struct stored_object *symbols)
{
        struct stored_object o;

        for (size_t i = 0; i < BETTER_KINDS; i++)
                if (!meta_get(store->meta, &symbols->build_id, better_kinds[i], &o, NULL) && o.quality >= symbols->quality)
                        return true;
        return false;
}

static bool has(const struct build_id *ids, size_t count, const struct build_id *id)
{
        while (count && !build_id_equal(&ids[count - 1], id))
                count--;
        return count > 0;
}

/* Whether each alias of the symbols is one of the debuginfo or executable too. */
static enum status shares_aliases(struct debuginfo_store *store, const struct build_id *id, bool *ret, struct error *err)
{
        struct build_id own[OBJECT_ALIASES_MAX], others[BETTER_KINDS * OBJECT_ALIASES_MAX];
        const struct link_databases *links;
        size_t count, other_count = 0, n;
        MDB_txn *txn;
        enum status st = meta_links_begin(store->meta, &txn, &links, err);
        int rc;

        if (st)
                return st;
        rc = links_aliases(links, txn, &(struct object_name){ *id, OBJECT_SYMBOLS }, own, &count);
        for (size_t i = 0; !rc && i < BETTER_KINDS; i++) {
                rc = links_aliases(links, txn, &(struct object_name){ *id, better_kinds[i] }, others + other_count, &n);
                other_count += n;
        }
        mdb_txn_abort(txn);
        if (rc)
                return meta_error(err, rc, "cannot read the other names of an object");
        while (count && has(others, other_count, &own[count - 1]))
                count--;
        *ret = count == 0;
        return ST_OK;
}

static bool is_kept_by_rule(const struct stored_object *o, const struct retention_rule *rules, size_t count)
{
        size_t i = retention_rule_of(rules, count, o);

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
        if (memcmp(now.sha256, symbols->sha256, sizeof now.sha256) != 0 || now.is_pinned || is_kept_by_rule(&now, rules, rule_count) ||
            !is_as_good_stored(store, &now))
                return error_set(err, ST_NOT_FOUND, "the symbols stay");
        st = shares_aliases(store, &now.build_id, &shares, err);
        if (!st && !shares)
                st = error_set(err, ST_NOT_FOUND, "the symbols have a name of their own");
        return st ? st : debuginfo_store_remove_exactly(store, &now, err);
}
