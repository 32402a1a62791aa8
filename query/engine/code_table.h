/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_QUERY_ENGINE_CODE_TABLE_H
#define CAIRN_QUERY_ENGINE_CODE_TABLE_H

/**
 * @file
 * Instructions of functions, or of a range of addresses, of one object, each with its cost on one side of a selection,
 * its line and its branch target. Private to query/.
 *
 * Shown are the functions that contain the sampled addresses at which a requested function occurs; an inlined function
 * is therefore shown inside the functions that it is inlined into. An address lies inside its instruction: return
 * addresses were moved back into the call.
 *
 * Threads: none.
 */
#include "common/limits.h"
#include "query/engine/loaded_sides.h"
#include "query/engine/source_lines.h"

#define CODE_SHOWN_SOURCES 8 /* source files whose lines are shown */

/** What a request asks for, of each side. */
struct code_request {
        const uint8_t *is_target; /* by frame; NULL when only a range is requested */
        const char *server;       /* shown in upload commands; NULL: none */
        bool has_range;
        uint64_t start, end;
        bool is_att;
};

struct code_cost {
        int64_t flat, cumulative;
};

struct code_object {
        uint32_t location; /* any location in it */
        struct code_cost cost;
        size_t seen; /* index of the last entry that contains it, plus one */
};

struct shown_source {
        const char *file;
        struct source_lines lines;
};

/** Initialize with the members up to `memory`, and code_table_deinit() it in any case. */
struct code_table {
        struct query_call *q;
        const struct code_request *request;
        const struct merged_profile *side;
        struct build_id asked; /* size 0: the object with the greatest cost */
        struct memory_reservation memory;
        /* Indexed by location of the scan. */
        struct code_cost *costs; /* owned, as are the next four */
        size_t *seen;
        uint64_t *addresses; /* in the object */
        uint8_t *is_hit;     /* the location was requested */
        uint32_t *object_of;
        struct code_object *objects; /* owned; finally sorted by falling cost */
        size_t object_count, object_capacity;
        const struct scan_location *chosen; /* in the shown object; NULL: no sample in it */
        struct build_id id;
        struct disassembly code;
        struct code_cost *instruction_costs; /* owned, as are places and target_places */
        struct code_place *places, *target_places;
        struct arena texts; /* of places and target_places */
        struct shown_source sources[CODE_SHOWN_SOURCES];
        size_t source_count;
        struct error missing; /* reason when code is missing; otherwise its code is ST_OK */
};

/**
 * Sum the costs, choose the object, and read its code with names and lines. Missing code is not a failure.
 * @return ST_OK; the status of the meter or of the memory; of the provider of code, if it is neither missing nor busy.
 */
enum status code_table_load(struct code_table *t) MUST_CHECK;
void code_table_deinit(struct code_table *t);

const struct scan_location *code_table_get_location(const struct code_table *t, uint32_t location);
const char *code_table_get_object_path(const struct code_table *t);                            /* "" unknown */
const char *code_table_get_range_name(const struct code_table *t, const struct code_range *r); /* "" unknown */

/** The function that a call, or a jump out of its own function, leads to; NULL: unknown. */
const char *code_table_get_target_name(const struct code_table *t, uint32_t instruction);

/** The source line of a place; NULL: none. Borrowed until code_table_deinit(). */
const char *code_table_get_source(struct code_table *t, const struct code_place *p, size_t *n_ret);

bool code_place_is_same(const struct code_place *a, const struct code_place *b);

/** Whether an instruction is a jump or a call to a known address. */
bool instruction_leads_elsewhere(const struct code_instruction *in);

#endif
