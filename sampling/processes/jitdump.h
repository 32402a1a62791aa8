/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_JITDUMP_H
#define CAIRN_SAMPLING_PROCESSES_JITDUMP_H

/**
 * @file
 * Names and line numbers of generated code, from jit-PID.dump: the file
 * that a runtime writes for `perf inject` and maps executable to announce it
 * to profilers.
 *
 * The file has a header and records of an id, a length and a time: code load
 * (with the code bytes, which are skipped), code move, line numbers of the
 * next loaded code, and close. Both byte orders are supported. Records are
 * applied in file order up to the last complete one, so the names are those of
 * the end of the interval.
 *
 * Line addresses: some writers (V8) add 64, the size of the ELF header that
 * perf puts in front of the code, others do not. A line past the end of its
 * code, or one in the first 64 bytes, tells which; until then addresses are
 * used unchanged.
 *
 * The file is untrusted: code_names.h has the memory limits.
 *
 * Threads: one thread at a time.
 * Source: linux tools/perf/Documentation/jitdump-specification.txt.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/hash/id_table.h"
#include "sampling/objects/code_names.h"

struct jit_line {
        uint32_t offset; /* from the start of the code, as stored in the file */
        uint32_t line;
        uint32_t file; /* offset into code.names */
};

struct jit_code { /* a code load record */
        uint64_t addr;
        uint32_t name;
        uint32_t first_line, line_count;
};

struct jitdump {
        struct code_names code; /* tag: index into codes */
        struct jit_code *codes; /* owned */
        size_t code_count, code_capacity;
        struct id_table by_index; /* by the code index of the file */
        struct jit_line *lines;   /* owned; ascending within one piece of code */
        size_t line_count, line_capacity;
        uint64_t next_code;     /* the pending lines belong to the code at this address */
        size_t next_first_line; /* and begin here */
        bool has_header, big_endian;
        bool is_over;               /* closed, or not a jitdump of this process: not read any more */
        bool adds_header, is_plain; /* seen in line addresses: 64 added, or not */
        uint64_t read_to, device, inode;
        uint64_t dropped; /* records past a limit or malformed */
};

void jitdump_init(struct jitdump *j, struct code_budget *budget);
void jitdump_deinit(struct jitdump *j);

#define JITDUMP_WINDOW_BYTES KiB(256) /* longer line records are dropped */

/**
 * Parse more of the file.
 * @param n     bytes at data: at least JITDUMP_WINDOW_BYTES, unless they are the rest of the
 *         file.
 * @param left  bytes of the file from data on, n or more.
 * @param ret   bytes consumed; more than n when the code bytes of a record are skipped.
 * @return ST_OK; ST_NO_MEMORY; ST_BAD_DATA for a file that is not a jitdump of ns_pid.
 */
enum status jitdump_feed(struct jitdump *j, const void *data, size_t n, uint64_t left, pid_t ns_pid, uint64_t *ret,
                         struct error *err) MUST_CHECK;

/**
 * Read the records added since the last call.
 * @param fd    the mapped file itself.
 * @param uid   user of the process: the file must belong to it or to root.
 * @param left  read budget in bytes, reduced by the bytes read; the rest of the file is read
 *         next time.
 */
enum status jitdump_refresh(struct jitdump *j, int fd, pid_t ns_pid, uid_t uid, uint64_t *left,
                            struct error *err) MUST_CHECK;

struct jit_location { /* texts are borrowed until the next feed */
        const char *name;
        const char *file; /* "" unknown */
        uint32_t line;    /* 0 unknown */
};

/** False when there is no code at addr. */
bool jitdump_find(struct jitdump *j, uint64_t addr, struct jit_location *ret);

#endif
