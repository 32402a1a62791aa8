/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/temporary_dir.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/files/file.h"

void temporary_dir_create(char ret[TEMPORARY_DIR_BYTES], const char *name)
{
        ck_assert_int_lt(snprintf(ret, TEMPORARY_DIR_BYTES, "/tmp/cairn-%s-XXXXXX", name), TEMPORARY_DIR_BYTES);
        ck_assert_ptr_nonnull(mkdtemp(ret));
}

void temporary_dir_remove(const char *dir)
{
        struct error err;

        ck_assert_msg(file_remove_tree(dir, &err) == ST_OK, "%s", err.text);
}
