/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_PROFILE_SYMBOLS_H
#define CAIRN_CLI_PROFILE_SYMBOLS_H

/**
 * @file
 * Names, files and lines for the locations of a profile, object by object: each is opened once and asked for all of
 * its addresses together.
 */
#include "cli/object_finder.h"
#include "profile-formats/profile.h"
#include "symbolizer/lookup.h"

struct profile_symbols {
        bool force;    /* also locations that came with a name */
        bool verbose;  /* tell each address that is not resolved */
        bool quiet;    /* tell nothing: the caller reads the reasons */
        void (*progress)(size_t done, size_t all); /* locations; called now and then. NULL nobody wants to know */
        bool *changed; /* by location: it got lines from here. owned */
        enum symbol_state *reasons; /* by location: why it got none, SYMBOL_RESOLVED for all others. owned */
        uint64_t asked, resolved;
        uint64_t missing_objects;
};

/**
 * Resolve. Objects that are not found, or cannot be read, are told on stderr, once each, with what would help.
 * @param s  force, verbose, quiet and progress set; profile_symbols_deinit().
 */
enum status profile_symbols_fill(struct profile_symbols *s, struct profile *p, struct object_finder *finder,
                                 struct error *err) MUST_CHECK;
void profile_symbols_deinit(struct profile_symbols *s);

#endif
