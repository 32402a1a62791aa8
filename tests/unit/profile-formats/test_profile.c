/* SPDX-License-Identifier: Apache-2.0 */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "profile-formats/profile.h"
#include "profile-formats/profile_type.h"
#include "profile-formats/sample_count.h"
#include "profile-formats/return_address.h"
#include "profile-formats/wire.h"
#include "tests/support/suite.h"

START_TEST(equal_strings_stacks_and_label_sets_are_interned)
{
        _cleanup_profile_ struct profile p;
        struct profile_label ab[2], ba[2];
        uint32_t a, b, again, first, second;

        ck_assert_int_eq(profile_init(&p, MiB(4), NULL), ST_OK);
        ck_assert_int_eq(profile_add_string(&p, "", 0, &a, NULL), ST_OK);
        ck_assert_uint_eq(a, 0);
        for (int i = 0; i < 5000; i++) { /* through several growths of the hash table */
                char text[16];
                int n = snprintf(text, sizeof text, "s%d", i);

                ck_assert_int_eq(profile_add_string(&p, text, (size_t)n, &a, NULL), ST_OK);
                ck_assert_uint_eq(a, (uint32_t)i + 1);
        }
        ck_assert_int_eq(profile_add_string(&p, "s17", 3, &again, NULL), ST_OK);
        ck_assert_uint_eq(again, 18);

        ck_assert_int_eq(profile_add_stack(&p, (uint32_t[]){ 1, 2 }, 2, &a, NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(&p, (uint32_t[]){ 2, 1 }, 2, &b, NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(&p, (uint32_t[]){ 1, 2 }, 2, &again, NULL), ST_OK);
        ck_assert_uint_ne(a, b);
        ck_assert_uint_eq(a, again);

        ab[0] = ba[1] = (struct profile_label){ 1, 2 };
        ab[1] = ba[0] = (struct profile_label){ 3, 4 };
        ck_assert_int_eq(profile_add_label_set(&p, ab, 2, &first, NULL), ST_OK);
        ck_assert_int_eq(profile_add_label_set(&p, ba, 2, &second, NULL), ST_OK);
        ck_assert_uint_eq(first, second);
        ck_assert_uint_eq(p.labels.count, 2);
}
END_TEST

/*
 * Keys chosen offline so that the low bits of their XXH3 are equal: in a table that hashes without a secret each lookup
 * would compare all of them.
 */
#define COLLISIONS 2048u
#define COLLIDING_BITS 0xfffu

static uint32_t next_collision(uint32_t from, size_t (*make_key)(uint32_t number, void *key), void *key, size_t *size)
{
        do
                *size = make_key(from++, key);
        while (hash_bytes64(key, *size) & COLLIDING_BITS);
        return from;
}

static size_t make_string(uint32_t number, void *key)
{
        char *text = key;

        for (int i = 0; i < 8; i++)
                text[i] = "0123456789abcdef"[number >> (4 * i) & 15];
        return 8;
}

static size_t make_stack(uint32_t number, void *key)
{
        const uint32_t stack[] = { number, 1, 2 };

        memcpy(key, stack, sizeof stack);
        return sizeof stack;
}

static size_t make_labels(uint32_t number, void *key)
{
        const struct profile_label labels[] = { { 1, number }, { 2, 3 } };

        memcpy(key, labels, sizeof labels);
        return sizeof labels;
}

START_TEST(colliding_keys_do_not_slow_lookups)
{
        _cleanup_profile_ struct profile p;
        struct profile_label labels[2];
        uint32_t next = 0, index, stack[3];
        char text[8];
        size_t size;

        ck_assert_int_eq(profile_init(&p, MiB(16), NULL), ST_OK);
        for (uint32_t i = 0; i < COLLISIONS; i++) {
                next = next_collision(next, make_string, text, &size);
                ck_assert_int_eq(profile_add_string(&p, text, size, &index, NULL), ST_OK);
        }
        ck_assert_uint_lt(profile_longest_probe(&p), 100);
        next = 0;
        for (uint32_t i = 0; i < COLLISIONS; i++) {
                next = next_collision(next, make_stack, stack, &size);
                ck_assert_int_eq(profile_add_stack(&p, stack, 3, &index, NULL), ST_OK);
        }
        ck_assert_uint_lt(profile_longest_probe(&p), 100);
        next = 0;
        for (uint32_t i = 0; i < COLLISIONS; i++) {
                next = next_collision(next, make_labels, labels, &size);
                ck_assert_int_eq(profile_add_label_set(&p, labels, 2, &index, NULL), ST_OK);
        }
        ck_assert_uint_lt(profile_longest_probe(&p), 100);
        ck_assert_uint_eq(p.strings.count, 1 + COLLISIONS);
        ck_assert_uint_eq(p.stacks.count, COLLISIONS);
}
END_TEST

START_TEST(invalid_utf8_is_replaced)
{
        _cleanup_profile_ struct profile p;
        uint32_t a;

        ck_assert_int_eq(profile_init(&p, MiB(4), NULL), ST_OK);
        ck_assert_int_eq(profile_add_string(&p, "a\xff\0é", 5, &a, NULL), ST_OK);
        ck_assert_str_eq(profile_text(&p, a), "a\xef\xbf\xbd\xef\xbf\xbdé");
        ck_assert_uint_eq(p.strings.items[a].size, 9);
}
END_TEST

START_TEST(stack_over_the_limit_is_truncated_at_root)
{
        static uint32_t frames[LIMIT_STACK_FRAMES + 5];
        _cleanup_profile_ struct profile p;
        uint32_t s;

        for (uint32_t i = 0; i < LIMIT_STACK_FRAMES + 5; i++)
                frames[i] = i;
        ck_assert_int_eq(profile_init(&p, MiB(4), NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(&p, frames, LIMIT_STACK_FRAMES + 5, &s, NULL), ST_OK);
        ck_assert(p.stacks.items[s].truncated);
        ck_assert_uint_eq(p.stacks.items[s].location_count, LIMIT_STACK_FRAMES);
        ck_assert_uint_eq(p.stack_locations.items[0], 0);
}
END_TEST

START_TEST(profile_stays_valid_at_memory_limit)
{
        _cleanup_profile_ struct profile p;
        enum status st = ST_OK;
        struct error err;
        uint32_t a, count = 0;

        ck_assert_int_eq(profile_init(&p, KiB(256), NULL), ST_OK);
        for (int i = 0; !st; i++) {
                char text[32];
                int n = snprintf(text, sizeof text, "some string %d", i);

                count = p.strings.count;
                st = profile_add_string(&p, text, (size_t)n, &a, &err);
        }
        ck_assert_int_eq(st, ST_TOO_BIG);
        ck_assert_uint_le(p.arena.used, KiB(256));
        ck_assert_uint_eq(p.strings.count, count);
        ck_assert_int_eq(profile_add_string(&p, "some string 1", 13, &a, NULL), ST_OK);
}
END_TEST

START_TEST(only_raw_chains_decrement_caller_addresses)
{
        ck_assert_uint_eq(adjust_caller_address(ADDRESS_SOURCE_RAW_CHAIN, 0x1000, 0, false), 0x1000);
        ck_assert_uint_eq(adjust_caller_address(ADDRESS_SOURCE_RAW_CHAIN, 0x1000, 1, false), 0xfff);
        ck_assert_uint_eq(adjust_caller_address(ADDRESS_SOURCE_RAW_CHAIN, 0x1000, 1, true), 0x1000);
        ck_assert_uint_eq(adjust_caller_address(ADDRESS_SOURCE_RAW_CHAIN, 0, 3, false), 0);
        ck_assert_uint_eq(adjust_caller_address(ADDRESS_SOURCE_OTLP, 0x1000, 1, false), 0x1000);
        ck_assert_uint_eq(adjust_caller_address(ADDRESS_SOURCE_PPROF, 0x1000, 1, false), 0x1000);
}
END_TEST

START_TEST(load_addresses_are_subtracted_depending_on_sender)
{
        const struct address_mapping exec = { 0x401000, 0x402000, 0x1000, "/bin/a" };
        const struct address_mapping pie = { 0x55b87a6bc000, 0x55b87a6bd000, 0x1000, "/bin/a" };
        const struct address_mapping linked = { 0x2000, 0x3000, 0x1000, "a" }; /* p_vaddr 0x2000 at offset 0x1000 */
        const struct address_mapping kernel = { 0xffffffff81000000, UINT64_MAX, 0xffffffff81000000,
                                                "[kernel.kallsyms]_text" };
        const struct address_mapping none = { 0, 0, 0, "" };
        bool is_kernel;
        uint64_t a;

        ck_assert_int_eq(normalize_sender_address(ADDRESS_SOURCE_PPROF, &pie, 0x55b87a6bc15a, &a, &is_kernel),
                         ADDRESS_FILE_OFFSET);
        ck_assert_uint_eq(a, 0x115a);
        ck_assert(!is_kernel);
        ck_assert_int_eq(normalize_sender_address(ADDRESS_SOURCE_PPROF, &exec, 0x40115a, &a, &is_kernel),
                         ADDRESS_FILE_OFFSET);
        ck_assert_uint_eq(a, 0x115a);
        ck_assert_int_eq(normalize_sender_address(ADDRESS_SOURCE_OTLP, &linked, 0x2010, &a, &is_kernel),
                         ADDRESS_OBJECT);
        ck_assert_uint_eq(a, 0x2010);
        ck_assert_int_eq(normalize_sender_address(ADDRESS_SOURCE_OTLP, &pie, 0x55b87a6bc15a, &a, &is_kernel),
                         ADDRESS_FILE_OFFSET); /* a pprof profile encoded as OTLP */
        ck_assert_uint_eq(a, 0x115a);
        ck_assert_int_eq(normalize_sender_address(ADDRESS_SOURCE_PPROF, &kernel, 0xffffffff81000123, &a, &is_kernel),
                         ADDRESS_OBJECT);
        ck_assert_uint_eq(a, 0xffffffff81000123);
        ck_assert(is_kernel);
        ck_assert_int_eq(normalize_sender_address(ADDRESS_SOURCE_PPROF, &none, 0x1234, &a, &is_kernel), ADDRESS_OBJECT);
        ck_assert_uint_eq(a, 0x1234);
}
END_TEST

START_TEST(type_ids_have_five_parts)
{
        const struct profile_type_parts memory = { .sample_type = "inuse_space",
                                                   .sample_unit = "bytes",
                                                   .period_type = "space",
                                                   .period_unit = "bytes",
                                                   .period = 512 },
                                        colons = { .sample_type = "a:b", .sample_unit = "u" };
        _cleanup_profile_ struct profile p;
        uint32_t t;
        size_t n;

        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        ck_assert_int_eq(profile_type_add(&p, &memory, &t, NULL), ST_OK);
        ck_assert_str_eq(profile_text(&p, p.types.items[t].id), "memory:inuse_space:bytes:space:bytes");
        ck_assert_str_eq(profile_text(&p, p.types.items[t].unit), "bytes");
        ck_assert_int_eq(profile_type_add(&p, &colons, &t, NULL), ST_OK);
        ck_assert_str_eq(profile_text(&p, p.types.items[t].id), "a_b:a_b:u::");
        ck_assert_mem_eq(profile_type_part("a:b:c:d:e", TYPE_SAMPLE_UNIT, &n), "c", 1);
        ck_assert_uint_eq(n, 1);
        profile_type_part("a:b", TYPE_PERIOD_UNIT, &n);
        ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(snapshots_of_a_state_are_gauges)
{
        static const char *const gauges[] = {
                "goroutine:goroutine:count:goroutine:count",
                "goroutineleak:goroutineleak:count:goroutineleak:count",
                "memory:inuse_space:bytes:space:bytes",
                "memory:inuse-objects:count::",
                "memory:live:count:objects:count",
                "memory:heap-live-size:bytes::",
                "heap-space:heap-space:bytes::",
        };
        static const char *const sums[] = {
                "process_cpu:cpu:nanoseconds:cpu:nanoseconds",
                "memory:alloc_space:bytes:space:bytes",
                "goroutine:contentions:count:goroutine:count",
                "memory:inuses:bytes:space:bytes",
                "memory:lively:bytes::",
                "memory:heap-alloc:bytes::",
                "goroutine",
        };

        for (size_t i = 0; i < sizeof gauges / sizeof *gauges; i++)
                ck_assert_msg(profile_type_is_gauge(gauges[i]), "%s is none", gauges[i]);
        for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
                ck_assert_msg(!profile_type_is_gauge(sums[i]), "%s is one", sums[i]);
}
END_TEST

START_TEST(common_labels_do_not_override_sample_labels)
{
        _cleanup_profile_ struct profile p;
        struct profile_label own[1];
        struct profile_sample s = { 0 };
        uint32_t stack, n;

        ck_assert_int_eq(profile_init(&p, MiB(1), NULL), ST_OK);
        ck_assert_int_eq(profile_add_stack(&p, NULL, 0, &stack, NULL), ST_OK);
        ck_assert_int_eq(profile_type_add_id(&p, "samples:samples:count::", 0, &s.type, NULL), ST_OK);
        ck_assert_int_eq(profile_add_string(&p, "service_name", 12, &own[0].key, NULL), ST_OK);
        ck_assert_int_eq(profile_add_string(&p, "mine", 4, &own[0].value, NULL), ST_OK);
        for (int i = 0; i < 4; i++) {
                s.label_count = i < 2;
                ck_assert_int_eq(profile_add_label_set(&p, own, s.label_count, &s.first_label, NULL), ST_OK);
                ck_assert_int_eq(profile_add_sample(&p, &s, &n, NULL), ST_OK);
        }
        ck_assert_int_eq(profile_add_label_to_all(&p, "service_name", "theirs", NULL), ST_OK);
        for (uint32_t i = 0; i < 4; i++) {
                ck_assert_uint_eq(p.samples.items[i].label_count, 1);
                ck_assert_str_eq(profile_text(&p, p.labels.items[p.samples.items[i].first_label].value),
                                 i < 2 ? "mine" : "theirs");
        }
}
END_TEST

START_TEST(nested_message_lengths_of_any_size)
{
        _cleanup_buf_ struct buf b;
        struct reader r;
        struct wire_field f;
        static const size_t sizes[] = { 0, 1, 127, 128, 300, 16383, 16384, 70000 };

        buf_init(&b, MiB(1));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                size_t mark = wire_begin(&b, 7);

                for (size_t j = 0; j < sizes[i]; j++)
                        buf_append_u8(&b, (uint8_t)(i + 1));
                wire_end(&b, mark);
        }
        reader_init(&r, b.data, b.size);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                ck_assert(wire_next(&r, &f));
                ck_assert_uint_eq(f.bytes.size, sizes[i]);
                if (sizes[i])
                        ck_assert_uint_eq(f.bytes.data[sizes[i] - 1], i + 1);
        }
        ck_assert(!wire_next(&r, &f));
        ck_assert(!r.failed);
}
END_TEST

START_TEST(sizes_in_any_unit_do_not_count_samples)
{
        static const char *const units[] = { "bytes", "Byte", "kB", "megabytes" };

        for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
                char type[80];

                snprintf(type, sizeof type, "memory:alloc_space:%s:space:%s", units[i], units[i]);
                ck_assert_msg(profile_type_get_count_rule(type, 512).interval == 0, "%s", units[i]);
        }
        ck_assert(profile_type_get_count_rule("wall:wall:Microsecond:wall:ms", 10).interval == 10 * 1000000);
}
END_TEST

TEST_SUITE("profile", equal_strings_stacks_and_label_sets_are_interned, colliding_keys_do_not_slow_lookups,
           invalid_utf8_is_replaced, stack_over_the_limit_is_truncated_at_root, profile_stays_valid_at_memory_limit,
           only_raw_chains_decrement_caller_addresses, load_addresses_are_subtracted_depending_on_sender,
           type_ids_have_five_parts, snapshots_of_a_state_are_gauges, common_labels_do_not_override_sample_labels,
           sizes_in_any_unit_do_not_count_samples, nested_message_lengths_of_any_size)
