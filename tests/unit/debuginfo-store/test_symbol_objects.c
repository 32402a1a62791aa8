/* SPDX-License-Identifier: Apache-2.0 */
/* Symbol files as objects: validation of uploads, and when they replace others. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "debuginfo-store/debuginfo_store.h"
#include "elf-image/elf_image.h"
#include "sandbox/worker.h"
#include "symbolizer/formats/portable_symbols.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static struct file_map self; /* debuginfo of DWARF quality */
static struct build_id id, go_id;
static char dir[TEMPORARY_DIR_BYTES];
static struct debuginfo_store *store;

static void set_up(void)
{
        const char *build = getenv("CAIRN_SAN");
        struct elf_image img;

        worker_set_program(path_join(build ? build : "build/san", "cairn")); /* kept for the lifetime of the process */
        ck_assert_int_eq(file_map_open("/proc/self/exe", LIMIT_OBJECT_BYTES, &self, NULL), ST_OK);
        ck_assert_int_eq(elf_image_from_memory(self.data, self.size, "self", &img, NULL), ST_OK);
        id = img.build_id;
        elf_image_close(&img);
        ck_assert(build_id_from_bytes(&go_id, "a Go build-id, hashed", 20));
        temporary_dir_create(dir, "symbols");
        ck_assert_int_eq(debuginfo_store_open(dir, false, &store, NULL), ST_OK);
}

static void tear_down(void)
{
        debuginfo_store_close(store);
        file_map_close(&self);
        temporary_dir_remove(dir);
}

static enum refusal send(const struct object_claim *claim, const void *data, size_t n)
{
        struct stored_object object;
        struct object_upload *u;
        struct error err;
        bool same;

        ck_assert_int_eq(object_upload_begin(store, claim, &u, &err), ST_OK);
        ck_assert_int_eq(object_upload_append(u, data, n, &err), ST_OK);
        if (object_upload_finish(u, &object, &same, &err) == ST_OK)
                return REFUSED_NOT;
        ck_assert_uint_ne(err.reason, REFUSED_NOT);
        return (enum refusal)err.reason;
}

static enum refusal send_debuginfo(void)
{
        return send(&(struct object_claim){ .build_id = id, .kind = OBJECT_DEBUGINFO }, self.data, self.size);
}

/* @param change modifies the claim, may be NULL */
static enum refusal send_symbols(enum symbol_quality quality, uint32_t ranges, void (*change)(struct object_claim *c))
{
        const struct random_table_spec spec = {
                .seed = 5, .range_count = ranges, .function_count = 5, .file_count = 2, .quality = quality
        };
        struct object_claim claim = { .build_id = id, .kind = OBJECT_SYMBOLS };
        _cleanup_file_map_ struct file_map map = { 0 };
        _cleanup_close_ int fd = open(dir, O_TMPFILE | O_RDWR, 0600);
        struct symbol_table t = random_table(&spec);

        t.build_id = id;
        ck_assert_int_eq(portable_symbols_write(&t, &go_id, fd, NULL), ST_OK);
        symbol_table_deinit(&t);
        ck_assert_int_eq(file_map_fd(fd, MiB(1), "symbols", &map, NULL), ST_OK);
        if (change)
                change(&claim);
        return send(&claim, map.data, map.size);
}

static enum symbol_quality stored_quality(enum object_kind kind)
{
        struct stored_object o;

        return debuginfo_store_stat(store, &id, kind, &o, NULL) == ST_OK ? o.quality : QUALITY_NONE;
}

static bool wanted(enum symbol_quality quality)
{
        struct object_offer q = { id, OBJECT_SYMBOLS, .quality = quality };

        ck_assert_int_eq(debuginfo_store_assess_offers(store, &q, 1, NULL), ST_OK);
        return q.is_wanted;
}

START_TEST(better_symbols_replace_worse_ones_and_never_the_reverse)
{
        ck_assert(wanted(QUALITY_DYNSYM));
        ck_assert_int_eq(send_symbols(QUALITY_SYMTAB, 20, NULL), REFUSED_NOT);
        ck_assert(!wanted(QUALITY_SYMTAB));
        ck_assert(wanted(QUALITY_LINES));
        ck_assert_int_eq(send_symbols(QUALITY_LINES, 20, NULL), REFUSED_NOT);
        ck_assert_int_eq(send_symbols(QUALITY_SYMTAB, 20, NULL), REFUSED_NOT_BETTER);
        ck_assert_int_eq(stored_quality(OBJECT_SYMBOLS), QUALITY_LINES);
}
END_TEST

static void force(struct object_claim *c)
{
        c->force = true;
}

START_TEST(debuginfo_replaces_symbols_and_never_the_reverse)
{
        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 20, NULL), REFUSED_NOT);
        ck_assert_int_eq(send_debuginfo(), REFUSED_NOT);
        ck_assert_int_eq(stored_quality(OBJECT_DEBUGINFO), QUALITY_DWARF);
        ck_assert(!wanted(QUALITY_DWARF));
        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 21, NULL), REFUSED_NOT_BETTER);
        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 21, force), REFUSED_NOT);
}
END_TEST

static void claim_lines(struct object_claim *c)
{
        c->has_quality = true;
        c->quality = QUALITY_LINES;
}

static void claim_another_object(struct object_claim *c)
{
        c->build_id = random_build_id(99);
}

static void claim_debuginfo(struct object_claim *c)
{
        c->kind = OBJECT_DEBUGINFO;
}

START_TEST(upload_that_differs_from_claim_is_refused)
{
        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 20, claim_lines), REFUSED_QUALITY);
        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 20, claim_another_object), REFUSED_BUILD_ID);
        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 20, claim_debuginfo), REFUSED_KIND);
        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 0, NULL), REFUSED_NO_SYMBOLS);
        ck_assert_int_eq(send(&(struct object_claim){ .build_id = id, .kind = OBJECT_SYMBOLS }, self.data, self.size),
                         REFUSED_NOT_SYMBOLS);
        ck_assert_int_eq(stored_quality(OBJECT_SYMBOLS), QUALITY_NONE);
        ck_assert_int_eq(send_symbols(QUALITY_LINES, 20, claim_lines), REFUSED_NOT);
}
END_TEST

static void claim_hash(struct object_claim *c)
{
        c->htlhash = random_build_id(7);
}

START_TEST(aliases_of_the_object_refer_to_its_symbols)
{
        const struct build_id hash = random_build_id(7);
        struct build_id owner;

        ck_assert_int_eq(send_symbols(QUALITY_DWARF, 20, claim_hash), REFUSED_NOT);
        ck_assert_int_eq(debuginfo_store_resolve_alias(store, &go_id, &owner, NULL), ST_OK);
        ck_assert(build_id_equal(&owner, &id));
        ck_assert_int_eq(debuginfo_store_resolve_alias(store, &hash, &owner, NULL), ST_OK);
        ck_assert(build_id_equal(&owner, &id));
}
END_TEST

TEST_SUITE_WITH_FIXTURE("symbol_objects", better_symbols_replace_worse_ones_and_never_the_reverse,
                        debuginfo_replaces_symbols_and_never_the_reverse, upload_that_differs_from_claim_is_refused,
                        aliases_of_the_object_refer_to_its_symbols)
