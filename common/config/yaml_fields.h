/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_CONFIG_YAML_FIELDS_H
#define CAIRN_COMMON_CONFIG_YAML_FIELDS_H

/**
 * @file
 * Table-driven reading of YAML documents (libyaml) into structures. Every error names file and line.
 *
 * Threads: no shared state.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <yaml.h>

#include "common/error.h"
#include "common/memory/buf.h"

struct yaml_source {
        const char *path;
        yaml_document_t *document;
        struct error *err;
        void *context; /* for the fields' readers */
};

/** Reads the value of a field into an object. */
typedef enum status yaml_field_reader(const struct yaml_source *in, const yaml_node_t *value, void *object);

struct yaml_field {
        const char *name; /* NULL ends a table */
        yaml_field_reader *read;
        size_t offset; /* offset of the member that is passed to read() */
};

/** "PATH:LINE: text". */
enum status yaml_error(const struct yaml_source *in, const yaml_node_t *at, const char *fmt, ...) PRINTF(3, 4);
/** Prepend "PATH:LINE: " to in->err. Returns st. */
enum status yaml_locate_error(const struct yaml_source *in, const yaml_node_t *at, enum status st);

/**
 * Read the text of a YAML file into buf (its max is the limit), as file_read(). ST_USAGE unless the last line has its
 * line end, since half a line may be another setting; text in brackets, as JSON, needs none.
 */
enum status yaml_text_read(const char *path, struct buf *ret, struct error *err) MUST_CHECK;

/**
 * Parse a file of at most max bytes and read its root into object. read() is not called for a file of comments.
 * @return ST_NOT_FOUND: no such file; ST_USAGE: empty, cut off (yaml_text_read()) or not YAML; or the result of read().
 */
enum status yaml_file_read(const char *path, size_t max, yaml_field_reader *read, void *object,
                           struct error *err) MUST_CHECK;

/** Read a mapping by a table: unknown and repeated names are errors. "key:" without a value is an empty mapping. */
enum status yaml_read_mapping(const struct yaml_source *in, const yaml_node_t *node, const struct yaml_field *fields,
                              void *object) MUST_CHECK;

/** Call read() for each item of a sequence of at most max items. */
enum status yaml_read_items(const struct yaml_source *in, const yaml_node_t *node, size_t max, yaml_field_reader *read,
                            void *object) MUST_CHECK;

/** Call read() for each pair of a mapping; names must be distinct texts. */
enum status yaml_read_pairs(const struct yaml_source *in, const yaml_node_t *node, size_t max,
                            enum status (*read)(const struct yaml_source *in, const yaml_node_t *name,
                                                const yaml_node_t *value, void *object),
                            void *object) MUST_CHECK;

/** The text of a scalar without NUL bytes, borrowed from the document; NULL with an error for anything else. */
const char *yaml_read_scalar(const struct yaml_source *in, const yaml_node_t *node);

/* Readers of one member each. */
enum status yaml_read_text(const struct yaml_source *in, const yaml_node_t *value, void *object);   /* char * */
enum status yaml_read_flag(const struct yaml_source *in, const yaml_node_t *value, void *object);   /* bool */
enum status yaml_read_number(const struct yaml_source *in, const yaml_node_t *value, void *object); /* uint64_t */

/** Read a list of at most max texts, replacing the previous one; owned, yaml_free_texts(). */
enum status yaml_read_texts(const struct yaml_source *in, const yaml_node_t *value, size_t max, char ***items,
                            size_t *count) MUST_CHECK;
void yaml_free_texts(char **items, size_t count);

#endif
