/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_PROFILE_SYMBOLS_H
#define CAIRN_CLI_SYMBOLS_PROFILE_SYMBOLS_H

/**
 * @file
 * Resolve the locations of a profile, object by object: each is opened once and looked up with all of its addresses.
 */
#include "cli/symbols/debug_files.h"
#include "cli/symbols/object_finder.h"
#include "profile-formats/profile.h"
#include "symbol-index/lookup.h"

struct profile_symbols {
        bool force;                                /* also locations that have a name */
        bool verbose;                              /* report each unresolved address */
        bool quiet;                                /* print nothing: the caller uses the reasons */
        void (*progress)(size_t done, size_t all); /* counts locations; NULL: not called */
        bool *changed;                             /* by location: lines were added; owned */
        enum symbol_state *reasons; /* by location: why it has no lines, SYMBOL_RESOLVED for all others; owned */
        uint64_t asked, resolved;
        uint64_t missing_objects;
};

/**
 * Resolve. Objects that are missing or unreadable are reported on stderr once each, with the next step.
 * @param s  force, verbose, quiet and progress set; profile_symbols_deinit().
 */
enum status profile_symbols_fill(struct profile_symbols *s, struct profile *p, struct object_finder *finder,
                                 struct error *err) MUST_CHECK;
void profile_symbols_deinit(struct profile_symbols *s);

/** Resolution with the files of this machine, the cache and debuginfod servers. */
struct local_symbols {
        struct debug_files *debug_files; /* borrowed, open */
        const struct held_files *held;   /* NULL none */
        struct profile_symbols symbols;  /* results */
};

/** @param l  debug_files and held set; local_symbols_deinit() in any case. */
enum status local_symbols_fill(struct local_symbols *l, struct profile *p, struct error *err) MUST_CHECK;
void local_symbols_deinit(struct local_symbols *l);

#endif
