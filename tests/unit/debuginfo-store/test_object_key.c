/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "common/cleanup.h"
#include "debuginfo-store/object_key.h"
#include "tests/support/suite.h"

static struct stored_object make_object(unsigned kind, uint64_t put_id)
{
        struct stored_object o = { .kind = kind, .put_id = put_id };

        ck_assert(build_id_from_bytes(&o.build_id, "\xab\xcd\xef\x01", 4));
        memset(o.sha256, 0x5a, sizeof o.sha256);
        return o;
}

static void check_key(unsigned kind, uint64_t put_id, const char *expected)
{
        const struct stored_object o = make_object(kind, put_id);
        _cleanup_free_ char *key = object_format_key(&o);
        struct stored_object parsed;

        ck_assert_str_eq(key, expected);
        ck_assert(object_parse_key(key, &parsed));
        ck_assert(build_id_equal(&parsed.build_id, &o.build_id));
        ck_assert_uint_eq(parsed.kind, kind);
        ck_assert_uint_eq(parsed.put_id, put_id);
        ck_assert_mem_eq(parsed.sha256, o.sha256, OBJECT_GENERATION_BYTES);
}

START_TEST(each_kind_has_a_key_that_is_parsed)
{
        check_key(OBJECT_DEBUGINFO, 0, "objects/ab/cdef01/debuginfo-5a5a5a5a5a5a5a5a.zst");
        check_key(OBJECT_SYMBOLS, 1, "objects/ab/cdef01/symbols-5a5a5a5a5a5a5a5a-0000000000000001.zst");
        check_key(OBJECT_ROW_SYMBOL_TABLE, UINT64_MAX,
                  "symbols/ab/cdef01/symbol-table-5a5a5a5a5a5a5a5a-ffffffffffffffff.v1.zst");
}
END_TEST

START_TEST(other_keys_are_not_parsed)
{
        static const char *const keys[] = {
                "",
                "objects/",
                "objects/README",
                "objects/ab/cdef01/",
                "objects/ab//debuginfo-5a5a5a5a5a5a5a5a.zst",
                "objects/ab/cdef0/debuginfo-5a5a5a5a5a5a5a5a.zst",
                "objects/ab/CDEF01/debuginfo-5a5a5a5a5a5a5a5a.zst",
                "objects/ab/cdef01/debuginfo-5a5a5a5a5a5a5a5.zst",
                "objects/ab/cdef01/debuginfo-5a5a5a5a5a5a5a5a.zst.1",
                "objects/ab/cdef01/debuginfo-5a5a5a5a5a5a5a5a-0000000000000000.zst",
                "objects/ab/cdef01/debuginfo-5a5a5a5a5a5a5a5a-000000000000001.zst",
                "objects/ab/cdef01/other-5a5a5a5a5a5a5a5a.zst",
                "symbols/ab/cdef01/debuginfo-5a5a5a5a5a5a5a5a.zst",
                "objects/ab/cdef01/symbol-table-5a5a5a5a5a5a5a5a-0000000000000001.v1.zst",
                "symbols/ab/cdef01/symbol-table-5a5a5a5a5a5a5a5a-0000000000000001.v2.zst",
        };
        struct stored_object parsed;

        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
                ck_assert_msg(!object_parse_key(keys[i], &parsed), "%s", keys[i]);
}
END_TEST

START_TEST(two_puts_of_one_content_differ)
{
        struct stored_object a = make_object(OBJECT_DEBUGINFO, 0), b = a;
        struct error err;

        ck_assert(object_is_same_put(&a, &b));
        check_ok(object_draw_put_id(&a.put_id, &err), &err);
        check_ok(object_draw_put_id(&b.put_id, &err), &err);
        ck_assert(a.put_id && b.put_id);
        ck_assert(!object_is_same_put(&a, &b));
}
END_TEST

TEST_SUITE("object key", each_kind_has_a_key_that_is_parsed, other_keys_are_not_parsed, two_puts_of_one_content_differ)
