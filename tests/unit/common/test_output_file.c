/* SPDX-License-Identifier: Apache-2.0 */
/* Files under paths that a user chose: links, devices, FIFOs and files of others stay what they are. */
#include "common/files/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/files/file.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES], path[80], other[80];
static mode_t umask_before;

static void set_up(void)
{
        temporary_dir_create(dir, "output");
        snprintf(path, sizeof path, "%s/out", dir);
        snprintf(other, sizeof other, "%s/other", dir);
        umask_before = umask(0027);
}

static void tear_down(void)
{
        umask(umask_before);
        temporary_dir_remove(dir);
}

static void write_plain(const char *to, const char *text)
{
        ck_assert_int_eq(file_write_durable(to, text, strlen(text), NULL), ST_OK);
}

static enum status write_output(const char *text, struct error *err)
{
        return output_file_write(path, OUTPUT_OF_COMMAND, text, strlen(text), err);
}

static void output_is_written(const char *text)
{
        struct error err = { 0 };

        ck_assert_msg(write_output(text, &err) == ST_OK, "%s", err.text);
}

static void content_is(const char *of, const char *text)
{
        _cleanup_buf_ struct buf content;

        buf_init(&content, 1000);
        ck_assert_int_eq(file_read(of, &content, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&content), text);
}

static struct stat stat_of(const char *of)
{
        struct stat ret;

        ck_assert_int_eq(lstat(of, &ret), 0);
        return ret;
}

/* No temporary file is left. */
static void entries_are(size_t count)
{
        char command[200];

        snprintf(command, sizeof command, "test $(ls -A %s | wc -l) -eq %zu", dir, count);
        ck_assert_int_eq(system(command), 0);
}

START_TEST(new_file_has_the_mode_that_the_umask_leaves)
{
        output_is_written("new");
        content_is(path, "new");
        ck_assert_int_eq(stat_of(path).st_mode, S_IFREG | 0640);
        entries_are(1);
}
END_TEST

START_TEST(new_file_of_a_service_is_readable_by_all)
{
        ck_assert_int_eq(output_file_write(path, OUTPUT_OF_SERVICE, "new", 3, NULL), ST_OK);
        ck_assert_int_eq(stat_of(path).st_mode, S_IFREG | 0644);
}
END_TEST

START_TEST(regular_file_keeps_mode_and_owner)
{
        bool is_root = geteuid() == 0;

        write_plain(path, "old and longer");
        ck_assert_int_eq(chmod(path, 0604), 0);
        if (is_root)
                ck_assert_int_eq(chown(path, 12345, 12346), 0);
        output_is_written("new");
        content_is(path, "new");
        ck_assert_int_eq(stat_of(path).st_mode, S_IFREG | 0604);
        ck_assert_int_eq(stat_of(path).st_uid, is_root ? 12345 : geteuid());
        entries_are(1);
}
END_TEST

START_TEST(file_appears_complete_or_not_at_all)
{
        struct output_file f;

        write_plain(path, "old");
        ck_assert_int_eq(output_file_open(path, OUTPUT_OF_COMMAND, &f, NULL), ST_OK);
        ck_assert_int_eq(file_write_all(f.fd, "half", 4, path, NULL), ST_OK);
        content_is(path, "old");
        output_file_discard(&f);
        content_is(path, "old");
        entries_are(1);
}
END_TEST

START_TEST(other_names_of_a_file_see_the_new_content)
{
        write_plain(path, "old and longer");
        ck_assert_int_eq(link(path, other), 0);
        output_is_written("new");
        content_is(other, "new");
        ck_assert_int_eq(stat_of(path).st_ino, stat_of(other).st_ino);
}
END_TEST

START_TEST(link_is_followed_and_stays)
{
        write_plain(other, "old");
        ck_assert_int_eq(symlink("other", path), 0);
        output_is_written("new");
        ck_assert(S_ISLNK(stat_of(path).st_mode));
        content_is(other, "new");
        entries_are(2);
}
END_TEST

START_TEST(target_of_a_dangling_link_is_created)
{
        ck_assert_int_eq(symlink("other", path), 0);
        ck_assert_int_eq(output_file_check(path, NULL), ST_OK);
        ck_assert_int_eq(access(other, F_OK), -1); /* checking leaves nothing */
        output_is_written("new");
        ck_assert(S_ISLNK(stat_of(path).st_mode));
        content_is(other, "new");
        ck_assert_int_eq(stat_of(other).st_mode, S_IFREG | 0640);
}
END_TEST

START_TEST(device_is_written_in_place)
{
        struct stat is;

        if (mknod(path, S_IFCHR | 0666, makedev(1, 3)) < 0) /* the null device */
                return;
        ck_assert_int_eq(output_file_check(path, NULL), ST_OK);
        output_is_written("gone");
        ck_assert_int_eq(output_file_write(path, OUTPUT_OF_SERVICE, "gone", 4, NULL), ST_OK);
        is = stat_of(path);
        ck_assert(S_ISCHR(is.st_mode) && is.st_rdev == makedev(1, 3));
        ck_assert_int_eq(symlink("out", other), 0);
        ck_assert_int_eq(output_file_write(other, OUTPUT_OF_COMMAND, "gone", 4, NULL), ST_OK);
        ck_assert(S_ISLNK(stat_of(other).st_mode) && S_ISCHR(stat_of(path).st_mode));
        entries_are(2);
}
END_TEST

START_TEST(reader_of_a_fifo_gets_the_text)
{
        char text[8] = "";
        int fd;

        ck_assert_int_eq(mkfifo(path, 0600), 0);
        ck_assert_int_eq(output_file_check(path, NULL), ST_OK);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        output_is_written("text");
        ck_assert_int_eq(read(fd, text, sizeof text), 4);
        ck_assert_str_eq(text, "text");
        close(fd);
        ck_assert(S_ISFIFO(stat_of(path).st_mode));
}
END_TEST

START_TEST(service_does_not_wait_for_the_reader_of_a_fifo)
{
        struct error err;
        int fd;

        ck_assert_int_eq(mkfifo(path, 0600), 0);
        ck_assert_int_eq(output_file_write(path, OUTPUT_OF_SERVICE, "x", 1, &err), ST_OS);
        ck_assert_ptr_nonnull(strstr(err.text, "no process reads it"));
        ck_assert_int_eq(output_file_open_in_place(path, &fd, &err), ST_OS);
}
END_TEST

/* Each is refused with a reason and unchanged. */
static void output_is_refused(const char *why)
{
        struct stat was = stat_of(path), is;
        struct error err;

        ck_assert_int_eq(output_file_check(path, &err), ST_USAGE);
        ck_assert_int_eq(write_output("new", &err), ST_USAGE);
        ck_assert_ptr_nonnull(strstr(err.text, why));
        is = stat_of(path);
        ck_assert(is.st_ino == was.st_ino && is.st_mode == was.st_mode);
}

START_TEST(directory_socket_and_block_device_are_refused)
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        ck_assert_int_eq(mkdir(path, 0700), 0);
        output_is_refused("directory");
        ck_assert_int_eq(rmdir(path), 0);
        memcpy(a.sun_path, path, strlen(path));
        ck_assert_int_eq(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
        output_is_refused("socket");
        close(fd);
        ck_assert_int_eq(unlink(path), 0);
        if (mknod(path, S_IFBLK | 0600, makedev(1, 0)) == 0)
                output_is_refused("block device");
}
END_TEST

START_TEST(descriptor_is_written_at_its_offset)
{
        char name[32];
        int fd = open(other, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

        ck_assert_int_eq(write(fd, "before ", 7), 7);
        snprintf(name, sizeof name, "/dev/fd/%d", fd);
        ck_assert_int_eq(output_file_check(name, NULL), ST_OK);
        ck_assert_int_eq(output_file_write(name, OUTPUT_OF_COMMAND, "text", 4, NULL), ST_OK);
        ck_assert_int_eq(write(fd, " after", 6), 6);
        close(fd);
        content_is(other, "before text after");
        ck_assert_int_eq(output_file_write("/dev/fd/99999", OUTPUT_OF_COMMAND, "x", 1, NULL), ST_OS);
}
END_TEST

START_TEST(missing_directory_is_an_error)
{
        struct error err;

        snprintf(path, sizeof path, "%s/none/out", dir);
        ck_assert_int_eq(write_output("new", &err), ST_OS);
        ck_assert_int_eq(err.os_errno, ENOENT);
        entries_are(0);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("output-file", new_file_has_the_mode_that_the_umask_leaves,
                        new_file_of_a_service_is_readable_by_all, regular_file_keeps_mode_and_owner,
                        file_appears_complete_or_not_at_all, other_names_of_a_file_see_the_new_content,
                        link_is_followed_and_stays, target_of_a_dangling_link_is_created, device_is_written_in_place,
                        reader_of_a_fifo_gets_the_text, service_does_not_wait_for_the_reader_of_a_fifo,
                        directory_socket_and_block_device_are_refused, descriptor_is_written_at_its_offset,
                        missing_directory_is_an_error)
