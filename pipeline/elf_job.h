/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PIPELINE_ELF_JOB_H
#define CAIRN_PIPELINE_ELF_JOB_H

/**
 * @file
 * Small queries on a stored ELF file, answered by a confined worker (`cairn worker elf`): the service's own process
 * never parses uploaded ELF.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/memory/buf.h"

/**
 * dwz relation of a file: whether it is a supplementary file, and the build-id of the one it refers to (size 0: none).
 */
struct elf_supplement {
        bool is_one;
        struct build_id needed;
};

/** @param dir directory for temporary files; NULL: the result is kept in memory. */
enum status elf_job_read_supplement(int fd, const char *dir, const atomic_bool *cancel, struct elf_supplement *ret,
                                    struct error *err) MUST_CHECK;

/** Append the offsets of all sections that have content in the file (elf-image/section_list.h). */
enum status elf_job_list_sections(int fd, const char *dir, const atomic_bool *cancel, struct buf *ret,
                                  struct error *err) MUST_CHECK;

/** The worker's side: args "supplement" or "sections"; the result is written to descriptor out. */
enum status elf_job_run_worker(int argc, char **argv, int in, int out, struct error *err) MUST_CHECK;

#endif
