/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "pipeline/debounce.h"
#include "pipeline/id_set.h"
#include "pipeline/missing_companions.h"
#include "pipeline/resymbolizer.h"
#include "server/api/debuginfo/section_table.h"
#include "server/api/profiles/app_name.h"
#include "server/core/heap_trim.h"
#include "server/core/upstream_list.h"
#include "server/protocol/multipart.h"
#include "tests/support/suite.h"

static enum status find(const char *type, const char *body, const char *name, const uint8_t **ret, size_t *n,
                        struct error *err)
{
        return multipart_find(type, (const uint8_t *)body, strlen(body), name, ret, n, err);
}

START_TEST(a_part_is_found_by_its_name)
{
        static const char body[] =
                "--xyz\r\nContent-Disposition: form-data; name=\"config\"; filename=\"profile\"\r\n\r\nno\r\n"
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

/* Every truncated body is refused, or the result is not wrong. */
START_TEST(truncated_multipart_body_is_bad_data)
{
        static const char body[] = "--b\r\nContent-Disposition: form-data; name=\"profile\"\r\n\r\ndata\r\n--b--";
        size_t whole = sizeof body - 1 - 2; /* the last two dashes are not needed to find the end of the part */
        const uint8_t *part;
        size_t n;
        struct error err;

        for (size_t cut = 0; cut < whole; cut++)
                ck_assert_int_eq(
                        multipart_find("x; boundary=b", (const uint8_t *)body, cut, "profile", &part, &n, &err),
                        ST_BAD_DATA);
        ck_assert_int_eq(multipart_find("x; boundary=b", (const uint8_t *)body, whole, "profile", &part, &n, &err),
                         ST_OK);
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

static struct profile make_profile_of_one_sample(void)
{
        struct profile_sample sample = { .value = 1 };
        struct profile p;
        uint32_t i;

        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(&p, NULL, 0, &sample.stack, NULL), ST_OK);
        ck_assert_int_eq(profile_add_type(&p, &(struct profile_type){ 0 }, &sample.type, NULL), ST_OK);
        ck_assert_int_eq(profile_add_sample(&p, &sample, &i, NULL), ST_OK);
        return p;
}

START_TEST(an_application_name_becomes_labels)
{
        _cleanup_profile_ struct profile p = make_profile_of_one_sample();
        struct app_name app;
        struct error err;

        ck_assert_int_eq(app_name_parse("shop.cpu{region=eu, host = \"a b\",__session_id__=9,}", &app, &err), ST_OK);
        ck_assert_int_eq(app_name_add_labels(&app, &p, &err), ST_OK);
        ck_assert_str_eq(label(&p, "service_name"), "shop.cpu");
        ck_assert_str_eq(label(&p, "region"), "eu");
        ck_assert_str_eq(label(&p, "host"), "a b");
        ck_assert_ptr_null(label(&p, "__session_id__"));
        ck_assert_ptr_null(label(&p, "app_name"));
        app_name_deinit(&app);
        ck_assert_int_eq(app_name_parse("shop{region=eu", &app, &err), ST_BAD_DATA);
        ck_assert_int_eq(app_name_parse("{a=b}", &app, &err), ST_BAD_DATA);
        ck_assert_int_eq(app_name_parse("shop{region}", &app, &err), ST_OK);
        ck_assert_int_eq(app_name_add_labels(&app, &p, &err), ST_BAD_DATA);
        app_name_deinit(&app);
}
END_TEST

START_TEST(service_name_label_is_used)
{
        static const char *const names[] = { "process{service_name=shop}", "process{service.name=shop}" };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
                _cleanup_profile_ struct profile p = make_profile_of_one_sample();
                struct app_name app;
                struct error err;

                ck_assert_int_eq(app_name_parse(names[i], &app, &err), ST_OK);
                ck_assert_int_eq(app_name_add_labels(&app, &p, &err), ST_OK);
                ck_assert_str_eq(label(&p, "service_name"), "shop");
                ck_assert_str_eq(label(&p, "app_name"), "process");
                app_name_deinit(&app);
        }
}
END_TEST

/* Each pair iterates over all samples, also if its key was already present. */
START_TEST(labels_of_a_name_are_limited_like_those_of_samples)
{
        for (int count = LIMIT_LABELS_PER_SAMPLE; count <= LIMIT_LABELS_PER_SAMPLE + 1; count++) {
                _cleanup_profile_ struct profile p;
                _cleanup_buf_ struct buf name;
                struct app_name app;
                struct error err;

                buf_init(&name, KiB(4));
                buf_append_str(&name, "shop{");
                for (int i = 0; i < count; i++)
                        buf_append_str(&name, "a=b,");
                buf_append_str(&name, "}");
                ck_assert_int_eq(profile_init(&p, MiB(1), &err), ST_OK);
                ck_assert_int_eq(app_name_parse(buf_cstr(&name), &app, &err), ST_OK);
                ck_assert_int_eq(app_name_add_labels(&app, &p, &err),
                                 count > LIMIT_LABELS_PER_SAMPLE ? ST_TOO_BIG : ST_OK);
                app_name_deinit(&app);
        }
}
END_TEST

START_TEST(a_set_keeps_the_order_of_arrival)
{
        struct id_set s = { 0 };
        struct build_id id;

        for (int round = 0; round < 2; round++) {
                for (uint8_t i = 0; i < 40; i++) {
                        ck_assert(build_id_from_bytes(&id, &i, 1));
                        ck_assert_int_eq(id_set_add(&s, &id), ST_OK);
                }
        }
        ck_assert_uint_eq(s.count, 40);
        id_set_remove(&s, &s.items[3]);
        ck_assert_uint_eq(s.count, 39);
        for (uint8_t i = 0; i < 39; i++)
                ck_assert_uint_eq(s.items[i].bytes[0], i < 3 ? i : i + 1);
        id_set_deinit(&s);
}
END_TEST

static struct build_id id_of(uint8_t n)
{
        struct build_id id;

        ck_assert(build_id_from_bytes(&id, &n, 1));
        return id;
}

START_TEST(parts_are_due_after_the_last_one_arrived)
{
        struct build_id a = id_of(1), b = id_of(2), out;
        const int64_t start = 1000;
        struct debounce l = { 0 };

        ck_assert_int_eq(debounce_next_due_ns(&l), 0);
        ck_assert_int_eq(debounce_add(&l, &a, start), ST_OK);
        ck_assert_int_eq(debounce_add(&l, &b, start + 1), ST_OK);
        ck_assert_int_eq(debounce_next_due_ns(&l), start + DEBOUNCE_QUIET_NS);
        ck_assert_int_eq(debounce_add(&l, &a, start + 2), ST_OK); /* another part of a, so that b is first */
        ck_assert_uint_eq(l.count, 2);
        ck_assert_int_eq(debounce_next_due_ns(&l), start + 1 + DEBOUNCE_QUIET_NS);
        ck_assert(!debounce_take_due(&l, start + DEBOUNCE_QUIET_NS, &out));
        ck_assert(debounce_take_due(&l, start + 1 + DEBOUNCE_QUIET_NS, &out));
        ck_assert(build_id_equal(&out, &b));
        ck_assert(debounce_contains(&l, &a) && !debounce_contains(&l, &b));
        for (int64_t t = start; t < start + DEBOUNCE_MAX_NS; t += DEBOUNCE_QUIET_NS / 2) {
                ck_assert(!debounce_take_due(&l, t, &out));
                ck_assert_int_eq(debounce_add(&l, &a, t), ST_OK);
        }
        ck_assert(debounce_take_due(&l, start + DEBOUNCE_MAX_NS, &out)); /* although further parts kept arriving */
        ck_assert_uint_eq(l.count, 0);
        ck_assert_int_eq(debounce_add(&l, &a, start), ST_OK);
        debounce_remove(&l, &a);
        ck_assert(!debounce_take_due(&l, INT64_MAX, &out));
        debounce_deinit(&l);
}
END_TEST

START_TEST(last_missing_companion_is_recognized)
{
        struct build_id x = id_of(1), y = id_of(2), out;
        const struct build_id of_x[] = { id_of(10), id_of(11) }, of_y[] = { id_of(11) };
        char path[] = "/tmp/cairn-needs-XXXXXX";
        struct missing_companions n;
        struct error err;
        size_t at = 0;
        bool all;

        close(mkstemp(path));
        ck_assert_int_eq(missing_companions_load(&n, path, &err), ST_OK);
        ck_assert_int_eq(missing_companions_set(&n, &x, of_x, 2, &err), ST_OK);
        ck_assert_int_eq(missing_companions_set(&n, &y, of_y, 1, &err), ST_OK);
        ck_assert(missing_companions_mark_arrived(&n, &of_x[1], &at, &out, &all));
        ck_assert(build_id_equal(&out, &x) && !all);
        ck_assert(missing_companions_mark_arrived(&n, &of_x[1], &at, &out, &all));
        ck_assert(build_id_equal(&out, &y) && all);
        ck_assert(!missing_companions_mark_arrived(&n, &of_x[1], &at, &out, &all));
        at = 0;
        ck_assert(missing_companions_mark_arrived(&n, &of_x[0], &at, &out, &all));
        ck_assert(build_id_equal(&out, &x) && all);
        missing_companions_deinit(&n);
        unlink(path);
}
END_TEST

static void remember(unsigned n, size_t bytes)
{
        static const char first[] = ".text\0\x10\x20";
        char identity[40], *table = calloc(1, bytes);

        ck_assert_ptr_nonnull(table);
        memcpy(table, first, sizeof first - 1);
        snprintf(identity, sizeof identity, "file-%u", n);
        section_table_insert(identity, table, bytes);
}

static unsigned remembered(unsigned count)
{
        uint64_t offset, size;
        char identity[40];
        unsigned ret = 0;

        for (unsigned n = 0; n < count; n++) {
                snprintf(identity, sizeof identity, "file-%u", n);
                ret += section_table_find(identity, ".text", &offset, &size) == SECTION_FOUND && offset == 0x10 &&
                       size == 0x20;
        }
        return ret;
}

START_TEST(remembered_sections_are_limited)
{
        uint64_t offset, size;

        ck_assert_int_eq(section_table_find("file-0", ".text", &offset, &size), SECTION_UNKNOWN);
        for (unsigned n = 0; n < 300; n++)
                remember(n, 8);
        ck_assert_uint_eq(remembered(300), 300);
        ck_assert_int_eq(section_table_find("file-0", ".data", &offset, &size), SECTION_ABSENT);
        for (unsigned n = 0; n < 64; n++)
                remember(n, MiB(1));
        ck_assert_uint_le(remembered(64), LIMIT_SECTION_TABLES_BYTES / MiB(1));
        ck_assert_uint_ge(remembered(64), 1);
}
END_TEST

static enum status read_upstreams(const char *text, struct upstream_list *ret, struct error *err)
{
        char path[] = "/tmp/cairn-upstreams-XXXXXX";
        int fd = mkstemp(path);
        enum status st;

        ck_assert_int_eq(file_write_all(fd, text, strlen(text), path, NULL), ST_OK);
        close(fd);
        *ret = (struct upstream_list){ 0 };
        st = upstream_list_read(ret, path, err);
        unlink(path);
        return st;
}

START_TEST(upstream_file_has_urls_and_headers)
{
        char words[] = "ima:enforcing http://plain.example http://last.example";
        struct upstream_list l;
        struct error err;

        ck_assert_int_eq(
                read_upstreams("# ours\nhttps://a.example  token=se#cret # a comment\n\n  http://plain.example\t\r\n"
                               "https://b.example header=X-Key: two words\n",
                               &l, &err),
                ST_OK);
        ck_assert_int_eq(upstream_list_add_urls(&l, words, &err), ST_OK);
        ck_assert_uint_eq(l.count, 4);
        ck_assert_str_eq(l.urls[0], "https://a.example");
        ck_assert_str_eq(l.headers[0], "Authorization: Bearer se#cret");
        ck_assert_str_eq(l.urls[1], "http://plain.example");
        ck_assert_ptr_null(l.headers[1]);
        ck_assert_str_eq(l.headers[2], "X-Key: two words");
        ck_assert_str_eq(l.urls[3], "http://last.example");
        upstream_list_deinit(&l);
}
END_TEST

START_TEST(errors_of_upstream_file_omit_secrets)
{
        static const char *const bad[] = { "ftp://u:hunter2@a.example",
                                           "https://a.example hunter2",
                                           "https://a.example tokn=hunter2",
                                           "https://a.example token=",
                                           "https://a.example header=hunter2",
                                           "hunter2",
                                           "https://a.example token=hunter2 header=X:y",
                                           "https://a.example token=hunter2\x01" };
        struct upstream_list l;
        struct error err;

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                _cleanup_free_ char *text = NULL;

                ck_assert(asprintf(&text, "# two\n%s\n", bad[i]) > 0);
                ck_assert_msg(read_upstreams(text, &l, &err) == ST_BAD_DATA, "%s", bad[i]);
                ck_assert_msg(strstr(err.text, "line 2") && !strstr(err.text, "hunter2"), "%s", err.text);
                upstream_list_deinit(&l);
        }
}
END_TEST

START_TEST(change_of_two_jobs_is_remembered_until_both_end)
{
        const struct build_id id = { .size = 2, .bytes = { 0xab, 0xcd } };
        char path[] = "/tmp/cairn-resymbolize-queue-XXXXXX";
        struct resymbolizer *h = NULL;
        struct buf text;
        struct error err;
        int fd = mkstemp(path);

        ck_assert_int_ge(fd, 0);
        close(fd);
        ck_assert_msg(resymbolizer_start(NULL, 0, NULL, path, &h, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(resymbolizer_expect_change(h, &id, &err), ST_OK);
        ck_assert_int_eq(resymbolizer_expect_change(h, &id, &err), ST_OK);
        for (size_t left = 2; left-- > 0;) {
                resymbolizer_end_change(h, &id, false);
                buf_init(&text, KiB(1));
                ck_assert_int_eq(file_read(path, &text, &err), ST_OK);
                ck_assert_uint_eq(text.size, left * strlen("abcd\n"));
                buf_deinit(&text);
        }
        resymbolizer_stop(h);
        unlink(path);
}
END_TEST

START_TEST(heap_is_trimmed_when_much_is_resident_beyond_the_budget)
{
        const size_t free_bytes = LIMIT_HEAP_FREE_BYTES;
        struct heap_trim t = { 0 };

        ck_assert(!heap_trim_is_due(&t, 0, 0));
        ck_assert(!heap_trim_is_due(&t, free_bytes, 0));
        ck_assert(heap_trim_is_due(&t, free_bytes + 1, 0));
        ck_assert(!heap_trim_is_due(&t, MiB(700) + free_bytes, MiB(700))); /* in use */
        ck_assert(heap_trim_is_due(&t, MiB(700) + free_bytes + 1, MiB(700)));
        ck_assert(!heap_trim_is_due(&t, MiB(1), SIZE_MAX)); /* reserved, and not yet touched */
        t.other_bytes = MiB(50);                            /* what the last trim could not return */
        ck_assert(!heap_trim_is_due(&t, MiB(750) + free_bytes, MiB(700)));
        ck_assert(heap_trim_is_due(&t, MiB(750) + free_bytes + 1, MiB(700)));
}
END_TEST

/* Memory that is in use and unknown to the budget is counted as such, so that it does not cause trims forever. */
START_TEST(heap_that_is_in_use_is_trimmed_once)
{
        struct heap_trim t = { 0 };
        size_t n = 2 * LIMIT_HEAP_FREE_BYTES;
        char *used = malloc(n);

        ck_assert_ptr_nonnull(used);
        memset(used, 1, n);
        heap_trim_check(&t);
        ck_assert_uint_ge(t.other_bytes, n);
        ck_assert_int_gt(t.next_ns, 0);
        ck_assert(!heap_trim_is_due(&t, t.other_bytes, 0));
        ck_assert_int_eq(used[n - 1], 1);
        free(used);
}
END_TEST

TEST_SUITE("server_parts", a_part_is_found_by_its_name, truncated_multipart_body_is_bad_data,
           an_application_name_becomes_labels, service_name_label_is_used,
           labels_of_a_name_are_limited_like_those_of_samples, a_set_keeps_the_order_of_arrival,
           parts_are_due_after_the_last_one_arrived, last_missing_companion_is_recognized,
           upstream_file_has_urls_and_headers, errors_of_upstream_file_omit_secrets, remembered_sections_are_limited,
           change_of_two_jobs_is_remembered_until_both_end, heap_is_trimmed_when_much_is_resident_beyond_the_budget,
           heap_that_is_in_use_is_trimmed_once)
