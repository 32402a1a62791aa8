/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_CLI_SYMBOLIZE_H
#define CAIRN_CLI_SYMBOLIZE_H

/**
 * @file
 * `cairn symbolize`: a source of answers (an ELF file, or a server) and a
 * shape to print them in.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/build_id.h"
#include "common/error.h"

struct buf;
struct json_out;
struct service_options;

struct answer_text {
        const char *data; /* NUL-terminated */
        size_t size;      /* without the NUL */
};

struct answer_frame { /* texts borrowed from the source until its next batch; empty ones unknown */
        struct answer_text function, linkage_name, file;
        uint32_t line; /* 0 unknown */
        bool inlined;
};

struct answer {
        uint64_t address;
        const char *state; /* "resolved", or why it is not: symbol_state_name() */
        const struct answer_frame *frames; /* innermost first */
        size_t frame_count;
};

struct answer_source {
        void *context;
        /** Call give for each address, in order. */
        enum status (*ask)(void *context, const uint64_t *addresses, size_t count,
                           void (*give)(void *printer, const struct answer *), void *printer, struct error *err);
        /** The same for offsets into the file that ran, which the source turns into addresses; NULL where it cannot. */
        enum status (*ask_offsets)(void *context, const uint64_t *offsets, size_t count,
                                   void (*give)(void *printer, const struct answer *), void *printer,
                                   struct error *err);
        /** Fill in what is below, once the first answer is there; NULL: it is filled in already. */
        void (*describe)(void *context, struct answer_source *source);
        void (*close)(void *context);
        bool is_read_late;               /* a file that is bad is found out when it is first asked */
        char build_id[BUILD_ID_HEX_MAX]; /* of the object, "" when it has none */
        const char *quality;             /* of its symbols; NULL when the source does not say */
        const char *partial;             /* what of it could not be read, borrowed from the source; NULL nothing */
        const char *origin;              /* what was read for them; NULL when the source does not say */
};

/** The symbols of an ELF file and of the debug files that belong to it. @param use_cache cli/symbol_cache.h */
enum status answer_source_file(const char *path, const char *debug_directory, bool use_cache, struct answer_source *ret,
                               struct error *err) MUST_CHECK;

/** One object of a service. */
enum status answer_source_server(const struct service_options *service, const char *build_id,
                                 struct answer_source *ret, struct error *err) MUST_CHECK;

enum answer_format { FORMAT_ADDR2LINE, FORMAT_LLVM, FORMAT_JSON };

/** Append what `addr2line -f -i -C` prints, or `llvm-symbolizer --inlines --demangle`. */
void answer_print_addr2line(struct buf *out, const struct answer *a);
void answer_print_llvm(struct buf *out, const struct answer *a);
/** One element of "results". */
void answer_print_json(struct json_out *j, const struct answer *a);

#endif
