/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_OBJECT_TABLE_H
#define CAIRN_DEBUGINFO_STORE_OBJECT_TABLE_H

/**
 * @file
 * What an object store holds, as a Delta table: one row for each object and each symbol table
 * (docs/formats/debuginfo-store.md, "The table of objects"). The LMDB records of a node are a copy of it.
 *
 * A commit adds a file with the changed rows. Files that hold older versions of these rows are replaced in the same
 * commit, and so are small files when there are many, so each version of the table has one row for each name.
 *
 * Threads: any.
 */
#include "debuginfo-store/object_key.h"
#include "storage/storage.h"

#define OBJECT_TABLE_FOLDER "tables/objects"

struct object_row {
        struct stored_object object;
        const void *links; /* from links_encode(); NULL: not recorded */
        size_t links_size;
        const void *sections; /* a list as in struct section_note; NULL: none */
        size_t sections_size;
};

struct object_change {
        struct object_row row; /* borrowed; of a removal only build-id and kind are read */
        bool removes;
        bool keeps_notes; /* links and sections stay those of the present row */
};

struct object_table;

/**
 * Open the table of a storage. Unless read_only it is created, and when the storage is away the table has no rows until
 * object_table_follow() or a commit can read it.
 * @return ST_NOT_FOUND when read_only and absent.
 */
enum status object_table_open(struct storage *s, bool read_only, struct object_table **ret,
                              struct error *err) MUST_CHECK;
void object_table_close(struct object_table *t); /* NULL is allowed */

/** Whether the table has been read since it was opened. Any thread. */
bool object_table_is_read(const struct object_table *t);

/** @param row  borrowed for the call. A failure ends the visit. */
typedef enum status object_row_visit(void *context, const struct object_row *row, struct error *err);

/** Visit the rows of the state that was read last, in no order. Not from visit(). */
enum status object_table_visit(struct object_table *t, object_row_visit *visit, void *context,
                               struct error *err) MUST_CHECK;

/**
 * Make changes of different names visible at once, durably. One that removes what is not there has no effect.
 * @return ST_OK; ST_BUSY when other writers kept committing; ST_OS, after which the changes may be in the table.
 */
enum status object_table_commit(struct object_table *t, const struct object_change *changes, size_t count,
                                struct error *err) MUST_CHECK;

/**
 * Read what other writers committed.
 * @param changed_ret  whether that was anything since the last call with it, also when a commit read it; may be NULL.
 */
enum status object_table_follow(struct object_table *t, bool *changed_ret, struct error *err) MUST_CHECK;

/**
 * The put that a row names: what object_format_key() needs. Makes no request, and waits for none. False: there is no
 * row.
 */
bool object_table_find_put(struct object_table *t, const struct object_name *name, struct stored_object *ret);

/** Remove files and log entries that readers had a day to leave, and files of a day that no version has. */
enum status object_table_vacuum(struct object_table *t, struct error *err) MUST_CHECK;

#endif
