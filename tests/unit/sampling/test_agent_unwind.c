/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "sampling/unwinding/extent_alloc.h"
#include "sampling/unwinding/unwind_builder.h"
#include "sampling/unwinding/unwind_maps.h"
#include "sampling/unwinding/unwind_quota.h"
#include "sampling/unwinding/unwind_result.h"
#include "tests/support/suite.h"

/* ---- extents --------------------------------------------------------------------- */

START_TEST(released_extent_is_reused_after_grace_period)
{
        struct extent a, b;
        struct extent_alloc r;

        ck_assert(extent_alloc_init(&r, 100, 0));
        ck_assert(extent_alloc_reserve(&r, 60, &a));
        extent_alloc_release(&r, a);
        ck_assert(!extent_alloc_reserve(&r, 60, &b));
        ck_assert_uint_eq(r.in_use, 60);
        extent_alloc_reclaim(&r);
        ck_assert_uint_eq(r.in_use, 0);
        ck_assert(extent_alloc_reserve(&r, 100, &b));
        ck_assert_uint_eq(b.first, 0);
        extent_alloc_deinit(&r);
}
END_TEST

START_TEST(extent_is_split_for_small_allocations)
{
        struct extent held[10];
        struct extent_alloc r;

        ck_assert(extent_alloc_init(&r, 100, 0));
        for (size_t i = 0; i < 10; i++)
                ck_assert(extent_alloc_reserve(&r, 10, &held[i]));
        for (size_t i = 0; i < 10; i += 2)
                extent_alloc_release(&r, held[i]);
        extent_alloc_reclaim(&r);
        ck_assert_uint_eq(r.free_count, 5);
        ck_assert_uint_ge(r.free_capacity, r.free_count);
        extent_alloc_deinit(&r);
}
END_TEST

START_TEST(extent_never_crosses_boundary)
{
        struct extent run;
        struct extent_alloc r;

        ck_assert(extent_alloc_init(&r, 250, 100));
        ck_assert(!extent_alloc_reserve(&r, 101, &run));
        ck_assert(extent_alloc_reserve(&r, 70, &run));
        ck_assert(extent_alloc_reserve(&r, 70, &run));
        ck_assert_uint_eq(run.first, 100);
        ck_assert(!extent_alloc_reserve(&r, 51, &run));
        ck_assert(extent_alloc_reserve(&r, 50, &run));
        ck_assert_uint_eq(run.first, 200);
        extent_alloc_deinit(&r);
}
END_TEST

/* Every number is in at most one allocated extent, whatever the sequence of allocations and releases. */
START_TEST(extents_never_overlap)
{
        struct extent held[64];
        bool used[512] = { false };
        size_t count = 0;
        struct extent_alloc r;

        ck_assert(extent_alloc_init(&r, 512, 128));
        srand(7);
        for (int step = 0; step < 20000; step++) {
                struct extent run;

                if (count < 64 && rand() % 2 && extent_alloc_reserve(&r, 1 + (uint32_t)rand() % 40, &run)) {
                        for (uint32_t i = run.first; i < run.first + run.count; i++) {
                                ck_assert(!used[i]);
                                used[i] = true;
                        }
                        ck_assert_uint_eq(run.first / 128, (run.first + run.count - 1) / 128);
                        held[count++] = run;
                } else if (count) {
                        size_t i = (size_t)rand() % count;

                        for (uint32_t n = held[i].first; n < held[i].first + held[i].count; n++)
                                used[n] = false;
                        extent_alloc_release(&r, held[i]);
                        held[i] = held[--count];
                        extent_alloc_reclaim(&r);
                }
        }
        for (size_t i = 0; i < count; i++)
                extent_alloc_release(&r, held[i]);
        extent_alloc_reclaim(&r);
        ck_assert_uint_eq(r.free_count, 4);
        extent_alloc_deinit(&r);
}
END_TEST

/* ---- output of the worker ------------------------------------------------------------ */

#define RULE_A UNWIND_RULES_FIXED
#define RULE_B (UNWIND_RULES_FIXED + 1)

static struct unwind_row rows[] = { { 0, RULE_A }, { 8, RULE_B }, { 0, RULE_A }, { 16, UNWIND_RULE_STOP } };
static struct unwind_page pages[] = { { 1, 0, 2 }, { 5, 2, 2 } };

static int written(struct unwind_table t)
{
        _cleanup_unwind_rules_ struct unwind_rules rules = { 0 };
        const struct unwind_rule a = { .cfa = UNWIND_CFA_REGISTER, .cfa_offset = 8 },
                                 b = { .cfa = UNWIND_CFA_REGISTER, .cfa_offset = 16 };
        const struct runtime_symbols runtimes = {
                .python = { .runtime = 0x1000, .version = 0x2000, .code_type = 0x3000 },
                .v8.objects.version = 0x0a02,
                .has_v8 = 1
        };
        int fd = memfd_create("table", MFD_CLOEXEC);
        struct error err;
        uint16_t number;

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(unwind_rules_init(&rules, &err), ST_OK);
        ck_assert_int_eq(unwind_rules_intern(&rules, &a, &number), ST_OK);
        ck_assert_int_eq(unwind_rules_intern(&rules, &b, &number), ST_OK);
        ck_assert_uint_eq(number, RULE_B);
        ck_assert_int_eq(unwind_result_write(fd, &t, &rules, &runtimes, &err), ST_OK);
        return fd;
}

static struct unwind_rules_part part;
static struct runtime_symbols runtimes_read;

static enum status read_within(int fd, uint64_t rules_left, struct unwind_table *ret)
{
        _cleanup_unwind_rules_ struct unwind_rules rules = { 0 };
        const struct unwind_rule b = { .cfa = UNWIND_CFA_REGISTER, .cfa_offset = 16 };
        struct error err;
        uint16_t number;
        enum status st;

        ck_assert_int_eq(unwind_rules_init(&rules, &err), ST_OK);
        ck_assert_int_eq(unwind_rules_intern(&rules, &b, &number),
                         ST_OK); /* the worker's number of this rule differs */
        part = (struct unwind_rules_part){ .left = rules_left };
        st = unwind_result_read(fd, &rules, &part, ret, &runtimes_read, &err);
        close(fd);
        return st;
}

static enum status read_back(int fd, struct unwind_table *ret)
{
        return read_within(fd, UINT64_MAX, ret);
}

START_TEST(table_is_read_with_renumbered_rules)
{
        const struct unwind_table t = { .pages = pages, .page_count = 2, .rows = rows, .row_count = 4 };
        _cleanup_unwind_table_ struct unwind_table back = { 0 };

        ck_assert_int_eq(read_back(written(t), &back), ST_OK);
        ck_assert_uint_eq(back.page_count, 2);
        ck_assert_uint_eq(back.pages[1].number, 5);
        ck_assert_uint_eq(back.rows[0].rule, UNWIND_RULES_FIXED + 1);
        ck_assert_uint_eq(back.rows[1].rule, UNWIND_RULES_FIXED);
        ck_assert_uint_eq(back.rows[3].rule, UNWIND_RULE_STOP);
}
END_TEST

START_TEST(table_rules_are_limited)
{
        const struct unwind_table t = { .pages = pages, .page_count = 2, .rows = rows, .row_count = 4 };
        _cleanup_unwind_table_ struct unwind_table back = { 0 };

        ck_assert_int_eq(read_within(written(t), 0, &back), ST_OK);
        ck_assert_uint_eq(back.rows[0].rule, UNWIND_RULE_FULL);
        ck_assert_uint_eq(back.rows[1].rule, UNWIND_RULES_FIXED); /* already stored: costs nothing */
        ck_assert_uint_eq(back.rows[2].rule, UNWIND_RULE_FULL);
        ck_assert_uint_eq(part.taken, 0);
        ck_assert_uint_eq(part.refused, 1);
        unwind_table_deinit(&back);
        ck_assert_int_eq(read_within(written(t), 1, &back), ST_OK);
        ck_assert_uint_eq(back.rows[0].rule, UNWIND_RULES_FIXED + 1);
        ck_assert_uint_eq(part.taken, 1);
        ck_assert_uint_eq(part.refused, 0);
}
END_TEST

START_TEST(tables_that_break_their_format_are_refused)
{
        struct unwind_row bad_rows[4];
        struct unwind_page bad_pages[2];
        const struct unwind_table t = { .pages = bad_pages, .page_count = 2, .rows = bad_rows, .row_count = 4 };
        struct unwind_table back = { 0 };

        for (int defect = 0; defect < 7; defect++) {
                memcpy(bad_rows, rows, sizeof rows);
                memcpy(bad_pages, pages, sizeof pages);
                switch (defect) {
                case 0:
                        bad_rows[2].rule = RULE_B + 1; /* an undefined rule */
                        break;
                case 1:
                        bad_rows[3].offset = 0; /* twice the same offset */
                        break;
                case 2:
                        bad_pages[1].number = 1; /* twice the same page */
                        break;
                case 3:
                        bad_pages[1].row_count = 3; /* past the rows */
                        break;
                case 4:
                        bad_pages[1].first_row = 1; /* rows of another page */
                        break;
                case 5:
                        bad_pages[0].row_count = 0;
                        break;
                case 6:
                        bad_pages[1].row_count = 1; /* a row without a page */
                        break;
                }
                ck_assert_msg(read_back(written(t), &back) == ST_BAD_DATA, "defect %d", defect);
                ck_assert_ptr_null(back.rows);
        }
}
END_TEST

START_TEST(truncated_tables_are_refused)
{
        const struct unwind_table t = { .pages = pages, .page_count = 2, .rows = rows, .row_count = 4 };
        struct unwind_table back = { 0 };
        int fd = written(t);
        off_t size = lseek(fd, 0, SEEK_END);

        close(fd);
        for (off_t n = 0; n < size; n++) {
                fd = written(t);
                ck_assert_int_eq(ftruncate(fd, n), 0);
                ck_assert_int_eq(read_back(fd, &back), ST_BAD_DATA);
        }
}
END_TEST

/* ---- quotas by owner ------------------------------------------------------------------ */

static struct unwind_quota quota_of_400(void)
{
        const uint64_t sizes[UNWIND_RESOURCE_COUNT] = { 400, 400, 400, 400 };
        struct unwind_quota q;

        unwind_quota_init(&q, sizes, 7);
        return q;
}

START_TEST(owner_is_limited_to_a_quarter)
{
        struct unwind_quota q = quota_of_400();
        uint32_t a = unwind_quota_get_owner(&q, 1000, ""), b = unwind_quota_get_owner(&q, 1001, "");

        ck_assert_uint_ne(a, b);
        ck_assert_uint_eq(unwind_quota_get_owner(&q, 1000, ""), a);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, a, UNWIND_RULES), 100);
        unwind_quota_charge(&q, a, UNWIND_RULES, 70);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, a, UNWIND_RULES), 30);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, a, UNWIND_ROWS), 100);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, b, UNWIND_RULES), 100);
        unwind_quota_refund(&q, a, UNWIND_RULES, 70);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, a, UNWIND_RULES), 100);
        unwind_quota_deinit(&q);
}
END_TEST

START_TEST(containers_of_one_user_have_separate_quotas)
{
        struct unwind_quota q = quota_of_400();
        uint32_t host = unwind_quota_get_owner(&q, 0, ""), a = unwind_quota_get_owner(&q, 0, "aaa"),
                 b = unwind_quota_get_owner(&q, 0, "bbb");

        ck_assert_uint_eq(host, UNWIND_OWNER_SYSTEM);
        ck_assert_uint_ne(a, b);
        unwind_quota_charge(&q, a, UNWIND_ROWS, 100);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, a, UNWIND_ROWS), 0);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, b, UNWIND_ROWS), 100);
        unwind_quota_deinit(&q);
}
END_TEST

START_TEST(a_quarter_is_reserved_for_the_system)
{
        struct unwind_quota q = quota_of_400();
        uint64_t taken = 0;

        for (uid_t uid = 100; uid < 200; uid++) {
                uint32_t owner = unwind_quota_get_owner(&q, uid, "");
                uint64_t left = unwind_quota_get_remaining(&q, owner, UNWIND_PAGES);

                unwind_quota_charge(&q, owner, UNWIND_PAGES, left);
                taken += left;
        }
        ck_assert_uint_eq(taken, 300);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, unwind_quota_get_owner(&q, 0, ""), UNWIND_PAGES), UINT64_MAX);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, unwind_quota_get_owner(&q, 7, ""), UNWIND_PAGES),
                          UINT64_MAX); /* runs the agent */
        unwind_quota_deinit(&q);
}
END_TEST

START_TEST(owners_over_limit_share_one_quota)
{
        struct unwind_quota q = quota_of_400();
        uint32_t last = 0, first;

        for (uid_t uid = 100; uid < 100 + 2 * LIMIT_AGENT_UNWIND_OWNERS; uid++)
                last = unwind_quota_get_owner(&q, uid, "");
        first = unwind_quota_get_owner(&q, 100 + 2 * LIMIT_AGENT_UNWIND_OWNERS, "");
        ck_assert_uint_eq(first, last);
        ck_assert_uint_eq(q.count, LIMIT_AGENT_UNWIND_OWNERS);
        unwind_quota_charge(&q, last, UNWIND_RULES, 100);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, last, UNWIND_RULES), 0);
        ck_assert_uint_eq(unwind_quota_get_remaining(&q, unwind_quota_get_owner(&q, 100, ""), UNWIND_RULES), 100);
        unwind_quota_deinit(&q);
}
END_TEST

/* ---- locations of the extents of processes ----------------------------------------------- */

static uint64_t find_process_extent(const struct unwind_maps *m, uint32_t tgid)
{
        const struct unwind_bucket *bucket = &m->buckets[unwind_bucket_index(tgid)];

        for (size_t i = 0; i < UNWIND_BUCKET_RUNS; i++)
                if ((uint32_t)bucket->runs[i] == tgid)
                        return bucket->runs[i] >> 32;
        return UINT64_MAX;
}

/* @param mapping  NULL: the process has none. */
static enum status set_process(struct unwind_maps *m, const struct sample_process *id, uint32_t generation,
                               const struct unwind_mapping *mapping, struct extent *run)
{
        const struct unwind_process_mappings mappings = { .executable_pages = 5,
                                                          .generation = generation,
                                                          .items = mapping,
                                                          .count = mapping != NULL,
                                                          .count_max = UINT64_MAX };

        return unwind_maps_set_process(m, id, &mappings, run, NULL);
}

START_TEST(process_is_found_until_removed)
{
        const struct unwind_mapping mapping = { .start = 0x1000, .end = 0x2000, .table = 7 };
        const struct sample_process id = { .tgid = 4711, .exec_id = 2, .start_boot_ns = 99 },
                                    next = { .tgid = 4711, .exec_id = 3, .start_boot_ns = 99 };
        struct extent run = { 0 }, next_run = { 0 };
        struct unwind_maps m;
        const struct unwind_process *head;

        ck_assert_int_eq(unwind_maps_init(&m, NULL, 1 << 22, NULL), ST_OK);
        ck_assert_int_eq(set_process(&m, &id, 1, &mapping, &run), ST_OK);
        ck_assert_uint_eq(find_process_extent(&m, 4711), run.first);
        head = (const void *)&m.mapping_items[run.first];
        ck_assert_uint_eq(head->exec_id, 2);
        ck_assert_uint_eq(head->start_boot_ns, 99);
        ck_assert_uint_eq(head->mapping_count, 1);
        ck_assert_uint_eq(m.mapping_items[run.first + 1].table, 7);
        ck_assert_uint_eq(m.mapping_items[run.first + 1].generation, head->generation);

        /* A later process with the same pid stays when an earlier one is removed. */
        ck_assert_int_eq(set_process(&m, &next, 2, &mapping, &next_run), ST_OK);
        unwind_maps_remove_process(&m, &id, &run);
        ck_assert_uint_eq(find_process_extent(&m, 4711), next_run.first);
        unwind_maps_remove_process(&m, &next, &next_run);
        ck_assert_uint_eq(find_process_extent(&m, 4711), UINT64_MAX);
        unwind_maps_deinit(&m);
}
END_TEST

START_TEST(ended_process_does_not_replace_later_one_with_its_pid)
{
        static const struct sample_process lives[] = {
                { .tgid = 4711, .exec_id = 2, .start_boot_ns = 99 },
                { .tgid = 4711, .exec_id = 3, .start_boot_ns = 99 },  /* after an exec */
                { .tgid = 4711, .exec_id = 0, .start_boot_ns = 100 }, /* a reused pid */
        };
        struct extent runs[3] = { 0 };
        struct unwind_maps m;

        ck_assert_int_eq(unwind_maps_init(&m, NULL, 1 << 22, NULL), ST_OK);
        for (uint32_t later = 1; later < 3; later++) {
                uint64_t in_use;

                ck_assert_int_eq(set_process(&m, &lives[later], later, NULL, &runs[later]), ST_OK);
                ck_assert_uint_eq(find_process_extent(&m, 4711), runs[later].first);
                in_use = m.mappings.in_use;
                ck_assert_int_eq(set_process(&m, &lives[later - 1], 9, NULL, &runs[0]), ST_OK);
                ck_assert_uint_eq(find_process_extent(&m, 4711), runs[later].first);
                ck_assert_uint_eq(runs[0].count, 0);
                ck_assert_uint_eq(m.mappings.in_use, in_use);
        }
        unwind_maps_deinit(&m);
}
END_TEST

START_TEST(full_bucket_accepts_process_after_removal)
{
        struct extent runs[UNWIND_BUCKET_RUNS + 1] = { 0 };
        struct sample_process ids[UNWIND_BUCKET_RUNS + 1];
        const size_t last = UNWIND_BUCKET_RUNS;
        struct unwind_maps m;

        ck_assert_int_eq(unwind_maps_init(&m, NULL, 1 << 22, NULL), ST_OK);
        for (size_t i = 0; i <= last; i++) {
                ids[i] = (struct sample_process){ .tgid = 10 + (uint32_t)i * UNWIND_BUCKETS };
                ck_assert_int_eq(set_process(&m, &ids[i], 1 + (uint32_t)i, NULL, &runs[i]),
                                 i < last ? ST_OK : ST_TOO_BIG);
        }
        ck_assert_uint_eq(find_process_extent(&m, ids[last].tgid), UINT64_MAX);
        unwind_maps_remove_process(&m, &ids[3], &runs[3]);
        ck_assert_int_eq(set_process(&m, &ids[last], 20, NULL, &runs[last]), ST_OK);
        ck_assert_uint_eq(find_process_extent(&m, ids[last].tgid), runs[last].first);
        unwind_maps_deinit(&m);
}
END_TEST

/* ---- workers ---- */

static struct unwind_built build_table_of(struct unwind_builder *b, const char *path)
{
        struct pollfd fd = { .fd = unwind_builder_fd(b), .events = POLLIN };
        struct unwind_built ret;

        ck_assert(unwind_builder_request(b, 7, open(path, O_RDONLY | O_CLOEXEC)));
        ck_assert_int_eq(poll(&fd, 1, -1), 1);
        ck_assert(unwind_builder_take(b, &ret));
        return ret;
}

START_TEST(missing_worker_is_no_property_of_the_file)
{
        const char *build = getenv("CAIRN_BUILD");
        _cleanup_free_ char *agent = path_join(build ? build : "build", "cairn-agent");
        struct unwind_builder *b;
        struct unwind_built built;

        worker_set_program("/nonexistent");
        ck_assert_int_eq(unwind_builder_create(NULL, &b, NULL), ST_OK);
        built = build_table_of(b, agent);
        ck_assert_int_eq(built.end, UNWIND_BUILD_NO_WORKER);
        ck_assert_int_eq(built.fd, -1);
        worker_set_program(agent); /* when it can be started again, it is */
        built = build_table_of(b, agent);
        ck_assert_int_eq(built.end, UNWIND_BUILD_READ);
        ck_assert_int_ge(built.fd, 0);
        close(built.fd);
        built = build_table_of(b, "tests/corpus/elf/bad/magic-only.elf");
        ck_assert_int_eq(built.end, UNWIND_BUILD_READ);
        ck_assert_int_eq(built.fd, -1);
        unwind_builder_destroy(b);
}
END_TEST

TEST_SUITE("agent-unwind", released_extent_is_reused_after_grace_period, extent_never_crosses_boundary,
           extent_is_split_for_small_allocations, extents_never_overlap, table_is_read_with_renumbered_rules,
           table_rules_are_limited, tables_that_break_their_format_are_refused, truncated_tables_are_refused,
           owner_is_limited_to_a_quarter, containers_of_one_user_have_separate_quotas,
           a_quarter_is_reserved_for_the_system, owners_over_limit_share_one_quota, process_is_found_until_removed,
           ended_process_does_not_replace_later_one_with_its_pid, full_bucket_accepts_process_after_removal,
           missing_worker_is_no_property_of_the_file)
