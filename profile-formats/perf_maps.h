/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PERF_MAPS_H
#define CAIRN_PROFILE_FORMATS_PERF_MAPS_H

/**
 * @file
 * What was mapped where, as the MMAP lines of perf script --show-mmap-events say.
 * Private to the decoder of perf script.
 */
#include "profile-formats/number_map.h"
#include "profile-formats/perf_text.h"
#include "profile-formats/profile.h"

struct perf_mmap {
        uint32_t file;    /* string */
        uint32_t mapping; /* of the profile */
        uint64_t start, end, file_offset;
};

struct perf_maps {
        struct profile *p;
        struct perf_mmap *mmaps;     /* owned */
        uint32_t mmap_count;
        size_t mmap_capacity;
        struct number_map files;     /* mappings of files without a known mmap: (string) */
        uint32_t *file_mappings;     /* by number in files; owned */
        size_t file_capacity;
};
void perf_maps_deinit(struct perf_maps *maps);

/** From behind the event's name: PID/TID: [0x55b87a6bc000(0x1000) @ 0x1000 <BUILD-ID>]: r-xp FILE; others are passed over. */
enum status perf_maps_add(struct perf_maps *maps, struct perf_text t, struct error *err) MUST_CHECK;

/** Find the mapping of an address in a file (a string of the profile), and make the address a file offset where possible. */
enum status perf_maps_place(struct perf_maps *maps, uint32_t file, struct profile_location *l,
                            struct error *err) MUST_CHECK;

#endif
