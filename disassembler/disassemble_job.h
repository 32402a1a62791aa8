/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DISASSEMBLER_DISASSEMBLE_JOB_H
#define CAIRN_DISASSEMBLER_DISASSEMBLE_JOB_H

/**
 * @file
 * Disassemble parts of an ELF file in a confined worker (`cairn worker disassemble`).
 *
 * x86-64 and AArch64, by capstone. Only the worker loads that library, before it is confined: linked to the program,
 * its 77,000 relocations would cost every start of every worker 1.5 ms of CPU time.
 *
 * Threads: any.
 */
#include <stdatomic.h>

#include "disassembler/disassembly.h"

struct disassemble_request {
        int executable_fd;         /* file with the code */
        int symbols_fd;            /* debuginfo with a symbol table, -1 none */
        const uint64_t *addresses; /* the functions that contain them are disassembled, most important first */
        size_t address_count;      /* 0: [start, end) is disassembled instead */
        uint64_t start, end;
        bool is_att; /* AT&T syntax, else Intel; x86 only */
        const atomic_bool *cancel;
};

/**
 * @param ret disassembly_deinit() it; untouched on failure. Ranges past a limit are truncated or omitted.
 * @return ST_NOT_FOUND when no address is in the file's code; ST_UNSUPPORTED for another processor, a relocatable file,
 *         or a machine without capstone; as worker_run().
 */
enum status disassemble_file(const struct disassemble_request *request, struct disassembly *ret,
                             struct error *err) MUST_CHECK;

/** The worker's side: descriptors 3 executable, 4 debuginfo or closed, 5 request, 6 answer. Confines itself. */
enum status disassemble_worker_run(struct error *err) MUST_CHECK;

#endif
