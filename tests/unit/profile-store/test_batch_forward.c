/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway: a store that forwards its batches in pages, and one that takes them. */
#include <string.h>

#include "common/stable_clock.h"
#include "profile-store/core/profile_store_internal.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"

static struct store_fixture node, gateway;

static struct {
        unsigned pages, losses, refusals; /* the next answers that are lost, and the next pages that fail */
        struct forwarded_batches sums;
        struct hash128 *bad; /* a page with this batch is refused */
} link_state;

static bool has_batch(const void *page, size_t n, const struct hash128 *id)
{
        return memmem(page, n, id->bytes, sizeof id->bytes) != NULL;
}

static enum status forward_to_node(void *context, const void *page, size_t n, struct error *err)
{
        struct store_fixture *to = context;
        struct forwarded_batches added;
        enum status st;

        link_state.pages++;
        if (link_state.refusals && link_state.refusals--)
                return error_set(err, ST_BUSY, "the node is away");
        if (link_state.bad && has_batch(page, n, link_state.bad))
                return error_set(err, ST_BAD_DATA, "the node refuses a batch");
        st = profile_store_append_page(to->store, page, n, &added, err);
        if (st)
                return st;
        link_state.sums.batches += added.batches;
        link_state.sums.duplicates += added.duplicates;
        link_state.sums.samples += added.samples;
        if (link_state.losses && link_state.losses--)
                return error_set(err, ST_BUSY, "the answer is lost");
        return ST_OK;
}

static void set_up(void)
{
        memset(&link_state, 0, sizeof link_state);
        node = gateway = (struct store_fixture){ .options.flush_interval_ms = UINT64_MAX };
        store_fixture_begin(&node);
        gateway.options.forward = forward_to_node;
        gateway.options.forward_context = &node;
        store_fixture_begin(&gateway);
}

static void tear_down(void)
{
        store_fixture_end(&gateway);
        store_fixture_end(&node);
}

static uint64_t count_queued(struct store_fixture *f)
{
        return store_fixture_stat(f).queued_batches;
}

static void fail_flush(enum status expected)
{
        struct error err;

        ck_assert_int_eq(profile_store_flush(gateway.store, &err), expected);
}

START_TEST(batches_are_sent_in_one_page)
{
        for (unsigned i = 0; i < 40; i++)
                store_fixture_append(&gateway, i, 0x1000 + i);
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(link_state.pages, 1);
        ck_assert_uint_eq(link_state.sums.batches, 40);
        ck_assert_uint_eq(link_state.sums.duplicates, 0);
        ck_assert_uint_eq(link_state.sums.samples, 40);
        ck_assert_uint_eq(count_queued(&gateway), 0);
        ck_assert_uint_eq(count_queued(&node), 40);
        ck_assert_int_eq(store_fixture_sum(&node), 40);
        ck_assert_int_eq(store_fixture_sum(&gateway), 0);
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(link_state.pages, 1); /* without batches there is no page */
        store_fixture_flush(&node);
        ck_assert_int_eq(store_fixture_sum(&node), 40);
}
END_TEST

/* What the node acknowledged survives its end, and what the gateway did survives that of the gateway. */
START_TEST(acknowledged_batches_survive_restarts)
{
        for (unsigned i = 0; i < 5; i++)
                store_fixture_append(&gateway, i, 0x1000 + i);
        store_fixture_reopen(&gateway);
        ck_assert_uint_eq(count_queued(&gateway), 5);
        store_fixture_flush(&gateway);
        store_fixture_reopen(&node);
        ck_assert_int_eq(store_fixture_sum(&node), 5);
        store_fixture_reopen(&gateway);
        ck_assert_uint_eq(count_queued(&gateway), 0);
        store_fixture_append(&gateway, 5, 0x2000);
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(link_state.sums.batches, 6);
        ck_assert_int_eq(store_fixture_sum(&node), 6);
}
END_TEST

START_TEST(a_lost_answer_counts_once)
{
        for (unsigned i = 0; i < 7; i++)
                store_fixture_append(&gateway, i, 0x1000 + i);
        link_state.losses = 2;
        fail_flush(ST_BUSY);
        store_fixture_reopen(&gateway); /* as after kill -9 between the answer and the record of it */
        fail_flush(ST_BUSY);
        ck_assert_uint_eq(count_queued(&gateway), 7);
        store_fixture_flush(&node); /* ids of flushed batches, too */
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(link_state.pages, 3);
        ck_assert_uint_eq(link_state.sums.batches, 21);
        ck_assert_uint_eq(link_state.sums.duplicates, 14);
        ck_assert_uint_eq(link_state.sums.samples, 7);
        ck_assert_int_eq(store_fixture_sum(&node), 7);
        ck_assert_uint_eq(count_queued(&gateway), 0);
}
END_TEST

START_TEST(many_bytes_are_several_pages)
{
        for (unsigned i = 0; i < 12; i++)
                store_fixture_append_large(gateway.store, i);
        link_state.losses = 1;
        fail_flush(ST_BUSY);
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(link_state.pages, 3); /* the first one twice */
        ck_assert_uint_eq(link_state.sums.samples, 12);
        ck_assert_int_eq(store_fixture_sum(&node), 12);
}
END_TEST

START_TEST(batches_with_remembered_ids_are_not_sent_again)
{
        struct hash128 ids[3];
        struct error err;

        for (unsigned i = 0; i < 3; i++) {
                store_fixture_append(&gateway, i, 0x1000 + i);
                ids[i] = store_fixture_batch_id(i);
        }
        link_state.losses = 1;
        fail_flush(ST_BUSY);
        /* As after a crash between this step and the commit of the position. */
        check_ok(batch_ids_add(gateway.store->ids, ids, 3, stable_unix_s(), &err), &err);
        store_fixture_reopen(&gateway);
        ck_assert_uint_eq(count_queued(&gateway), 0);
        store_fixture_append(&gateway, 3, 0x2000);
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(link_state.pages, 2);
        ck_assert_uint_eq(link_state.sums.duplicates, 0);
        ck_assert_int_eq(store_fixture_sum(&node), 4);
}
END_TEST

/* A sender that repeats its batch, to the gateway or to the node itself. */
START_TEST(a_batch_that_is_sent_again_counts_once)
{
        store_fixture_append(&gateway, 1, 0x1000);
        store_fixture_append(&gateway, 1, 0x1000);
        store_fixture_append(&node, 1, 0x1000);
        store_fixture_flush(&gateway);
        store_fixture_append(&gateway, 1, 0x1000);
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(link_state.pages, 1);
        ck_assert_int_eq(store_fixture_sum(&node), 1);
}
END_TEST

START_TEST(batches_wait_while_the_node_is_away)
{
        store_fixture_append(&gateway, 1, 0x1000);
        link_state.refusals = 2;
        fail_flush(ST_BUSY);
        store_fixture_append(&gateway, 2, 0x1001);
        fail_flush(ST_BUSY);
        ck_assert_uint_eq(count_queued(&gateway), 2);
        store_fixture_flush(&gateway);
        ck_assert_int_eq(store_fixture_sum(&node), 2);
        ck_assert_uint_eq(store_fixture_stat(&gateway).health.quarantined_batches, 0);
}
END_TEST

START_TEST(a_full_queue_refuses_batches)
{
        struct test_profile t;
        uint32_t stack[1];
        struct error err;

        store_fixture_end(&gateway);
        gateway.options.max_queued_bytes = 1;
        store_fixture_begin(&gateway);
        store_fixture_append(&gateway, 1, 0x1000);
        test_profile_init(&t, STORE_FIXTURE_ID, "/bin/x");
        stack[0] = test_location(&t, 0x1000);
        test_sample(&t, STORE_FIXTURE_T0, 1, stack, 1, (const char *[]){ NULL });
        ck_assert_int_eq(profile_store_append(gateway.store, &t.p, store_fixture_batch_id(2), NULL, &err), ST_BUSY);
        store_fixture_flush(&gateway);
        check_ok(profile_store_append(gateway.store, &t.p, store_fixture_batch_id(2), NULL, &err), &err);
        test_profile_deinit(&t);
        store_fixture_flush(&gateway);
        ck_assert_int_eq(store_fixture_sum(&node), 2);
}
END_TEST

START_TEST(a_batch_that_the_node_refuses_is_set_aside)
{
        struct hash128 bad = store_fixture_batch_id(3);

        for (unsigned i = 0; i < 8; i++)
                store_fixture_append(&gateway, i, 0x1000 + i);
        link_state.bad = &bad;
        store_fixture_flush(&gateway);
        ck_assert_uint_eq(store_fixture_stat(&gateway).health.quarantined_batches, 1);
        ck_assert_uint_eq(count_queued(&gateway), 0);
        ck_assert_int_eq(store_fixture_sum(&node), 7);
        store_fixture_reopen(&gateway);
        ck_assert_uint_eq(count_queued(&gateway), 0);
}
END_TEST

START_TEST(a_damaged_page_adds_nothing_after_the_damage)
{
        static const uint8_t nothing[64];
        struct forwarded_batches added = { .batches = 77 };
        struct error err;

        ck_assert_int_eq(profile_store_append_page(node.store, nothing, sizeof nothing, &added, &err), ST_BAD_DATA);
        ck_assert_uint_eq(added.batches, 77);
        ck_assert_uint_eq(count_queued(&node), 0);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("batch_forward", batches_are_sent_in_one_page, acknowledged_batches_survive_restarts,
                        a_lost_answer_counts_once, many_bytes_are_several_pages,
                        batches_with_remembered_ids_are_not_sent_again, a_batch_that_is_sent_again_counts_once,
                        batches_wait_while_the_node_is_away, a_full_queue_refuses_batches,
                        a_batch_that_the_node_refuses_is_set_aside, a_damaged_page_adds_nothing_after_the_damage)
