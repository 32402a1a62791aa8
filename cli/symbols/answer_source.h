/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLS_ANSWER_SOURCE_H
#define CAIRN_CLI_SYMBOLS_ANSWER_SOURCE_H

/**
 * @file
 * A source of resolved addresses: an ELF file, or an object of a service.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

struct buf;
struct json_out;
struct service_options;
struct debug_file_search;

struct answer_text {
        const char *data; /* NUL-terminated */
        size_t size;      /* without the NUL */
        bool is_plain;    /* can be output as it is: utf8_count_plain() is its size */
};

struct answer_frame { /* texts are borrowed until the next batch; "" unknown */
        struct answer_text function, linkage_name, file;
        uint32_t line; /* 0 unknown */
        bool inlined;
};

struct answer_detail { /* 0 and "" unknown */
        uint32_t column, discriminator;
        struct answer_text start_file; /* of the function's declaration */
        uint32_t start_line;
        uint64_t entry; /* address at which the function or inlined call begins; UINT64_MAX unknown, or not in one piece
                         */
};

struct answer {
        uint64_t address;
        const char *state;                   /* "resolved", or the reason: symbol_state_name() */
        const struct answer_frame *frames;   /* innermost first */
        const struct answer_detail *details; /* of the frames; NULL for a source without details */
        size_t frame_count;
};

struct answer_source {
        void *context;
        /** Resolve addresses: calls give for each, in order. */
        enum status (*ask)(void *context, const uint64_t *addresses, size_t count,
                           void (*give)(void *printer, const struct answer *), void *printer, struct error *err);
        /** The same for file offsets, which the source translates to addresses; NULL: unsupported. */
        enum status (*ask_offsets)(void *context, const uint64_t *offsets, size_t count,
                                   void (*give)(void *printer, const struct answer *), void *printer,
                                   struct error *err);
        /**
         * Append the variables of the function at an address, as symbolizer/extraction/extract_variables.h has them;
         * NULL: unsupported.
         */
        enum status (*list_variables)(void *context, uint64_t address, struct buf *report, struct error *err);
        /**
         * The text of a source file that the debug file embeds, by the path that a frame at the address has; NULL:
         * unsupported.
         * @param ret  borrowed until the source is closed or a few more texts are found.
         * @return ST_NOT_FOUND if it is not embedded.
         */
        enum status (*find_text)(void *context, uint64_t address, const char *path, struct answer_text *ret,
                                 struct error *err);
        /** Fill in the members below, after the first answer; NULL: they are set. */
        void (*describe)(void *context, struct answer_source *source);
        void (*close)(void *context);
        bool is_read_late;               /* a malformed file is detected at the first call of ask */
        char build_id[BUILD_ID_HEX_MAX]; /* of the object, "" when it has none */
        const char *quality;             /* of its symbols; NULL unknown */
        const char *partial;             /* the part that could not be read, borrowed from the source; NULL none */
        const char *origin;              /* the data that was read; NULL unknown */
};

/** What answers of a file have besides functions, files and lines; each is separate in the cache. */
enum answer_content {
        ANSWER_LINES,
        ANSWER_DETAILS,          /* columns, discriminators and the declarations of functions */
        ANSWER_RELATIVE_DETAILS, /* the same; paths are not joined with the compilation directory */
};

/**
 * The symbols of an ELF file and of the debug files that belong to it.
 * @param use_cache  cli/symbols/symbol_cache.h
 */
enum status answer_source_file(const char *path, const struct debug_file_search *search, bool use_cache,
                               enum answer_content content, struct answer_source *ret, struct error *err) MUST_CHECK;

/** An object of a service. */
enum status answer_source_server(const struct service_options *service, const char *build_id, struct answer_source *ret,
                                 struct error *err) MUST_CHECK;

#endif
