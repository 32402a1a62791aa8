/* SPDX-License-Identifier: Apache-2.0 */
/* The dictionary of the index: pages of texts, and the chunks for finding their ids. */
#include <check.h>
#include <dirent.h>
#include <endian.h>
#include <string.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "symbol-index/index_verify.h"
#include "symbol-index/string_dict.h"
#include "symbol-index/symbol_index_internal.h"
#include "symbol-index/text_hash_index.h"
#include "symbol-index/text_page.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];

static struct symbol_index *new_index(void)
{
        struct symbol_index *index = NULL;

        temporary_dir_create(dir, "test");
        ck_assert_int_eq(symbol_index_open(dir, false, &index, NULL), ST_OK);
        return index;
}

static void finish(struct symbol_index *index)
{
        symbol_index_close(index);
        temporary_dir_remove(dir);
}

/* Names of a few kinds, distinct for each i; occasionally a very long one. */
static char *make_text(uint64_t i)
{
        static const char *const kinds[][2] = {
                { "_ZN5cairn", "4findEv" }, { "sys_", "" }, { "/usr/src/a", "/main.c" }, { "", "" }
        };
        char *text = NULL;

        ck_assert_int_gt(asprintf(&text, "%s%llu%s", kinds[i % 4][0], (unsigned long long)(i * 7919), kinds[i % 4][1]),
                         0);
        if (i % 1000 == 17) {
                size_t size = strlen(text);

                text = realloc(text, LIMIT_NAME_BYTES + 1);
                ck_assert_ptr_nonnull(text);
                memset(text + size, i % 3 ? 'x' : 'y', LIMIT_NAME_BYTES - size);
                text[LIMIT_NAME_BYTES] = 0;
        }
        return text;
}

static void intern(struct symbol_index *index, struct string_dict_item *items, size_t count)
{
        struct index_write w;
        struct error err = { 0 };

        ck_assert_int_eq(index_write_begin(&w, index, &err), ST_OK);
        ck_assert_msg(string_dict_intern(&index->texts, &w, items, count, &err) == ST_OK, "%s", err.text);
        ck_assert_int_eq(index_write_commit(&w, &err), ST_OK);
}

static uint64_t problems;

static void note_problem(void *context, const char *text)
{
        (void)context;
        fprintf(stderr, "# %s\n", text);
        problems++;
}

static void check_whole(struct symbol_index *index)
{
        struct index_verify v = { .problem = note_problem };

        problems = 0;
        ck_assert_int_eq(symbol_index_verify(index, &v, NULL), ST_OK);
        ck_assert_uint_eq(problems, 0);
}

START_TEST(texts_round_trip_and_are_interned)
{
        enum { TEXTS = 12000, ROUNDS = 6 };
        struct symbol_index *index = new_index();
        struct string_dict_item *items = calloc(TEXTS, sizeof *items);
        uint32_t *numbers = calloc(TEXTS, sizeof *numbers);
        struct text_unpacker *unpacker;
        struct buf text;
        MDB_txn *txn;

        index->write_bytes = 100000;
        buf_init(&text, MiB(1));
        for (size_t i = 0; i < TEXTS; i++) {
                items[i].text = make_text(i % (TEXTS - 5)); /* the last five again */
                items[i].size = (uint32_t)strlen(items[i].text);
        }
        /* Each round adds some more, between the existing ones. */
        for (size_t round = 1; round <= ROUNDS; round++) {
                size_t count = TEXTS * round / ROUNDS;

                intern(index, items, count);
                for (size_t i = 0; i < count; i++) {
                        if ((numbers[i] && numbers[i] != items[i].number) || items[i].number == 0)
                                ck_abort_msg("text %zu has another number in round %zu", i, round);
                        numbers[i] = items[i].number;
                }
        }
        for (size_t i = TEXTS - 5; i < TEXTS; i++)
                ck_assert_uint_eq(numbers[i], numbers[i - (TEXTS - 5)]);
        ck_assert_int_eq(mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn), 0);
        ck_assert_int_eq(text_unpacker_create(&unpacker, NULL), ST_OK);
        for (unsigned again = 0; again < 2; again++)
                for (size_t i = 0; i < TEXTS; i++)
                        if (string_dict_get(&index->texts, txn, unpacker, numbers[i], &text, NULL) ||
                            text.size != items[i].size || memcmp(text.data, items[i].text, text.size))
                                ck_abort_msg("text %zu differs", i);
        mdb_txn_abort(txn);
        text_unpacker_destroy(unpacker);
        check_whole(index);
        for (size_t i = 0; i < TEXTS; i++)
                free((char *)items[i].text);
        buf_deinit(&text);
        free(items);
        free(numbers);
        finish(index);
}
END_TEST

/* Ids assigned by an aborted load may not be visible for its texts later. */
START_TEST(ids_of_aborted_load_are_reused)
{
        struct symbol_index *index = new_index();
        struct string_dict_item one = { "one", 3, 0 }, two = { "two", 3, 0 }, again = { "one", 3, 0 };
        struct text_unpacker *unpacker;
        struct index_write w;
        struct buf text;
        MDB_txn *txn;

        buf_init(&text, 100);
        ck_assert_int_eq(index_write_begin(&w, index, NULL), ST_OK);
        ck_assert_int_eq(string_dict_intern(&index->texts, &w, &one, 1, NULL), ST_OK);
        ck_assert_int_eq(string_dict_intern(&index->texts, &w, &again, 1, NULL), ST_OK);
        ck_assert_uint_eq(again.number, one.number);
        index_write_abort(&w);
        intern(index, &two, 1);
        ck_assert_uint_eq(two.number, one.number);
        ck_assert_int_eq(mdb_txn_begin(index->env, NULL, MDB_RDONLY, &txn), 0);
        ck_assert_int_eq(text_unpacker_create(&unpacker, NULL), ST_OK);
        ck_assert_int_eq(string_dict_get(&index->texts, txn, unpacker, two.number, &text, NULL), ST_OK);
        ck_assert_str_eq(buf_cstr(&text), "two");
        ck_assert_int_eq(string_dict_get(&index->texts, txn, unpacker, two.number + 1, &text, NULL), ST_BAD_DATA);
        ck_assert_int_eq(string_dict_get(&index->texts, txn, unpacker, 0, &text, NULL), ST_BAD_DATA);
        mdb_txn_abort(txn);
        text_unpacker_destroy(unpacker);
        buf_deinit(&text);
        finish(index);
}
END_TEST

START_TEST(ids_of_one_hash_are_limited_to_one_chunk)
{
        enum { IDS = 3 * TEXT_SAME_HASH_MAX };
        struct symbol_index *index = new_index();
        struct text_hash_chunk *chunk = malloc(sizeof *chunk);
        struct text_hash_entry ids[IDS];
        struct index_write w;

        for (uint32_t i = 0; i < IDS; i++)
                ids[i] = (struct text_hash_entry){ 5000, i << 20 };
        ck_assert_int_eq(index_write_begin(&w, index, NULL), ST_OK);
        ck_assert_int_eq(text_hash_index_add(&w, index->texts.ids, ids, IDS, NULL), ST_OK);
        ids[0] = (struct text_hash_entry){ 4999, 7 };
        ids[1] = (struct text_hash_entry){ 5001, 8 };
        ck_assert_int_eq(text_hash_index_add(&w, index->texts.ids, ids, 2, NULL), ST_OK);
        ck_assert_int_eq(text_hash_index_find_chunk(w.txn, index->texts.ids, 5000, chunk, NULL), ST_OK);
        ck_assert_uint_ge(chunk->count, TEXT_SAME_HASH_MAX);
        for (uint32_t i = 0, same = 0; i < chunk->count; i++) {
                same += chunk->ids[i].hash == 5000;
                ck_assert(i + 1 < chunk->count || same == TEXT_SAME_HASH_MAX);
        }
        ck_assert_int_eq(text_hash_index_find_chunk(w.txn, index->texts.ids, 5001, chunk, NULL), ST_OK);
        ck_assert_uint_eq(chunk->ids[chunk->count - 1].group, 8);
        ck_assert_int_eq(text_hash_index_find_chunk(w.txn, index->texts.ids, 0xffffff, chunk, NULL), ST_OK);
        ck_assert_uint_eq(chunk->last, 0xffffff);
        index_write_abort(&w);
        free(chunk);
        finish(index);
}
END_TEST

/* Reads each file of a directory of the corpus; returns how many were refused. */
static unsigned refused(const char *path, unsigned *count_ret)
{
        struct text_hash_chunk *chunk = malloc(sizeof *chunk);
        struct text_unpacker *unpacker;
        DIR *files = opendir(path);
        struct dirent *entry;
        unsigned n = 0;

        ck_assert_ptr_nonnull(files);
        ck_assert_int_eq(text_unpacker_create(&unpacker, NULL), ST_OK);
        for (*count_ret = 0; (entry = readdir(files));) {
                char *name = path_join(path, entry->d_name);
                struct text_page *page = NULL;
                enum status st;
                uint32_t key;
                struct buf b;

                buf_init(&b, MiB(1));
                if (entry->d_name[0] != '.') {
                        ck_assert_int_eq(file_read(name, &b, NULL), ST_OK);
                        memcpy(&key, b.data, sizeof key);
                        key = be32toh(key);
                        st = strstr(path, "text_hash_index")
                                     ? text_hash_chunk_open(chunk, key, b.data + 4, b.size - 4, NULL)
                                     : text_page_unpack(unpacker, key, b.data + 4, b.size - 4, &page, NULL);
                        ck_assert_msg(st == ST_OK || st == ST_BAD_DATA, "%s", name);
                        n += st == ST_BAD_DATA;
                        ++*count_ret;
                }
                free(page);
                buf_deinit(&b);
                free(name);
        }
        closedir(files);
        text_unpacker_destroy(unpacker);
        free(chunk);
        return n;
}

START_TEST(good_files_are_read_and_bad_ones_refused)
{
        unsigned count;

        ck_assert_uint_eq(refused("tests/corpus/text_page/good", &count), 0);
        ck_assert_uint_ge(count, 1);
        ck_assert_uint_eq(refused("tests/corpus/text_page/bad", &count), count);
        ck_assert_uint_ge(count, 12);
        ck_assert_uint_eq(refused("tests/corpus/text_hash_index/good", &count), 0);
        ck_assert_uint_ge(count, 2);
        ck_assert_uint_eq(refused("tests/corpus/text_hash_index/bad", &count), count);
        ck_assert_uint_ge(count, 8);
}
END_TEST

TEST_SUITE("texts", texts_round_trip_and_are_interned, ids_of_aborted_load_are_reused,
           ids_of_one_hash_are_limited_to_one_chunk, good_files_are_read_and_bad_ones_refused)
