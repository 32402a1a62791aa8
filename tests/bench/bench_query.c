/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries over a long time range; tests/bench/query.py compares them with DuckDB on the same files.
 *
 *   bench_query generate DIR DAYS SAMPLES STACKS LOCATIONS FILES TRACED EVERY
 *           Generates a store of 100 hosts with 4 of 20 services each, with the part writer: SAMPLES, STACKS and
 *           LOCATIONS in total, FILES of samples per day (1: as after compaction; 8640: as flushed every 10 s). TRACED
 *           of 100 samples have a trace id; a trace has those of 1000 consecutive samples. EVERY is 1: the first
 *           samples of a service have its stacks in order, so that each stack has a sample if there are about twice as
 *           many samples as stacks.
 *   bench_query run DIR
 *           For each line OPERATION<tab>ROUNDS[<tab>NAME=VALUE...] of standard input: seconds of the first call, least
 *           seconds and least CPU seconds of ROUNDS more, size of the response (of "sum" the number of stacks), peak
 *           memory so far in KiB, and the error text if it failed. The operation "sum" is store_scan_sum() alone.
 *   bench_query sums DIR FILE [NAME=VALUE ...]
 *           Writes the sums by stack as CSV.
 */
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "profile-store/core/flush_rows.h"
#include "profile-store/scan.h"
#include "profile-store/tables/table_storage.h"
#include "profile-store/tables/tables.h"
#include "query/engine/request.h"
#include "query/query.h"

#define DAY0 INT64_C(20600)
#define US_PER_DAY INT64_C(86400000000)
#define HOSTS 100
#define SERVICES 20
#define SETS_PER_HOST 4
#define SETS (HOSTS * SETS_PER_HOST)
#define OBJECTS 50
#define TYPE "process_cpu:cpu:nanoseconds:cpu:nanoseconds"

static void require_ok(enum status st, const struct error *err)
{
        if (!st)
                return;
        fprintf(stderr, "bench_query: %s\n", err->text);
        exit(EXIT_FAILURE);
}

static void *allocate(size_t count, size_t size)
{
        void *ret = calloc(count + 1, size);

        if (!ret)
                abort();
        return ret;
}

static double seconds_since(int64_t start)
{
        return (double)(monotonic_ns() - start) / 1e9;
}

static uint64_t state = 88172645463325252u;

static uint64_t draw_number(uint64_t below)
{
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return (uint32_t)(state >> 16) * below >> 32;
}

/* ---- generate ---- */

struct world {
        struct table_logs logs;
        uint64_t days, samples, stack_count, location_count, files, traced, made;
        bool every;
        uint64_t next_stack[SERVICES]; /* with every: the next one of the service */
        struct batch batch;            /* stacks, label sets and the type of all samples; samples of one file */
        struct batch_type type;
        struct batch_label labels[SETS][3];
        char texts[SETS][2][24];
        uint64_t *location_ids; /* indexed by service number */
};

static uint32_t get_service(uint32_t set)
{
        uint32_t host = set / SETS_PER_HOST;

        return (host * 7 + set % SETS_PER_HOST * 5 + host / 20) % SERVICES;
}

static void make_labels(struct world *w)
{
        w->batch.label_sets = allocate(SETS, sizeof *w->batch.label_sets);
        w->batch.label_set_count = SETS;
        for (uint32_t i = 0; i < SETS; i++) {
                uint32_t host = i / SETS_PER_HOST, service = get_service(i);

                snprintf(w->texts[i][0], sizeof w->texts[i][0], "host-%03u", host);
                snprintf(w->texts[i][1], sizeof w->texts[i][1], "service-%02u", service);
                w->labels[i][0] = (struct batch_label){ "env", host < 80 ? "prod" : "dev" };
                w->labels[i][1] = (struct batch_label){ "host_name", w->texts[i][0] };
                w->labels[i][2] = (struct batch_label){ "service_name", w->texts[i][1] };
                w->batch.label_sets[i] = (struct batch_label_set){ w->labels[i], 3 };
        }
        w->type = (struct batch_type){ TYPE, "nanoseconds", 10000000 };
        w->batch.types = &w->type;
        w->batch.type_count = 1;
}

static void commit_part(struct world *w, enum table t, struct table_add *adds, size_t count)
{
        static char *const names[] = { "env", "host_name", "service_name" };
        const struct label_columns columns = { .names = (char **)names, .count = 3 };
        const struct table_change change = {
                .table = t, .adds = adds, .add_count = count, .columns = t == TABLE_SAMPLES ? &columns : NULL
        };
        struct error err;

        require_ok(tables_commit(&w->logs, &change, &err), &err);
        for (size_t i = 0; i < count; i++)
                table_add_deinit(&adds[i]);
}

/* In the sort order of a part: by build-id, then address. */
static void make_locations(struct world *w)
{
        const struct part_limits limits = { .max_rows = 4000000, .use = MEMORY_BASE };
        struct table_add adds[64] = { 0 };
        uint64_t per_object = w->location_count / OBJECTS + 1, done = 0;
        size_t files = 0;

        w->location_ids = allocate(w->location_count, sizeof *w->location_ids);
        while (done < w->location_count) {
                struct table_add *a = &adds[files++];
                _cleanup_free_ char *key = NULL;
                struct location_part part;
                struct error err;

                if (asprintf(&a->name, "part-%zu.parquet", files) < 0)
                        abort();
                key = make_table_key(TABLE_LOCATIONS, a->name);
                require_ok(location_part_begin(&part, w->logs.storage, key, &limits, &err), &err);
                for (; done < w->location_count && part_writer_has_room(&part.part); done++) {
                        uint64_t object = done / per_object, place = done % per_object;
                        char function[64], file[64], mapping[32];
                        struct scan_frame frames[2] = {
                                { .function = function,
                                  .linkage_name = function,
                                  .file = file,
                                  .line = (int64_t)(place % 400 + 1),
                                  .inlined = place % 3 == 0 },
                                { .function = "run_task",
                                  .linkage_name = "run_task",
                                  .file = "src/task.c",
                                  .line = 40 },
                        };
                        struct location_row row = { .kind = ADDRESS_OBJECT, .generation = 1 };
                        struct build_id id = { .size = 20 };

                        snprintf(function, sizeof function, "library_%" PRIu64 "::work_item_%" PRIu64, object,
                                 place / 4);
                        snprintf(file, sizeof file, "src/library_%" PRIu64 "/item_%" PRIu64 ".cc", object, place / 64);
                        snprintf(mapping, sizeof mapping, "/usr/lib/library_%" PRIu64 ".so", object);
                        row.shown = (struct scan_location){ .build_id = &id,
                                                            .address = 0x1000 + 16 * place,
                                                            .mapping = mapping,
                                                            .state = symbol_state_name(SYMBOL_RESOLVED),
                                                            .quality = QUALITY_DWARF,
                                                            .frames = frames,
                                                            .frame_count = place % 3 == 0 ? 2 : 1 };
                        memset(id.bytes, (int)object + 1, id.size);
                        row.shown.location_id = hash_bytes64(&done, sizeof done);
                        w->location_ids[done] = row.shown.location_id;
                        require_ok(location_part_put(&part, &row, &err), &err);
                }
                require_ok(part_writer_finish(&part.part, &a->written, &err), &err);
                part_writer_deinit(&part.part);
        }
        commit_part(w, TABLE_LOCATIONS, adds, files);
}

static int compare_stack_ids(const void *a, const void *b)
{
        const struct batch_stack *const *x = a, *const *y = b;

        return memcmp(&(*x)->id, &(*y)->id, sizeof(*x)->id);
}

static void make_stacks(struct world *w)
{
        w->batch.stacks = allocate(w->stack_count, sizeof *w->batch.stacks);
        w->batch.stack_count = (uint32_t)w->stack_count;
        for (uint64_t i = 0; i < w->stack_count; i++) {
                struct batch_stack *s = &w->batch.stacks[i];
                uint32_t depth = 8 + (uint32_t)draw_number(24);
                uint64_t *ids = allocate(depth, sizeof *ids);

                for (uint32_t k = 0; k < depth; k++)
                        ids[k] = w->location_ids[draw_number(draw_number(w->location_count) + 1)];
                *s = (struct batch_stack){ hash_stack_identity(ids, depth), ids, depth };
        }
}

/* Looks random, but query.py can compute it. */
static void put_trace_id(struct batch_sample *s, uint64_t number)
{
        uint64_t parts[2] = { htobe64(number * 0x9e3779b97f4a7c15u), htobe64(number * 0xc2b2ae3d27d4eb4fu) };

        s->has_trace = true;
        memcpy(s->trace_id, parts, sizeof parts);
}

/* A random stack of a service, by its index in the service; a few of them have most samples. */
static uint64_t choose_stack(struct world *w, uint32_t service, uint64_t per_service)
{
        if (w->every && w->next_stack[service] < per_service)
                return w->next_stack[service]++;
        return draw_number(draw_number(draw_number(per_service) + 1) + 1);
}

/* The samples of one file, with times in [from, to). Each service has stacks of its own. */
static void make_samples(struct world *w, uint64_t count, int64_t from_us, int64_t to_us, uint8_t *used)
{
        uint64_t per_service = w->stack_count / SERVICES;

        w->batch.sample_count = (uint32_t)count;
        for (uint64_t i = 0; i < count; i++) {
                uint32_t set = (uint32_t)draw_number(SETS), service = get_service(set);
                uint64_t stack = service * per_service + choose_stack(w, service, per_service);

                used[stack] = 1;
                w->batch.samples[i] = (struct batch_sample){
                        .time_us = from_us + (int64_t)draw_number((uint64_t)(to_us - from_us) >> 8) * 256,
                        .value = 10000000 * (int64_t)(1 + draw_number(draw_number(8) + 1)),
                        .label_set = set,
                        .stack = (uint32_t)stack,
                };
                if (w->traced && draw_number(100) < w->traced)
                        put_trace_id(&w->batch.samples[i], w->made / 1000 + 1);
                w->made++;
        }
}

static void write_samples(struct world *w, int64_t day, uint64_t number, struct table_add *a)
{
        const struct part_limits limits = { .max_rows = UINT64_MAX, .use = MEMORY_BASE };
        static char *const names[] = { "env", "host_name", "service_name" };
        const struct label_columns columns = { .names = (char **)names, .count = 3 };
        _cleanup_free_ struct sample_row *rows = NULL;
        _cleanup_free_ char *key = NULL;
        char name[48];
        size_t count, written;
        struct batch *one = &w->batch;
        struct error err;

        require_ok(sort_flush_samples(&one, 1, &rows, &count, &err), &err);
        written = count;
        snprintf(name, sizeof name, "part-%06" PRIu64 ".parquet", number);
        *a = (struct table_add){ .name = make_day_path(day, name), .has_day = true, .day = day };
        key = make_table_key(TABLE_SAMPLES, a->name);
        require_ok(part_write_samples(w->logs.storage, key, &columns, rows, &written, &limits, &a->written, &err),
                   &err);
        if (written != count)
                abort();
}

static void write_day_stacks(struct world *w, int64_t day, const uint8_t *used)
{
        const struct part_limits limits = { .max_rows = UINT64_MAX, .use = MEMORY_BASE };
        const struct batch_stack **stacks = allocate(w->stack_count, sizeof *stacks);
        struct table_add a = { .name = make_day_path(day, "part-1.parquet"), .has_day = true, .day = day };
        _cleanup_free_ char *key = make_table_key(TABLE_STACKS, a.name);
        size_t count = 0;
        struct error err;

        for (uint64_t i = 0; i < w->stack_count; i++) {
                if (used[i])
                        stacks[count++] = &w->batch.stacks[i];
        }
        qsort(stacks, count, sizeof *stacks, compare_stack_ids);
        require_ok(part_write_stacks(w->logs.storage, key, stacks, &count, &limits, &a.written, &err), &err);
        commit_part(w, TABLE_STACKS, &a, 1);
        free(stacks);
}

static int generate(const char *dir, char **sizes)
{
        struct world w = { .days = strtoull(sizes[0], NULL, 10),
                           .samples = strtoull(sizes[1], NULL, 10),
                           .stack_count = strtoull(sizes[2], NULL, 10),
                           .location_count = strtoull(sizes[3], NULL, 10),
                           .files = strtoull(sizes[4], NULL, 10),
                           .traced = strtoull(sizes[5], NULL, 10),
                           .every = strcmp(sizes[6], "1") == 0 };
        uint64_t per_file = w.samples / w.days / w.files;
        uint8_t *used = allocate(w.stack_count, 1);
        struct table_add *adds = allocate(w.files, sizeof *adds);
        struct storage *storage;
        struct error err;

        require_ok(open_table_storage(dir, &storage, &err), &err);
        require_ok(table_logs_open(storage, "", false, 900000, &w.logs, &err), &err);
        make_labels(&w);
        make_locations(&w);
        make_stacks(&w);
        w.batch.samples = allocate(per_file, sizeof *w.batch.samples);
        for (int64_t day = DAY0; day < DAY0 + (int64_t)w.days; day++) {
                memset(used, 0, w.stack_count);
                for (uint64_t f = 0; f < w.files; f++) {
                        int64_t length = US_PER_DAY / (int64_t)w.files, from = day * US_PER_DAY + (int64_t)f * length;

                        make_samples(&w, per_file, from, from + length, used);
                        write_samples(&w, day, f, &adds[f]);
                }
                write_day_stacks(&w, day, used);
                commit_part(&w, TABLE_SAMPLES, adds, w.files);
        }
        table_logs_close(&w.logs);
        storage_close(storage);
        return EXIT_SUCCESS;
}

/* ---- run ---- */

struct parameters {
        char **texts; /* NAME=VALUE */
        int count;
};

static const char *get_parameter(void *context, const char *name)
{
        const struct parameters *p = context;
        size_t n = strlen(name);

        for (int i = 0; i < p->count; i++) {
                if (strncmp(p->texts[i], name, n) == 0 && p->texts[i][n] == '=')
                        return p->texts[i] + n + 1;
        }
        return NULL;
}

static enum status sum_stacks(struct profile_store *store, struct parameters *p, struct stack_sums *ret,
                              struct error *err)
{
        const struct query_param_source source = { .get = get_parameter, .context = p };
        struct query_request r;
        struct store_scan *scan;
        struct scan_filter filter;
        enum status st = query_request_parse(&source, DAY0 * US_PER_DAY * 1000, &r, err);

        if (st)
                return st;
        filter = query_selection_make_filter(&r.selection, r.type);
        st = store_scan_begin(store, &scan, err);
        if (!st) {
                st = store_scan_sum(scan, &filter, ret, err);
                store_scan_end(scan);
        }
        query_request_deinit(&r);
        return st;
}

static double get_cpu_seconds(void)
{
        struct timespec t;

        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static enum status time_query(struct profile_store *store, const char *operation, struct parameters *p,
                              double *seconds_ret, size_t *size_ret, struct error *err)
{
        const struct query_input in = { .param = get_parameter,
                                        .param_context = p,
                                        .now_unix_ns = DAY0 * US_PER_DAY * 1000 };
        int64_t start = monotonic_ns();
        struct query_answer about;
        struct stack_sums sums = { 0 };
        struct buf answer;
        enum status st;

        buf_init(&answer, SIZE_MAX / 2);
        if (strcmp(operation, "sum") == 0)
                st = sum_stacks(store, p, &sums, err);
        else
                st = query_run(store, operation, &in, &answer, &about, err);
        *size_ret = sums.count + answer.size;
        stack_sums_deinit(&sums);
        buf_deinit(&answer);
        *seconds_ret = seconds_since(start);
        return st;
}

static void open_store(const char *dir, struct profile_store **ret)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct error err;

        require_ok(profile_store_open(dir, &options, ret, &err), &err);
}

/* Lines of standard input: OPERATION ROUNDS NAME=VALUE..., separated by tabs. One line of output for each. */
static int run_queries(const char *dir)
{
        int64_t start = monotonic_ns();
        struct profile_store *store;
        char line[4096];

        open_store(dir, &store);
        printf("open\t%.6f\t%.6f\t0\t0\t0\n", seconds_since(start), seconds_since(start));
        fflush(stdout);
        while (fgets(line, sizeof line, stdin)) {
                char *words[32], *rest = NULL;
                struct parameters p = { .texts = words + 2 };
                double first, best, cpu = 1e9;
                struct error err = { 0 };
                struct rusage usage;
                enum status st;
                size_t size;
                int n = 0;

                line[strcspn(line, "\n")] = 0;
                for (char *word = strtok_r(line, "\t", &rest); word && n < 32; word = strtok_r(NULL, "\t", &rest))
                        words[n++] = word;
                if (n < 2)
                        break;
                p.count = n - 2;
                st = time_query(store, words[0], &p, &first, &size, &err);
                best = first;
                for (unsigned long i = strtoul(words[1], NULL, 10); !st && i > 0; i--) {
                        double before = get_cpu_seconds(), seconds, used;

                        st = time_query(store, words[0], &p, &seconds, &size, &err);
                        used = get_cpu_seconds() - before;
                        best = seconds < best ? seconds : best;
                        cpu = used < cpu ? used : cpu;
                }
                getrusage(RUSAGE_SELF, &usage);
                printf("%s\t%.6f\t%.6f\t%.6f\t%zu\t%ld\t%s\n", words[0], first, best, cpu, size, usage.ru_maxrss,
                       err.text);
                fflush(stdout);
        }
        profile_store_close(store);
        return EXIT_SUCCESS;
}

static int write_sums(const char *dir, const char *path, struct parameters *p)
{
        struct profile_store *store;
        struct stack_sums sums;
        struct error err;
        FILE *out = fopen(path, "we");

        if (!out)
                return EXIT_FAILURE;
        open_store(dir, &store);
        require_ok(sum_stacks(store, p, &sums, &err), &err);
        for (size_t i = 0; i < sums.count; i++) {
                for (size_t k = 0; k < sizeof sums.items[i].id; k++)
                        fprintf(out, "%02x", sums.items[i].id[k]);
                fprintf(out, ",%" PRId64 ",%" PRIu64 "\n", sums.items[i].value, sums.items[i].samples);
        }
        stack_sums_deinit(&sums);
        profile_store_close(store);
        return fclose(out) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        if (argc == 10 && strcmp(argv[1], "generate") == 0)
                return generate(argv[2], argv + 3);
        if (argc == 3 && strcmp(argv[1], "run") == 0)
                return run_queries(argv[2]);
        if (argc >= 4 && strcmp(argv[1], "sums") == 0)
                return write_sums(argv[2], argv[3], &(struct parameters){ argv + 4, argc - 4 });
        fputs("usage: bench_query generate DIR DAYS SAMPLES STACKS LOCATIONS FILES TRACED EVERY | run DIR |\n"
              "       sums DIR FILE [NAME=VALUE ...]\n",
              stderr);
        return EXIT_FAILURE;
}
