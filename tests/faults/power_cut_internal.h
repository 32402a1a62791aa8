/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_POWER_CUT_INTERNAL_H
#define CAIRN_TESTS_FAULTS_POWER_CUT_INTERNAL_H

#include "common/memory/buf.h"
#include "tests/faults/fault_log.h"
#include "tests/faults/power_cut.h"

#define NEVER SIZE_MAX
#define NOTHING UINT32_MAX

/* A file or a directory; the first is the watched one. */
struct object {
        uint64_t inode;
        bool is_dir;
};

struct name {
        uint32_t dir, object; /* numbers of objects */
        const char *text;
};

/* One thing that a change does: an entry of a directory, or bytes of a file. */
struct effect {
        uint32_t object;   /* directory or file that it is in */
        size_t durable_at; /* the change that syncs it, or NEVER */
        uint32_t change;   /* that it belongs to */
        const char *name;  /* of an entry; NULL for bytes */
        uint32_t target;   /* object of the entry; NOTHING: it is taken away */
        bool is_lost;      /* no sync will write it any more */
};

struct change {
        struct fault_log_header h;
        const char *path, *other;
        const uint8_t *bytes;
};

struct power_cut {
        char *dir;
        struct buf log;
        struct change *changes;
        size_t change_count;
        struct object *objects;
        uint32_t object_count;
        struct effect *effects;
        size_t effect_count;
        struct name *names; /* while the log is read */
        size_t name_count;
        uint64_t *seen;
        size_t seen_count;
};

#define GROW(list, count) list = reallocarray(list, (count) + 1, sizeof *(list))

void power_cut_must(bool ok, const char *what);

#endif
