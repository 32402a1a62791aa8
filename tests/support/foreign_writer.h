/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_SUPPORT_FOREIGN_WRITER_H
#define CAIRN_TESTS_SUPPORT_FOREIGN_WRITER_H

/*
 * Commits to the tables of a store fixture from a second writer with its own view of the log. The store sees these
 * commits only when it rereads the log.
 */
#include "profile-store/tables/tables.h"
#include "tests/support/store_fixture.h"

/* Add a copy of a file, which may have been removed, under another name. */
void foreign_writer_add_copy(const struct store_fixture *f, enum table table, const struct table_part *from,
                             const char *name);

void foreign_writer_remove(const struct store_fixture *f, enum table table, struct table_part *part);

#endif
