/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is replaced while its stripped version is written. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"
#include "uploader/strip.h"

static char dir[TEMPORARY_DIR_BYTES], path[80], other[80];
static enum { NOBODY, LINKER, WRITER } comes;

/*
 * Interposes the C library's function: replaces the program when the stripped file has been written and its permissions
 * are set.
 */
int fchmod(int fd, mode_t mode)
{
        if (comes == LINKER && mode != 0644)
                ck_assert_int_eq(rename(other, path), 0);
        if (comes == WRITER && mode != 0644) {
                _cleanup_close_ int program = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

                ck_assert_int_eq(write(program, "more", 4), 4);
        }
        return (int)syscall(SYS_fchmod, fd, mode);
}

static void set_up(void)
{
        char command[400];

        comes = NOBODY;
        temporary_dir_create(dir, "strip");
        snprintf(path, sizeof path, "%s/program", dir);
        snprintf(other, sizeof other, "%s/other", dir);
        snprintf(command, sizeof command,
                 "echo 'int main(void) { return 0; }' | cc -g -Wl,--build-id -x c -o %s - && cp %s %s", path, path,
                 other);
        ck_assert_int_eq(system(command), 0);
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

static enum status strip_program(struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        bool done;

        ck_assert_int_eq(elf_image_open(path, &img, err), ST_OK);
        return strip_file(path, &img.build_id, &done, err);
}

START_TEST(program_is_stripped_in_place)
{
        struct stat before, after;
        struct error err;

        ck_assert_int_eq(stat(path, &before), 0);
        ck_assert_msg(strip_program(&err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(stat(path, &after), 0);
        ck_assert_int_lt(after.st_size, before.st_size);
}
END_TEST

static void nothing_is_stripped(const struct stat *wanted)
{
        struct stat after;
        struct error err;

        ck_assert_int_eq(strip_program(&err), ST_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(err.text, "was replaced"));
        ck_assert_int_eq(stat(path, &after), 0);
        ck_assert_uint_eq(after.st_ino, wanted->st_ino);
        ck_assert_int_eq(after.st_size, wanted->st_size);
}

START_TEST(program_replaced_concurrently_is_kept)
{
        struct stat wanted;

        ck_assert_int_eq(stat(other, &wanted), 0);
        comes = LINKER;
        nothing_is_stripped(&wanted);
}
END_TEST

START_TEST(program_modified_concurrently_is_kept)
{
        struct stat wanted;

        ck_assert_int_eq(stat(path, &wanted), 0);
        wanted.st_size += 4;
        comes = WRITER;
        nothing_is_stripped(&wanted);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("strip-file", program_is_stripped_in_place, program_replaced_concurrently_is_kept,
                        program_modified_concurrently_is_kept)
