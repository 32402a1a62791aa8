/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_OBJECTS_PROC_MAPS_H
#define CAIRN_SAMPLING_OBJECTS_PROC_MAPS_H

/**
 * @file
 * Executable mappings of a process, parsed from /proc/PID/maps:
 * ascending and disjoint. Other mappings are skipped, except for neighbors
 * (sampling/processes/moved_text.h) and the address of a published context.
 *
 * Threads: one writer, or any number of readers.
 * Source: proc(5), "/proc/pid/maps".
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/memory/arena.h"

struct proc_mapping {
        uint64_t start, end;  /* addresses in the process, [start, end) */
        uint64_t file_offset; /* of start */
        uint32_t device_major, device_minor;
        uint64_t inode;   /* 0: no file */
        const char *path; /* "/usr/lib/x.so", "[vdso]", "" when anonymous; borrowed from the maps */
        bool deleted;     /* the file was deleted; path is its last name */
        bool executable;
};

struct proc_maps {
        struct arena arena;
        struct proc_mapping *items;
        size_t count;
        /* The file mappings, executable or not, right before and after executable mappings of anything else. */
        struct proc_mapping *neighbors;
        size_t neighbor_count;
        uint64_t context_address; /* of the mapping that an OpenTelemetry SDK publishes (OTEP 4719); 0: none */
};

/**
 * Parse the whole text. A line that overlaps earlier ones is clipped, since a mapping may grow while the file is read.
 * @param ret  owned, free with proc_maps_deinit(); untouched on failure.
 * @return ST_OK; ST_BAD_DATA with the offset of a malformed line; ST_TOO_BIG past LIMIT_AGENT_MAPPINGS.
 */
enum status proc_maps_parse(const char *text, size_t n, struct proc_maps *ret, struct error *err) MUST_CHECK;
void proc_maps_deinit(struct proc_maps *m);
#define _cleanup_proc_maps_ _cleanup_(proc_maps_deinit)

/** Whether the path of n bytes names memory: a mapping without a directory entry, although it has an inode. */
bool is_memory_path(const char *path, size_t n);

/** The mapping that covers addr, borrowed; NULL when none does. */
const struct proc_mapping *proc_maps_find(const struct proc_maps *m, uint64_t addr);

#endif
