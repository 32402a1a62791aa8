/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/limits.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/verify_worker.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct debuginfo_store *store;

static void set_up(void)
{
        struct error err;

        temporary_dir_create(dir, "links");
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, &err), ST_OK);
}

static void tear_down(void)
{
        debuginfo_store_close(store);
        temporary_dir_remove(dir);
}

static struct build_id id_of(uint8_t number)
{
        struct build_id id;

        ck_assert(build_id_from_bytes(&id, (const uint8_t[20]){ number, 1, 2 }, 20));
        return id;
}

static struct build_id alias_of(uint8_t number)
{
        struct build_id id;

        ck_assert(build_id_from_bytes(&id, (const uint8_t[16]){ number, 7 }, 16));
        return id;
}

static void put_kind(uint8_t number, enum object_kind kind, const struct object_links *links)
{
        const struct stored_object o = { .build_id = id_of(number), .kind = kind, .quality = QUALITY_DWARF };
        struct error err = { 0 };

        ck_assert_msg(meta_put(store->meta, &o, links, NULL, &err) == ST_OK, "%s", err.text);
}

static void put(uint8_t number, uint8_t alias, bool claimed)
{
        const struct object_links links = { .aliases = { { alias_of(alias), claimed } }, .alias_count = 1 };

        put_kind(number, OBJECT_DEBUGINFO, &links);
}

static void drop(uint8_t number)
{
        const struct build_id id = id_of(number);

        ck_assert_int_eq(meta_remove(store->meta, &id, OBJECT_DEBUGINFO, NULL), ST_OK);
}

/* The number of the object that an alias refers to, 0 for none. */
static uint8_t find_alias_target(uint8_t alias)
{
        const struct build_id id = alias_of(alias);
        struct build_id found = { 0 };
        enum status st = debuginfo_store_resolve_alias(store, &id, &found, NULL);

        ck_assert(st == ST_OK || st == ST_NOT_FOUND);
        return st ? 0 : found.bytes[0];
}

START_TEST(alias_is_valid_until_its_object_is_removed)
{
        struct build_id id = id_of(1), found;

        ck_assert_uint_eq(find_alias_target(9), 0);
        put(1, 9, false);
        ck_assert_uint_eq(find_alias_target(9), 1);
        ck_assert_int_eq(debuginfo_store_resolve_alias(store, &id, &found, NULL), ST_OK);
        ck_assert(build_id_equal(&id, &found));
        drop(1);
        ck_assert_uint_eq(find_alias_target(9), 0);
}
END_TEST

START_TEST(first_object_keeps_shared_alias_until_removed)
{
        struct build_id aliases[4], second = id_of(2);
        size_t count;

        put(1, 9, false);
        put(2, 9, false);
        ck_assert_uint_eq(find_alias_target(9), 1);
        ck_assert_int_eq(debuginfo_store_list_aliases(store, &second, aliases, 4, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 0); /* an alias of another object is not its own */
        put(1, 9, false);            /* replaced by a better one, which has had the alias since */
        ck_assert_uint_eq(find_alias_target(9), 1);
        drop(1);
        ck_assert_uint_eq(find_alias_target(9), 2);
        ck_assert_int_eq(debuginfo_store_list_aliases(store, &second, aliases, 4, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(alias_found_in_file_overrides_claimed_one)
{
        put(1, 9, true);
        ck_assert_uint_eq(find_alias_target(9), 1);
        put(2, 9, false);
        ck_assert_uint_eq(find_alias_target(9), 2);
        put(3, 9, true);
        ck_assert_uint_eq(find_alias_target(9), 2);
}
END_TEST

START_TEST(alias_missing_in_replacement_is_removed)
{
        put(1, 9, false);
        put(1, 8, false);
        ck_assert_uint_eq(find_alias_target(9), 0);
        ck_assert_uint_eq(find_alias_target(8), 1);
}
END_TEST

START_TEST(stored_id_is_not_an_alias)
{
        struct build_id own = id_of(1), found;
        const struct object_links links = { .aliases = { { own, false } }, .alias_count = 1 };

        put_kind(2, OBJECT_DEBUGINFO, &links);
        ck_assert_int_eq(debuginfo_store_resolve_alias(store, &own, &found, NULL), ST_OK);
        ck_assert_uint_eq(found.bytes[0], 2);
        put_kind(1, OBJECT_EXECUTABLE, NULL);
        ck_assert_int_eq(debuginfo_store_resolve_alias(store, &own, &found, NULL), ST_OK);
        ck_assert_uint_eq(found.bytes[0], 1);
}
END_TEST

START_TEST(kinds_of_one_object_share_alias)
{
        const struct object_links links = { .aliases = { { alias_of(9), false } }, .alias_count = 1 };
        const struct build_id id = id_of(1);
        struct build_id aliases[4];
        size_t count;

        put(1, 9, true);
        put_kind(1, OBJECT_EXECUTABLE, &links);
        ck_assert_int_eq(debuginfo_store_list_aliases(store, &id, aliases, 4, &count, NULL), ST_OK);
        ck_assert_uint_eq(count, 1);
        drop(1);
        ck_assert_uint_eq(find_alias_target(9), 1);
}
END_TEST

START_TEST(missing_companions_are_listed_sorted_and_survive_reopening)
{
        const struct object_name first[] = { { id_of(20), OBJECT_DWO }, { id_of(10), OBJECT_SUPPLEMENTARY } };
        const struct object_name second[] = { { id_of(15), OBJECT_DWO } };
        struct object_name *needs;
        struct error err;
        size_t count;

        put_kind(1, OBJECT_DEBUGINFO, &(struct object_links){ .companions = first, .companion_count = 2 });
        put_kind(2, OBJECT_DEBUGINFO, &(struct object_links){ .companions = second, .companion_count = 1 });
        debuginfo_store_close(store);
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, &err), ST_OK);
        ck_assert_int_eq(debuginfo_store_list_companions(store, &needs, &count, &err), ST_OK);
        ck_assert_uint_eq(count, 3);
        ck_assert_uint_eq(needs[0].build_id.bytes[0], 10);
        ck_assert_uint_eq(needs[1].build_id.bytes[0], 15);
        ck_assert_uint_eq(needs[2].build_id.bytes[0], 20);
        free(needs);
        drop(1);
        ck_assert_int_eq(debuginfo_store_list_companions(store, &needs, &count, &err), ST_OK);
        ck_assert_uint_eq(count, 1);
        free(needs);
}
END_TEST

START_TEST(companions_are_found_by_object)
{
        const struct object_name first[] = { { id_of(20), OBJECT_DWO }, { id_of(10), OBJECT_SUPPLEMENTARY } };
        const struct object_name name = { id_of(1), OBJECT_DEBUGINFO }, other = { id_of(2), OBJECT_DEBUGINFO };
        struct object_name *companions;
        struct error err;
        size_t count;

        put_kind(1, OBJECT_DEBUGINFO, &(struct object_links){ .companions = first, .companion_count = 2 });
        put_kind(2, OBJECT_DEBUGINFO, &(struct object_links){ .companions = NULL });
        ck_assert_int_eq(debuginfo_store_get_companions(store, &name, &companions, &count, &err), ST_OK);
        ck_assert_uint_eq(count, 2);
        ck_assert_int_eq(object_name_compare(&companions[0], &first[0]), 0);
        ck_assert_int_eq(object_name_compare(&companions[1], &first[1]), 0);
        free(companions);
        ck_assert_int_eq(debuginfo_store_get_companions(store, &other, &companions, &count, &err), ST_OK);
        ck_assert_uint_eq(count, 0);
        free(companions);
        drop(1);
        ck_assert_int_eq(debuginfo_store_get_companions(store, &name, &companions, &count, &err), ST_NOT_FOUND);
}
END_TEST

START_TEST(verify_result_round_trips_and_truncations_are_bad_data)
{
        struct object_name needs[] = { { id_of(20), OBJECT_DWO }, { id_of(10), OBJECT_SUPPLEMENTARY } };
        const struct verify_result v = { .form = VERIFIED_ELF,
                                         .build_id = id_of(1),
                                         .go_id = id_of(2),
                                         .quality = QUALITY_DWARF,
                                         .has_code = true,
                                         .package_units = 3,
                                         .asked_units = 2,
                                         .companions = needs,
                                         .companion_count = 2,
                                         .sections = (uint8_t[]){ ".x\0\1\2" },
                                         .sections_bytes = 5 };
        struct verify_result got = { 0 };
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, KiB(4));
        verify_result_encode(&b, &v);
        ck_assert_int_eq(verify_result_decode(b.data, b.size, &got, &err), ST_OK);
        ck_assert(build_id_equal(&got.build_id, &v.build_id) && build_id_equal(&got.go_id, &v.go_id));
        ck_assert_uint_eq(got.companion_count, 2);
        ck_assert_int_eq(object_name_compare(&got.companions[1], &needs[1]), 0);
        ck_assert_uint_eq(got.sections_bytes, 5);
        ck_assert_mem_eq(got.sections, ".x\0\1\2", 5);
        verify_result_deinit(&got);
        for (size_t n = 0; n < b.size; n++)
                ck_assert_int_eq(verify_result_decode(b.data, n, &got, &err), ST_BAD_DATA);
        for (size_t i = 0; i < b.size; i++) { /* no changed byte may turn it into a better result */
                uint8_t kept = b.data[i];

                b.data[i] = 0xff;
                if (verify_result_decode(b.data, b.size, &got, &err) == ST_OK)
                        verify_result_deinit(&got);
                b.data[i] = kept;
        }
}
END_TEST

TEST_SUITE_WITH_FIXTURE("links", alias_is_valid_until_its_object_is_removed,
                        first_object_keeps_shared_alias_until_removed, alias_found_in_file_overrides_claimed_one,
                        alias_missing_in_replacement_is_removed, stored_id_is_not_an_alias,
                        kinds_of_one_object_share_alias, missing_companions_are_listed_sorted_and_survive_reopening,
                        companions_are_found_by_object, verify_result_round_trips_and_truncations_are_bad_data)
