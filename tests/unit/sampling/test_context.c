/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts of OpenTelemetry in invented memory: that of a process, and those of threads, which are read by the function
 * of the BPF program.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/limits.h"
#include "profile-formats/wire.h"
#include "sampling/runtimes/thread_context.h"
#include "sampling/runtimes/thread_variable.h"
#include "tests/support/fake_memory.h"
#include "tests/support/suite.h"

static uint8_t contents[0x4000 + LIMIT_CONTEXT_PAYLOAD];
static struct fake_memory memory;
static struct process_context context;
static struct context_walk walk;
static struct thread_context thread;
static struct buf payload;
static unsigned changes_left; /* how often the context changes while it is read */

#define CONTEXT_READ(to, size, addr) (!fake_memory_read(&memory, (addr), (to), (size)))
#define CONTEXT_FUNCTION static
#include "bpf/context_read.h"

#define AT(offset) (FAKE_MEMORY_START + (offset))
#define HEAD AT(0)
#define RECORD AT(0x100)
#define DTV AT(0x800)
#define BLOCK AT(0xc00)
#define THREAD AT(0x1000)
#define SLOTS AT(0x1800)
#define PAYLOAD AT(0x4000)

static void put(uint64_t addr, const void *from, size_t n)
{
        memcpy(contents + (addr - FAKE_MEMORY_START), from, n);
}

static void put_word(uint64_t addr, uint64_t value)
{
        put(addr, &value, sizeof value);
}

/* ---- the process ---- */

static void put_head(uint32_t version, uint32_t size, uint64_t published_ns, uint64_t at)
{
        put(HEAD, "OTEL_CTX", 8);
        put(HEAD + 8, &version, sizeof version);
        put(HEAD + 12, &size, sizeof size);
        put_word(HEAD + 16, published_ns);
        put_word(HEAD + 24, at);
}

static void publish(uint64_t published_ns)
{
        ck_assert_int_eq(buf_status(&payload, NULL, "payload"), ST_OK);
        put(PAYLOAD, payload.data, payload.size);
        put_head(2, (uint32_t)payload.size, published_ns, PAYLOAD);
}

/* @param parent  field of the attribute: 1 in a resource, 2 in the context. */
static void put_text(uint32_t parent, const char *key, const char *value)
{
        size_t attribute = wire_begin(&payload, parent), any;

        wire_put_str(&payload, 1, key);
        any = wire_begin(&payload, 2);
        wire_put_bytes(&payload, 1, value, strlen(value));
        wire_end(&payload, any);
        wire_end(&payload, attribute);
}

static void put_names(const char *const *names, size_t count)
{
        size_t attribute = wire_begin(&payload, 2), any, array, value;

        wire_put_str(&payload, 1, "threadlocal.attribute_key_map");
        any = wire_begin(&payload, 2);
        array = wire_begin(&payload, 5);
        for (size_t i = 0; i < count; i++) {
                value = wire_begin(&payload, 1);
                wire_put_str(&payload, 1, names[i]);
                wire_end(&payload, value);
        }
        wire_end(&payload, array);
        wire_end(&payload, any);
        wire_end(&payload, attribute);
}

static void put_resource(const char *service)
{
        size_t resource = wire_begin(&payload, 1), attribute, any;

        put_text(1, "service.name", service);
        attribute = wire_begin(&payload, 1);
        wire_put_str(&payload, 1, "number");
        any = wire_begin(&payload, 2);
        wire_put_varint(&payload, 3, UINT64_MAX);
        wire_end(&payload, any);
        wire_end(&payload, attribute);
        wire_end(&payload, resource);
}

static void set_up(void)
{
        static const char *const names[] = { "http.route", "", "tenant" };

        memset(contents, 0, sizeof contents);
        memory = (struct fake_memory){ contents, sizeof contents, 0 };
        process_context_deinit(&context);
        memset(&walk, 0, sizeof walk);
        changes_left = 0;
        buf_deinit(&payload);
        buf_init(&payload, MiB(1));
        put_resource("shop");
        put_text(2, "threadlocal.schema_version", "tls_v1");
        put_names(names, 3);
        publish(5);
}

/* Reads of the payload change the stamp. */
static bool read_changing(void *ctx, uint64_t addr, void *to, size_t n)
{
        bool is_read = fake_memory_read(ctx, addr, to, n);

        if (addr == PAYLOAD && changes_left) {
                changes_left--;
                put_word(HEAD + 16, 100 + changes_left);
        }
        return is_read;
}

static enum process_context_state read_context(void)
{
        return process_context_read(&(const struct process_memory){ read_changing, &memory }, HEAD, &context);
}

START_TEST(attributes_and_names_are_read)
{
        set_up();
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_READ);
        ck_assert_uint_eq(context.label_count, 2);
        ck_assert_str_eq(context.labels[0].key, "service.name");
        ck_assert_str_eq(context.labels[0].value, "shop");
        ck_assert_str_eq(context.labels[1].value, "-1");
        ck_assert(context.has_threads);
        ck_assert_uint_eq(context.name_count, 3);
        ck_assert_str_eq(context.names[2], "tenant");
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_UNCHANGED);
}
END_TEST

START_TEST(replaced_context_is_read_again)
{
        set_up();
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_READ);
        buf_clear(&payload);
        put_resource("other");
        publish(6);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_READ);
        ck_assert_str_eq(context.labels[0].value, "other");
        ck_assert(!context.has_threads);
}
END_TEST

START_TEST(context_that_changes_while_it_is_read_is_read_again)
{
        set_up();
        changes_left = 2;
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_READ);
        ck_assert_uint_eq(context.published_ns, 100);
        changes_left = 100;
        put_word(HEAD + 16, 7);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_CHANGING);
        ck_assert_uint_eq(context.published_ns, 100);
        put_word(HEAD + 16, 0); /* it is being written */
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_CHANGING);
}
END_TEST

START_TEST(other_contexts_are_refused)
{
        set_up();
        put_head(1, 10, 5, PAYLOAD);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_NONE);
        put_head(2, 10, 5, PAYLOAD);
        put(HEAD, "OTEL_CTY", 8);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_NONE);
        put_head(2, UINT32_MAX, 5, PAYLOAD);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_BAD);
        put_head(2, 10, 5, UINT64_MAX - 4);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_BAD);
        put_head(2, (uint32_t)payload.size - 1, 5, PAYLOAD);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_BAD);
        ck_assert_uint_eq(context.published_ns, 0);
}
END_TEST

START_TEST(number_and_size_of_attributes_are_bounded)
{
        static char value[2 * LIMIT_CONTEXT_VALUE];
        size_t resource;

        set_up();
        buf_clear(&payload);
        memset(value, 'x', sizeof value - 1);
        resource = wire_begin(&payload, 1);
        for (int i = 0; i < LIMIT_CONTEXT_LABELS + 5; i++) {
                char key[32];

                snprintf(key, sizeof key, "key.%d", i);
                put_text(1, key, value);
        }
        wire_end(&payload, resource);
        publish(8);
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_READ);
        ck_assert_uint_eq(context.label_count, LIMIT_CONTEXT_LABELS);
        ck_assert_uint_eq(context.dropped, 5);
        ck_assert_uint_eq(strlen(context.labels[0].value), LIMIT_CONTEXT_VALUE);
}
END_TEST

/* ---- threads ---- */

static void put_record(const char *attributes, uint16_t size, uint8_t valid)
{
        put(RECORD, "0123456789abcdef", 16);
        put(RECORD + 16, "ABCDEFGH", 8);
        put(RECORD + 24, &valid, 1);
        put(RECORD + 26, &size, sizeof size);
        put(RECORD + CONTEXT_HEAD_BYTES, attributes, size < 0x200 ? size : 0);
}

static void decode_thread(void)
{
        context_read_thread(&walk, THREAD);
        thread_context_decode((const uint64_t *)walk.words, walk.word_count, &context, &thread);
}

static void set_up_thread(void)
{
        set_up();
        ck_assert_int_eq(read_context(), PROCESS_CONTEXT_READ);
        walk.process = (struct context_process){ .access = CONTEXT_AT_THREAD_POINTER, .offset = (uint64_t)-8 };
        put_word(THREAD - 8, RECORD);
}

START_TEST(record_has_trace_span_and_last_values)
{
        static const char attributes[] = "\0\2/a\2\4gold\0\2/b\1\1x\7\1y\2\5";

        set_up_thread();
        put_record(attributes, sizeof attributes - 1, 1);
        decode_thread();
        ck_assert_mem_eq(thread.trace_id, "0123456789abcdef", 16);
        ck_assert_mem_eq(thread.span_id, "ABCDEFGH", 8);
        ck_assert_uint_eq(thread.label_count, 2); /* others have no name, or are cut off */
        ck_assert_str_eq(thread.labels[0].key, "http.route");
        ck_assert_str_eq(thread.labels[0].value, "/b");
        ck_assert_str_eq(thread.labels[1].value, "gold");
}
END_TEST

START_TEST(equal_contexts_have_equal_words)
{
        struct context_walk first;

        set_up_thread();
        put_record("\0\2/a", 4, 1);
        decode_thread();
        first = walk;
        memset(walk.words, 0xff, sizeof walk.words);
        contents[0x100 + CONTEXT_HEAD_BYTES + 4] = 0xee; /* behind the record */
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 4);
        ck_assert_mem_eq(walk.words, first.words, walk.word_count * sizeof *walk.words);
        put_record("\0\3/aa", 5, 1);
        memset(walk.words, 0xff, sizeof walk.words);
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 5);
        ck_assert_uint_eq(walk.words[4], 'a');
}
END_TEST

START_TEST(thread_without_a_valid_record_has_no_context)
{
        static const uint64_t pointers[] = { 0, 1, UINT64_MAX - 3, AT(sizeof contents - 4) };

        set_up_thread();
        put_record("", 0, 2);
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 0);
        put_record("", 0, 1);
        for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
                put_word(THREAD - 8, pointers[i]);
                decode_thread();
                ck_assert_uint_eq(walk.word_count, 0);
                ck_assert_uint_eq(thread.trace_id[0], 0);
        }
}
END_TEST

START_TEST(record_that_is_too_long_is_cut)
{
        set_up_thread();
        put_record("", UINT16_MAX, 1);
        for (uint64_t i = 0; i < CONTEXT_ATTRIBUTES_MAX; i += 4)
                put(RECORD + CONTEXT_HEAD_BYTES + i, "\2\2ab", 4);
        decode_thread();
        ck_assert_uint_eq(walk.word_count, CONTEXT_WORDS_MAX);
        ck_assert_str_eq(thread.labels[0].value, "ab");
        ck_assert_uint_eq(thread.label_count, 1);
}
END_TEST

START_TEST(block_of_a_module_is_found_by_the_dtv)
{
        set_up_thread();
        put_record("", 0, 1);
        put_word(THREAD - 8, 0);
        put_word(THREAD + 8, DTV);
        put_word(BLOCK + 24, RECORD);
        walk.process = (struct context_process){
                .access = CONTEXT_IN_MODULE, .offset = 24, .module = 3, .dtv_entry_bytes = 16
        };
        put_word(DTV - 16, 3);
        put_word(DTV + 3 * 16, BLOCK);
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 4);
        put_word(DTV - 16, 2); /* the DTV is too short */
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 0);
        put_word(DTV - 16, 3);
        put_word(DTV + 3 * 16, UINT64_MAX); /* the block is not allocated */
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 0);
        walk.process.dtv_entry_bytes = 8;
        put_word(DTV, 3);
        put_word(DTV + 3 * 8, BLOCK);
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 4);
}
END_TEST

/* ---- Go ---- */

#define G AT(0x2000)
#define M AT(0x2200)
#define SCHEDULER_G AT(0x2400)
#define LABELS AT(0x2600)
#define MAP AT(0x2680)
#define LIST AT(0x2800)
#define BUCKETS AT(0x2c00)
#define TEXTS AT(0x3800)

static uint64_t texts_at;

static void put_go_text(uint64_t at, const char *text)
{
        size_t n = strlen(text);

        put(texts_at, text, n);
        put_word(at, texts_at);
        put_word(at + 8, n);
        texts_at += n;
}

/* A thread that runs on the stack of the scheduler, on behalf of a goroutine. */
static void set_up_go(uint32_t form)
{
        set_up_thread();
        walk.process.form = form;
        walk.process.m = 48;
        walk.process.curg = 184;
        walk.process.labels = 352;
        put_word(THREAD - 8, SCHEDULER_G);
        put_word(SCHEDULER_G + 48, M);
        put_word(M + 184, G);
        put_word(G + 352, LABELS);
        put_word(LABELS, form == CONTEXT_OF_GO_LIST ? LIST : MAP);
        texts_at = TEXTS;
}

static void put_go_label(unsigned number, const char *key, const char *value)
{
        put_go_text(LIST + 32 * number, key);
        put_go_text(LIST + 32 * number + 16, value);
        put_word(LABELS + 8, number + 1);
}

START_TEST(labels_of_the_goroutine_are_read_from_a_list)
{
        set_up_go(CONTEXT_OF_GO_LIST);
        put_go_label(0, "empty", "");
        put_go_label(1, "handler", "/pay");
        put_go_label(2, "span_id", "0102030405060708");
        put_go_label(3, "trace_id", "0102030405060708090a0b0c0d0e0f10");
        put_go_label(4, "work", "\xc3\xa9");
        memset(walk.words, 0xff, sizeof walk.words);
        decode_thread();
        ck_assert_uint_eq(thread.label_count, 2);
        ck_assert_str_eq(thread.labels[0].key, "handler");
        ck_assert_str_eq(thread.labels[0].value, "/pay");
        ck_assert_str_eq(thread.labels[1].value, "\xc3\xa9");
        ck_assert_uint_eq(thread.trace_id[15], 0x10);
        ck_assert_uint_eq(thread.span_id[0], 1);
        put_word(G + 352, 0);
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 0);
        put_word(G + 352, LABELS);
        put_word(M + 184, 0); /* the scheduler works for no goroutine */
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 0);
}
END_TEST

START_TEST(labels_of_go_are_bounded)
{
        static char key[CONTEXT_KEY_MAX + 2], value[500];

        set_up_go(CONTEXT_OF_GO_LIST);
        memset(key, 'k', CONTEXT_KEY_MAX + 1);
        memset(value, 'v', sizeof value - 1);
        put_go_label(0, key, "left out");
        put_go_label(1, key + 1, value);
        put_go_label(2, "no_id", "0102");
        put_word(LABELS + 8, UINT64_MAX);
        decode_thread();
        ck_assert_uint_eq(thread.label_count, 2);
        ck_assert_str_eq(thread.labels[0].key, key + 1);
        ck_assert_uint_eq(strlen(thread.labels[0].value), CONTEXT_VALUE_MAX);
        for (unsigned i = 0; i < 20; i++)
                put_go_label(i, key + 1, value);
        decode_thread();
        ck_assert_uint_le(walk.word_count, CONTEXT_WORDS_MAX);
        ck_assert_uint_eq(thread.label_count, 1); /* of one key */
        put_word(LIST, UINT64_MAX - 7);           /* texts and lists that cannot be read */
        put_word(LABELS, UINT64_MAX - 15);
        decode_thread();
        ck_assert_uint_eq(walk.word_count, 0);
}
END_TEST

static void put_go_slot(uint64_t bucket, unsigned slot, uint8_t hash, const char *key)
{
        put(bucket + slot, &hash, 1);
        put_go_text(bucket + 8 + 16 * slot, key);
        put_go_text(bucket + 136 + 16 * slot, key);
}

START_TEST(labels_of_the_goroutine_are_read_from_a_map)
{
        static const uint8_t two_buckets = 1;
        uint64_t second = BUCKETS + 272, overflow = BUCKETS + 2 * 272;

        set_up_go(CONTEXT_OF_GO_MAP);
        put_word(MAP, 4);
        put(MAP + 9, &two_buckets, 1);
        put_word(MAP + 16, BUCKETS);
        put_go_slot(BUCKETS, 0, 5, "a");
        put_go_slot(BUCKETS, 1, 1, "empty");
        put_go_slot(BUCKETS, 7, 255, "b");
        put_word(BUCKETS + 264, overflow);
        put_go_slot(overflow, 3, 9, "c");
        put_go_slot(second, 0, 80, "d");
        decode_thread();
        ck_assert_uint_eq(thread.label_count, 4);
        for (unsigned i = 0; i < 4; i++)
                ck_assert_str_eq(thread.labels[i].value, thread.labels[i].key);
        ck_assert_str_eq(thread.labels[2].key, "c");
        put_word(MAP, UINT64_MAX);
        put_word(BUCKETS + 264, BUCKETS); /* a cycle */
        decode_thread();
        ck_assert_uint_eq(thread.label_count, 2);
}
END_TEST

/* ---- the variable ---- */

static enum thread_variable_state find_variable(const struct context_symbols *s, struct context_process *ret)
{
        struct runtime_refusal refusal;

        return thread_variable_find(&(const struct process_memory){ fake_memory_read, &memory }, s, false, ret,
                                    &refusal);
}

START_TEST(descriptor_leads_to_the_variable)
{
        const struct context_symbols s = { .is_defined = 1, .offset = 24, .descriptor_slot = SLOTS };
        struct context_process p;

        set_up();
        put_word(SLOTS + 8, (uint64_t)-64);
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_FOUND);
        ck_assert_uint_eq(p.access, CONTEXT_AT_THREAD_POINTER);
        ck_assert_uint_eq(p.offset, (uint64_t)-64);
        put_word(SLOTS + 8, SLOTS + 64);
        put_word(SLOTS + 64, 5);
        put_word(SLOTS + 72, 24);
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_FOUND);
        ck_assert_uint_eq(p.access, CONTEXT_IN_MODULE);
        ck_assert_uint_eq(p.module, 5);
        ck_assert_uint_eq(p.dtv_entry_bytes, 16);
        put_word(SLOTS + 72, 32); /* another variable, or not resolved yet */
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_UNRESOLVED);
        put_word(SLOTS + 72, 24);
        put_word(SLOTS + 64, UINT64_MAX);
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_UNRESOLVED);
        put_word(SLOTS + 8, 16);
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_UNRESOLVED);
}
END_TEST

START_TEST(other_relocations_lead_to_the_variable)
{
        struct context_symbols s = { .is_defined = 1, .offset = 24, .module_slot = SLOTS };
        struct context_process p;

        set_up();
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_UNRESOLVED);
        put_word(SLOTS, 2);
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_FOUND);
        ck_assert_uint_eq(p.module, 2);
        s.offset_slot = SLOTS + 8;
        put_word(SLOTS + 8, 5);
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_UNRESOLVED);
        put_word(SLOTS + 8, (uint64_t)-16);
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_FOUND);
        ck_assert_uint_eq(p.offset, (uint64_t)-16);
        s.module_slot = s.offset_slot = 0;
        ck_assert_int_eq(find_variable(&s, &p), THREAD_VARIABLE_REFUSED);
}
END_TEST

TEST_SUITE("context", attributes_and_names_are_read, replaced_context_is_read_again,
           context_that_changes_while_it_is_read_is_read_again, other_contexts_are_refused,
           number_and_size_of_attributes_are_bounded, record_has_trace_span_and_last_values,
           equal_contexts_have_equal_words, thread_without_a_valid_record_has_no_context,
           record_that_is_too_long_is_cut, block_of_a_module_is_found_by_the_dtv,
           labels_of_the_goroutine_are_read_from_a_list, labels_of_go_are_bounded,
           labels_of_the_goroutine_are_read_from_a_map, descriptor_leads_to_the_variable,
           other_relocations_lead_to_the_variable)
