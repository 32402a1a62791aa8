/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/profile_symbols.h"
#include "cli/symbolize_profile.h"
#include "common/compress.h"
#include "common/limits.h"
#include "profile-formats/pprof.h"
#include "profile-formats/pprof_symbols.h"

#define GZIP_LEVEL 6

enum status symbolize_pprof(const struct symbolize_profile *o, struct object_finder *finder, const struct buf *in,
                            struct buf *ret, struct error *err)
{
        struct profile_symbols symbols = { .force = o->force, .verbose = o->verbose };
        _cleanup_buf_ struct buf plain = { 0 };
        struct profile p;
        enum status st = pprof_decode(in->data, in->size, NULL, &p, err);

        if (st)
                return st;
        buf_init(&plain, GiB(1));
        st = profile_symbols_fill(&symbols, &p, finder, err);
        if (!st)
                st = pprof_put_symbols(in->data, in->size, &p, symbols.changed, &plain, err);
        if (!st)
                st = gzip_pack(plain.data, plain.size, GZIP_LEVEL, ret, err);
        profile_symbols_deinit(&symbols);
        profile_deinit(&p);
        return st;
}
