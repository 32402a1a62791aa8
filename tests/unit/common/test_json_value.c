/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/json/json_node.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "tests/support/suite.h"

static enum status parse(const char *text, struct json_value *ret, struct error *err)
{
        return json_value_parse(text, strlen(text), ret, err);
}

START_TEST(only_one_well_formed_object_is_accepted)
{
        static const char *const bad[] = {
                "",           "[]",         "{",         "{\"a\":1} x",     "{\"a\":\"\xff\"}",
                "{\"a\":01}", "{\"a\":1,}", "{\"a\" 1}", "{\"a\":\"\\x\"}", "7",
                "{\"a\":}"
        };
        struct json_value root = { NULL, 0 };
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(parse(bad[i], &root, &err) == ST_BAD_DATA, "%s", bad[i]);
        ck_assert_ptr_null(root.data);
        ck_assert_int_eq(parse(" {\"a\":{\"b\":[1,\"x\",null,-2.5e+3,{}]}} ", &root, &err), ST_OK);
}
END_TEST

START_TEST(byte_order_mark_before_the_text_is_skipped)
{
        struct json_value root, value;
        struct error err;

        ck_assert_int_eq(parse("\xef\xbb\xbf{\"a\":1}", &root, &err), ST_OK);
        ck_assert(json_value_member(&root, "a", &value));
        ck_assert_int_eq(parse("\xef\xbb\xbf\xef\xbb\xbf{\"a\":1}", &root, &err), ST_BAD_DATA);
        ck_assert_int_eq(parse("\xef\xbb", &root, &err), ST_BAD_DATA);
}
END_TEST

START_TEST(nesting_is_bounded)
{
        char text[2 * LIMIT_JSON_DEPTH + 16];
        struct json_value root;
        struct error err;

        for (int over = 0; over < 2; over++) {
                int arrays = LIMIT_JSON_DEPTH - 1 + over;
                char *p = stpcpy(text, "{\"a\":");

                memset(p, '[', (size_t)arrays);
                memset(p + arrays, ']', (size_t)arrays);
                memcpy(p + 2 * arrays, "}", 2);
                ck_assert_int_eq(parse(text, &root, &err), over ? ST_BAD_DATA : ST_OK);
        }
}
END_TEST

START_TEST(unknown_members_are_found)
{
        static const char *const names[] = { "rules", "dry_run", NULL };
        static const struct {
                const char *text, *unknown; /* NULL: none */
        } cases[] = { { "{}", NULL },
                      { "{\"rules\":{\"other\":1},\"dry_run\":true}", NULL },
                      { "{\"dry\\u005frun\":true}", NULL },
                      { "{\"rules\":[],\"dry-run\":true}", "'dry-run'" },
                      { "{\"\":1}", "''" },
                      { "{\"dry_ru\":1}", "'dry_ru'" } };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
                struct json_value root;
                struct error err = { 0 };

                ck_assert_int_eq(json_value_parse(cases[i].text, strlen(cases[i].text), &root, &err), ST_OK);
                ck_assert_int_eq(json_value_check_members(&root, names, &err), cases[i].unknown ? ST_BAD_DATA : ST_OK);
                ck_assert(!cases[i].unknown || strstr(err.text, cases[i].unknown));
        }
}
END_TEST

START_TEST(members_are_read_by_type)
{
        struct json_value root, value;
        struct error err;
        char text[8];
        bool flag = false;

        ck_assert_int_eq(parse("{\"s\":\"x\",\"n\":7,\"m\":-1,\"t\":\"0x10\",\"b\" : "
                               "true,\"l\\u006fng\":\"12345678\",\"z\":\"a\\u0000b\","
                               "\"twice\":1,\"twice\":2}",
                               &root, &err),
                         ST_OK);
        ck_assert_str_eq(json_value_text(&root, "s", text, sizeof text), "x");
        ck_assert_ptr_null(json_value_text(&root, "n", text, sizeof text));
        ck_assert_ptr_null(json_value_text(&root, "z", text, sizeof text));    /* would be truncated at the NUL */
        ck_assert_ptr_null(json_value_text(&root, "long", text, sizeof text)); /* needs nine bytes */
        ck_assert(json_value_member(&root, "long", &value));
        ck_assert_uint_eq(json_value_uint(&root, "n", 0), 7);
        ck_assert_uint_eq(json_value_uint(&root, "m", 0), UINT64_MAX);
        ck_assert_uint_eq(json_value_uint(&root, "t", 0), 16);
        ck_assert_uint_eq(json_value_uint(&root, "none", 5), 5);
        ck_assert_uint_eq(json_value_uint(&root, "twice", 0), 2);
        ck_assert(json_value_bool(&root, "b", &flag) && flag);
        ck_assert(json_value_bool(&root, "none", &flag) && flag);
        ck_assert(!json_value_bool(&root, "n", &flag));
}
END_TEST

START_TEST(array_is_iterated_and_counted)
{
        struct json_value root, list, item;
        struct json_scan items;
        struct error err;
        size_t count = 0;

        ck_assert_int_eq(parse("{\"a\":[1,[2],{\"x\":[]},\"t\"],\"e\":[],\"o\":{}}", &root, &err), ST_OK);
        ck_assert(json_value_member(&root, "a", &list));
        ck_assert(json_value_open_array(&list, &items));
        while (json_value_next(&items, &item))
                count++;
        ck_assert_uint_eq(count, 4);
        ck_assert_uint_eq(json_value_count(&list, 100), 4);
        ck_assert_uint_eq(json_value_count(&list, 2), 3); /* one more than requested means "too many" */
        ck_assert(json_value_member(&root, "e", &list));
        ck_assert_uint_eq(json_value_count(&list, 100), 0);
        ck_assert(json_value_member(&root, "o", &list));
        ck_assert(!json_value_open_array(&list, &items));
}
END_TEST

/* As a tree each of the four million arrays would need over 200 bytes. */
START_TEST(eight_megabytes_of_brackets_need_no_memory)
{
        size_t n = LIMIT_HTTP_JSON_BYTES;
        struct json_value root, list;
        char *text = malloc(n), *p = stpcpy(text, "{\"files\":[[]");
        struct rusage before, after;
        struct error err;

        while (p < text + n - 5)
                p = stpcpy(p, ",[]");
        p = stpcpy(p, "]}");
        getrusage(RUSAGE_SELF, &before);
        ck_assert_int_eq(json_value_parse(text, (size_t)(p - text), &root, &err), ST_OK);
        ck_assert(json_value_member(&root, "files", &list));
        ck_assert_uint_gt(json_value_count(&list, SIZE_MAX - 1), 2000000);
        getrusage(RUSAGE_SELF, &after);
        ck_assert_int_le(after.ru_maxrss - before.ru_maxrss, 1024); /* KiB */
        free(text);
}
END_TEST

START_TEST(nodes_of_another_type_count_as_absent)
{
        static const char text[] = " {\"s\":\"a\\u0062\",\"i\":-3,\"u\":7,\"t\":true,\"n\":null,\"l\":[{\"s\":\"x\"},2]"
                                   ",\"o\":{\"i\":1}}\n";
        _cleanup_arena_ struct arena memory;
        const struct json_node *root = json_node_parse(text, strlen(text), &memory), *item;
        struct json_node_list list;

        ck_assert_ptr_nonnull(root);
        ck_assert_str_eq(json_node_text(root, "s"), "ab");
        ck_assert_str_eq(json_node_text(root, "i"), "");
        ck_assert_int_eq(json_node_int(root, "i"), -3);
        ck_assert_uint_eq(json_node_uint(root, "i"), 0);
        ck_assert_uint_eq(json_node_uint(root, "u"), 7);
        ck_assert_int_eq(json_node_int(root, "s"), 0);
        ck_assert(json_node_flag(root, "t"));
        ck_assert(!json_node_flag(root, "u"));
        ck_assert_ptr_null(json_node_member(root, "n"));
        ck_assert_ptr_null(json_node_member(root, "absent"));
        ck_assert_int_eq(json_node_int(json_node_member(root, "o"), "i"), 1);
        ck_assert(json_node_is_array(json_node_member(root, "l")));
        list = json_node_list(root, "l");
        item = json_node_next(&list);
        ck_assert_str_eq(json_node_text(item, "s"), "x");
        item = json_node_next(&list);
        ck_assert_ptr_nonnull(item);
        ck_assert_str_eq(json_node_text(item, "s"), "");
        ck_assert_ptr_null(json_node_next(&list));
        list = json_node_list(root, "o");
        ck_assert_ptr_null(json_node_next(&list));
        ck_assert_str_eq(json_node_text(NULL, "s"), "");
}
END_TEST

START_TEST(nodes_of_malformed_text_are_null)
{
        static const char *const bad[] = { "", "[1]", "{\"a\":", "{} {}", "null" };

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                _cleanup_arena_ struct arena memory;

                ck_assert_ptr_null(json_node_parse(bad[i], strlen(bad[i]), &memory));
        }
}
END_TEST

TEST_SUITE("JSON values", nodes_of_another_type_count_as_absent, nodes_of_malformed_text_are_null,
           only_one_well_formed_object_is_accepted, byte_order_mark_before_the_text_is_skipped, nesting_is_bounded,
           members_are_read_by_type, unknown_members_are_found, array_is_iterated_and_counted,
           eight_megabytes_of_brackets_need_no_memory)
