/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's spool: written batches are read back completely or moved aside, within the size limit. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "sending/outbox.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES], spool[80];

static void set_up(void)
{
        temporary_dir_create(dir, "spool");
        snprintf(spool, sizeof spool, "%s/spool", dir);
}

static void tear_down(void)
{
        temporary_dir_remove(dir);
}

static struct outbox open_outbox(uint64_t max)
{
        struct outbox o;
        struct error err;

        ck_assert_msg(outbox_init(&o, spool, max, &err) == ST_OK, "%s", err.text);
        return o;
}

static void put(struct outbox *o, const char *text, size_t size)
{
        const struct hash128 id = hash_bytes128(text, strlen(text));
        struct error err;
        struct buf b;

        buf_init(&b, MiB(8));
        ck_assert_ptr_nonnull(buf_reserve(&b, size));
        memset(b.data, 0, size);
        memcpy(b.data, text, strlen(text));
        buf_commit(&b, size);
        ck_assert_int_eq(outbox_put(o, &id, &b, &err), ST_OK);
}

/* Check that the oldest batch has this text and id, and acknowledge it. */
static void expect(struct outbox *o, const char *text)
{
        const struct hash128 id = hash_bytes128(text, strlen(text));
        struct outbox_batch *b = outbox_take(o);

        ck_assert_msg(b != NULL, "'%s' is missing", text);
        ck_assert_msg(strncmp((const char *)b->payload, text, strlen(text)) == 0, "want '%s', got '%.10s'", text,
                      (const char *)b->payload);
        ck_assert_mem_eq(&b->id, &id, sizeof id);
        outbox_remove(o, b);
}

static char *file_path(uint64_t number, const char *suffix)
{
        static char path[160];

        snprintf(path, sizeof path, "%s/%020llu.batch%s", spool, (unsigned long long)number, suffix);
        return path;
}

static bool exists(const char *path)
{
        return access(path, F_OK) == 0;
}

START_TEST(batches_of_earlier_run_are_sent_first_with_their_ids)
{
        struct outbox o = open_outbox(MiB(1));

        put(&o, "one", 10);
        put(&o, "two", 5000);
        outbox_deinit(&o);
        o = open_outbox(MiB(1));
        ck_assert_uint_eq(o.stats.spooled, 2);
        ck_assert_uint_eq(o.stats.spool_bytes, 3 * 4096);
        put(&o, "three", 10);
        expect(&o, "one");
        expect(&o, "two");
        expect(&o, "three");
        ck_assert_ptr_null(outbox_take(&o));
        ck_assert_uint_eq(o.stats.spool_bytes, 0);
        outbox_deinit(&o);
}
END_TEST

START_TEST(only_acknowledged_batches_are_removed)
{
        struct outbox o = open_outbox(MiB(1));

        put(&o, "one", 10);
        put(&o, "two", 10);
        expect(&o, "one");
        ck_assert_ptr_nonnull(outbox_take(&o)); /* in flight when the agent ends */
        outbox_deinit(&o);
        o = open_outbox(MiB(1));
        ck_assert_uint_eq(o.stats.spooled, 1);
        expect(&o, "two");
        outbox_deinit(&o);
}
END_TEST

START_TEST(a_spool_belongs_to_one_agent)
{
        struct outbox first = open_outbox(MiB(1)), second;
        struct error err;

        ck_assert_int_eq(outbox_init(&second, spool, MiB(1), &err), ST_BUSY);
        ck_assert_msg(strstr(err.text, "in use by another process") && strstr(err.text, spool), "%s", err.text);
        outbox_deinit(&first);
        second = open_outbox(MiB(1));
        outbox_deinit(&second);
}
END_TEST

START_TEST(spool_writable_by_others_is_refused)
{
        struct outbox o;
        struct error err;

        ck_assert_int_eq(mkdir(spool, 0700), 0);
        ck_assert_int_eq(chmod(spool, 0770), 0);
        ck_assert_int_eq(outbox_init(&o, spool, MiB(1), &err), ST_USAGE);
        ck_assert_msg(strstr(err.text, "not be writable by others"), "%s", err.text);
}
END_TEST

/* The spool is a link, or below a link, to a directory outside of dir that has this name. */
static void link_outside(const char *name, const char *outside, uid_t owner)
{
        char link[160];

        snprintf(link, sizeof link, "%s/%s", dir, name);
        ck_assert_int_eq(symlink(outside, link), 0);
        if (geteuid() == 0)
                ck_assert_int_eq(lchown(link, owner, owner), 0);
}

START_TEST(link_of_another_user_is_not_followed)
{
        char outside[80];
        struct outbox o;
        struct error err;

        if (geteuid() != 0)
                return;
        snprintf(outside, sizeof outside, "%s/outside", dir);
        ck_assert_int_eq(mkdir(outside, 0700), 0);
        link_outside("spool", "outside", 12345);
        ck_assert_int_eq(outbox_init(&o, spool, MiB(1), &err), ST_USAGE);
        ck_assert_msg(strstr(err.text, "symbolic link of the user 12345") != NULL, "%s", err.text);
        link_outside("above", ".", 12345);
        snprintf(spool, sizeof spool, "%s/above/outside", dir);
        ck_assert_int_eq(outbox_init(&o, spool, MiB(1), &err), ST_USAGE);
        snprintf(spool, sizeof spool, "%s/above/new/spool", dir);
        ck_assert_int_eq(outbox_init(&o, spool, MiB(1), &err), ST_USAGE);
        snprintf(spool, sizeof spool, "%s/new", dir);
        ck_assert(!exists(spool));
        ck_assert_int_eq(rmdir(outside), 0); /* nothing was written there */
}
END_TEST

START_TEST(own_link_is_followed)
{
        char made[160];
        struct outbox o;

        link_outside("spool", "above/made/of/it/", geteuid()); /* of which only the link exists */
        link_outside("above", dir, 0);
        o = open_outbox(MiB(1));
        put(&o, "kept", 100);
        outbox_deinit(&o);
        snprintf(made, sizeof made, "%s/made/of/it/lock", dir);
        ck_assert(exists(made));
        ck_assert(exists(file_path(1, "")));
}
END_TEST

START_TEST(truncated_batch_is_moved_aside)
{
        for (off_t size = 0; size < SPOOL_FILE_HEADER_BYTES + 10; size += 3) {
                struct outbox o = open_outbox(MiB(1));

                put(&o, "broken", 10);
                put(&o, "whole", 10);
                outbox_deinit(&o);
                ck_assert_int_eq(truncate(file_path(1, ""), size), 0);
                o = open_outbox(MiB(1));
                expect(&o, "whole");
                ck_assert_uint_eq(o.stats.dropped[DROP_DAMAGED], 1);
                ck_assert_uint_eq(o.stats.spool_bytes, 0);
                ck_assert(!exists(file_path(1, "")));
                ck_assert(exists(file_path(1, ".damaged")));
                outbox_deinit(&o);
                ck_assert_int_eq(file_remove_tree(spool, NULL), ST_OK);
        }
}
END_TEST

START_TEST(every_changed_byte_is_detected)
{
        struct spool_batch b = { .number = 7,
                                 .made_unix_ns = 8,
                                 .payload = (const uint8_t *)"nine",
                                 .payload_size = 4 },
                           got;
        uint8_t bytes[SPOOL_FILE_HEADER_BYTES + 4];

        spool_file_write_header(&b, bytes);
        memcpy(bytes + SPOOL_FILE_HEADER_BYTES, "nine", 4);
        ck_assert_int_eq(spool_file_parse(bytes, sizeof bytes, 7, "f", &got, NULL), ST_OK);
        ck_assert_int_eq(got.made_unix_ns, 8);
        ck_assert_int_eq(spool_file_parse(bytes, sizeof bytes, 8, "f", &got, NULL), ST_BAD_DATA);
        for (size_t i = 0; i < sizeof bytes; i++) {
                bytes[i] ^= 0x10;
                ck_assert_int_ne(spool_file_parse(bytes, sizeof bytes, 7, "f", &got, NULL), ST_OK);
                bytes[i] ^= 0x10;
        }
}
END_TEST

/* The example of docs/formats/spool.md. */
START_TEST(layout_matches_documentation)
{
        static const uint8_t expected[] = {
                0x43, 0x41, 0x49, 0x52, 0x4e, 0x53, 0x50, 0x42, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x2a, 0x36, 0xfe, 0x9c, 0x97, 0x17,
                0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f,
                0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xa0, 0xe1, 0x1f, 0x32, 0xa7, 0xab, 0x1f, 0x91,
        };
        struct spool_batch b = { .number = 1,
                                 .made_unix_ns = INT64_C(1700000000000000000),
                                 .id = { { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 } },
                                 .payload = (const uint8_t *)"one",
                                 .payload_size = 3 };
        uint8_t bytes[SPOOL_FILE_HEADER_BYTES];

        spool_file_write_header(&b, bytes);
        ck_assert_mem_eq(bytes, expected, sizeof expected);
        for (size_t i = 0; i < 8; i++)
                ck_assert_uint_eq(bytes[64 + i], (hash_bytes64(expected, 64) >> (8 * i)) & 0xff);
}
END_TEST

/* Batches with the magic or version of another program version, and with a correct checksum. */
START_TEST(spool_of_another_version_is_refused_unchanged)
{
        for (int is_version = 0; is_version < 2; is_version++) {
                struct outbox o = open_outbox(MiB(1));
                _cleanup_buf_ struct buf before, after;
                uint8_t head[SPOOL_FILE_HEADER_BYTES];
                struct error err;
                int fd;

                buf_init(&before, KiB(4));
                buf_init(&after, KiB(4));
                put(&o, "one", 10);
                put(&o, "two", 10);
                outbox_deinit(&o);
                for (uint64_t number = 1; number <= 2; number++) {
                        fd = open(file_path(number, ""), O_RDWR | O_CLOEXEC);
                        ck_assert_int_eq(pread(fd, head, sizeof head, 0), sizeof head);
                        head[is_version ? 8 : 7] ^= 0x20;
                        for (uint64_t i = 0, sum = hash_bytes64(head, 64); i < 8; i++)
                                head[64 + i] = (uint8_t)(sum >> (8 * i));
                        if (number == 1)
                                head[20] ^= 1; /* a damaged header decides nothing */
                        ck_assert_int_eq(pwrite(fd, head, sizeof head, 0), sizeof head);
                        close(fd);
                }
                ck_assert_int_eq(file_read(file_path(2, ""), &before, &err), ST_OK);
                ck_assert_int_eq(outbox_init(&o, spool, MiB(1), &err), ST_UNSUPPORTED);
                ck_assert_ptr_nonnull(strstr(err.text, "another version"));
                ck_assert_int_eq(file_read(file_path(2, ""), &after, &err), ST_OK);
                ck_assert_uint_eq(before.size, after.size);
                ck_assert_mem_eq(before.data, after.data, before.size);
                ck_assert(!exists(file_path(1, ".damaged")) && exists(file_path(1, "")));
                ck_assert_int_eq(file_remove_tree(spool, NULL), ST_OK);
        }
}
END_TEST

START_TEST(foreign_files_are_kept_and_temporary_ones_removed)
{
        struct outbox o = open_outbox(MiB(1));
        char foreign[100], half[120], link_name[160];

        put(&o, "one", 10);
        outbox_deinit(&o);
        snprintf(foreign, sizeof foreign, "%s/notes.txt", spool);
        snprintf(half, sizeof half, "%s/.tmp-00000000000000000009.batch", spool);
        snprintf(link_name, sizeof link_name, "%s", file_path(3, ""));
        ck_assert_int_eq(file_write_durable(foreign, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(file_write_durable(half, "x", 1, NULL), ST_OK);
        ck_assert_int_eq(symlink("/etc/passwd", link_name), 0);
        o = open_outbox(MiB(1));
        ck_assert_uint_eq(o.stats.spooled, 1);
        expect(&o, "one");
        ck_assert(exists(foreign));
        ck_assert(!exists(half));
        ck_assert(exists(link_name));
        outbox_deinit(&o);
}
END_TEST

/* Nor do they keep batches from the disk. */
START_TEST(number_of_a_foreign_folder_is_not_used)
{
        char folder[128];
        struct outbox o;

        ck_assert_int_eq(mkdir(spool, 0700), 0);
        snprintf(folder, sizeof folder, "%s/%020d.batch", spool, 1);
        ck_assert_int_eq(mkdir(folder, 0700), 0);
        o = open_outbox(MiB(1));
        put(&o, "first", 100);
        ck_assert_uint_eq(o.stats.spooled, 1);
        outbox_deinit(&o);
        o = open_outbox(MiB(1));
        expect(&o, "first");
        outbox_deinit(&o);
}
END_TEST

START_TEST(batch_under_wrong_number_is_not_sent)
{
        struct outbox o = open_outbox(MiB(1));
        char from[160];

        put(&o, "one", 10);
        outbox_deinit(&o);
        snprintf(from, sizeof from, "%s", file_path(1, ""));
        ck_assert_int_eq(rename(from, file_path(5, "")), 0);
        o = open_outbox(MiB(1));
        ck_assert_ptr_null(outbox_take(&o));
        ck_assert_uint_eq(o.stats.dropped[DROP_DAMAGED], 1);
        outbox_deinit(&o);
}
END_TEST

START_TEST(spool_over_limit_drops_oldest_batch)
{
        struct outbox o = open_outbox(4 * 4096);

        put(&o, "1", 10);
        put(&o, "2", 10);
        put(&o, "3", 10);
        put(&o, "4", 5000); /* two blocks */
        ck_assert_uint_eq(o.stats.dropped[DROP_SPOOL_FULL], 1);
        ck_assert_uint_eq(o.stats.spool_bytes, 4 * 4096);
        outbox_deinit(&o);
        o = open_outbox(3 * 4096); /* a smaller limit from now on */
        ck_assert_uint_eq(o.stats.dropped[DROP_SPOOL_FULL], 1);
        expect(&o, "3");
        expect(&o, "4");
        put(&o, "large", 40000); /* larger than the spool: kept in memory */
        ck_assert_uint_eq(o.stats.spooled, 0);
        ck_assert_uint_eq(o.stats.queued_bytes, 40000);
        expect(&o, "large");
        ck_assert_uint_eq(o.stats.queued_bytes, 0);
        outbox_deinit(&o);
}
END_TEST

START_TEST(batch_in_flight_is_not_dropped)
{
        struct outbox o = open_outbox(2 * 4096);
        struct outbox_batch *b;

        put(&o, "1", 10);
        put(&o, "2", 10);
        b = outbox_take(&o);
        put(&o, "3", 10);
        ck_assert_uint_eq(o.stats.dropped[DROP_SPOOL_FULL], 1);
        ck_assert_int_eq(b->payload[0], '1');
        outbox_put_back(&o, b);
        expect(&o, "1");
        expect(&o, "3");
        outbox_deinit(&o);
}
END_TEST

START_TEST(batch_older_than_deduplication_is_not_sent)
{
        struct spool_batch old = { .number = 1, .payload = (const uint8_t *)"old", .payload_size = 3 };
        struct spool_found found;
        struct outbox o;
        struct spool *s;

        old.made_unix_ns = wall_clock_ns() - (LIMIT_AGENT_SPOOL_AGE_S + 10) * INT64_C(1000000000);
        ck_assert_int_eq(spool_open(spool, NULL, NULL, &s, &found, NULL), ST_OK);
        ck_assert_int_eq(spool_write(s, &old, NULL), ST_OK);
        spool_close(s);
        o = open_outbox(MiB(1));
        put(&o, "new", 10);
        expect(&o, "new");
        ck_assert_uint_eq(o.stats.dropped[DROP_TOO_OLD], 1);
        ck_assert(!exists(file_path(1, "")));
        outbox_deinit(&o);
}
END_TEST

static void limit_file_size(rlim_t n)
{
        struct rlimit l;

        signal(SIGXFSZ, SIG_IGN);
        ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &l), 0);
        l.rlim_cur = n;
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &l), 0);
}

START_TEST(batch_is_kept_in_memory_until_disk_accepts_it)
{
        struct outbox o = open_outbox(MiB(1));

        put(&o, "before", 10);
        limit_file_size(100);
        put(&o, "refused", 1000);
        ck_assert_uint_eq(o.stats.spool_failed, 1);
        ck_assert_uint_eq(o.stats.spooled, 1);
        ck_assert_uint_eq(o.stats.queued_bytes, 1000);
        ck_assert(!exists(file_path(2, "")));
        limit_file_size(RLIM_INFINITY);
        put(&o, "after", 10);
        ck_assert_uint_eq(o.stats.spooled, 3);
        ck_assert_uint_eq(o.stats.queued_bytes, 0);
        outbox_deinit(&o);
        o = open_outbox(MiB(1));
        expect(&o, "before");
        expect(&o, "refused");
        expect(&o, "after");
        outbox_deinit(&o);
}
END_TEST

START_TEST(each_batch_is_synced_once)
{
        struct outbox o = open_outbox(MiB(1));
        uint64_t numbers[OUTBOX_SYNC_MAX];
        struct error err;

        put(&o, "1", 10);
        put(&o, "2", 10);
        put(&o, "3", 10);
        expect(&o, "1");
        ck_assert_uint_eq(outbox_list_unsynced(&o, numbers), 2);
        ck_assert_uint_eq(numbers[0], 2);
        ck_assert_uint_eq(numbers[1], 3);
        expect(&o, "2"); /* in the meantime */
        ck_assert_msg(outbox_sync(&o, numbers, 2, &err) == ST_OK, "%s", err.text);
        outbox_mark_synced(&o, numbers, 2);
        ck_assert_uint_eq(outbox_list_unsynced(&o, numbers), 0);
        outbox_deinit(&o);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("agent_spool", batches_of_earlier_run_are_sent_first_with_their_ids,
                        only_acknowledged_batches_are_removed, a_spool_belongs_to_one_agent,
                        spool_writable_by_others_is_refused, link_of_another_user_is_not_followed, own_link_is_followed,
                        truncated_batch_is_moved_aside, every_changed_byte_is_detected, layout_matches_documentation,
                        spool_of_another_version_is_refused_unchanged,
                        foreign_files_are_kept_and_temporary_ones_removed, number_of_a_foreign_folder_is_not_used,
                        batch_under_wrong_number_is_not_sent, spool_over_limit_drops_oldest_batch,
                        batch_in_flight_is_not_dropped, batch_older_than_deduplication_is_not_sent,
                        batch_is_kept_in_memory_until_disk_accepts_it, each_batch_is_synced_once)
