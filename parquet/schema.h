/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PARQUET_SCHEMA_H
#define CAIRN_PARQUET_SCHEMA_H

/**
 * @file
 * The columns of a Parquet file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/memory/arena.h"
#include "common/error.h"

enum parquet_kind {
        PARQUET_BOOL,
        PARQUET_INT32,
        PARQUET_INT64,
        PARQUET_DATE,      /* days since 1970-01-01 */
        PARQUET_TIMESTAMP, /* microseconds since 1970-01-01 UTC; see unit in files of other programs */
        PARQUET_DOUBLE,
        PARQUET_STRING, /* UTF-8 */
        PARQUET_BINARY,
        PARQUET_STRUCT, /* children: the fields */
        PARQUET_LIST,   /* one child: the element, whatever its name */
        PARQUET_MAP,    /* two children: the key (required) and the value */
        PARQUET_OTHER,  /* read only: a type that Cairn does not decode */
};

struct parquet_field {
        const char *name;
        enum parquet_kind kind;
        bool optional;
        const struct parquet_field *children;
        size_t child_count;
};

#define PARQUET_NO_COLUMN UINT32_MAX

struct parquet_node {
        const char *name;
        enum parquet_kind kind;
        uint8_t physical;     /* enum parquet_physical; leaves only */
        uint8_t repetition;   /* enum parquet_repetition */
        uint8_t unit;         /* enum parquet_time_unit of a timestamp */
        uint8_t max_def;      /* OPTIONAL and REPEATED nodes on the path from the root, this one included */
        uint8_t max_rep;      /* REPEATED nodes on the path from the root, this one included */
        uint8_t list_def;     /* max_def of the innermost REPEATED node, 0 without one */
        uint32_t type_length; /* bytes of a PHYSICAL_FIXED value */
        uint32_t parent;
        uint32_t child_count;
        uint32_t end;
        uint32_t column;       /* leaves: column number; else PARQUET_NO_COLUMN */
        uint32_t column_start; /* the leaves below are columns [column_start, column_end) */
        uint32_t column_end;
};

struct parquet_schema {
        struct parquet_node *nodes;
        uint32_t node_count;
        uint32_t *columns; /* column number to node */
        uint32_t column_count;
};

/**
 * Lay out a writer's schema.
 *
 * @param a    holds the schema; names are copied.
 * @return ST_OK; ST_USAGE for a schema that the writer cannot write: nested
 *         deeper than LIMIT_PARQUET_DEPTH, a list inside a list, an empty
 *         group, two fields of one name; ST_TOO_BIG, ST_NO_MEMORY.
 */
enum status parquet_schema_from_fields(struct arena *a, const struct parquet_field *fields, size_t count,
                                       struct parquet_schema *ret, struct error *err) MUST_CHECK;

/**
 * Compute levels, parents, ends and columns of nodes whose name, kind, repetition and child_count are set, in
 * depth-first order.
 *
 * @return ST_BAD_DATA when the counts do not form one tree; ST_TOO_BIG past LIMIT_PARQUET_DEPTH.
 */
enum status parquet_schema_resolve(struct arena *a, struct parquet_schema *s, struct error *err) MUST_CHECK;

/** The node of a dotted path; 0 (the root) when there is no such node. */
uint32_t parquet_schema_find(const struct parquet_schema *s, const char *path);

#endif
