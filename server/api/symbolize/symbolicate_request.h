/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_API_SYMBOLIZE_SYMBOLICATE_REQUEST_H
#define CAIRN_SERVER_API_SYMBOLIZE_SYMBOLICATE_REQUEST_H

/**
 * @file
 * The body of POST /symbolicate/v5 (docs/formats/symbolicate.md): jobs of modules and stacks, as flat arrays in the
 * order of the request.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/memory/arena.h"

#define DEBUG_ID_GUID_BYTES 16

struct symbolicate_module {
        const char *name, *debug_id;       /* as sent, quoted and escaped for JSON but without the quotes */
        uint8_t guid[DEBUG_ID_GUID_BYTES]; /* in the order of a build-id's bytes */
        bool is_valid;                     /* debug_id is well-formed */
        struct build_id build_id;          /* set by the lookup; size 0: not found */
        uint64_t image_base;
};

struct symbolicate_frame {
        uint64_t offset; /* from the image's base */
        uint32_t module; /* index in symbolicate_request.modules; UINT32_MAX: none */
};

struct symbolicate_job {
        size_t modules_end, stacks_end;
};

struct symbolicate_request {
        struct arena arena; /* of the texts */
        struct symbolicate_module *modules;
        struct symbolicate_frame *frames;
        size_t *stack_ends; /* index in frames after each stack's last frame */
        struct symbolicate_job *jobs;
        size_t module_count, module_capacity, frame_count, frame_capacity, stack_count, stack_capacity;
        size_t job_count, job_capacity;
};

/**
 * @param ret  set also on failure; owned: symbolicate_request_deinit().
 * @return ST_OK; ST_BAD_DATA with the byte; ST_TOO_BIG past LIMIT_SYMBOLIZE_KEYS frames or stacks, or
 *         LIMIT_SYMBOLIZE_OBJECTS modules or jobs; ST_NO_MEMORY.
 */
enum status symbolicate_request_read(const void *data, size_t n, struct symbolicate_request *ret,
                                     struct error *err) MUST_CHECK;
void symbolicate_request_deinit(struct symbolicate_request *r);

/**
 * Parse a debug id into the first bytes of the build-id it was made from: 32 digits of a GUID, whose first three parts
 * are little-endian in the build-id, then the age, which is 0 for ELF and ignored. False if malformed.
 * Source: Breakpad, "linux/file_id.cc"; Microsoft GUID.
 */
bool debug_id_parse(const char *text, size_t n, uint8_t guid[static DEBUG_ID_GUID_BYTES]);

#endif
