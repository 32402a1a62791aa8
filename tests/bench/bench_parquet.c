/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes and reads a table of samples: 2 Mi rows of time, value, profile type, stack id (16 bytes, 20000 distinct) and
 * three labels, in the sort order of the store. Prints the fastest of five runs.
 */
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "parquet/parquet_reader.h"
#include "parquet/parquet_writer.h"

#define ROWS (2u << 20)
#define STACKS 20000

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

static void check_status(enum status st, const struct error *err)
{
        if (st) {
                fprintf(stderr, "%s\n", err->text);
                exit(1);
        }
}

static uint64_t mix_bits(uint64_t z)
{
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        return z ^ z >> 31;
}

static uint64_t write_table(int fd)
{
        struct parquet_writer *w = NULL;
        struct error err;
        uint64_t bytes;

        check_status(parquet_writer_create(fd, "bench", fields, COLUMNS, NULL, &w, &err), &err);
        for (uint32_t i = 0; i < ROWS; i++) {
                uint64_t r = mix_bits(i + 1), id[2];
                char pod[32];

                id[0] = mix_bits(r % STACKS);
                id[1] = mix_bits(id[0]);
                snprintf(pod, sizeof pod, "api-%u", i / 4096 % 64);
                parquet_put_int(w, 1, 1763650000000000 + (int64_t)(i % 4096) * 52631 + (int64_t)(r % 9000));
                parquet_put_int(w, 2, 1 + (int64_t)(r >> 60));
                parquet_put_bytes(w, 3, "cpu", 3);
                parquet_put_bytes(w, 4, id, sizeof id);
                parquet_put_bytes(w, 5, "api", 3);
                parquet_put_str(w, 6, pod);
                if (r % 8)
                        parquet_put_bytes(w, 7, "worker", 6);
                else
                        parquet_put_null(w, 7);
                if (i % 1024 == 1023)
                        check_status(parquet_writer_end_rows(w, 1024, &err), &err);
        }
        check_status(parquet_writer_finish(w, &err), &err);
        bytes = parquet_writer_bytes(w);
        parquet_writer_destroy(w);
        return bytes;
}

static uint64_t read_table(int fd)
{
        _cleanup_file_map_ struct file_map map = { 0 };
        struct parquet_file *f = NULL;
        uint64_t sum = 0;
        struct error err;

        check_status(file_map_fd(fd, LIMIT_PARQUET_FILE_BYTES, "bench", &map, &err), &err);
        check_status(parquet_file_open(map.data, map.size, "bench", &f, &err), &err);
        for (uint32_t g = 0; g < parquet_file_row_groups(f); g++) {
                for (uint32_t i = 1; i <= COLUMNS; i++) {
                        struct parquet_column c;

                        check_status(parquet_read_column(f, g, i, &c, &err), &err);
                        for (uint64_t k = 0; k < c.count; k++)
                                sum += c.ints ? (uint64_t)c.ints[k] : c.codes[k];
                        parquet_column_deinit(&c);
                }
        }
        parquet_file_close(f);
        return sum;
}

int main(int argc, char **argv)
{
        int64_t write_ns = INT64_MAX, read_ns = INT64_MAX;
        uint64_t bytes = 0, sum = 0;

        for (int run = 0; run < 5; run++) {
                int fd = memfd_create("bench", MFD_CLOEXEC);
                int64_t start = monotonic_ns(), middle, end;

                bytes = write_table(fd);
                middle = monotonic_ns();
                sum += read_table(fd);
                end = monotonic_ns();
                write_ns = middle - start < write_ns ? middle - start : write_ns;
                read_ns = end - middle < read_ns ? end - middle : read_ns;
                if (run == 4 && argc > 1) { /* keep the table for measurements of other readers */
                        _cleanup_file_map_ struct file_map map = { 0 };
                        struct error err;

                        check_status(file_map_fd(fd, LIMIT_PARQUET_FILE_BYTES, "bench", &map, &err), &err);
                        check_status(file_write_durable(argv[1], map.data, map.size, &err), &err);
                }
                close(fd);
        }
        printf("parquet: %u rows of %zu columns, %.2f bytes a row; write %.1f M rows/s, read %.1f M rows/s (sum "
               "%" PRIx64 ")\n",
               ROWS, COLUMNS, (double)bytes / ROWS, ROWS * 1e3 / (double)write_ns, ROWS * 1e3 / (double)read_ns, sum);
        return 0;
}
