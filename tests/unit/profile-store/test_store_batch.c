/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reduction of a batch: equal results from the request and from the raw queue, and identities, which are stored in all
 * tables and therefore must never change.
 */
#include <inttypes.h>
#include <string.h>

#include "common/limits.h"
#include "profile-store/rows/batch.h"
#include "profile-store/queue/payload.h"
#include "tests/support/profiles.h"
#include "tests/support/suite.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 INT64_C(1728000000000000000)

static int compare_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Everything that a sample refers to, one line per sample, sorted. Lines are owned. */
static char **lines_of(const struct batch *b)
{
        char **lines = calloc(b->sample_count + 1, sizeof *lines);

        for (uint32_t i = 0; i < b->sample_count; i++) {
                const struct batch_sample *s = &b->samples[i];
                const struct batch_label_set *set = &b->label_sets[s->label_set];
                struct buf line;

                buf_init(&line, 1 << 16);
                buf_printf(&line,
                           "%s %s %" PRId64 " t=%" PRId64 " d=%" PRId64 " v=%" PRId64 " trace=%d%02x span=%d%02x",
                           b->types[s->type].id, b->types[s->type].unit, b->types[s->type].period, s->time_us,
                           s->duration_ns, s->value, s->has_trace, s->trace_id[3], s->has_span, s->span_id[3]);
                for (uint32_t k = 0; k < set->count; k++)
                        buf_printf(&line, " %s=%s", set->labels[k].name, set->labels[k].value);
                for (uint32_t k = 0; k < b->stacks[s->stack].location_count; k++)
                        buf_printf(&line, " %016" PRIx64, b->stacks[s->stack].location_ids[k]);
                buf_cstr(&line);
                lines[i] = (char *)line.data;
        }
        qsort(lines, b->sample_count, sizeof *lines, compare_text);
        return lines;
}

static void expect_equal(const struct batch *a, const struct batch *b)
{
        char **x = lines_of(a), **y = lines_of(b);

        ck_assert_uint_eq(a->sample_count, b->sample_count);
        ck_assert_uint_eq(a->stack_count, b->stack_count);
        ck_assert_uint_eq(a->location_count, b->location_count);
        for (uint32_t i = 0; i < a->sample_count; i++) {
                ck_assert_str_eq(x[i], y[i]);
                free(x[i]);
                free(y[i]);
        }
        free(x);
        free(y);
}

/* One location, label, type and id of each kind. */
static void make_everything(struct test_profile *t)
{
        struct profile_location l = { 0 };
        struct profile_type other = { 0 };
        struct error err;
        uint32_t stack[8], n = 0;

        test_profile_init(t, ID, "/usr/bin/worker");
        stack[n++] = test_location(t, 0x1010);
        stack[n++] = test_named_location(t, true, 0x1110, "main.run", "run.go", 7);
        stack[n++] = test_named_location(t, false, 0, "eval", "page.js", 3);
        l = (struct profile_location){ .mapping = t->mapping, .kind = ADDRESS_FILE_OFFSET, .address = 0x77 };
        check_ok(profile_add_location(&t->p, &l, &stack[n++], &err), &err);
        l = (struct profile_location){ .mapping = t->mapping,
                                       .address = UINT64_C(0xffffffff81000010),
                                       .frame_type = PROFILE_FRAME_KERNEL };
        check_ok(profile_add_location(&t->p, &l, &stack[n++], &err), &err);
        l = (struct profile_location){ .mapping = PROFILE_NONE, .address = 0x7f0000001234 };
        check_ok(profile_add_location(&t->p, &l, &stack[n++], &err), &err);
        test_sample(t, T0 + 1234567, 5, stack, n, (const char *const[]){ "service.name=api", "Thread.Name=w-1", NULL });
        test_sample(t, T0 + 2234567, -6, stack + 1, n - 1, (const char *const[]){ "service.name=api", NULL });
        test_sample(t, T0, 7, stack, 1, NULL);
        t->p.samples.items[0].trace_id[3] = 0xab;
        t->p.samples.items[0].span_id[3] = 0xcd;
        other.id = test_string(t, "memory:inuse_space:bytes:space:bytes");
        other.unit = test_string(t, "bytes");
        other.period = 524288;
        check_ok(profile_add_type(&t->p, &other, &t->type, &err), &err);
        test_sample(t, T0, 4096, stack + 2, 2, (const char *const[]){ "service.name=api", NULL });
}

START_TEST(batch_is_equal_from_request_and_from_queue)
{
        _cleanup_buf_ struct buf payload;
        struct test_profile t;
        struct profile again;
        struct batch *a, *b;
        struct error err;

        buf_init(&payload, LIMIT_QUEUE_RECORD_BYTES);
        make_everything(&t);
        check_ok(batch_create(&t.p, &a, &err), &err);
        check_ok(payload_encode(&t.p, &payload, &err), &err);
        check_ok(payload_decode(payload.data, payload.size, &again, &err), &err);
        check_ok(batch_create(&again, &b, &err), &err);
        expect_equal(a, b);
        batch_unref(a);
        batch_unref(b);
        profile_deinit(&again);
        test_profile_deinit(&t);
}
END_TEST

START_TEST(identities_match_documentation)
{
        struct build_id id;
        struct location_identity l = { .build_id = &id, .mapping = "/elsewhere", .address = 0x1010 };
        _cleanup_buf_ struct buf scratch, bytes;
        uint64_t hash = 0, other = 0;
        struct hash128 stack, want;
        struct error err;

        buf_init(&scratch, 4096);
        buf_init(&bytes, 4096);
        ck_assert(build_id_from_hex(&id, ID, strlen(ID)));
        check_ok(location_identity_hash(&l, &scratch, &hash, &err), &err);
        buf_append(&bytes, "\0\0\x10\x10\0\0\0\0\0\0\x14", 11);
        buf_append(&bytes, id.bytes, id.size);
        ck_assert_uint_eq(hash, hash_bytes64(bytes.data, bytes.size));
        l.mapping = "/another/path";
        check_ok(location_identity_hash(&l, &scratch, &other, &err), &err);
        ck_assert_uint_eq(hash, other);
        l.is_kernel = true;
        check_ok(location_identity_hash(&l, &scratch, &other, &err), &err);
        ck_assert_uint_ne(hash, other);
        buf_clear(&bytes);
        buf_append_u64(&bytes, hash);
        buf_append_u64(&bytes, other);
        stack = hash_stack_identity((const uint64_t[]){ hash, other }, 2);
        want = hash_bytes128(bytes.data, bytes.size);
        ck_assert_mem_eq(stack.bytes, want.bytes, sizeof want.bytes);
}
END_TEST

START_TEST(equivalent_keys_become_one_label)
{
        struct test_profile t;
        struct batch *b;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0, 1, &leaf, 1,
                    (const char *const[]){ "a_b=second", "A.b=first", "a.b=third", "empty=", NULL });
        check_ok(batch_create(&t.p, &b, &err), &err);
        ck_assert_uint_eq(b->label_sets[0].count, 1);
        ck_assert_str_eq(b->label_sets[0].labels[0].name, "a_b");
        ck_assert_str_eq(b->label_sets[0].labels[0].value, "first");
        batch_unref(b);
        test_profile_deinit(&t);
}
END_TEST

START_TEST(labels_named_as_parts_of_the_type_are_renamed)
{
        static const char *const labels[] = { "__name__=a", "__period_unit__=b", "__names__=c", NULL };
        static const char *const names[] = { "__names__", "exported___name__", "exported___period_unit__" };
        struct test_profile t;
        struct batch *b;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        test_sample(&t, T0, 1, &leaf, 1, labels);
        check_ok(batch_create(&t.p, &b, &err), &err);
        ck_assert_uint_eq(b->label_sets[0].count, 3);
        for (size_t i = 0; i < 3; i++)
                ck_assert_str_eq(b->label_sets[0].labels[i].name, names[i]);
        batch_unref(b);
        test_profile_deinit(&t);
}
END_TEST

START_TEST(keys_of_other_scripts_stay_apart)
{
        static const char *const keys[][2] = {
                { "ключ", "ключ" },
                { "дата", "дата" },
                { "Ключ-A.b", "Ключ_a_b" },
                { "a\xff\xd0z", "a__z" },
                { "a\xc2\x85z", "a__z" },      /* C1 */
                { "a\xe2\x80\xaez", "a___z" }, /* right to left */
        };

        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                char column[64];

                normalize_label_key(keys[i][0], column);
                ck_assert_str_eq(column, keys[i][1]);
        }
}
END_TEST

START_TEST(a_batch_of_too_many_days_is_refused)
{
        struct test_profile t;
        struct batch *b = NULL;
        struct error err;
        uint32_t leaf;

        test_profile_init(&t, ID, "/bin/x");
        leaf = test_location(&t, 0x1000);
        for (int day = 0; day <= LIMIT_BATCH_DATES; day++)
                test_sample(&t, T0 + day * INT64_C(86400000000000), 1, &leaf, 1, NULL);
        ck_assert_int_eq(batch_create(&t.p, &b, &err), ST_TOO_BIG);
        ck_assert_ptr_null(b);
        test_profile_deinit(&t);
}
END_TEST

/* A location with one line of these names, and its sample. */
static void add_named_sample(struct test_profile *t, const char *function, const char *linkage_name)
{
        struct profile_line line = { .function = test_string(t, function),
                                     .linkage_name = test_string(t, linkage_name) };
        struct profile_location l = { .mapping = PROFILE_NONE, .kind = ADDRESS_NONE };
        struct error err;
        uint32_t leaf;

        l.line_count = 1;
        check_ok(profile_add_line(&t->p, &line, &l.first_line, &err), &err);
        check_ok(profile_add_location(&t->p, &l, &leaf, &err), &err);
        test_sample(t, T0, 1, &leaf, 1, NULL);
}

START_TEST(mangled_names_of_senders_are_readable_under_the_id_of_the_sent_name)
{
        static const struct {
                const char *function, *linkage_name, *readable, *kept;
        } names[] = {
                { "_ZN3foo3barEv", "", "foo::bar()", "_ZN3foo3barEv" },
                { "", "_ZN3foo3barEv", "foo::bar()", "_ZN3foo3barEv" },
                { "_ZN3foo3barEv", "_ZN3foo3barEv", "foo::bar()", "_ZN3foo3barEv" },
                { "bar", "_ZN3foo3barEv", "bar", "_ZN3foo3barEv" },
                { "_RNvC6_123foo3bar", "", "123foo::bar", "_RNvC6_123foo3bar" },
                { "_D3std5stdio8writelnsFZv", "", NULL, NULL },
                { "_Zzz", "", "_Zzz", "" },
                { "main.run", "", "main.run", "" },
        };
        struct test_profile t;
        struct batch *b;
        struct error err;

        test_profile_init(&t, ID, "/bin/x");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
                add_named_sample(&t, names[i].function, names[i].linkage_name);
        check_ok(batch_create(&t.p, &b, &err), &err);
        ck_assert_uint_eq(b->location_count, sizeof names / sizeof names[0]);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                const struct sent_frame *f = &b->locations[i].identity.frames[0];
                struct sent_frame sent = { .function = names[i].function,
                                           .linkage_name = names[i].linkage_name,
                                           .file = "" };
                struct location_identity l = { .mapping = "", .kind = ADDRESS_NONE, .frames = &sent, .frame_count = 1 };
                _cleanup_buf_ struct buf scratch;
                uint64_t id;

                buf_init(&scratch, 4096);
                check_ok(location_identity_hash(&l, &scratch, &id, &err), &err);
                ck_assert_uint_eq(b->locations[i].id, id);
                if (!names[i].readable)
                        continue;
                ck_assert_str_eq(f->function, names[i].readable);
                ck_assert_str_eq(f->linkage_name, names[i].kept);
        }
        batch_unref(b);
        test_profile_deinit(&t);
}
END_TEST

/* Each parameter of these functions is a type made of two of the type before it: 100 bytes become 25 KB. */
START_TEST(names_that_expand_are_demangled_up_to_a_limit)
{
        struct test_profile t;
        struct batch *b;
        struct error err;
        size_t readable_bytes = 0, mangled_count = 0;

        test_profile_init(&t, ID, "/bin/x");
        for (int i = 0; i < 4000; i++) {
                char name[256];
                int n = snprintf(name, sizeof name, "_Z5f%04d1XIiiE", i);

                for (int k = 0; k < 10; k++)
                        n += snprintf(name + n, sizeof name - (size_t)n, "S_IS%d_S%d_E", k, k);
                add_named_sample(&t, name, "");
        }
        check_ok(batch_create(&t.p, &b, &err), &err);
        for (uint32_t i = 0; i < b->location_count; i++) {
                const char *name = b->locations[i].identity.frames[0].function;

                readable_bytes += strlen(name);
                mangled_count += name[0] == '_';
        }
        ck_assert_uint_gt(readable_bytes, LIMIT_SENT_NAMES_BYTES);
        ck_assert_uint_le(readable_bytes, LIMIT_SENT_NAMES_BYTES + LIMIT_DEMANGLED_BYTES + 4000 * 256);
        ck_assert_uint_gt(mangled_count, 0);
        ck_assert_uint_lt(mangled_count, 4000);
        batch_unref(b);
        test_profile_deinit(&t);
}
END_TEST

START_TEST(days_before_1970_are_negative)
{
        ck_assert_int_eq(day_of_us(0), 0);
        ck_assert_int_eq(day_of_us(-1), -1);
        ck_assert_int_eq(day_of_us(INT64_C(86400000000)), 1);
        ck_assert_int_eq(day_of_us(-INT64_C(86400000000)), -1);
}
END_TEST

TEST_SUITE("profile store batch", batch_is_equal_from_request_and_from_queue, identities_match_documentation,
           equivalent_keys_become_one_label, labels_named_as_parts_of_the_type_are_renamed,
           keys_of_other_scripts_stay_apart, a_batch_of_too_many_days_is_refused,
           mangled_names_of_senders_are_readable_under_the_id_of_the_sent_name,
           names_that_expand_are_demangled_up_to_a_limit, days_before_1970_are_negative)
