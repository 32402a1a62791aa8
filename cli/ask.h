/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_ASK_H
#define CAIRN_CLI_ASK_H

/**
 * @file
 * How query, top, flame and diff get their answers: from a server's query API, from a data directory opened read-only,
 * or from files that were recorded here. All go through the same code in the end, so the bytes are the same.
 */
#include "cli/service.h"
#include "common/buf.h"

struct ask_options {
        struct service_options service;
        const char *data, *profile;
        const char *from, *to, *type;
};

#define ASK_OPTIONS(o)                                                                                             \
        OPTION_STRING("server", 0, "URL", &(o)->service.server, "ask this server (default " DEFAULT_SERVER ")"),           \
                OPTION_STRING("data", 0, "DIR", &(o)->data, "read this data directory instead, without a server"), \
                OPTION_STRING("profile", 0, "FILE", &(o)->profile,                                                  \
                              "look at this file instead, as cairn record writes it; named here"),                  \
                SERVICE_OPTIONS(&(o)->service),                                                                     \
                OPTION_STRING("from", 0, "T", &(o)->from,                                                          \
                              "start: now-1h (default), 2026-01-31T12:00:00Z, seconds"),                           \
                OPTION_STRING("to", 0, "T", &(o)->to, "end (default now)"),                                        \
                OPTION_STRING("type", 0, "T", &(o)->type, "profile type, or a part of it: cpu, memory, ...")

#define ASK_PARAMS 16

/** The parameters of one question, by name; pairs with value NULL count as absent. */
struct ask_params {
        const char *names[ASK_PARAMS];
        const char *values[ASK_PARAMS];
        size_t count;
};
void ask_param(struct ask_params *p, const char *name, const char *value);

/** The value of a parameter, NULL without one; a query_param (query/query.h). */
const char *ask_param_value(void *params, const char *name);

/** The selector that is left on the command line, "" for none; ST_USAGE when there are more arguments. */
enum status ask_selector(int argc, char **argv, const char **ret, struct error *err) MUST_CHECK;

/** Ask; from, to and type are added from the options. The answer is appended to ret. */
enum status ask(const struct ask_options *o, const char *operation, struct ask_params *params, struct buf *ret,
                struct error *err) MUST_CHECK;

struct profile;

/** Ask about profiles that are in no store, over all of their time; frames are those they have. */
enum status ask_profiles(const struct profile *const *profiles, size_t count, const char *operation,
                         struct ask_params *params, struct buf *ret, struct error *err) MUST_CHECK;

/** Ask about one file, whose names are looked for here. */
enum status ask_file(const char *path, const char *operation, struct ask_params *params, struct buf *ret,
                     struct error *err) MUST_CHECK;

/** Ask for the difference of two files, whose names are looked for here. */
enum status ask_difference(const char *before, const char *after, struct ask_params *params, struct buf *ret,
                           struct error *err) MUST_CHECK;

/** Write an answer to output (a path, or NULL or "-" for stdout). */
enum status ask_write(const struct buf *answer, const char *output, struct error *err) MUST_CHECK;

/** Ask, and write the answer to output (a path, or NULL or "-" for stdout). */
enum status ask_and_write(const struct ask_options *o, const char *operation, struct ask_params *params,
                          const char *output, struct error *err) MUST_CHECK;

#endif
