/* SPDX-License-Identifier: Apache-2.0 */
/* The command that `cairn record` starts, before its exec. */
#include <check.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/commands/record_run.h"
#include "tests/support/suite.h"

static void read_name(pid_t pid, char name[static 32])
{
        char path[64];
        FILE *f;

        snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
        f = fopen(path, "re");
        ck_assert_ptr_nonnull(f);
        ck_assert_ptr_nonnull(fgets(name, 32, f));
        fclose(f);
}

START_TEST(waiting_command_has_the_name_of_its_program)
{
        char *argv[] = { "/usr/bin/sleep", "0", NULL };
        char own[32], name[32];
        struct record_child child;
        struct error err;

        read_name(getpid(), own);
        ck_assert_msg(record_child_start(&child, argv, &err) == ST_OK, "%s", err.text);
        read_name(child.pid, name); /* whether it has run or not */
        ck_assert_str_eq(name, "sleep\n");
        read_name(getpid(), name);
        ck_assert_str_eq(name, own);
        ck_assert_msg(record_child_go(&child, &err) == ST_OK, "%s", err.text);
        record_child_deinit(&child);
}
END_TEST

TEST_SUITE("record child", waiting_command_has_the_name_of_its_program)
