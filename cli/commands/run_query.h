/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_COMMANDS_RUN_QUERY_H
#define CAIRN_CLI_COMMANDS_RUN_QUERY_H

/**
 * @file
 * The queries of query, top, flame and diff: against a server's query API, a data directory opened read-only, or
 * recorded files. All three use the same query code, so equal data gives equal bytes.
 */
#include "cli/shared/service.h"
#include "common/memory/buf.h"
#include "symbol-index/lookup.h"

struct query_options {
        struct service_options service;
        const char *data, *profile;
        const char *from, *to, *type;
        bool explains;
};

#define QUERY_OPTIONS(o)                                                                                               \
        OPTION_STRING("server", 0, "URL", &(o)->service.server, "query this server (default " DEFAULT_SERVER ")"),     \
                OPTION_STRING("data", 0, "DIR", &(o)->data, "query this data directory instead"),                      \
                OPTION_STRING("profile", 0, "FILE", &(o)->profile,                                                     \
                              "query this profile instead, in a format of cairn import; resolved on this machine"),    \
                SERVICE_OPTIONS(&(o)->service), TENANT_OPTION(&(o)->service),                                          \
                OPTION_STRING("from", 0, "T", &(o)->from,                                                              \
                              "start, as now-1h (default), 2026-01-31T12:00:00Z or Unix seconds"),                     \
                OPTION_STRING("to", 0, "T", &(o)->to, "end (default: now)"),                                           \
                OPTION_STRING("type", 0, "T", &(o)->type, "profile type or a part of it, as cpu or memory"),           \
                OPTION_FLAG("explain", 0, &(o)->explains,                                                              \
                            "say how much the query read, and what it asked the object store for")

/* The stacks and frames that a view shows, and the labels to group by. */
struct query_view {
        const char *focus, *ignore, *hide, *show;
        const char *by, *groups;
};

#define QUERY_FRAME_OPTIONS(v)                                                                                         \
        OPTION_STRING("focus", 0, "REGEX", &(v)->focus, "only stacks with a frame that matches"),                      \
                OPTION_STRING("ignore", 0, "REGEX", &(v)->ignore, "only stacks without a frame that matches"),         \
                OPTION_STRING("hide", 0, "REGEX", &(v)->hide, "leave out frames that match"),                          \
                OPTION_STRING("show", 0, "REGEX", &(v)->show, "leave out frames that do not match")

#define QUERY_GROUP_OPTIONS(v)                                                                                         \
        OPTION_STRING("by", 0, "LABEL,...", &(v)->by, "one result for each combination of values of these labels"),    \
                OPTION_STRING("groups", 0, "N", &(v)->groups,                                                          \
                              "with --by: the N largest groups (default 20); the rest is one group")

/**
 * Open the index in service_debuginfo_path() read-only, for a command that works without it too.
 * @param without  the consequence of a missing index, for the message.
 * @param ret      NULL when there is no index, or, after a message, when it has another format.
 */
enum status open_optional_index(const char *base, const char *without, struct symbol_index **ret,
                                struct error *err) MUST_CHECK;
#define SAMPLES_WITHOUT_INDEX "samples that wait in the queue appear as addresses"

#define QUERY_PARAMS 32

/** The parameters of one query, by name; pairs with value NULL count as absent. */
struct query_params {
        const char *command; /* named by notes on standard error; NULL: none */
        bool hides_notes;    /* of a query about samples whose notes were printed */
        bool explains;       /* prints what it read; run_query() sets it */
        const char *names[QUERY_PARAMS];
        const char *values[QUERY_PARAMS];
        size_t count;
};
void query_param_add(struct query_params *p, const char *name, const char *value);

void query_view_add(struct query_params *p, const struct query_view *v);

/** The value of a parameter, NULL without one; a query_param (query/query.h). */
const char *query_param_value(void *params, const char *name);

/** The selector among the remaining arguments, "" for none; ST_USAGE when there are more. */
enum status parse_query_selector(int argc, char **argv, const char **ret, struct error *err) MUST_CHECK;

/** Run a query; from, to and type are added from the options. The result is appended to ret. */
enum status run_query(const struct query_options *o, const char *operation, struct query_params *params,
                      struct buf *ret, struct error *err) MUST_CHECK;

struct profile;

/** Query profiles in memory over their whole time range, with the frames that they have. */
enum status query_profiles(const struct profile *const *profiles, size_t count, const char *operation,
                           struct query_params *params, struct buf *ret, struct error *err) MUST_CHECK;

/** Query one file, after resolving its addresses. */
enum status query_profile_file(const char *path, const char *operation, struct query_params *params, struct buf *ret,
                               struct error *err) MUST_CHECK;

/** Compare two files, before and after, by an operation that takes base_selector; their addresses are resolved. */
enum status query_difference(const char *operation, char *const paths[2], struct query_params *params, struct buf *ret,
                             struct error *err) MUST_CHECK;

/* Files on two sides, each a run of the same program. */
#define FILE_RUN_LABEL "cairn.run" /* numbers the files of a side */
#define FILE_SELECTOR_BEFORE "{cairn.side=\"before\"}"
#define FILE_SELECTOR_AFTER "{cairn.side=\"after\"}"

struct file_sides {
        struct profile *profiles; /* owned */
        const struct profile **items;
        size_t count;
};

/** Read the files of both sides, resolve their addresses on this machine, and label them as above. */
enum status file_sides_read(char *const *before, size_t before_count, char *const *after, size_t after_count,
                            struct file_sides *ret, struct error *err) MUST_CHECK;
void file_sides_deinit(struct file_sides *f);

/**
 * Refuse the name of an output file whose suffix means a format that the command does not have, as `x.svg`, unless an
 * option gives the format.
 * @param output  NULL: standard output.
 * @param own     the suffixes of the command's formats, joined by ", ".
 */
enum status check_output_suffix(const char *output, const char *own, struct error *err) MUST_CHECK;

/** Write a result to output (a path, or NULL or "-" for stdout). */
enum status write_query_answer(const struct buf *answer, const char *output, struct error *err) MUST_CHECK;

/** Run a query and write the result to output (a path, or NULL or "-" for stdout). */
enum status run_and_write_query(const struct query_options *o, const char *operation, struct query_params *params,
                                const char *output, struct error *err) MUST_CHECK;

#endif
