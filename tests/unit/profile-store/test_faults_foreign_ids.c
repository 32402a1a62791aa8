/* SPDX-License-Identifier: Apache-2.0 */
/* A node reads commits of another one while its disk is full. */
#include "common/files/file.h"
#include "tests/faults/fault_fs.h"
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
        fault_fs_off();
        node_fleet_end(&fleet);
}

static void fill_disk_of_ids(unsigned node)
{
        _cleanup_free_ char *ids = path_join(fleet.nodes[node].store->dir, "queue/batch-ids");

        fault_fs_watch(ids);
        fault_fs_full_at(1);
}

START_TEST(node_follows_and_starts_on_a_full_disk)
{
        node_fleet_append(&fleet, 0, 1, NULL);
        node_fleet_flush(&fleet, 0);
        fill_disk_of_ids(1);
        node_fleet_follow(&fleet, 1);
        ck_assert_int_eq(node_fleet_sum(&fleet, 1), 1);
        node_fleet_restart(&fleet, 1);
        node_fleet_append(&fleet, 1, 1, NULL); /* sent again, to the other node */
        ck_assert_int_eq(node_fleet_sum(&fleet, 1), 1);
        fault_fs_off();
        node_fleet_flush(&fleet, 1);
        ck_assert_int_eq(node_fleet_sum(&fleet, 1), 1);
}
END_TEST

TEST_SUITE_WITH_FIXTURE("faults foreign ids", node_follows_and_starts_on_a_full_disk)
