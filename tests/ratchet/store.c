/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the profile store, of its queries, and of its files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "parquet/parquet_reader.h"
#include "parquet/parquet_writer.h"
#include "profile-store/profile_store.h"
#include "profile-store/scan.h"
#include "query/query.h"
#include "tests/ratchet/ratchet.h"
#include "tests/support/profiles.h"

#define ID "00112233445566778899aabbccddeeff00112233"
#define T0 INT64_C(1728000000000000000)
#define HOSTS 10
#define BATCHES 20
#define SAMPLES 400
#define STACKS 3000
#define LOCATIONS 4000
#define FIRST_ADDRESS 0x1000

static struct profile_store *store;
static struct test_profile batches[BATCHES];

/* ---- the store ---- */

/* Stacks are drawn from a fixed number of them. */
static uint32_t make_stack(struct test_profile *t, uint32_t number, uint32_t *stack)
{
        uint32_t depth = 5 + number % 25, n = 0;

        for (uint32_t x = number * 2654435761u; n < depth; n++, x = x * 1664525 + 1013904223)
                stack[n] = test_location(t, FIRST_ADDRESS + 0x10ull * ((x >> 4) % LOCATIONS));
        return depth;
}

static void make_batch(struct test_profile *t, uint32_t number)
{
        char label[32];

        test_profile_init(t, ID, "/usr/bin/worker");
        snprintf(label, sizeof label, "host=h%u", number % HOSTS);
        for (int i = 0; i < SAMPLES; i++) {
                uint32_t stack[30], depth = make_stack(t, draw_below(draw_below(STACKS) + 1), stack);

                test_sample(t, T0 + number * INT64_C(10000000000) + draw_below(1000000), 52631578, stack, depth,
                            (const char *const[]){ "service.name=api", label, NULL });
        }
}

static void prepare_append(void)
{
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct error err;
        char index[128];

        snprintf(index, sizeof index, "%s/index", ratchet_directory());
        require_ok(symbol_index_open(index, false, &options.symbols, &err), &err);
        test_load_symbols(options.symbols, ID, QUALITY_DWARF, FIRST_ADDRESS, LOCATIONS / 16 + 1, "work", "/src/work.c");
        require_ok(profile_store_open(ratchet_directory(), &options, &store, &err), &err);
        for (uint32_t i = 0; i < BATCHES; i++)
                make_batch(&batches[i], i);
}

static void run_append(void)
{
        struct error err;

        for (uint32_t i = 0; i < BATCHES; i++)
                require_ok(profile_store_append(store, &batches[i].p, hash_bytes128(&i, sizeof i), NULL, &err), &err);
}

static void prepare_flush(void)
{
        prepare_append();
        run_append();
}

static void run_flush(void)
{
        struct error err;

        require_ok(profile_store_flush(store, &err), &err);
}

static void prepare_query(void)
{
        prepare_flush();
        run_flush();
}

/* ---- queries ---- */

static void run_sum(void)
{
        const struct scan_filter all = { 0, INT64_MAX, NULL, NULL, 0 };
        struct store_scan *scan;
        struct stack_sums sums;
        struct error err;

        require_ok(store_scan_begin(store, &scan, &err), &err);
        require_ok(store_scan_sum(scan, &all, &sums, &err), &err);
        require_true(sums.count > STACKS / 4, "the sum lacks stacks");
        stack_sums_deinit(&sums);
        store_scan_end(scan);
}

static const char *query_format;

static const char *get_query_parameter(void *context, const char *name)
{
        (void)context;
        return strcmp(name, "from") == 0     ? "1727990000"
               : strcmp(name, "to") == 0     ? "1728010000"
               : strcmp(name, "format") == 0 ? query_format
                                             : NULL;
}

static void run_query(const char *operation, const char *format)
{
        const struct query_input in = { .param = get_query_parameter, .now_unix_ns = T0 };
        struct query_answer about;
        _cleanup_buf_ struct buf answer;
        struct error err;

        query_format = format;
        buf_init(&answer, MiB(64));
        require_ok(query_run(store, operation, &in, &answer, &about, &err), &err);
        require_true(answer.size > 512, "the answer is nearly empty");
}

static void run_top(void)
{
        run_query("top", "text");
}

static void run_flame(void)
{
        run_query("flame", "json");
}

/* ---- Parquet ---- */

#define ROWS (64u << 10)

static const struct parquet_field fields[] = {
        { .name = "time", .kind = PARQUET_TIMESTAMP },
        { .name = "value", .kind = PARQUET_INT64 },
        { .name = "profile_type", .kind = PARQUET_STRING },
        { .name = "stack_id", .kind = PARQUET_BINARY },
        { .name = "label_service", .kind = PARQUET_STRING, .optional = true },
        { .name = "label_pod", .kind = PARQUET_STRING, .optional = true },
        { .name = "label_comm", .kind = PARQUET_STRING, .optional = true },
};
#define COLUMNS (sizeof fields / sizeof *fields)

static int parquet_fd;

static void prepare_parquet_write(void)
{
        parquet_fd = memfd_create("ratchet", MFD_CLOEXEC);
        require_true(parquet_fd >= 0, "no memory file");
}

static void run_parquet_write(void)
{
        struct parquet_writer *w = NULL;
        struct error err;

        require_ok(parquet_writer_create(parquet_fd, "ratchet", fields, COLUMNS, NULL, &w, &err), &err);
        for (uint32_t i = 0; i < ROWS; i++) {
                uint64_t id[2] = { (draw_below(2000) + 1) * 0x9e3779b97f4a7c15u, 7 };
                char pod[] = "api-00";

                pod[4] = (char)('0' + i / 4096 % 8);
                parquet_put_int(w, 1, 1763650000000000 + (int64_t)(i % 4096) * 52631 + draw_below(9000));
                parquet_put_int(w, 2, 1 + draw_below(16));
                parquet_put_bytes(w, 3, "cpu", 3);
                parquet_put_bytes(w, 4, id, sizeof id);
                parquet_put_bytes(w, 5, "api", 3);
                parquet_put_str(w, 6, pod);
                if (i % 8)
                        parquet_put_bytes(w, 7, "worker", 6);
                else
                        parquet_put_null(w, 7);
                if (i % 1024 == 1023)
                        require_ok(parquet_writer_end_rows(w, 1024, &err), &err);
        }
        require_ok(parquet_writer_finish(w, &err), &err);
        parquet_writer_destroy(w);
}

static void prepare_parquet_read(void)
{
        prepare_parquet_write();
        run_parquet_write();
}

static void run_parquet_read(void)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct parquet_file *f = NULL;
        struct error err;

        require_ok(file_map_fd(parquet_fd, LIMIT_PARQUET_FILE_BYTES, "ratchet", &map, &err), &err);
        require_ok(parquet_file_open(map.data, map.size, "ratchet", &f, &err), &err);
        for (uint32_t g = 0; g < parquet_file_row_groups(f); g++) {
                for (uint32_t i = 1; i <= COLUMNS; i++) {
                        struct parquet_column c;

                        require_ok(parquet_read_column(f, g, i, &c, &err), &err);
                        parquet_column_deinit(&c);
                }
        }
        parquet_file_close(f);
}

const struct ratchet_path store_paths[] = {
        { "append", prepare_append, run_append },
        { "flush", prepare_flush, run_flush },
        { "sum", prepare_query, run_sum },
        { "top", prepare_query, run_top },
        { "flame-json", prepare_query, run_flame },
        { "parquet-write", prepare_parquet_write, run_parquet_write },
        { "parquet-read", prepare_parquet_read, run_parquet_read },
        { NULL },
};
