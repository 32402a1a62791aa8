/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_symbols.h"
#include "cli/symbolize_profile.h"
#include "profile-formats/folded.h"

enum status symbolize_folded(const struct symbolize_profile *o, struct object_finder *finder, const struct buf *in,
                             struct buf *ret, struct error *err)
{
        struct profile_symbols symbols = { .force = o->force, .verbose = o->verbose };
        struct profile p;
        enum status st = folded_decode_addresses(in->data, in->size, NULL, &p, err);

        if (st)
                return st;
        st = profile_symbols_fill(&symbols, &p, finder, err);
        if (!st)
                st = folded_encode(&p, NULL, ret, err);
        profile_symbols_deinit(&symbols);
        profile_deinit(&p);
        return st;
}
