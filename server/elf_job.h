/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_ELF_JOB_H
#define CAIRN_SERVER_ELF_JOB_H

/**
 * @file
 * Small questions about a stored ELF file, answered by a confined worker
 * (`cairn worker elf`), since the service's own process reads nobody's ELF.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/buf.h"
#include "common/build_id.h"
#include "common/error.h"

/** How a file stands to dwz: whether it is a supplementary file itself, and which one it names (size 0: none). */
struct elf_supplement {
        bool is_one;
        struct build_id needed;
};

/** @param dir takes temporary files; NULL: the answer is kept in memory. */
enum status elf_job_supplement(int fd, const char *dir, const atomic_bool *cancel, struct elf_supplement *ret,
                               struct error *err) MUST_CHECK;

/**
 * Where all sections lie that have bytes in the file (elf-image/section_list.h). Appended to ret.
 */
enum status elf_job_sections(int fd, const char *dir, const atomic_bool *cancel, struct buf *ret, struct error *err) MUST_CHECK;

/** The worker's side: args "supplement" or "sections"; the answer goes to descriptor out. */
enum status elf_job_worker(int argc, char **argv, int in, int out, struct error *err) MUST_CHECK;

#endif
