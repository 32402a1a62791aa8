/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_KEY_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_KEY_H

/**
 * @file
 * Keys of stored objects and symbol tables (docs/formats/debuginfo-store.md): objects/ab/cdef.../KIND-GENERATION.zst
 * and symbols/ab/cdef.../symbol-table-GENERATION.v1.zst.
 *
 * The generation is a hash of the content, and in an object store a number drawn for each put. So a removal, which may
 * take effect late, and is made without a lock between nodes, never meets a later put of the same content; and one who
 * knows that its own put was not committed may remove it.
 *
 * Threads: any.
 */
#include "debuginfo-store/debuginfo_store.h"

/** The kind of the row of a symbol table, whose object.sha256 has only its first OBJECT_GENERATION_BYTES. */
#define OBJECT_ROW_SYMBOL_TABLE OBJECT_KIND_COUNT
#define OBJECT_ROW_SYMBOL_TABLE_NAME "symbol-table"
#define OBJECT_GENERATION_BYTES 8

/** "0123456789abcdef", or with the number of the put "0123456789abcdef-0123456789abcdef". */
#define OBJECT_GENERATION_TEXT 34
const char *object_format_generation(const struct stored_object *object, char ret[static OBJECT_GENERATION_TEXT]);
/** Sets the first bytes of sha256, and put_id. False: it is none. */
bool object_parse_generation(const char *text, struct stored_object *ret);

/** The key of an object or symbol table; owned, NULL without memory. */
char *object_format_key(const struct stored_object *object);
/** The build-id, kind, first bytes of sha256, and put_id. False: it is no key that object_format_key() makes. */
bool object_parse_key(const char *key, struct stored_object *ret);

/** The number of a new put; not 0. */
enum status object_draw_put_id(uint64_t *ret, struct error *err) MUST_CHECK;

/** Whether two are the same put of the same content. */
bool object_is_same_put(const struct stored_object *a, const struct stored_object *b);

#endif
