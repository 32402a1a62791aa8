/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the OTLP and pprof decoders with decoders based on generated code, on the corpus, on converted files and on
 * mutations.
 */
#include <check.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/pprof/pprof.h"
#include "tests/support/proto_oracle.h"
#include "tests/support/suite.h"

#define MUTATIONS 300
#define MUTATED_MOST_BYTES KiB(16)

typedef char *compare_fn(const void *data, size_t n);

static void check_agreement(const struct buf *b, compare_fn *compare, const char *what)
{
        char *difference = compare(b->data, b->size);

        ck_assert_msg(!difference, "%s: %s", what, difference);
}

static void check_mutations(const struct buf *b, compare_fn *compare, const char *what)
{
        uint32_t state = 1;

        for (unsigned i = 0; b->size && b->size <= MUTATED_MOST_BYTES && i < MUTATIONS; i++) {
                struct buf copy = { .data = malloc(b->size), .size = b->size };
                char name[256];
                size_t at;

                memcpy(copy.data, b->data, b->size);
                state = state * 1664525 + 1013904223;
                at = (state >> 8) % b->size;
                if (i % 8 == 0)
                        copy.size = at;
                else
                        copy.data[at] = (uint8_t)(i % 4 ? copy.data[at] ^ 1u << (state >> 4) % 8 : state >> 24);
                snprintf(name, sizeof name, "%s, mutation %u at %zu", what, i, at);
                check_agreement(&copy, compare, name);
                free(copy.data);
        }
}

static void read_unpacked(const char *path, struct buf *ret)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, MiB(64));
        ck_assert_int_eq(file_read(path, &b, NULL), ST_OK);
        if (!gzip_detect(b.data, b.size) || gzip_decompress(b.data, b.size, ret, NULL)) {
                buf_clear(ret);
                buf_append(ret, b.data, b.size);
        }
}

static unsigned check_folder(const char *dir, compare_fn *compare)
{
        _cleanup_closedir_ DIR *d = opendir(dir);
        struct dirent *entry;
        unsigned count = 0;

        ck_assert_msg(d != NULL, "cannot open %s", dir);
        while ((entry = readdir(d))) {
                _cleanup_free_ char *path = path_join(dir, entry->d_name);
                _cleanup_buf_ struct buf b;

                buf_init(&b, MiB(16));
                if (entry->d_name[0] == '.')
                        continue;
                read_unpacked(path, &b);
                check_agreement(&b, compare, path);
                check_mutations(&b, compare, path);
                count++;
        }
        return count;
}

START_TEST(both_decoders_agree_on_the_corpus_and_on_mutations_of_it)
{
        ck_assert_uint_ge(check_folder("tests/corpus/otlp/good", oracle_compare_otlp), 6);
        ck_assert_uint_ge(check_folder("tests/corpus/otlp/bad", oracle_compare_otlp), 13);
        ck_assert_uint_ge(check_folder("tests/corpus/pprof/good", oracle_compare_pprof), 4);
        ck_assert_uint_ge(check_folder("tests/corpus/pprof/bad", oracle_compare_pprof), 9);
}
END_TEST

/* Real profiles in both formats, written by the encoders. */
START_TEST(both_decoders_agree_on_encoder_output)
{
        static const char *const paths[] = { "tests/corpus/pprof/good/go-cpu.pb.gz",
                                             "tests/corpus/pprof/good/go-heap.pb.gz",
                                             "tests/corpus/pprof/good/plain-two-frames" };

        for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
                _cleanup_buf_ struct buf b, otlp, pprof;
                struct profile p;

                buf_init(&b, MiB(16));
                buf_init(&otlp, MiB(16));
                buf_init(&pprof, MiB(16));
                read_unpacked(paths[i], &b);
                ck_assert_int_eq(pprof_decode(b.data, b.size, NULL, &p, NULL), ST_OK);
                ck_assert_int_eq(otlp_encode(&p, &otlp, NULL), ST_OK);
                ck_assert_int_eq(pprof_encode(&p, &pprof, NULL), ST_OK);
                check_agreement(&otlp, oracle_compare_otlp, paths[i]);
                check_mutations(&otlp, oracle_compare_otlp, paths[i]);
                buf_clear(&b);
                ck_assert_int_eq(gzip_decompress(pprof.data, pprof.size, &b, NULL), ST_OK);
                check_agreement(&b, oracle_compare_pprof, paths[i]);
                check_mutations(&b, oracle_compare_pprof, paths[i]);
                profile_deinit(&p);
        }
}
END_TEST

static void add_value(struct buf *b, const char *bytes, size_t n)
{
        buf_append_u8(b, 0x0a); /* resource_profiles { resource { attributes { key "k" value { ... } } } } */
        buf_append_u8(b, (uint8_t)(n + 9));
        buf_append_u8(b, 0x0a);
        buf_append_u8(b, (uint8_t)(n + 7));
        buf_append_u8(b, 0x0a);
        buf_append_u8(b, (uint8_t)(n + 5));
        buf_append(b, "\x0a\x01k\x12", 4);
        buf_append_u8(b, (uint8_t)n);
        buf_append(b, bytes, n);
}

START_TEST(last_member_of_oneof_wins)
{
        _cleanup_buf_ struct buf b;

        buf_init(&b, KiB(1));
        add_value(&b, "\x0a\x01x\x2a\x00", 5); /* a string, then an array */
        check_agreement(&b, oracle_compare_otlp, "text, array");
        buf_clear(&b);
        add_value(&b, "\x2a\x00\x10\x01", 4);
        check_agreement(&b, oracle_compare_otlp, "array, bool");
}
END_TEST

TEST_SUITE("proto_oracle", both_decoders_agree_on_the_corpus_and_on_mutations_of_it,
           both_decoders_agree_on_encoder_output, last_member_of_oneof_wins)
