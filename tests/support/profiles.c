/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/profiles.h"

#include <string.h>

#include "common/limits.h"
#include "symbol-index/index_load.h"

/* Benchmarks use this file too, and run without libcheck. */
static void require_ok(enum status st, const struct error *err)
{
        if (st) {
                fprintf(stderr, "test profile: %s\n", err->text);
                abort();
        }
}

uint32_t test_string(struct test_profile *t, const char *s)
{
        struct error err;
        uint32_t ret;

        require_ok(profile_add_string(&t->p, s, strlen(s), &ret, &err), &err);
        return ret;
}

void test_profile_init(struct test_profile *t, const char *build_id, const char *mapping)
{
        struct profile_mapping m = { 0 };
        struct profile_type type;
        struct error err;

        require_ok(profile_init(&t->p, LIMIT_PROFILE_MEMORY_BYTES, &err), &err);
        type = (struct profile_type){ .id = test_string(t, "process_cpu:cpu:nanoseconds:cpu:nanoseconds"),
                                      .unit = test_string(t, "nanoseconds"),
                                      .period = TEST_PROFILE_PERIOD };
        require_ok(profile_add_type(&t->p, &type, &t->type, &err), &err);
        m.file = test_string(t, mapping);
        if (*build_id && !build_id_from_hex(&m.build_id, build_id, strlen(build_id)))
                abort();
        require_ok(profile_add_mapping(&t->p, &m, &t->mapping, &err), &err);
}

void test_profile_deinit(struct test_profile *t)
{
        profile_deinit(&t->p);
}

uint32_t test_location(struct test_profile *t, uint64_t address)
{
        const struct profile_location l = { .mapping = t->mapping, .kind = ADDRESS_OBJECT, .address = address };
        struct error err;
        uint32_t ret;

        require_ok(profile_add_location(&t->p, &l, &ret, &err), &err);
        return ret;
}

uint32_t test_named_location(struct test_profile *t, bool in_mapping, uint64_t address, const char *function,
                             const char *file, int64_t line)
{
        const struct profile_line text = { .function = test_string(t, function),
                                           .file = test_string(t, file),
                                           .line = line };
        struct profile_location l = { .mapping = in_mapping ? t->mapping : PROFILE_NONE,
                                      .kind = in_mapping ? ADDRESS_OBJECT : ADDRESS_NONE,
                                      .address = address,
                                      .line_count = 1 };
        struct error err;
        uint32_t ret;

        require_ok(profile_add_line(&t->p, &text, &l.first_line, &err), &err);
        require_ok(profile_add_location(&t->p, &l, &ret, &err), &err);
        return ret;
}

void test_sample(struct test_profile *t, int64_t time_ns, int64_t value, const uint32_t *locations, uint32_t count,
                 const char *const *labels)
{
        struct profile_sample s = {
                .type = t->type, .time_unix_ns = time_ns, .value = value, .duration_ns = 1000000000
        };
        struct profile_label set[LIMIT_LABELS_PER_SAMPLE];
        struct error err;
        uint32_t ignored;

        require_ok(profile_add_stack(&t->p, locations, count, &s.stack, &err), &err);
        for (; labels && *labels; labels++) {
                const char *equals = strchr(*labels, '=');
                struct profile_label l = { 0 };

                require_ok(profile_add_string(&t->p, *labels, (size_t)(equals - *labels), &l.key, &err), &err);
                l.value = test_string(t, equals + 1);
                set[s.label_count++] = l;
        }
        require_ok(profile_add_label_set(&t->p, set, s.label_count, &s.first_label, &err), &err);
        require_ok(profile_add_sample(&t->p, &s, &ignored, &err), &err);
}

void test_load_symbols(struct symbol_index *index, const char *build_id, enum symbol_quality quality, uint64_t start,
                       uint32_t count, const char *name, const char *file)
{
        struct symbol_table t = { .quality = quality };
        struct error err;
        size_t room = 64 * (2 * (size_t)count + 2), at = 1;
        bool replaced;
        uint64_t generation;
        uint32_t file_text;

        if (!build_id_from_hex(&t.build_id, build_id, strlen(build_id)))
                abort();
        t.ranges = calloc(count, sizeof *t.ranges);
        t.chains = calloc(count, sizeof *t.chains);
        t.frames = calloc(2 * (size_t)count, sizeof *t.frames);
        t.functions = calloc(2 * (size_t)count, sizeof *t.functions);
        t.strings = calloc(1, room);
        file_text = (uint32_t)at;
        at += (size_t)snprintf(t.strings + at, room - at, "%s", file) + 1;
        for (uint32_t i = 0; i < count; i++) {
                t.ranges[i] = (struct symbol_range){ start + 0x100 * i, start + 0x100 * (i + 1), i };
                t.chains[i] = (struct symbol_chain){ 2 * i, 2 };
                t.frames[2 * i] = (struct symbol_table_frame){ 2 * i, file_text, 10 * (i + 1) + 1 };
                t.frames[2 * i + 1] = (struct symbol_table_frame){ 2 * i + 1, file_text, 10 * (i + 1) };
                t.functions[2 * i].name = (uint32_t)at;
                at += (size_t)snprintf(t.strings + at, room - at, "%s_%u_inner", name, i) + 1;
                t.functions[2 * i + 1].name = (uint32_t)at;
                at += (size_t)snprintf(t.strings + at, room - at, "%s_%u", name, i) + 1;
        }
        t.range_count = t.chain_count = count;
        t.frame_count = t.function_count = 2 * count;
        t.string_bytes = (uint32_t)at;
        require_ok(symbol_table_check(&t, &err), &err);
        require_ok(symbol_index_load(index, &t, &replaced, &generation, &err), &err);
        if (!replaced)
                abort();
        symbol_table_deinit(&t);
}
