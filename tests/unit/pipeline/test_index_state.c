/* SPDX-License-Identifier: Apache-2.0 */
/* Which stored objects have still to be indexed, in cases that timestamps cannot decide. */
#include <check.h>
#include <string.h>

#include "common/clock.h"
#include "pipeline/index_state.h"
#include "symbol-index/index_load.h"
#include "tests/support/random_table.h"
#include "tests/support/suite.h"
#include "tests/support/temporary_dir.h"

static char dir[TEMPORARY_DIR_BYTES];
static struct symbol_index *symbols;

static void set_up(void)
{
        struct error err;

        temporary_dir_create(dir, "needs");
        ck_assert_msg(symbol_index_open(dir, false, &symbols, &err) == ST_OK, "%s", err.text);
}

static void tear_down(void)
{
        symbol_index_close(symbols);
        temporary_dir_remove(dir);
}

/* Stored long ago, so that by their times all of them would have been indexed. */
static struct stored_object stored(enum object_kind kind, uint8_t content)
{
        struct stored_object o = { .build_id = random_build_id(1), .kind = kind, .stored_unix_s = 1 };

        memset(o.sha256, content, sizeof o.sha256);
        return o;
}

static struct symbol_inputs inputs_of(const struct stored_object *o)
{
        struct symbol_inputs inputs = { 0 };

        symbol_inputs_add(&inputs, o->sha256);
        return inputs;
}

static void load(const struct symbol_inputs *inputs, enum symbol_quality quality)
{
        struct symbol_table t = {
                .build_id = random_build_id(1), .quality = quality, .strings = (char[1]){ 0 }, .string_bytes = 1
        };
        uint64_t generation;
        struct error err;
        bool replaced;

        if (inputs)
                t.inputs = *inputs;
        ck_assert_msg(symbol_index_load(symbols, &t, &replaced, &generation, &err) == ST_OK, "%s", err.text);
}

static void mark(enum symbol_object_state state, const struct symbol_inputs *inputs)
{
        const struct build_id id = random_build_id(1);

        ck_assert_int_eq(symbol_index_set_state(symbols, &id, state, "it is broken", inputs, NULL), ST_OK);
}

START_TEST(object_stored_during_indexing_is_pending)
{
        struct stored_object old = stored(OBJECT_DEBUGINFO, 1), better = stored(OBJECT_DEBUGINFO, 2);
        struct stored_object package = stored(OBJECT_DWP, 3);
        struct symbol_inputs inputs = inputs_of(&old);

        ck_assert(index_state_is_pending(symbols, &old));
        ck_assert(!index_state_is_pending(symbols, &package)); /* nothing without the object's file */
        load(&inputs, QUALITY_SYMTAB);
        ck_assert(!index_state_is_pending(symbols, &old));
        ck_assert(index_state_is_pending(symbols, &better));
        ck_assert(index_state_is_pending(symbols, &package));
}
END_TEST

START_TEST(object_stored_during_failed_indexing_is_pending)
{
        struct stored_object old = stored(OBJECT_DEBUGINFO, 1), better = stored(OBJECT_DEBUGINFO, 2);
        struct symbol_inputs inputs = inputs_of(&old);

        mark(OBJECT_PENDING, NULL);
        ck_assert(index_state_is_pending(symbols, &better));
        mark(OBJECT_FAILED, &inputs);
        ck_assert(!index_state_is_pending(symbols, &old));
        ck_assert(index_state_is_pending(symbols, &better));
}
END_TEST

START_TEST(object_indexed_without_symbols_is_not_pending)
{
        struct stored_object good = stored(OBJECT_DEBUGINFO, 1), poor = stored(OBJECT_EXECUTABLE, 2);
        struct symbol_inputs inputs = inputs_of(&good);

        load(&inputs, QUALITY_DWARF);
        symbol_inputs_add(&inputs, poor.sha256);
        load(&inputs, QUALITY_SYMTAB);
        ck_assert(!index_state_is_pending(symbols, &good));
        ck_assert(!index_state_is_pending(symbols, &poor));
}
END_TEST

START_TEST(debuginfo_indexed_without_symbols_is_empty_until_its_quality_is_none)
{
        struct stored_object o = stored(OBJECT_DEBUGINFO, 1), program = stored(OBJECT_EXECUTABLE, 2);
        struct symbol_inputs inputs = inputs_of(&o);

        o.quality = program.quality = QUALITY_DWARF;
        ck_assert(!index_state_is_empty(symbols, &o));
        load(&inputs, QUALITY_NONE);
        ck_assert(index_state_is_empty(symbols, &o));
        ck_assert(!index_state_is_empty(symbols, &program));
        ck_assert(!index_state_is_pending(symbols, &o));
        o.quality = QUALITY_NONE;
        ck_assert(!index_state_is_empty(symbols, &o));
}
END_TEST

START_TEST(alias_with_own_object_is_pending)
{
        struct build_id alias = random_build_id(2), of = random_build_id(1);
        struct stored_object first = stored(OBJECT_DEBUGINFO, 1), other = stored(OBJECT_DEBUGINFO, 1);
        struct symbol_inputs inputs = inputs_of(&first);

        other.build_id = alias;
        load(&inputs, QUALITY_DWARF);
        ck_assert_int_eq(symbol_index_add_aliases(symbols, &of, &alias, 1, NULL, NULL), ST_OK);
        ck_assert(index_state_is_pending(symbols, &other));
}
END_TEST

START_TEST(time_decides_without_recorded_inputs)
{
        struct stored_object o = stored(OBJECT_DEBUGINFO, 1);
        int64_t now = wall_clock_ns() / 1000000000;

        load(NULL, QUALITY_DWARF);
        ck_assert(!index_state_is_pending(symbols, &o));
        o.stored_unix_s = now + 3600;
        ck_assert(index_state_is_pending(symbols, &o));
}
END_TEST

TEST_SUITE_WITH_FIXTURE("index needs", object_stored_during_indexing_is_pending,
                        object_stored_during_failed_indexing_is_pending, object_indexed_without_symbols_is_not_pending,
                        debuginfo_indexed_without_symbols_is_empty_until_its_quality_is_none,
                        alias_with_own_object_is_pending, time_decides_without_recorded_inputs)
