/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbol file with corrected body size and checksums. If it can be read, the table must keep its invariants, and
 * writing it and reading it back must give the same table.
 */
#include <assert.h>

#include "common/cleanup.h"
#include "symbolizer/formats/portable_symbols.h"
#include "tests/support/portable_symbols_fix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_same_tables(const struct symbol_table *a, const struct symbol_table *b)
{
        assert(a->quality == b->quality && a->partial == b->partial && build_id_equal(&a->build_id, &b->build_id));
        assert(a->segment_count == b->segment_count && a->range_count == b->range_count &&
               a->chain_count == b->chain_count && a->frame_count == b->frame_count &&
               a->function_count == b->function_count && a->string_bytes == b->string_bytes);
        assert(memcmp(a->segments, b->segments, a->segment_count * sizeof *a->segments) == 0);
        for (uint32_t i = 0; i < a->range_count; i++)
                assert(a->ranges[i].start == b->ranges[i].start && a->ranges[i].end == b->ranges[i].end &&
                       a->ranges[i].chain == b->ranges[i].chain);
        assert(memcmp(a->chains, b->chains, a->chain_count * sizeof *a->chains) == 0);
        assert(memcmp(a->frames, b->frames, a->frame_count * sizeof *a->frames) == 0);
        assert(memcmp(a->functions, b->functions, a->function_count * sizeof *a->functions) == 0);
        assert(memcmp(a->strings, b->strings, a->string_bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ uint8_t *copy = malloc(size + 1);
        _cleanup_close_ int fd = -1, out = portable_symbols_make_file(NULL, 0);
        struct symbol_table t, again;
        struct build_id go_id, go_id_again;

        if (size)
                memcpy(copy, data, size);
        portable_symbols_fix_checksums(copy, size);
        fd = portable_symbols_make_file(copy, size);
        if (portable_symbols_read(fd, "fuzz", &t, &go_id, NULL))
                return 0;
        assert(symbol_table_check(&t, NULL) == ST_OK);
        if (portable_symbols_write(&t, &go_id, out, NULL) ||
            portable_symbols_read(out, "again", &again, &go_id_again, NULL))
                abort();
        require_same_tables(&t, &again);
        assert(build_id_equal(&go_id, &go_id_again));
        symbol_table_deinit(&again);
        symbol_table_deinit(&t);
        return 0;
}
