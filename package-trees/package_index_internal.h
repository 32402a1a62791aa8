/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PACKAGE_TREES_PACKAGE_INDEX_INTERNAL_H
#define CAIRN_PACKAGE_TREES_PACKAGE_INDEX_INTERNAL_H

#include <lmdb.h>
#include <stdatomic.h>

#include "package-trees/package_index.h"

struct package_index {
        MDB_env *env;
        MDB_dbi paths, files, contents, objects, sources, sections;
        atomic_uint next_number; /* numbers are unique during the lifetime of the service */
};

#define PACKAGE_KEY_MAX (1 + BUILD_ID_MAX + 8)

enum status package_index_error(struct error *err, int rc, const char *what);

/* Numbers in keys are big-endian, so that they sort. */

/** Key of an object: size and bytes of the build-id, number, ordinal. */
size_t package_make_object_key(uint8_t out[static PACKAGE_KEY_MAX], const struct build_id *id, uint32_t number,
                               uint32_t ordinal);

/** Key of an object's section list: number, ordinal. */
void package_make_sections_key(uint8_t out[static 8], uint32_t number, uint32_t ordinal);

void package_file_encode(struct buf *to, const struct package_file *f);
/** The path is borrowed from the value. */
enum status package_file_decode(const MDB_val *value, struct package_file *ret, struct error *err) MUST_CHECK;
void package_object_encode(struct buf *to, const struct package_object *o);
/** The path is borrowed from the value. */
enum status package_object_decode(const MDB_val *key, const MDB_val *value, struct package_object *ret,
                                  uint32_t *number_ret, struct error *err) MUST_CHECK;

#endif
