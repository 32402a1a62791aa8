/* SPDX-License-Identifier: Apache-2.0 */
/* Which objects of locations without names a node learns of: those of other nodes, and after a start all. */
#include <stdlib.h>
#include <string.h>

#include "common/files/file.h"
#include "profile-store/profile_store.h"
#include "storage/local_storage.h"
#include "tests/support/profiles.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temporary_dir.h"

#define NODES 2

static char dir[TEMPORARY_DIR_BYTES];
static struct storage *storages[NODES];
static struct profile_store *stores[NODES];

static void open_store(unsigned node)
{
        char node_dir[TEMPORARY_DIR_BYTES + 16];
        const struct profile_store_options options = {
                .size = sizeof options, .flush_interval_ms = UINT64_MAX, .tables = storages[node], .is_shared = true
        };
        struct error err;

        snprintf(node_dir, sizeof node_dir, "%s/node-%u", dir, node);
        check_ok(profile_store_open(node_dir, &options, &stores[node], &err), &err);
}

static void set_up(void)
{
        temporary_dir_create(dir, "unnamed");
        for (unsigned i = 0; i < NODES; i++) {
                _cleanup_free_ char *tables = path_join(dir, "tables");
                struct error err;

                check_ok(local_storage_open(tables, &storages[i], &err), &err);
                open_store(i);
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

static const char *make_object_id(unsigned object)
{
        static char id[41];

        snprintf(id, sizeof id, "%040x", object);
        return id;
}

static void flush_sample(unsigned node, unsigned object)
{
        struct test_profile t;
        uint32_t stack[1];
        struct error err;

        test_profile_init(&t, make_object_id(object), "/bin/x");
        stack[0] = test_location(&t, 0x1000);
        test_sample(&t, STORE_FIXTURE_T0, 1, stack, 1, (const char *[]){ NULL });
        check_ok(profile_store_append(stores[node], &t.p, store_fixture_batch_id(object), NULL, &err), &err);
        test_profile_deinit(&t);
        check_ok(profile_store_flush(stores[node], &err), &err);
}

/* The numbers of the objects that a node learns of, as "1 2 "; borrowed until the next call. Its flush of nothing reads
 * what others committed. */
static const char *list_objects(unsigned node)
{
        static char text[64];
        _cleanup_free_ struct build_id *ids = NULL;
        char hex[BUILD_ID_HEX_MAX];
        size_t count = 0, n = 0;
        struct error err;

        text[0] = 0;
        check_ok(profile_store_flush(stores[node], &err), &err);
        check_ok(profile_store_list_unnamed(stores[node], &ids, &count, &err), &err);
        for (size_t i = 0; i < count; i++)
                n += (size_t)snprintf(text + n, sizeof text - n, "%lu ", strtoul(build_id_hex(&ids[i], hex), NULL, 16));
        return text;
}

START_TEST(objects_of_other_nodes_are_listed_once_and_own_ones_after_a_start)
{
        set_up();
        flush_sample(0, 1);
        ck_assert_str_eq(list_objects(0), "1 ");
        ck_assert_str_eq(list_objects(1), "1 ");
        flush_sample(0, 2);
        ck_assert_str_eq(list_objects(0), ""); /* its flush has looked them up */
        ck_assert_str_eq(list_objects(1), "2 ");
        ck_assert_str_eq(list_objects(1), "");
        profile_store_close(stores[0]);
        open_store(0);
        ck_assert_str_eq(list_objects(0), "1 2 ");
        tear_down();
}
END_TEST

START_TEST(what_could_not_be_handled_is_listed_again)
{
        set_up();
        flush_sample(0, 1);
        flush_sample(0, 2);
        ck_assert_str_eq(list_objects(1), "1 2 ");
        ck_assert_str_eq(list_objects(1), "");
        profile_store_list_unnamed_again(stores[1]);
        ck_assert_str_eq(list_objects(1), "1 2 ");
        tear_down();
}
END_TEST

TEST_SUITE("unnamed_objects", objects_of_other_nodes_are_listed_once_and_own_ones_after_a_start,
           what_could_not_be_handled_is_listed_again)
