/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/limits.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/gc.h"
#include "elf-image/elf_image.h"
#include "sandbox/worker.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

/* The object of these tests is the test program itself: a complete ELF file with a build-id and DWARF. */
static struct file_map self;
static struct build_id self_id;
static uint8_t self_sha[32];
static char dir[TEMPORARY_DIR_BYTES];
static struct debuginfo_store *store;

static void set_up(void)
{
        struct error err;
        struct elf_image img;
        struct sha256 sha;
        const char *build = getenv("CAIRN_SAN");
        char *program = path_join(build ? build : "build/san", "cairn");

        worker_set_program(program); /* kept for the lifetime of the process */
        ck_assert_int_eq(file_map_open("/proc/self/exe", LIMIT_OBJECT_BYTES, &self, &err), ST_OK);
        ck_assert_int_eq(elf_image_from_memory(self.data, self.size, "self", &img, &err), ST_OK);
        self_id = img.build_id;
        elf_image_close(&img);
        ck_assert_uint_gt(self_id.size, 0);
        ck_assert_int_eq(sha256_init(&sha, &err), ST_OK);
        sha256_update(&sha, self.data, self.size);
        sha256_final(&sha, self_sha);
        sha256_deinit(&sha);
        temporary_dir_create(dir, "store");
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, &err), ST_OK);
}

static void tear_down(void)
{
        debuginfo_store_close(store);
        file_map_close(&self);
        temporary_dir_remove(dir);
}

static struct object_claim claim_self(void)
{
        struct object_claim c = {
                .build_id = self_id, .kind = OBJECT_DEBUGINFO, .size_bytes = self.size, .name = "dir/self"
        };

        memcpy(c.sha256, self_sha, 32);
        return c;
}

static enum status send(const struct object_claim *claim, const void *data, size_t n, struct stored_object *ret,
                        bool *same, struct error *err)
{
        struct object_upload *u;
        enum status st;

        st = object_upload_begin(store, claim, &u, err);
        if (st)
                return st;
        for (size_t at = 0; at < n; at += 65521) {
                st = object_upload_append(u, (const char *)data + at, n - at < 65521 ? n - at : 65521, err);
                if (st) {
                        object_upload_abort(u);
                        return st;
                }
        }
        return object_upload_finish(u, ret, same, err);
}

static void store_self(void)
{
        struct object_claim claim = claim_self();
        struct stored_object object;
        bool same;
        struct error err = { 0 };
        enum status st = send(&claim, self.data, self.size, &object, &same, &err);

        ck_assert_msg(st == ST_OK, "%s", err.text);
}

static void nothing_is_stored(void)
{
        struct stored_object object;

        ck_assert_int_eq(debuginfo_store_stat(store, &self_id, OBJECT_DEBUGINFO, &object, NULL), ST_NOT_FOUND);
}

START_TEST(stored_object_reads_back_byte_for_byte_after_reopening)
{
        struct object_reader *r;
        struct stored_object object;
        struct error err;
        uint8_t *got = malloc(self.size);

        store_self();
        debuginfo_store_close(store);
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, &err), ST_OK);
        ck_assert_int_eq(object_reader_open(store, &self_id, OBJECT_DEBUGINFO, &r, &object, &err), ST_OK);
        ck_assert_uint_eq(object.size_bytes, self.size);
        ck_assert_str_eq(object.name, "self");
        ck_assert_int_eq(object.quality, QUALITY_DWARF);
        ck_assert_int_eq(object_reader_pread(r, got, self.size, 0, &err), (ssize_t)self.size);
        ck_assert(memcmp(got, self.data, self.size) == 0);
        object_reader_close(r);
        free(got);
}
END_TEST

static struct stored_object self_object(void)
{
        struct stored_object ret;

        ck_assert_int_eq(debuginfo_store_find(store, &self_id, OBJECT_DEBUGINFO, &ret, NULL), ST_OK);
        return ret;
}

/* Reads .comment like a debuginfod client; its offset is taken from the program itself. */
static enum status comment_at_hand(const struct stored_object *object)
{
        const struct elf_section *section;
        struct elf_image img;
        void *bytes = NULL;
        size_t size;
        enum status st = debuginfo_store_read_cached_section(store, object, ".comment", &bytes, &size, NULL);

        ck_assert_int_eq(elf_image_from_memory(self.data, self.size, "self", &img, NULL), ST_OK);
        section = elf_image_section(&img, ".comment");
        if (!st) {
                ck_assert_uint_eq(size, section->size);
                ck_assert_mem_eq(bytes, (const char *)self.data + section->offset, size);
        }
        elf_image_close(&img);
        free(bytes);
        return st;
}

static void read_comment(void)
{
        struct object_reader *r;
        uint64_t offset, size;
        struct error err;
        char got[512];

        ck_assert_int_eq(object_reader_open(store, &self_id, OBJECT_DEBUGINFO, &r, NULL, &err), ST_OK);
        object_reader_use_cache(r);
        ck_assert_int_eq(object_reader_find_section(r, ".comment", &offset, &size, &err), ST_OK);
        ck_assert_uint_le(size, sizeof got);
        ck_assert_int_eq(object_reader_pread(r, got, size, offset, &err), (ssize_t)size);
        ck_assert_mem_eq(got, (const char *)self.data + offset, size);
        object_reader_close(r);
}

START_TEST(section_offsets_survive_reopening_and_contents_are_cached)
{
        struct stored_object object;
        struct error err;
        size_t size;
        void *bytes;

        store_self();
        debuginfo_store_close(store);
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, &err), ST_OK);
        object = self_object();
        ck_assert_int_eq(debuginfo_store_read_cached_section(store, &object, ".nothing", &bytes, &size, &err),
                         ST_NOT_FOUND);
        ck_assert_int_eq(comment_at_hand(&object), ST_BUSY);
        read_comment();
        ck_assert_int_eq(comment_at_hand(&object), ST_OK);
}
END_TEST

START_TEST(sections_of_replaced_content_are_not_used)
{
        struct object_reader *r;
        struct stored_object object;
        uint64_t offset, size;
        struct error err;

        store_self();
        read_comment();
        object = self_object();
        object.sha256[31] ^= 1;
        ck_assert_int_eq(comment_at_hand(&object), ST_BUSY);
        ck_assert_int_eq(object_reader_open(store, &self_id, OBJECT_DEBUGINFO, &r, NULL, &err), ST_OK);
        ck_assert_int_eq(debuginfo_store_remove(store, &self_id, OBJECT_DEBUGINFO, &err), ST_OK);
        ck_assert_int_eq(object_reader_find_section(r, ".comment", &offset, &size, &err), ST_UNSUPPORTED);
        object_reader_close(r);
}
END_TEST

START_TEST(zstd_upload_equals_plain_upload)
{
        struct object_claim claim = claim_self();
        size_t bound = ZSTD_compressBound(self.size);
        void *packed = malloc(bound);
        size_t n = ZSTD_compress(packed, bound, self.data, self.size, 1);
        struct stored_object object;
        bool same;
        struct error err = { 0 };

        claim.is_zstd = true;
        ck_assert_msg(send(&claim, packed, n, &object, &same, &err) == ST_OK, "%s", err.text);
        ck_assert(!same);
        ck_assert(memcmp(object.sha256, self_sha, 32) == 0);
        claim.is_zstd = false;
        ck_assert_int_eq(send(&claim, self.data, self.size, &object, &same, &err), ST_OK);
        ck_assert(same);
        free(packed);
}
END_TEST

START_TEST(truncated_zstd_stream_is_refused_without_residue)
{
        struct object_claim claim = claim_self();
        size_t bound = ZSTD_compressBound(self.size);
        void *packed = malloc(bound);
        size_t n = ZSTD_compress(packed, bound, self.data, self.size, 1);
        struct stored_object object;
        bool same;
        struct error err;

        claim.is_zstd = true;
        claim.size_bytes = 0;
        ck_assert_int_eq(send(&claim, packed, n / 2, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_TRUNCATED);
        nothing_is_stored();
        free(packed);
}
END_TEST

START_TEST(other_build_id_is_refused)
{
        struct object_claim claim = claim_self();
        struct stored_object object;
        bool same;
        struct error err;

        claim.build_id.bytes[0] ^= 1;
        ck_assert_int_eq(send(&claim, self.data, self.size, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_BUILD_ID);
        ck_assert_ptr_nonnull(strstr(err.text, "not the claimed"));
        nothing_is_stored();
}
END_TEST

START_TEST(other_hash_is_refused)
{
        struct object_claim claim = claim_self();
        struct stored_object object;
        bool same;
        struct error err;

        claim.sha256[5] ^= 1;
        ck_assert_int_eq(send(&claim, self.data, self.size, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_HASH);
        nothing_is_stored();
}
END_TEST

START_TEST(upload_that_is_not_elf_is_refused)
{
        struct object_claim claim = { .build_id = self_id, .kind = OBJECT_DEBUGINFO };
        struct stored_object object;
        bool same;
        struct error err;

        ck_assert_int_eq(send(&claim, "#!/bin/sh\n", 10, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_NOT_ELF);
        ck_assert_int_eq(send(&claim, self.data, self.size / 2, &object, &same, &err), ST_BAD_DATA);
        nothing_is_stored();
}
END_TEST

START_TEST(bytes_past_the_announced_size_are_refused_at_once)
{
        struct object_claim claim = claim_self();
        struct stored_object object;
        bool same;
        struct error err;

        claim.size_bytes = 1000;
        ck_assert_int_eq(send(&claim, self.data, self.size, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_SIZE);
        nothing_is_stored();
}
END_TEST

START_TEST(only_better_quality_is_wanted)
{
        struct object_offer unknown = { self_id, OBJECT_DEBUGINFO, .quality = QUALITY_SYMTAB };
        struct object_offer known[] = {
                { self_id, OBJECT_DEBUGINFO, .quality = QUALITY_DWARF },
                { self_id, OBJECT_EXECUTABLE, .quality = QUALITY_NONE },
                { self_id, OBJECT_EXECUTABLE, .quality = QUALITY_NONE, .reason = "too_big" },
        };
        struct error err;

        ck_assert_int_eq(debuginfo_store_assess_offers(store, &unknown, 1, &err), ST_OK);
        ck_assert(unknown.is_wanted);
        ck_assert_str_eq(unknown.reason, "unknown");
        store_self();
        ck_assert_int_eq(debuginfo_store_assess_offers(store, known, 3, &err), ST_OK);
        ck_assert(!known[0].is_wanted);
        ck_assert_str_eq(known[0].reason, "same_or_better");
        ck_assert(known[1].is_wanted);
        ck_assert(!known[2].is_wanted);
        ck_assert_str_eq(known[2].reason, "too_big");
}
END_TEST

static void (*before_sync)(void); /* called once */

/* Interposes the C library's function, so that a test can act while an object is being prepared. */
int fdatasync(int fd)
{
        void (*f)(void) = before_sync;

        before_sync = NULL;
        if (f)
                f();
        return (int)syscall(SYS_fdatasync, fd);
}

static void remove_self(void)
{
        ck_assert_int_eq(debuginfo_store_remove(store, &self_id, OBJECT_DEBUGINFO, NULL), ST_OK);
}

START_TEST(successor_of_removed_object_is_not_pinned)
{
        struct object_claim claim = { .build_id = self_id, .kind = OBJECT_DEBUGINFO, .force = true };
        _cleanup_free_ uint8_t *other = malloc(self.size + 1);
        struct stored_object object;
        bool same;
        struct error err = { 0 };

        ck_assert_ptr_nonnull(other);
        memcpy(other, self.data, self.size);
        other[self.size] = 'x';
        store_self();
        ck_assert_int_eq(debuginfo_store_set_pin(store, &self_id, OBJECT_DEBUGINFO, true, &err), ST_OK);
        before_sync = remove_self;
        ck_assert_msg(send(&claim, other, self.size + 1, &object, &same, &err) == ST_OK, "%s", err.text);
        ck_assert_ptr_null(before_sync);
        ck_assert_int_eq(debuginfo_store_stat(store, &self_id, OBJECT_DEBUGINFO, &object, &err), ST_OK);
        ck_assert_uint_eq(object.size_bytes, self.size + 1);
        ck_assert(!object.is_pinned);
        ck_assert_int_eq(debuginfo_store_set_pin(store, &self_id, OBJECT_DEBUGINFO, true, &err), ST_OK);
        ck_assert_msg(send(&claim, self.data, self.size, &object, &same, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(debuginfo_store_stat(store, &self_id, OBJECT_DEBUGINFO, &object, &err), ST_OK);
        ck_assert(object.is_pinned); /* the successor of a removed object is not pinned, a replacement is */
}
END_TEST

START_TEST(removed_object_is_deleted_from_disk)
{
        struct error err;

        store_self();
        ck_assert_int_eq(debuginfo_store_remove(store, &self_id, OBJECT_DEBUGINFO, &err), ST_OK);
        nothing_is_stored();
        ck_assert_int_eq(debuginfo_store_remove(store, &self_id, OBJECT_DEBUGINFO, &err), ST_NOT_FOUND);
}
END_TEST

static struct object_claim claim_from(uint64_t offset)
{
        struct object_claim c = claim_self();

        c.is_resumable = true;
        c.offset = offset;
        return c;
}

START_TEST(interrupted_upload_resumes_after_restart)
{
        struct object_claim first = claim_from(0), second = claim_from(300000), third = claim_from(300000 + 65521);
        struct stored_object object;
        uint64_t offset;
        bool same;
        struct error err = { 0 };

        ck_assert_int_eq(send(&first, self.data, 300000, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_INCOMPLETE);
        nothing_is_stored();
        debuginfo_store_close(store);
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, &err), ST_OK);
        ck_assert_int_eq(object_upload_find_offset(store, &first, &offset, &err), ST_OK);
        ck_assert_uint_eq(offset, 300000);
        ck_assert_int_eq(send(&first, self.data, self.size, &object, &same, &err), ST_USAGE);
        ck_assert_int_eq(err.reason, REFUSED_OFFSET);
        ck_assert_int_eq(send(&second, self.data + 300000, 65521, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_INCOMPLETE);
        ck_assert_msg(send(&third, self.data + third.offset, self.size - third.offset, &object, &same, &err) == ST_OK,
                      "%s", err.text);
        ck_assert(memcmp(object.sha256, self_sha, 32) == 0);
        ck_assert_int_eq(object_upload_find_offset(store, &first, &offset, &err), ST_OK);
        ck_assert_uint_eq(offset, 0); /* no other files of it remain */
}
END_TEST

START_TEST(damaged_partial_upload_is_refused_and_deleted)
{
        struct object_claim first = claim_from(0), second = claim_from(300000);
        struct stored_object object;
        uint64_t offset;
        bool same;
        struct error err = { 0 };
        uint8_t *bytes = malloc(300000);

        memcpy(bytes, self.data, 300000);
        bytes[200000] ^= 1;
        ck_assert_int_eq(send(&first, bytes, 300000, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(send(&second, self.data + 300000, self.size - 300000, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(err.reason, REFUSED_HASH);
        nothing_is_stored();
        ck_assert_int_eq(object_upload_find_offset(store, &first, &offset, &err), ST_OK);
        ck_assert_uint_eq(offset, 0);
        free(bytes);
}
END_TEST

START_TEST(only_one_connection_appends_to_upload)
{
        struct object_claim claim = claim_from(0);
        struct object_upload *u, *other;
        uint64_t offset;
        struct error err = { 0 };

        ck_assert_int_eq(object_upload_begin(store, &claim, &u, &err), ST_OK);
        ck_assert_int_eq(object_upload_begin(store, &claim, &other, &err), ST_BUSY);
        ck_assert_int_eq(object_upload_append(u, self.data, 1000, &err), ST_OK);
        object_upload_abort(u); /* the connection is lost */
        ck_assert_int_eq(object_upload_find_offset(store, &claim, &offset, &err), ST_OK);
        ck_assert_uint_eq(offset, 1000);
        claim.offset = 1000;
        ck_assert_int_eq(object_upload_begin(store, &claim, &u, &err), ST_OK);
        object_upload_abort(u);
}
END_TEST

START_TEST(idle_connection_yields_upload_to_new_one)
{
        struct object_claim claim = claim_from(0);
        struct object_upload *silent, *u;
        struct stored_object object;
        const uint8_t *bytes = self.data;
        bool same;
        struct error err = { 0 };
        enum status st;

        ck_assert_int_eq(object_upload_begin(store, &claim, &silent, &err), ST_OK);
        ck_assert_int_eq(object_upload_append(silent, bytes, 1000, &err), ST_OK);
        claim.offset = 1000;
        ck_assert_int_eq(object_upload_begin(store, &claim, &u, &err), ST_BUSY); /* it may append more */
        do {
                usleep(10000);
                st = object_upload_begin(store, &claim, &u, &err);
        } while (st == ST_BUSY);
        ck_assert_msg(st == ST_OK, "%s", err.text);
        ck_assert_int_eq(object_upload_append(silent, bytes + 1000, 1000, &err), ST_BUSY);
        ck_assert_int_eq(object_upload_append(u, bytes + 1000, self.size - 1000, &err), ST_OK);
        object_upload_abort(silent); /* has no effect on it */
        st = object_upload_finish(u, &object, &same, &err);
        ck_assert_msg(st == ST_OK, "%s", err.text);
        ck_assert_int_eq(memcmp(object.sha256, self_sha, 32), 0);
}
END_TEST

START_TEST(abandoned_upload_is_deleted_after_a_day)
{
        struct gc_options o = { .now_unix_s = wall_clock_ns() / 1000000000 + LIMIT_PARTIAL_S - 60 };
        struct object_claim claim = claim_from(0);
        struct stored_object object;
        struct gc_result r;
        uint64_t offset;
        bool same;
        struct error err = { 0 };

        ck_assert_int_eq(send(&claim, self.data, 1000, &object, &same, &err), ST_BAD_DATA);
        ck_assert_int_eq(debuginfo_store_collect_garbage(store, &o, &r, &err), ST_OK);
        ck_assert_int_eq(object_upload_find_offset(store, &claim, &offset, &err), ST_OK);
        ck_assert_uint_eq(offset, 1000);
        o.now_unix_s += 120;
        ck_assert_int_eq(debuginfo_store_collect_garbage(store, &o, &r, &err), ST_OK);
        ck_assert_int_eq(object_upload_find_offset(store, &claim, &offset, &err), ST_OK);
        ck_assert_uint_eq(offset, 0);
}
END_TEST

/* The lock is acquired when its previous owner has removed the file and created a new one. */
static bool is_begun_anew;

int flock(int fd, int operation)
{
        int (*lock)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
        const struct timespec future = { .tv_sec = wall_clock_ns() / 1000000000 + 2 * LIMIT_PARTIAL_S };
        char path[PATH_MAX], link[64];
        ssize_t n;

        if (is_begun_anew) {
                snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
                n = readlink(link, path, sizeof path - 1);
                ck_assert_int_gt(n, 0);
                path[n] = '\0';
                ck_assert_int_eq(unlink(path), 0);
                ck_assert_int_eq(file_write_durable(path, "new", 3, NULL), ST_OK);
                ck_assert_int_eq(utimensat(AT_FDCWD, path, (const struct timespec[2]){ future, future }, 0), 0);
                is_begun_anew = false;
        }
        return lock(fd, operation);
}

START_TEST(upload_restarted_during_deletion_is_kept)
{
        struct gc_options o = { .now_unix_s = wall_clock_ns() / 1000000000 + LIMIT_PARTIAL_S + 60 };
        struct object_claim claim = claim_from(0);
        struct stored_object object;
        struct gc_result r;
        uint64_t offset;
        bool same;
        struct error err = { 0 };

        ck_assert_int_eq(send(&claim, self.data, 1000, &object, &same, &err), ST_BAD_DATA);
        is_begun_anew = true;
        ck_assert_int_eq(debuginfo_store_collect_garbage(store, &o, &r, &err), ST_OK);
        ck_assert(!is_begun_anew);
        ck_assert_int_eq(object_upload_find_offset(store, &claim, &offset, &err), ST_OK);
        ck_assert_uint_eq(offset, 3);
}
END_TEST

static enum status count_one(void *context, const struct stored_object *object)
{
        ck_assert(build_id_equal(&object->build_id, &self_id));
        ++*(int *)context;
        return ST_OK;
}

START_TEST(list_names_each_kind_once)
{
        struct object_claim claim = claim_self();
        struct stored_object object;
        bool same;
        struct error err;
        int count = 0;

        store_self();
        claim.kind = OBJECT_EXECUTABLE;
        ck_assert_int_eq(send(&claim, self.data, self.size, &object, &same, &err), ST_OK);
        ck_assert_int_eq(debuginfo_store_list(store, count_one, &count, &err), ST_OK);
        ck_assert_int_eq(count, 2);
}
END_TEST

START_TEST(uploads_that_are_verified_at_once_are_as_many_as_chosen)
{
        struct error err;
        int count;

        ck_assert_int_eq(sem_getvalue(&store->finishing, &count), 0);
        ck_assert_int_eq(count, LIMIT_UPLOAD_THREADS);
        debuginfo_store_close(store);
        set_debuginfo_upload_threads(3);
        check_ok(debuginfo_store_open(dir, false, &store, &err), &err);
        set_debuginfo_upload_threads(LIMIT_UPLOAD_THREADS);
        ck_assert_int_eq(sem_getvalue(&store->finishing, &count), 0);
        ck_assert_int_eq(count, 3);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("debuginfo store", stored_object_reads_back_byte_for_byte_after_reopening,
                        section_offsets_survive_reopening_and_contents_are_cached,
                        sections_of_replaced_content_are_not_used, zstd_upload_equals_plain_upload,
                        truncated_zstd_stream_is_refused_without_residue, other_build_id_is_refused,
                        other_hash_is_refused, upload_that_is_not_elf_is_refused,
                        bytes_past_the_announced_size_are_refused_at_once, only_better_quality_is_wanted,
                        removed_object_is_deleted_from_disk, successor_of_removed_object_is_not_pinned,
                        list_names_each_kind_once, uploads_that_are_verified_at_once_are_as_many_as_chosen,
                        interrupted_upload_resumes_after_restart, damaged_partial_upload_is_refused_and_deleted,
                        only_one_connection_appends_to_upload, idle_connection_yields_upload_to_new_one,
                        abandoned_upload_is_deleted_after_a_day, upload_restarted_during_deletion_is_kept)
