/* SPDX-License-Identifier: Apache-2.0 */
/* Objects by their other names, and which companions the stored ones need. */
#include <stdlib.h>
#include <string.h>

#include "debuginfo-store/store_internal.h"

static enum status is_stored(struct debuginfo_store *store, const struct build_id *id, bool *ret, struct error *err)
{
        enum status st = ST_NOT_FOUND;

        for (unsigned kind = 0; kind < OBJECT_KIND_COUNT && st == ST_NOT_FOUND; kind++) {
                struct stored_object object;

                st = meta_get(store->meta, id, kind, &object, err);
        }
        *ret = !st;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status debuginfo_store_resolve(struct debuginfo_store *store, const struct build_id *id, struct build_id *ret,
                                    struct error *err)
{
        const struct link_databases *links;
        bool found;
        MDB_txn *txn;
        enum status st = is_stored(store, id, &found, err);
        int rc;

        if (st)
                return st;
        if (found) {
                *ret = *id;
                return ST_OK;
        }
        st = meta_links_begin(store->meta, &txn, &links, err);
        if (st)
                return st;
        rc = links_resolve(links, txn, id, ret);
        mdb_txn_abort(txn);
        return rc ? meta_error(err, rc, "an alias of a build-id") : ST_OK;
}

static bool has(const struct build_id *ids, size_t count, const struct build_id *id)
{
        for (size_t i = 0; i < count; i++)
                if (build_id_equal(&ids[i], id))
                        return true;
        return false;
}

/* Each kind has its own; those that lead elsewhere are left out. */
enum status debuginfo_store_aliases(struct debuginfo_store *store, const struct build_id *id, struct build_id *ret, size_t max,
                                    size_t *count_ret, struct error *err)
{
        const struct link_databases *links;
        MDB_txn *txn;
        size_t n = 0;
        enum status st = meta_links_begin(store->meta, &txn, &links, err);
        int rc = 0;

        if (st)
                return st;
        for (unsigned kind = 0; !rc && kind < OBJECT_KIND_COUNT; kind++) {
                struct build_id found[OBJECT_ALIASES_MAX], leads_to;
                size_t count;

                rc = links_aliases(links, txn, &(struct object_name){ *id, kind }, found, &count);
                for (size_t i = 0; !rc && i < count && n < max; i++)
                        if (!has(ret, n, &found[i]) && links_resolve(links, txn, &found[i], &leads_to) == 0 &&
                            build_id_equal(&leads_to, id))
                                ret[n++] = found[i];
        }
        mdb_txn_abort(txn);
        if (rc)
                return meta_error(err, rc, "the aliases of an object");
        *count_ret = n;
        return ST_OK;
}

enum status debuginfo_store_needs(struct debuginfo_store *store, struct object_name **ret, size_t *count_ret, struct error *err)
{
        const struct link_databases *links;
        MDB_txn *txn;
        enum status st = meta_links_begin(store->meta, &txn, &links, err);
        int rc;

        if (st)
                return st;
        rc = links_needs(links, txn, ret, count_ret);
        mdb_txn_abort(txn);
        if (rc)
                return meta_error(err, rc, "what objects need");
        if (*count_ret)
                qsort(*ret, *count_ret, sizeof **ret, object_name_compare);
        return ST_OK;
}
