/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_UPLOAD_LIST_H
#define CAIRN_UPLOADER_UPLOAD_LIST_H

/**
 * @file
 * List of candidate files for upload: the best file for each build-id and kind.
 *
 * Threads: filled by one thread; afterwards each item is used by one thread.
 */
#include "common/build_id.h"
#include "common/error.h"
#include "elf-image/elf_image.h"

#define SYSTEM_DEBUG_DIR "/usr/lib/debug"

enum upload_kind {
        UPLOAD_DEBUGINFO,
        UPLOAD_EXECUTABLE,
        UPLOAD_SOURCE,
        UPLOAD_SUPPLEMENTARY,
        UPLOAD_DWP,
        UPLOAD_DWO,
        UPLOAD_SYMBOLS
};
const char *upload_kind_name(enum upload_kind kind); /* "debuginfo", "executable", ...: docs/formats/upload.md */

enum upload_state {
        UPLOAD_UNASKED,
        UPLOAD_WANTED,  /* to be sent; reported as "would send" by a dry run */
        UPLOAD_THERE,   /* the server has the same or better */
        UPLOAD_REFUSED, /* the server rejects it for another reason, given in reason */
        UPLOAD_SENT,
        UPLOAD_FAILED, /* given in reason */
};

struct upload_item {
        char *path;
        const char *shown; /* the path for messages, borrowed from path: that of an extracted file begins with the
                              archive's name */
        struct build_id build_id;
        struct build_id htlhash; /* of the executable that the debuginfo or symbols belong to; size 0: unknown */
        enum upload_kind kind;
        enum symbol_quality quality;
        bool split;          /* code is removed before sending */
        uint64_t size_bytes; /* of the file; after sending, of the sent content, uncompressed */
        uint64_t sent_bytes; /* compressed */
        enum upload_state state;
        enum status failure; /* of UPLOAD_FAILED */
        char reason[240];
        char partial[SYMBOL_PARTIAL_BYTES]; /* of symbols: the data that could not be read; "": none */
        size_t order;
};

/** Numbers of files that are not candidates, by reason. */
struct upload_skips {
        uint64_t no_build_id, no_symbols, core_dump, duplicate, broken;
        uint64_t half; /* .dwo files, packages and, for symbols, dwz files: sent with the file that references them */
};

/** A program that may be stripped once the service has its debuginfo. */
struct strip_candidate {
        char *path; /* owned */
        struct build_id build_id;
};

struct upload_list {
        struct strip_candidate *programs; /* when strip */
        size_t program_count, program_capacity;
        struct upload_item *items;
        size_t count, capacity;
        struct upload_skips skips;
        const char *hidden; /* folder removed from shown paths; borrowed, may be NULL */
        bool sources;       /* include source files of files with line tables */
        bool executables;   /* include whole executables */
        bool strip;         /* collect the programs that may be stripped */
        bool symbols_only;  /* include symbol files only */
};

void upload_list_deinit(struct upload_list *list);

/** Callback for a remark to the user. */
typedef void upload_note(void *context, const char *path, const char *text);

/**
 * Inspect one ELF file and add all candidates: its debuginfo, itself, the debug file installed for it under
 * /usr/lib/debug, and the companions of these.
 * @return ST_BAD_DATA for a broken file, which the caller reports.
 */
enum status upload_list_add(struct upload_list *list, const char *path, upload_note *note, void *context,
                            struct error *err) MUST_CHECK;

/** Add one entry. @param id the build-id that it is stored under. */
enum status upload_list_append(struct upload_list *list, const struct elf_image *img, const char *path,
                               enum upload_kind kind, const struct build_id *id, struct error *err) MUST_CHECK;

/** The build-id of a file that has none: OTLP's htlhash. */
enum status hash_executable_file(const char *path, uint64_t size, struct build_id *ret, struct error *err) MUST_CHECK;

/** Keep the best file for each build-id and kind (the first of equals), in the order in which they were found. */
void upload_list_settle(struct upload_list *list);

#endif
