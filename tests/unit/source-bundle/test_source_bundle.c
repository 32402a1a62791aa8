/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "source-bundle/bundle.h"
#include "tests/support/bytes_source.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct source_file files[3];
static const char *const contents[3] = { "int a;\n", "", "int c(void);\n" };
static struct build_id id;

static enum status open_memory(const uint8_t *bytes, size_t size, struct source_bundle *ret)
{
        struct bytes_source m = { bytes, size };
        struct error err;

        return source_bundle_open(bytes_source_read, &m, size, ret, &err);
}

static size_t bundle_into(uint8_t *bytes, size_t capacity)
{
        _cleanup_close_ int fd = memfd_create("bundle", 0);
        struct error err = { 0 };
        uint64_t size;
        enum status st = source_bundle_write(fd, &id, files, 3, &size, &err);

        ck_assert_msg(st == ST_OK, "%s", err.text);
        ck_assert_uint_le(size, capacity);
        ck_assert_int_eq(pread(fd, bytes, capacity, 0), (ssize_t)size);
        return size;
}

static void set_up(void)
{
        static const char *const names[3] = { "/src/a.c", "/src/a.c.inc", "/usr/include/c.h" };
        struct error err;

        build_id_from_bytes(&id, (const uint8_t *)"0123456789abcdefghij", 20);
        temporary_dir_create(dir, "source-bundle");
        for (size_t i = 0; i < 3; i++) {
                files[i] = (struct source_file){ .name = strdup(names[i]), .size_bytes = strlen(contents[i]) };
                ck_assert_int_gt(asprintf(&files[i].path, "%s/%zu", dir, i), 0);
                ck_assert_int_eq(file_write_durable(files[i].path, contents[i], strlen(contents[i]), &err), ST_OK);
        }
}

static void tear_down(void)
{
        for (size_t i = 0; i < 3; i++) {
                free(files[i].name);
                free(files[i].path);
        }
        temporary_dir_remove(dir);
}

START_TEST(files_are_found_by_full_name)
{
        uint8_t bytes[1024];
        size_t n = bundle_into(bytes, sizeof bytes);
        struct source_bundle b;
        uint64_t offset, size;

        ck_assert_int_eq(open_memory(bytes, n, &b), ST_OK);
        ck_assert(build_id_equal(&b.build_id, &id));
        for (size_t i = 0; i < 3; i++) {
                ck_assert(source_bundle_find(&b, files[i].name, &offset, &size));
                ck_assert_uint_eq(size, strlen(contents[i]));
                ck_assert(memcmp(bytes + offset, contents[i], size) == 0);
        }
        ck_assert(!source_bundle_find(&b, "/src/a", &offset, &size));
        ck_assert(!source_bundle_find(&b, "/src/a.c.in", &offset, &size));
        ck_assert(!source_bundle_find(&b, "", &offset, &size));
        ck_assert(!source_bundle_find(&b, "/zzz", &offset, &size));
        source_bundle_close(&b);
}
END_TEST

START_TEST(files_are_found_by_normalized_name)
{
        uint8_t bytes[1024];
        struct source_bundle b;
        uint64_t offset, size;

        for (size_t i = 0; i < 2; i++)
                free(files[i].name);
        files[0].name = strdup("/build/../src//b.c");
        files[1].name = strdup("/src/./a.c");
        ck_assert_int_eq(open_memory(bytes, bundle_into(bytes, sizeof bytes), &b), ST_OK);
        ck_assert(source_bundle_find_normalized(&b, "/src/b.c", &offset, &size));
        ck_assert(memcmp(bytes + offset, contents[0], size) == 0);
        ck_assert(source_bundle_find_normalized(&b, "/src/a.c", &offset, &size));
        ck_assert(memcmp(bytes + offset, contents[1], size) == 0);
        ck_assert(source_bundle_find_normalized(&b, "/usr/include/c.h", &offset, &size));
        ck_assert(!source_bundle_find_normalized(&b, "/src/./a.c", &offset, &size));
        ck_assert(!source_bundle_find_normalized(&b, "/src", &offset, &size));
        source_bundle_close(&b);
}
END_TEST

START_TEST(truncations_and_changed_bytes_stay_in_bounds)
{
        uint8_t bytes[1024];
        size_t n = bundle_into(bytes, sizeof bytes);

        for (size_t cut = 0; cut < n; cut++) {
                struct source_bundle b;

                ck_assert_int_ne(open_memory(bytes, cut, &b), ST_OK);
        }
        for (size_t at = 0; at < n; at++) {
                for (unsigned bit = 0; bit < 8; bit++) {
                        struct source_bundle b;
                        uint64_t offset, size;

                        bytes[at] ^= (uint8_t)(1u << bit);
                        if (open_memory(bytes, n, &b) == ST_OK) {
                                for (size_t i = 0; i < 3; i++)
                                        if (source_bundle_find(&b, files[i].name, &offset, &size))
                                                ck_assert(offset <= n && size <= n - offset);
                                source_bundle_close(&b);
                        }
                        bytes[at] ^= (uint8_t)(1u << bit);
                }
        }
}
END_TEST

START_TEST(file_changed_during_bundling_is_refused)
{
        _cleanup_close_ int fd = memfd_create("bundle", 0);
        struct error err;
        uint64_t size;

        files[2].size_bytes++;
        ck_assert_int_eq(source_bundle_write(fd, &id, files, 3, &size, &err), ST_NOT_FOUND);
        ck_assert_ptr_nonnull(strstr(err.text, "changed while it was bundled"));
        files[2].size_bytes -= 2;
        ck_assert_int_eq(source_bundle_write(fd, &id, files, 3, &size, &err), ST_NOT_FOUND);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("source bundle", files_are_found_by_full_name, files_are_found_by_normalized_name,
                        truncations_and_changed_bytes_stay_in_bounds, file_changed_during_bundling_is_refused)
