/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/sections.h"

#include <string.h>

#include "common/limits.h"
#include "debuginfo-store/record.h"

#define VERSION 1
#define LIST_AT (1 + sizeof ((struct stored_object *)NULL)->sha256)

static MDB_val key_of(uint8_t out[static RECORD_KEY_MAX], const struct build_id *id, enum object_kind kind)
{
        return (MDB_val){ .mv_size = record_key(out, id, kind), .mv_data = out };
}

int sections_open(MDB_txn *txn, bool read_only, struct section_notes *ret)
{
        int rc = mdb_dbi_open(txn, "sections", read_only ? 0 : MDB_CREATE, &ret->dbi);

        ret->is_open = !rc;
        return rc == MDB_NOTFOUND ? 0 : rc;
}

int sections_put(const struct section_notes *d, MDB_txn *txn, const struct stored_object *object, const struct section_note *note)
{
        uint8_t bytes[RECORD_KEY_MAX], *to;
        MDB_val key = key_of(bytes, &object->build_id, object->kind), value = { .mv_size = LIST_AT + note->size };
        int rc;

        if (!note->size || note->size > LIMIT_SECTION_LIST_BYTES)
                return sections_remove(d, txn, &(struct object_name){ object->build_id, object->kind });
        rc = mdb_put(txn, d->dbi, &key, &value, MDB_RESERVE);
        if (rc)
                return rc;
        to = value.mv_data;
        to[0] = VERSION;
        memcpy(to + 1, object->sha256, sizeof object->sha256);
        memcpy(to + LIST_AT, note->list, note->size);
        return 0;
}

int sections_remove(const struct section_notes *d, MDB_txn *txn, const struct object_name *name)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = key_of(bytes, &name->build_id, name->kind);
        int rc = mdb_del(txn, d->dbi, &key, NULL);

        return rc == MDB_NOTFOUND ? 0 : rc;
}

int sections_get(const struct section_notes *d, MDB_txn *txn, const struct stored_object *object, struct section_note *ret)
{
        uint8_t bytes[RECORD_KEY_MAX];
        MDB_val key = key_of(bytes, &object->build_id, object->kind), value;
        int rc = d->is_open ? mdb_get(txn, d->dbi, &key, &value) : MDB_NOTFOUND;
        const uint8_t *at;

        if (rc)
                return rc;
        at = value.mv_data;
        if (value.mv_size <= LIST_AT || at[0] != VERSION || memcmp(at + 1, object->sha256, sizeof object->sha256) != 0)
                return MDB_NOTFOUND;
        *ret = (struct section_note){ at + LIST_AT, value.mv_size - LIST_AT };
        return 0;
}
