/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/check.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/sha256.h"
#include "debuginfo-store/seekable.h"

static enum status hash_all(struct object_reader *r, const struct stored_object *object, struct error *err)
{
        _cleanup_free_ void *bytes = malloc(SEEKABLE_FRAME_BYTES);
        _cleanup_sha256_ struct sha256 sha = { 0 };
        uint8_t found[SHA256_BYTES];
        enum status st = bytes ? sha256_init(&sha, err) : error_no_memory(err);

        for (uint64_t at = 0; !st && at < object->size_bytes;) {
                ssize_t n = object_reader_pread(r, bytes, SEEKABLE_FRAME_BYTES, at, err);

                if (n <= 0)
                        return n < 0 ? ST_BAD_DATA : error_set(err, ST_BAD_DATA, "it is cut off");
                sha256_update(&sha, bytes, (size_t)n);
                at += (uint64_t)n;
        }
        if (st)
                return st;
        sha256_final(&sha, found);
        return memcmp(found, object->sha256, sizeof found) == 0
                       ? ST_OK
                       : error_set(err, ST_BAD_DATA, "its content has another SHA-256 than its record");
}

enum status debuginfo_store_check(struct debuginfo_store *store, const struct object_name *name, struct error *err)
{
        struct object_reader *r;
        struct stored_object object;
        enum status st = object_reader_open(store, &name->build_id, name->kind, &r, &object, err);

        if (st)
                return st;
        st = hash_all(r, &object, err);
        object_reader_close(r);
        return st;
}
