/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_UPLOADER_UPLOAD_LIST_H
#define CAIRN_UPLOADER_UPLOAD_LIST_H

/**
 * @file
 * What could be uploaded, one entry per build-id and kind: the best file of each.
 *
 * Threads: filled by one; afterwards each item belongs to whoever works on it.
 */
#include "common/build_id.h"
#include "common/error.h"
#include "elf-image/quality.h"
#include "symbolizer/lookup.h"

enum upload_kind { UPLOAD_DEBUGINFO, UPLOAD_EXECUTABLE, UPLOAD_SOURCE, UPLOAD_SUPPLEMENTARY, UPLOAD_DWP, UPLOAD_DWO,
                   UPLOAD_SYMBOLS };
const char *upload_kind_name(enum upload_kind kind); /* "debuginfo", "executable", ...: docs/formats/upload.md */

enum upload_state {
        UPLOAD_UNASKED,
        UPLOAD_WANTED,  /* the server wants it; also the state of a dry run's "would send" */
        UPLOAD_THERE,   /* the server has as good or better */
        UPLOAD_REFUSED, /* the server wants it for another reason not; reason says */
        UPLOAD_SENT,
        UPLOAD_FAILED, /* reason says */
};

struct upload_item {
        char *path;
        const char *shown;   /* the path for people, borrowed from path: that of a file out of an archive begins with its name */
        struct build_id build_id;
        struct build_id htlhash; /* of the executable that debuginfo or symbols are of; size 0 unknown */
        enum upload_kind kind;
        enum symbol_quality quality;
        bool split;          /* code is left out before it is sent */
        uint64_t size_bytes; /* of the file; after sending, of what was sent, unpacked */
        uint64_t sent_bytes; /* packed */
        enum upload_state state;
        enum status failure; /* of UPLOAD_FAILED */
        char reason[240];
        char partial[SYMBOL_PARTIAL_BYTES]; /* of symbols: what could not be read; "" nothing */
        size_t order;
};

/** Files that are no candidates, counted by why. */
struct upload_skips {
        uint64_t no_build_id, no_symbols, core_dump, duplicate, broken;
        uint64_t half; /* .dwo files and packages, and for symbols dwz files: they go with the file that asks for them */
};

/** A program that may be stripped once its debuginfo is at the service. */
struct strip_candidate {
        char *path; /* owned */
        struct build_id build_id;
};

struct upload_list {
        struct strip_candidate *programs; /* when strip */
        size_t program_count;
        struct upload_item *items;
        size_t count, capacity;
        struct upload_skips skips;
        const char *hidden;              /* folder that no shown path names; borrowed, may be NULL */
        bool sources;     /* the source files of what has lines are wanted too */
        bool executables; /* whole executables are wanted too */
        bool strip;       /* remember which programs may be stripped */
        bool symbols_only; /* nothing else is wanted */
};

void upload_list_deinit(struct upload_list *list);

/** A thing worth a line to the user, that stops nothing. */
typedef void upload_note(void *context, const char *path, const char *text);

/**
 * Look at one ELF file and add what it is good for: nothing, its debuginfo,
 * itself, the debug file that is installed for it under /usr/lib/debug, and
 * the companions of these (uploader/companions.h).
 * @return ST_BAD_DATA and the like count as a broken file for the caller to report.
 */
enum status upload_list_add(struct upload_list *list, const char *path, upload_note *note, void *context,
                            struct error *err) MUST_CHECK;

/** What a file without a build-id is stored under: OTLP's htlhash. */
enum status upload_path_htlhash(const char *path, uint64_t size, struct build_id *ret, struct error *err) MUST_CHECK;

/** Keep the best of each build-id and kind (the first of equals), in the order they were found. */
void upload_list_settle(struct upload_list *list);

#endif
