/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>

#include "common/limits.h"
#include "server/app_name.h"
#include "server/id_set.h"
#include "server/json_in.h"
#include "server/multipart.h"
#include "tests/support/suite.h"

static enum status find(const char *type, const char *body, const char *name, const uint8_t **ret, size_t *n, struct error *err)
{
        return multipart_find(type, (const uint8_t *)body, strlen(body), name, ret, n, err);
}

START_TEST(a_part_is_found_by_its_name)
{
        static const char body[] = "--xyz\r\nContent-Disposition: form-data; name=\"config\"; filename=\"profile\"\r\n\r\nno\r\n"
                                   "--xyz\r\nContent-Type: a/b\r\nContent-Disposition: form-data; filename=\"p\"; name=\"profile\"\r\n\r\n"
                                   "one\r\n--xy\r\ntwo\r\n--xyz--\r\n";
        const uint8_t *part = NULL;
        size_t n = 0;
        struct error err;

        ck_assert_int_eq(find("multipart/form-data; boundary=xyz", body, "profile", &part, &n, &err), ST_OK);
        ck_assert_uint_eq(n, strlen("one\r\n--xy\r\ntwo"));
        ck_assert_int_eq(memcmp(part, "one\r\n--xy\r\ntwo", n), 0);
        ck_assert_int_eq(find("multipart/form-data; boundary=\"xyz\"", body, "config", &part, &n, &err), ST_OK);
        ck_assert_uint_eq(n, 2);
        ck_assert_int_eq(find("multipart/form-data; boundary=xyz", body, "prof", &part, &n, &err), ST_NOT_FOUND);
        ck_assert_int_eq(find("multipart/form-data", body, "profile", &part, &n, &err), ST_BAD_DATA);
        ck_assert_int_eq(find("multipart/form-data; boundary=abc", body, "profile", &part, &n, &err), ST_BAD_DATA);
        ck_assert_int_eq(find("multipart/form-data; boundary=abc", "", "profile", &part, &n, &err), ST_BAD_DATA);
}
END_TEST

/* Every cut of a body is refused or finds nothing it should not. */
START_TEST(a_cut_off_multipart_body_is_bad_data)
{
        static const char body[] = "--b\r\nContent-Disposition: form-data; name=\"profile\"\r\n\r\ndata\r\n--b--";
        size_t whole = sizeof body - 1 - 2; /* the last two dashes are not needed to know where the part ends */
        const uint8_t *part;
        size_t n;
        struct error err;

        for (size_t cut = 0; cut < whole; cut++)
                ck_assert_int_eq(multipart_find("x; boundary=b", (const uint8_t *)body, cut, "profile", &part, &n, &err), ST_BAD_DATA);
        ck_assert_int_eq(multipart_find("x; boundary=b", (const uint8_t *)body, whole, "profile", &part, &n, &err), ST_OK);
}
END_TEST

static const char *label(const struct profile *p, const char *key)
{
        const struct profile_sample *s = &p->samples.items[0];

        for (uint32_t i = 0; i < s->label_count; i++)
                if (strcmp(profile_text(p, p->labels.items[s->first_label + i].key), key) == 0)
                        return profile_text(p, p->labels.items[s->first_label + i].value);
        return NULL;
}

START_TEST(an_application_name_becomes_labels)
{
        _cleanup_profile_ struct profile p;
        struct profile_sample sample = { .value = 1 };
        struct error err;
        uint32_t i;

        ck_assert_int_eq(profile_init(&p, MiB(1), &err), ST_OK);
        ck_assert_int_eq(profile_add_stack(&p, NULL, 0, &sample.stack, &err), ST_OK);
        ck_assert_int_eq(profile_add_type(&p, &(struct profile_type){ 0 }, &sample.type, &err), ST_OK);
        ck_assert_int_eq(profile_add_sample(&p, &sample, &i, &err), ST_OK);
        ck_assert_int_eq(app_name_label("shop.cpu{region=eu, host = \"a b\",__session_id__=9,}", &p, &err), ST_OK);
        ck_assert_str_eq(label(&p, "service_name"), "shop.cpu");
        ck_assert_str_eq(label(&p, "region"), "eu");
        ck_assert_str_eq(label(&p, "host"), "a b");
        ck_assert_ptr_null(label(&p, "__session_id__"));
        ck_assert_int_eq(app_name_label("shop{region=eu", &p, &err), ST_BAD_DATA);
        ck_assert_int_eq(app_name_label("shop{region}", &p, &err), ST_BAD_DATA);
        ck_assert_int_eq(app_name_label("{a=b}", &p, &err), ST_BAD_DATA);
}
END_TEST

START_TEST(json_is_strict_and_not_deep)
{
        static const char *const bad[] = { "", "[]", "{", "{\"a\":1} x", "{\"a\":\"\xff\"}",
                                           "{\"a\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}" };
        struct json_object *o = NULL;
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
                ck_assert_msg(json_in_parse((const uint8_t *)bad[i], strlen(bad[i]), &o, &err) == ST_BAD_DATA, "%s", bad[i]);
        ck_assert_ptr_null(o);
        ck_assert_int_eq(json_in_parse((const uint8_t *)"{\"s\":\"x\",\"n\":7,\"m\":-1,\"t\":\"0x10\"}", 35, &o, &err), ST_OK);
        ck_assert_str_eq(json_in_str(o, "s"), "x");
        ck_assert_ptr_null(json_in_str(o, "n"));
        ck_assert_uint_eq(json_in_uint(o, "n", 0), 7);
        ck_assert_uint_eq(json_in_uint(o, "m", 0), UINT64_MAX);
        ck_assert_uint_eq(json_in_uint(o, "t", 0), 16);
        ck_assert_uint_eq(json_in_uint(o, "none", 5), 5);
        ck_assert_ptr_null(json_in_array(o, "s"));
        json_in_free(o);
}
END_TEST

START_TEST(a_set_keeps_the_order_of_arrival)
{
        struct id_set s = { 0 };
        struct build_id id, out;

        for (int round = 0; round < 2; round++) {
                for (uint8_t i = 0; i < 40; i++) {
                        ck_assert(build_id_from_bytes(&id, &i, 1));
                        ck_assert_int_eq(id_set_add(&s, &id), ST_OK);
                }
        }
        ck_assert_uint_eq(s.count, 40);
        id_set_remove(&s, &s.items[3]);
        for (uint8_t i = 0; i < 40; i++) {
                if (i == 3)
                        continue;
                ck_assert(id_set_pop(&s, &out));
                ck_assert_uint_eq(out.bytes[0], i);
        }
        ck_assert(!id_set_pop(&s, &out));
        id_set_deinit(&s);
}
END_TEST

TEST_SUITE("server_parts", a_part_is_found_by_its_name, a_cut_off_multipart_body_is_bad_data, an_application_name_becomes_labels,
           json_is_strict_and_not_deep, a_set_keeps_the_order_of_arrival)
