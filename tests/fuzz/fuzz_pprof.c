/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "common/compress/compress.h"
#include "common/limits.h"
#include "profile-formats/pprof/pprof.h"
#include "profile-formats/pprof/pprof_symbols.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Renaming every location of a decoded file must give a file that can be decoded. */
static void check_symbols(const uint8_t *data, size_t size, const struct profile *p)
{
        bool *changed = malloc(p->locations.count + 1u);
        _cleanup_buf_ struct buf file;
        struct profile q;

        buf_init(&file, MiB(256));
        memset(changed, 1, p->locations.count + 1u);
        if (!gzip_detect(data, size) && pprof_put_symbols(data, size, p, changed, &file, NULL) == ST_OK) {
                if (pprof_decode(file.data, file.size, NULL, &q, NULL))
                        abort();
                profile_walk(&q);
                profile_deinit(&q);
        }
        free(changed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_buf_ struct buf file;
        struct profile p, q;

        buf_init(&file, MiB(256));
        if (pprof_decode(data, size, NULL, &p, NULL))
                return 0;
        if (gzip_detect(data, size)) /* its work is bounded by the decompressed size */
                profile_walk(&p);
        else
                profile_walk_decoded(&p, size);
        if (pprof_encode(&p, &file, NULL) || pprof_decode(file.data, file.size, NULL, &q, NULL))
                abort();
        profile_walk(&q);
        profile_deinit(&q);
        check_symbols(data, size, &p);
        profile_deinit(&p);
        return 0;
}
