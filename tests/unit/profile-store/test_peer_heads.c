/* SPDX-License-Identifier: Apache-2.0 */
/* What two nodes tell each other about their heads; races between them are in test_nodes_simulation.c. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/files/file.h"
#include "profile-store/core/profile_store_internal.h"
#include "profile-store/peer_heads.h"
#include "profile-store/queue/head_page.h"
#include "storage/local_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temporary_dir.h"

#define NODES 2

static char dir[TEMPORARY_DIR_BYTES];
static struct storage *storages[NODES];
static struct profile_store *stores[NODES];

static void set_up(void)
{
        temporary_dir_create(dir, "peers");
        for (unsigned i = 0; i < NODES; i++) {
                _cleanup_free_ char *tables = path_join(dir, "tables");
                char node_dir[TEMPORARY_DIR_BYTES + 16];
                struct error err;

                snprintf(node_dir, sizeof node_dir, "%s/node-%u", dir, i);
                check_ok(local_storage_open(tables, &storages[i], &err), &err);
                check_ok(profile_store_open(
                                 node_dir,
                                 &(struct profile_store_options){ .size = sizeof(struct profile_store_options),
                                                                  .flush_interval_ms = UINT64_MAX,
                                                                  .tables = storages[i],
                                                                  .is_shared = true,
                                                                  .peer_count = 1 },
                                 &stores[i], &err),
                         &err);
        }
}

static void tear_down(void)
{
        for (unsigned i = 0; i < NODES; i++) {
                profile_store_close(stores[i]);
                storage_close(storages[i]);
        }
        temporary_dir_remove(dir);
}

static void append_sample(struct profile_store *s, unsigned number)
{
        struct test_profile t;
        uint32_t stack[1];
        struct error err;

        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        stack[0] = test_location(&t, 0x1000);
        test_sample(&t, STORE_FIXTURE_T0, 1, stack, 1, (const char *[]){ NULL });
        check_ok(profile_store_append(s, &t.p, store_fixture_batch_id(number), NULL, &err), &err);
        test_profile_deinit(&t);
}

#define LARGE_BATCHES 6

static void flush_store(struct profile_store *s)
{
        struct error err;

        check_ok(profile_store_flush(s, &err), &err);
}

/* The page of a store after a mark: its header, and the positions of its records, at most 8. */
static size_t read_page(struct profile_store *s, const struct head_mark *mark, struct head_page_header *header_ret,
                        uint64_t positions_ret[static 8])
{
        _cleanup_buf_ struct buf page;
        struct head_page_reader r;
        struct raw_record record;
        struct error err;
        bool found = true;
        size_t n = 0;

        buf_init(&page, LIMIT_HEAD_ANSWER_BYTES);
        check_ok(profile_store_write_head(s, mark, &page, &err), &err);
        check_ok(head_page_read(&r, page.data, page.size, &err), &err);
        *header_ret = r.header;
        for (;;) {
                check_ok(head_page_next(&r, &record, &found, &err), &err);
                if (!found)
                        return n;
                ck_assert_uint_lt(n, 8);
                positions_ret[n++] = record.position;
        }
}

/* Let the first store have the head of another one. */
static void exchange_heads(struct profile_store *from, bool *is_self_ret)
{
        _cleanup_buf_ struct buf page;
        struct head_mark mark;
        struct error err;
        bool has_more;

        buf_init(&page, LIMIT_HEAD_ANSWER_BYTES);
        profile_store_get_head_mark(stores[0], 0, &mark);
        check_ok(profile_store_write_head(from, &mark, &page, &err), &err);
        check_ok(profile_store_add_head(stores[0], 0, page.data, page.size, is_self_ret, &has_more, &err), &err);
        ck_assert(!has_more);
}

static uint64_t count_visible_samples(struct profile_store *s)
{
        const struct scan_filter all = { INT64_MIN, INT64_MAX, NULL, NULL, 0 };
        struct stack_sums sums = { 0 };
        struct store_scan *scan;
        uint64_t samples = 0;
        struct error err;

        check_ok(store_scan_begin(s, &scan, &err), &err);
        check_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        for (size_t i = 0; i < sums.count; i++)
                samples += sums.items[i].samples;
        stack_sums_deinit(&sums);
        store_scan_end(scan);
        return samples;
}

START_TEST(a_page_has_what_follows_the_mark)
{
        struct head_mark mark = { 0 };
        struct head_page_header header;
        uint64_t positions[8];

        append_sample(stores[1], 1);
        append_sample(stores[1], 2);
        ck_assert_uint_eq(read_page(stores[1], &mark, &header, positions), 2);
        ck_assert_uint_eq(positions[1], 2);
        ck_assert_uint_eq(header.last, 2);
        ck_assert_uint_eq(header.flushed, 0);
        memcpy(mark.node, header.node, sizeof mark.node);
        mark.after = header.last;
        append_sample(stores[1], 3);
        ck_assert_uint_eq(read_page(stores[1], &mark, &header, positions), 1);
        ck_assert_uint_eq(positions[0], 3);
}
END_TEST

START_TEST(a_mark_of_another_node_does_not_count)
{
        const struct head_mark mark = { .node = "0123456789abcdef", .after = 1 };
        struct head_page_header header;
        uint64_t positions[8];

        append_sample(stores[1], 1);
        ck_assert_uint_eq(read_page(stores[1], &mark, &header, positions), 1);
}
END_TEST

START_TEST(a_node_with_other_tables_gets_no_page)
{
        _cleanup_buf_ struct buf page;
        struct head_mark mark;
        struct error err;

        buf_init(&page, LIMIT_HEAD_ANSWER_BYTES);
        profile_store_get_head_mark(stores[0], 0, &mark);
        ck_assert_uint_eq(strlen(mark.tables), 36);
        check_ok(profile_store_write_head(stores[1], &mark, &page, &err), &err);
        mark.tables[0] = mark.tables[0] == '0' ? '1' : '0';
        ck_assert_int_eq(profile_store_write_head(stores[1], &mark, &page, &err), ST_USAGE);
}
END_TEST

START_TEST(a_page_after_a_flush_names_its_version)
{
        struct head_page_header before, after;
        uint64_t positions[8];

        append_sample(stores[1], 1);
        ck_assert_uint_eq(read_page(stores[1], &(struct head_mark){ 0 }, &before, positions), 1);
        flush_store(stores[1]);
        append_sample(stores[1], 2);
        ck_assert_uint_eq(read_page(stores[1], &(struct head_mark){ 0 }, &after, positions), 1);
        ck_assert_uint_eq(after.flushed, 1);
        ck_assert_int_gt(after.version, before.version);
}
END_TEST

START_TEST(a_kept_batch_counts_once_before_and_after_its_commit)
{
        bool is_self;

        append_sample(stores[0], 1);
        append_sample(stores[1], 2);
        exchange_heads(stores[1], &is_self);
        ck_assert(!is_self);
        ck_assert_uint_eq(count_visible_samples(stores[0]), 2);
        flush_store(stores[1]);
        append_sample(stores[1], 3);
        exchange_heads(stores[1], &is_self);
        ck_assert_uint_eq(count_visible_samples(stores[0]), 3);
        flush_store(stores[1]);
        flush_store(stores[0]); /* reads the commit */
        ck_assert_uint_eq(count_visible_samples(stores[0]), 3);
}
END_TEST

START_TEST(a_node_recognizes_its_own_page)
{
        bool is_self;

        append_sample(stores[0], 1);
        exchange_heads(stores[0], &is_self);
        ck_assert(is_self);
        ck_assert_uint_eq(count_visible_samples(stores[0]), 1);
}
END_TEST

START_TEST(a_peer_with_a_new_disk_replaces_the_old_one)
{
        struct head_page_header header = { .node = "0123456789abcdef", .last = 5 };
        _cleanup_buf_ struct buf page;
        struct head_mark mark;
        bool is_self, has_more;
        struct error err;

        buf_init(&page, LIMIT_HEAD_ANSWER_BYTES);
        append_sample(stores[1], 1);
        exchange_heads(stores[1], &is_self);
        ck_assert_uint_eq(count_visible_samples(stores[0]), 1);
        head_page_write_header(&page, &header);
        check_ok(profile_store_add_head(stores[0], 0, page.data, page.size, &is_self, &has_more, &err), &err);
        ck_assert_uint_eq(count_visible_samples(stores[0]), 0);
        profile_store_get_head_mark(stores[0], 0, &mark);
        ck_assert_str_eq(mark.node, "0123456789abcdef");
        ck_assert_uint_eq(mark.after, 5);
}
END_TEST

START_TEST(a_damaged_page_changes_nothing)
{
        _cleanup_buf_ struct buf page;
        struct head_mark before, after;
        bool is_self, has_more;
        struct error err;

        buf_init(&page, LIMIT_HEAD_ANSWER_BYTES);
        append_sample(stores[1], 1);
        profile_store_get_head_mark(stores[0], 0, &before);
        check_ok(profile_store_write_head(stores[1], &before, &page, &err), &err);
        page.data[page.size - 1] ^= 1;
        ck_assert_int_eq(profile_store_add_head(stores[0], 0, page.data, page.size, &is_self, &has_more, &err),
                         ST_BAD_DATA);
        profile_store_get_head_mark(stores[0], 0, &after);
        ck_assert_str_eq(after.node, before.node);
        ck_assert_uint_eq(after.after, before.after);
        ck_assert_uint_eq(count_visible_samples(stores[0]), 0);
}
END_TEST

/* ---- syncs that take long ---- */

static atomic_bool holds_syncs;
static atomic_uint held_syncs;

/* Interposes the C library's function for the whole program. */
int fdatasync(int fd)
{
        if (atomic_load(&holds_syncs)) {
                atomic_fetch_add(&held_syncs, 1);
                while (atomic_load(&holds_syncs))
                        sched_yield();
        }
        return (int)syscall(SYS_fdatasync, fd);
}

static void *append_repeated_batch(void *context)
{
        append_sample(context, 1);
        return NULL;
}

/* Its sender got no answer of the other node, and sends it again. */
START_TEST(a_batch_that_this_node_has_not_synced_yet_is_taken_from_its_peer)
{
        pthread_t sender;
        bool is_self;

        append_sample(stores[0], 2);
        append_sample(stores[1], 1);
        exchange_heads(stores[1], &is_self);
        atomic_store(&holds_syncs, true);
        ck_assert_int_eq(pthread_create(&sender, NULL, append_repeated_batch, stores[0]), 0);
        while (!atomic_load(&held_syncs))
                sched_yield();
        ck_assert_uint_eq(count_visible_samples(stores[0]), 2);
        atomic_store(&holds_syncs, false);
        pthread_join(sender, NULL);
        ck_assert_uint_eq(count_visible_samples(stores[0]), 2);
}
END_TEST

/* @return the number of records of the page, which follow the mark; moves the mark to the end of the page. */
static unsigned read_next_page(struct head_mark *mark, bool *has_more_ret)
{
        _cleanup_buf_ struct buf page;
        struct head_page_reader r;
        struct raw_record record;
        struct error err;
        bool found = true;
        unsigned n = 0;

        buf_init(&page, LIMIT_HEAD_ANSWER_BYTES);
        check_ok(profile_store_write_head(stores[1], mark, &page, &err), &err);
        ck_assert_uint_lt(page.size, LIMIT_HEAD_PAGE_BYTES + STORE_FIXTURE_LARGE_BYTES + KiB(64));
        check_ok(head_page_read(&r, page.data, page.size, &err), &err);
        for (;;) {
                check_ok(head_page_next(&r, &record, &found, &err), &err);
                if (!found)
                        break;
                ck_assert_uint_eq(record.position, mark->after + ++n);
        }
        ck_assert_uint_eq(r.header.last, mark->after + n);
        memcpy(mark->node, r.header.node, sizeof mark->node);
        mark->after = r.header.last;
        *has_more_ret = r.header.has_more;
        return n;
}

START_TEST(a_large_head_is_several_pages_which_follow_each_other)
{
        struct head_mark mark = { 0 };
        unsigned pages = 0, batches = 0;
        bool has_more = true;

        for (unsigned i = 0; i < LARGE_BATCHES; i++)
                store_fixture_append_large(stores[1], i);
        for (; has_more; pages++)
                batches += read_next_page(&mark, &has_more);
        ck_assert_uint_eq(batches, LARGE_BATCHES);
        ck_assert_uint_ge(pages, 2);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("peer_heads", a_node_with_other_tables_gets_no_page, a_page_has_what_follows_the_mark,
                        a_mark_of_another_node_does_not_count, a_page_after_a_flush_names_its_version,
                        a_kept_batch_counts_once_before_and_after_its_commit, a_node_recognizes_its_own_page,
                        a_peer_with_a_new_disk_replaces_the_old_one, a_damaged_page_changes_nothing,
                        a_batch_that_this_node_has_not_synced_yet_is_taken_from_its_peer,
                        a_large_head_is_several_pages_which_follow_each_other)
