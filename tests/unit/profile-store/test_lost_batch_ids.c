/* SPDX-License-Identifier: Apache-2.0 */
/* A node reads a commit of another one, and cannot write the ids of its batches, as on a full disk. */
#include <stdio.h>
#include <unistd.h>

#include "common/files/file.h"
#include "profile-store/core/table_follow.h"
#include "tests/support/node_fleet.h"
#include "tests/support/suite.h"

static struct node_fleet fleet;

static void set_up(void)
{
        fleet = (struct node_fleet){ .hands_nothing = true };
        node_fleet_begin(&fleet, 2);
}

static void tear_down(void)
{
        node_fleet_end(&fleet);
}

/* Put a file where the folder of ids is, or the folder back. */
static void block_batch_ids(unsigned node, bool block)
{
        _cleanup_free_ char *folder = path_join(fleet.nodes[node].store->dir, "queue/batch-ids");
        _cleanup_free_ char *aside = path_join(fleet.nodes[node].store->dir, "queue/aside");
        struct error err;

        if (block) {
                ck_assert_int_eq(rename(folder, aside), 0);
                check_ok(file_write_durable(folder, "x", 1, &err), &err);
        } else {
                ck_assert_int_eq(unlink(folder), 0);
                ck_assert_int_eq(rename(aside, folder), 0);
        }
}

static enum status try_follow(unsigned node)
{
        struct profile_store *s = fleet.nodes[node].store;
        enum status st;

        pthread_mutex_lock(&s->writer_lock);
        st = store_follow_tables(s, NULL);
        pthread_mutex_unlock(&s->writer_lock);
        return st;
}

START_TEST(batch_is_known_once_its_id_can_be_written)
{
        node_fleet_append(&fleet, 0, 1, NULL);
        node_fleet_flush(&fleet, 0);
        block_batch_ids(1, true);
        ck_assert_int_eq(try_follow(1), ST_OS);
        block_batch_ids(1, false);
        node_fleet_follow(&fleet, 1);
        node_fleet_append(&fleet, 1, 1, NULL); /* sent again, to the other node */
        ck_assert_int_eq(node_fleet_sum(&fleet, 1), 1);
        node_fleet_flush(&fleet, 1);
        ck_assert_int_eq(node_fleet_sum(&fleet, 1), 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("lost batch ids", batch_is_known_once_its_id_can_be_written)
