/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbol table file with corrected checksums. If it can be read, the table is walked, written and read again; its
 * symcache must give the same results.
 */
#include <assert.h>

#include "common/cleanup.h"
#include "common/hash.h"
#include "symbol-index/symbol_table.h"
#include "tests/support/symcache_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void walk_table(const struct symbol_table *t)
{
        for (uint32_t i = 0; i < t->range_count; i++) {
                const struct symbol_range *r = symbol_table_find(t, t->ranges[i].end - 1);
                const struct symbol_chain *c = &t->chains[r->chain];

                assert(r == &t->ranges[i]);
                for (uint32_t n = 0; n < c->frame_count && n < 64; n++) {
                        const struct symbol_table_frame *f = &t->frames[c->first_frame + n];

                        sink += strlen(t->strings + f->file);
                        if (f->function != SYMBOL_NO_FUNCTION)
                                sink += strlen(t->strings + t->functions[f->function].linkage_name) +
                                        strlen(t->strings + t->functions[f->function].name) +
                                        strlen(t->strings + t->functions[f->function].file);
                        sink += symbol_table_start_line(t, f);
                }
        }
}

static void compare_symcache(struct symbol_table *t)
{
        _cleanup_close_ int fd = symcache_make_file(NULL, 0);
        _cleanup_free_ uint8_t *copy = NULL;
        struct symcache b;

        t->is_complete = true;
        if (symcache_write(t, fd, NULL) || symcache_open(fd, "symcache", &b, NULL))
                abort();
        symcache_move_to_heap(&b, &copy);
        for (uint32_t i = 0; i < t->range_count && i < 256; i++) {
                const uint64_t addresses[] = { t->ranges[i].start - 1, t->ranges[i].start, t->ranges[i].end - 1,
                                               t->ranges[i].end };
                uint32_t found[4];

                if (symcache_find(&b, addresses, 4, found, NULL))
                        abort();
                for (int k = 0; k < 4; k++)
                        symcache_check_lookup(&b, found[k], t, addresses[k]);
        }
        symcache_close(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ uint8_t *copy = malloc(size + 1);
        struct symbol_table t, again;
        _cleanup_close_ int fd = -1, out = -1;

        if (size)
                memcpy(copy, data, size);
        if (size >= 128) {
                uint64_t hash = hash_bytes64(copy + 128, size - 128);

                memcpy(copy + 112, &hash, 8);
                hash = hash_bytes64(copy, 120);
                memcpy(copy + 120, &hash, 8);
        }
        fd = symcache_make_file(copy, size);
        if (symbol_table_read(fd, "fuzz", &t, NULL))
                return 0;
        walk_table(&t);
        compare_symcache(&t);
        out = symcache_make_file(NULL, 0);
        if (symbol_table_write(&t, out, NULL) || symbol_table_read(out, "again", &again, NULL))
                abort();
        symbol_table_deinit(&again);
        symbol_table_deinit(&t);
        return 0;
}
