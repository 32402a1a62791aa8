/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_AGENT_JITDUMP_H
#define CAIRN_AGENT_JITDUMP_H

/**
 * @file
 * Names and lines of code that a process made at run time, from its
 * jit-PID.dump: the file that a runtime writes for `perf inject`, and maps
 * executable as a mark that profilers see.
 *
 * A header, then records of an id, a length and a time: code that was made
 * (with its bytes, which are not read), code that moved, lines of the code that
 * the next record makes, and the end. Both byte orders. Records are taken in
 * the order of the file, up to the last one that is whole, so what holds is
 * what held when the file was read: right after the interval.
 *
 * Lines. Some writers add 64 to the addresses of lines, the size of the ELF
 * header that perf will put in front of the code (V8 does), others do not. A
 * line past its code's end, or one in the first 64 bytes, shows which it is;
 * until one of them was seen lines are taken as they are.
 *
 * The file is a stranger's: see code_names.h for the bounds on memory.
 * Threads: one thread at a time.
 * Source: linux tools/perf/Documentation/jitdump-specification.txt.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/code_names.h"
#include "agent/id_table.h"

struct jit_line {
        uint32_t offset; /* from the start of the code, as the file has it */
        uint32_t line;
        uint32_t file;   /* offset into code.names */
};

struct jit_code { /* what a record of code says */
        uint64_t addr;
        uint32_t name;
        uint32_t first_line, line_count;
};

struct jitdump {
        struct code_names code; /* tag: index into codes */
        struct jit_code *codes; /* owned */
        size_t code_count, code_capacity;
        struct id_table by_index; /* of the file's numbers of code */
        struct jit_line *lines; /* owned; ascending within one piece of code */
        size_t line_count, line_capacity;
        uint64_t next_code;     /* the code that the last lines are for, */
        size_t next_first_line; /* which begin here */
        bool has_header, big_endian;
        bool is_over;           /* it was closed, or is no jitdump of this process: nothing is read any more */
        bool adds_header, is_plain; /* seen of lines' addresses */
        uint64_t read_to, device, inode;
        uint64_t left_out;      /* records that found no room or make no sense */
};

void jitdump_init(struct jitdump *j, struct code_budget *budget);
void jitdump_deinit(struct jitdump *j);

#define JITDUMP_WINDOW_BYTES KiB(256) /* longer records of lines are left out */

/**
 * Take in more of the file.
 * @param n     bytes at data; unless they are all that is left, at least JITDUMP_WINDOW_BYTES.
 * @param left  bytes of the file from data on, n or more.
 * @param ret   bytes to go on behind: may be more than n, when a record's code is stepped over.
 * @return ST_OK; ST_NO_MEMORY; ST_BAD_DATA for what is no jitdump of ns_pid.
 */
enum status jitdump_feed(struct jitdump *j, const void *data, size_t n, uint64_t left, pid_t ns_pid, uint64_t *ret,
                         struct error *err) MUST_CHECK;

/**
 * Read what the process has added since.
 * @param fd    the very file that is mapped.
 * @param uid   the process's user: the file must belong to it or to root.
 * @param left  bytes that may still be read; the rest of the file is for the next time.
 */
enum status jitdump_refresh(struct jitdump *j, int fd, pid_t ns_pid, uid_t uid, uint64_t *left,
                            struct error *err) MUST_CHECK;

struct jit_place { /* texts are borrowed until the next feed */
        const char *name;
        const char *file; /* "" unknown */
        uint32_t line;    /* 0 unknown */
};

/** False when no code is at addr. */
bool jitdump_find(struct jitdump *j, uint64_t addr, struct jit_place *ret);

#endif
