/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Re-symbolization of one object with a million locations: in memory (only lookup and frames, CPU time of one core),
 * and of a store whose other files contain other objects (elapsed time, including commits and syncs).
 */
#include <inttypes.h>
#include <string.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "profile-store/rows/location_rows.h"
#include "profile-store/profile_store.h"
#include "tests/support/profiles.h"

#define T0 INT64_C(1728000000000000000)
#define LOCATIONS 1000000u
#define LOCATIONS_A_RANGE 8
#define RANGE_BYTES 0x100u /* as loaded by test_load_symbols() */
#define LOCATIONS_A_BATCH 100000u
#define STACK_DEPTH 50u
#define OTHER_OBJECTS 200u
#define OTHER_LOCATIONS 2000u

static const char object_id[] = "00112233445566778899aabbccddeeff00112233";

static void require_ok(enum status st, const struct error *err)
{
        if (!st)
                return;
        fprintf(stderr, "bench_resymbolize: %s\n", err->text);
        exit(EXIT_FAILURE);
}

static uint64_t get_address(uint32_t i)
{
        return 0x1000 + (uint64_t)i * (RANGE_BYTES / LOCATIONS_A_RANGE);
}

/* ---- in memory ---- */

static void measure_memory(struct symbol_index *symbols)
{
        struct location_row *rows = calloc(LOCATIONS, sizeof *rows);
        uint8_t *changed = calloc(LOCATIONS, 1);
        _cleanup_arena_ struct arena a;
        struct build_id id;
        uint64_t count = 0;
        struct error err;
        int64_t start;
        double s;

        build_id_from_hex(&id, object_id, strlen(object_id));
        arena_init(&a, LIMIT_FLUSH_MEMORY_BYTES);
        for (uint32_t i = 0; i < LOCATIONS; i++) {
                rows[i] = (struct location_row){ .kind = ADDRESS_OBJECT, .state = SYMBOL_NO_DEBUGINFO };
                rows[i].shown.address = get_address(i);
                rows[i].shown.mapping = "/usr/bin/worker";
                rows[i].shown.state = symbol_state_name(SYMBOL_NO_DEBUGINFO);
                rows[i].shown.build_id = &id;
        }
        start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        require_ok(location_rows_resolve(rows, LOCATIONS, symbols, &a, changed, &err), &err);
        s = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e9;
        for (uint32_t i = 0; i < LOCATIONS; i++)
                count += changed[i];
        printf("in memory   %8.0f locations/s  %7.0f ms for %" PRIu64 " changed\n", LOCATIONS / s, s * 1e3, count);
        free(rows);
        free(changed);
}

/* ---- a store ---- */

static void append_locations(struct profile_store *store, const char *id, uint32_t first, uint32_t count)
{
        static const char *const labels[] = { "service.name=api", NULL };
        struct hash128 batch_id = hash_bytes128(id, strlen(id));
        uint32_t stack[STACK_DEPTH];
        struct test_profile t;
        struct error err;

        memcpy(batch_id.bytes, &first, sizeof first);
        test_profile_init(&t, id, "/usr/bin/worker");
        for (uint32_t i = 0; i < count; i += STACK_DEPTH) {
                for (uint32_t k = 0; k < STACK_DEPTH; k++)
                        stack[k] = test_location(&t, get_address(first + i + k));
                test_sample(&t, T0 + i, 1, stack, STACK_DEPTH, labels);
        }
        require_ok(profile_store_append(store, &t.p, batch_id, NULL, &err), &err);
        test_profile_deinit(&t);
}

static void fill_store(struct profile_store *store)
{
        struct error err;

        for (uint32_t first = 0; first < LOCATIONS; first += LOCATIONS_A_BATCH) {
                append_locations(store, object_id, first, LOCATIONS_A_BATCH);
                require_ok(profile_store_flush(store, &err), &err);
        }
        for (uint32_t i = 0; i < OTHER_OBJECTS; i++) {
                char id[41];

                snprintf(id, sizeof id, "%040x", i + 1);
                append_locations(store, id, 0, OTHER_LOCATIONS);
                require_ok(profile_store_flush(store, &err), &err);
        }
}

static void measure_store(struct profile_store *store, const char *what)
{
        struct resymbolize_result result;
        struct build_id id;
        struct error err;
        int64_t start = monotonic_ns(), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        double s, cpu_s;

        build_id_from_hex(&id, object_id, strlen(object_id));
        require_ok(profile_store_resymbolize(store, &(struct resymbolize_request){ .ids = &id, .count = 1 }, &result,
                                             &err),
                   &err);
        s = (double)(monotonic_ns() - start) / 1e9;
        cpu_s = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / 1e9;
        printf("%s %8.0f locations/s  %7.0f ms (%.0f ms of CPU) for %" PRIu64 " of %" PRIu64 " changed, %" PRIu64
               " files rewritten\n",
               what, (double)result.locations_seen / s, s * 1e3, cpu_s * 1e3, result.locations_changed,
               result.locations_seen, result.files_rewritten);
}

int main(void)
{
        struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        char dir[] = "/tmp/cairn-bench-XXXXXX";
        _cleanup_free_ char *index = NULL;
        struct profile_store *store;
        struct error err;

        if (!mkdtemp(dir))
                return EXIT_FAILURE;
        index = path_join(dir, "index");
        require_ok(symbol_index_open(index, false, &options.symbols, &err), &err);
        require_ok(profile_store_open(dir, &options, &store, &err), &err);
        fill_store(store);
        test_load_symbols(options.symbols, object_id, QUALITY_DWARF, 0x1000, LOCATIONS / LOCATIONS_A_RANGE, "work",
                          "/src/work.c");
        measure_memory(options.symbols);
        measure_store(store, "first time ");
        measure_store(store, "nothing new");
        profile_store_close(store);
        symbol_index_close(options.symbols);
        require_ok(file_remove_tree(dir, &err), &err);
        return EXIT_SUCCESS;
}
