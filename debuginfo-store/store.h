/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_STORE_H
#define CAIRN_DEBUGINFO_STORE_STORE_H

/**
 * @file
 * Objects by build-id, on disk and durable.
 *
 * DIR/objects/ab/cdef.../KIND-HASH.zst           seekable zstd, one file an object
 * DIR/partial/                                   uploads that can be resumed, partial.h
 * DIR/meta/                                      LMDB: what is known of each (docs/formats/debuginfo-store.md)
 *
 * A stored object was verified before: it is ELF, its build-id is the claimed
 * one, its content has the claimed hash. It is written to a temporary file,
 * synced and renamed, then its record is committed; a crash leaves the old
 * object, the new one, or nothing.
 *
 * Threads: any, except open and close.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/build_id.h"
#include "common/error.h"
#include "common/limits.h"
#include "symbolizer/lookup.h"

struct debuginfo_store;

enum object_kind {
        OBJECT_DEBUGINFO,
        OBJECT_EXECUTABLE,
        OBJECT_SOURCE,        /* a bundle of all source files of the build-id (source-bundle/bundle.h) */
        OBJECT_SUPPLEMENTARY, /* what dwz takes out of several debuginfo files, under its own id */
        OBJECT_DWP,           /* a package of split DWARF, under the build-id of the file it belongs to */
        OBJECT_DWO,           /* split DWARF of one unit, under object_dwo_id() */
        OBJECT_SYMBOLS,       /* a symbol file (symbolizer/symbol_file.h), for the index only */
        OBJECT_KIND_COUNT
};
/** "debuginfo, executable, source, ...", for messages. */
#define OBJECT_KIND_NAMES "debuginfo, executable, source, supplementary, dwp, dwo or symbols"
const char *object_kind_name(enum object_kind k);
bool object_kind_parse(const char *name, enum object_kind *ret);
/** What a unit of split DWARF is stored under: its 8-byte id, the highest byte first, as readelf prints it. */
void object_dwo_id(struct build_id *ret, uint64_t dwo_id);

enum object_source { SOURCE_UPLOAD, SOURCE_UPSTREAM };
const char *object_source_name(enum object_source s); /* "upload", "upstream" */

/** What an object is found by. */
struct object_name {
        struct build_id build_id;
        enum object_kind kind;
};

#define OBJECT_LABEL_SIZE 64

struct stored_object {
        struct build_id build_id;
        enum object_kind kind;
        enum object_source source;
        enum symbol_quality quality;
        uint64_t size_bytes;         /* unpacked */
        uint64_t stored_bytes;
        uint8_t sha256[32];
        int64_t stored_unix_s;
        int64_t used_unix_s;         /* last handed out or asked for by an uploader, within OBJECT_USE_STEP_S */
        bool is_pinned;              /* never collected */
        char name[128];              /* file name as the uploader knew it; "" unknown */
        char label[OBJECT_LABEL_SIZE]; /* the uploader's word for what it belongs to: "release"; "" none */
        char token[OBJECT_LABEL_SIZE]; /* name of the token that uploaded it; "" none */
};

enum status debuginfo_store_open(const char *dir, bool read_only, struct debuginfo_store **ret, struct error *err) MUST_CHECK;
void debuginfo_store_close(struct debuginfo_store *store);

/**
 * What answers a question for this kind: the object itself, or for debuginfo a supplementary file of that id and the
 * other way round, since clients of debuginfod ask for both in the same way. @return ST_NOT_FOUND.
 */
enum status debuginfo_store_find(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                 struct stored_object *ret, struct error *err) MUST_CHECK;

/** Exactly this kind. ST_NOT_FOUND when there is none. */
enum status debuginfo_store_stat(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                 struct stored_object *ret, struct error *err) MUST_CHECK;

/** A file that an uploader might send. */
struct object_question {
        struct build_id build_id;
        enum object_kind kind;
        enum symbol_quality quality;
        bool is_wanted;              /* the answer: the store would be better with it */
        const char *reason;          /* a static text for the uploader; set by who asks: the question is answered already */
};

/**
 * Symbols are no improvement where debuginfo or an executable is as good. What is as good as a file that is not wanted is
 * in use by that (debuginfo_store_used()), so no collection that runs already takes it away.
 */
enum status debuginfo_store_want(struct debuginfo_store *store, struct object_question *questions, size_t count,
                                 struct error *err) MUST_CHECK;

/* ---- receiving one object, as a stream ---- */

struct object_upload; /* one thread; at most one per connection */

struct object_claim {
        struct build_id build_id;
        enum object_kind kind;
        enum object_source source;
        uint64_t size_bytes;         /* unpacked; 0 not claimed */
        uint8_t sha256[32];          /* of the unpacked content; all zero not claimed */
        const char *name;            /* may be NULL, as are label and token; copied */
        const char *label, *token;
        struct build_id htlhash;     /* of the file that a debuginfo was split from, as the uploader says; size 0 not claimed */
        bool has_quality;            /* quality is claimed, which counts for symbols only */
        enum symbol_quality quality;
        bool is_zstd;                /* what is appended is compressed */
        bool force;                  /* replace an object that is as good or better */
        bool is_resumable;           /* what arrived stays for a day when the rest does not; needs size and sha256 */
        uint64_t offset;             /* unpacked bytes that are here already: what is appended continues them */
};

/** Why an upload was refused; the names are part of the protocol. */
enum refusal { REFUSED_NOT, REFUSED_NOT_ELF, REFUSED_TRUNCATED, REFUSED_BUILD_ID, REFUSED_HASH, REFUSED_SIZE,
               REFUSED_TOO_BIG, REFUSED_ENCODING, REFUSED_NO_SYMBOLS, REFUSED_NOT_BETTER,
               REFUSED_NOT_SOURCE,
               REFUSED_NOT_SYMBOLS,
               REFUSED_QUALITY,    /* the symbols are of another quality than claimed */
               REFUSED_KIND,       /* a companion of another kind, or none */
               REFUSED_OFFSET,     /* another number of bytes is here */
               REFUSED_INCOMPLETE  /* no error: it was kept, the rest is awaited */ };
const char *refusal_name(enum refusal r); /* "not_elf", "truncated", "build_id_mismatch", ... */

/** How many unpacked bytes of a resumable upload are here. */
enum status object_upload_offset(struct debuginfo_store *store, const struct object_claim *claim, uint64_t *ret,
                                 struct error *err) MUST_CHECK;

/** ST_BUSY when another connection sends the same resumable upload. */
enum status object_upload_begin(struct debuginfo_store *store, const struct object_claim *claim,
                                struct object_upload **ret, enum refusal *why, struct error *err) MUST_CHECK;
/**
 * Append some of *n bytes and say how many, so that a stream that unpacks to much is work in pieces: about
 * LIMIT_UPLOAD_STEP_BYTES are unpacked, hashed and written by a call. ST_BUSY when the memory for uploads is in use.
 */
enum status object_upload_step(struct object_upload *u, const void *data, size_t *n, enum refusal *why, struct error *err) MUST_CHECK;
/** Append all of them. */
enum status object_upload_append(struct object_upload *u, const void *data, size_t n, enum refusal *why, struct error *err) MUST_CHECK;

/**
 * Verify (in a confined worker), store, sync. Takes u in every case.
 * @param same_ret the same content was there already.
 */
enum status object_upload_finish(struct object_upload *u, struct stored_object *ret, bool *same_ret, enum refusal *why,
                                 struct error *err) MUST_CHECK;
/** What arrived of a resumable upload stays. */
void object_upload_abort(struct object_upload *u);
/** Unpacked bytes so far. */
uint64_t object_upload_size(const struct object_upload *u);

/* ---- reading ---- */

struct object_reader; /* one thread */

/** What debuginfo_store_find() finds. */
enum status object_reader_open(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                               struct object_reader **ret, struct stored_object *object_ret, struct error *err) MUST_CHECK;
/** Unpacked bytes [offset, offset + n), fewer only at the end. */
ssize_t object_reader_pread(struct object_reader *r, void *to, size_t n, uint64_t offset, struct error *err) MUST_CHECK;
void object_reader_close(struct object_reader *r);
/**
 * For who reads a small part: what is unpacked around it stays for the next one, LIMIT_FRAMES_BYTES of all objects
 * together.
 */
void object_reader_share(struct object_reader *r);

/** Where a section lies. ST_NOT_FOUND when it has none of that name; ST_UNSUPPORTED when nothing was noted of it. */
enum status object_reader_section(const struct object_reader *r, const char *name, uint64_t *offset_ret, uint64_t *size_ret,
                                  struct error *err) MUST_CHECK;
/** Note where all of them lie (elf-image/section_list.h) of an object that an older version stored. Durable. */
enum status object_reader_note_sections(const struct object_reader *r, const void *list, size_t n, struct error *err) MUST_CHECK;

#define OBJECT_AT_HAND_BYTES KiB(128) /* of a longer section nothing is at hand */

/**
 * A section whose bytes are unpacked already, without waiting for a disk.
 * @param object as it was found.
 * @param ret    owned, free(); untouched on failure.
 * @return ST_NOT_FOUND when the object has none of that name; ST_BUSY when only a reader can tell.
 */
enum status debuginfo_store_section_at_hand(struct debuginfo_store *store, const struct stored_object *object,
                                            const char *name, void **ret, size_t *size_ret, struct error *err) MUST_CHECK;

/** The whole unpacked object in an unlinked temporary file, ready to be mapped or handed to a worker. */
enum status debuginfo_store_unpack(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                   int *fd_ret, struct error *err) MUST_CHECK;

/* ---- other names, and who needs whom ---- */

#define OBJECT_ALIASES_MAX 3

/**
 * The build-id that objects are stored under: id itself when something is, else that of the object which has the alias
 * id (docs/formats/debuginfo-store.md, "Aliases"). @return ST_NOT_FOUND.
 */
enum status debuginfo_store_resolve(struct debuginfo_store *store, const struct build_id *id, struct build_id *ret,
                                    struct error *err) MUST_CHECK;

/** The aliases of a build-id that lead to it. */
enum status debuginfo_store_aliases(struct debuginfo_store *store, const struct build_id *id, struct build_id *ret, size_t max,
                                    size_t *count_ret, struct error *err) MUST_CHECK;

/** The companions that stored objects need, stored or not, sorted by object_name_compare(). @param ret owned. */
enum status debuginfo_store_needs(struct debuginfo_store *store, struct object_name **ret, size_t *count_ret,
                                  struct error *err) MUST_CHECK;
int object_name_compare(const void *a, const void *b);

/** Every object, in build-id order; return a status from each to stop. */
typedef enum status debuginfo_store_each(void *context, const struct stored_object *object);
enum status debuginfo_store_list(struct debuginfo_store *store, debuginfo_store_each *each, void *context, struct error *err) MUST_CHECK;

/** A use is written when the one before is this old, so that serving an object does not write each time. */
#define OBJECT_USE_STEP_S 3600

/** Was it used so long ago that the next use is written? */
bool object_use_is_due(const struct stored_object *object);

/** These objects are in use now; those that are not stored are left out. Durable, one commit for all. */
enum status debuginfo_store_used(struct debuginfo_store *store, const struct object_name *names, size_t count,
                                 struct error *err) MUST_CHECK;

/** ST_NOT_FOUND when it is not stored. */
enum status debuginfo_store_pin(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                bool pinned, struct error *err) MUST_CHECK;

/** Is the text a label? Letters, digits and "._-/:@+", fewer than OBJECT_LABEL_SIZE. */
bool object_label_valid(const char *text);

/** Durable when it returns, but for the file, which goes right after. */
enum status debuginfo_store_remove(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                   struct error *err) MUST_CHECK;

#endif
