/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symcache with corrected checksums, read from the heap, so that reads past its end are detected. The last text takes
 * the rest of the file, so that mutations may insert and remove bytes.
 */
#include "common/cleanup.h"
#include "tests/support/symcache_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fit_last_text(uint8_t *file, size_t size)
{
        struct symcache_layout l;
        struct symcache_header h;

        if (size < sizeof h)
                return;
        memcpy(&h, file, sizeof h);
        h.text_bytes = 0;
        if (!symcache_compute_layout(&h, &l) || l.body > size || l.body_size > size - l.body)
                return;
        h.text_bytes = size - l.body - l.body_size;
        memcpy(file, &h, sizeof h);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_free_ uint8_t *file = malloc(size + 1), *copy = NULL;
        _cleanup_close_ int fd = -1;
        struct symcache b;

        if (size)
                memcpy(file, data, size);
        fit_last_text(file, size);
        symcache_fix_checksums(file, size);
        fd = symcache_make_file(file, size);
        if (symcache_open(fd, "fuzz", &b, NULL))
                return 0;
        symcache_move_to_heap(&b, &copy);
        if (symcache_walk(&b) == ST_OK && b.at.node_count)
                (void)!symcache_walk_frames(&b, (uint32_t)(b.at.node_count - 1));
        symcache_close(&b);
        return 0;
}
