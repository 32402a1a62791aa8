/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_TESTS_FAULTS_POWER_CUT_INTERNAL_H
#define CAIRN_TESTS_FAULTS_POWER_CUT_INTERNAL_H

#include "common/memory/buf.h"
#include "tests/faults/fault_log.h"
#include "tests/faults/power_cut.h"

#define NEVER SIZE_MAX
#define NOTHING UINT32_MAX

/* A file or directory; object 0 is the watched directory. */
struct object {
        uint64_t inode;
        bool is_dir;
};

struct name {
        uint32_t dir, object; /* object numbers */
        const char *text;
};

/* One effect of a change: on an entry of a directory, or on bytes of a file. */
struct effect {
        uint32_t object;   /* the directory or file */
        size_t durable_at; /* the change that makes it durable, or NEVER */
        uint32_t change;   /* number of the change */
        const char *name;  /* of the entry; NULL: bytes */
        uint32_t target;   /* object of the entry; NOTHING: the entry is removed */
        bool is_lost;      /* no later sync writes it */
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
        struct name *names; /* used while reading the log */
        size_t name_count;
        uint64_t *seen;
        size_t seen_count;
};

#define GROW(list, count) list = reallocarray(list, (count) + 1, sizeof *(list))

void power_cut_must(bool ok, const char *what);

#endif
