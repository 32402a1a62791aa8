/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_DEBUGINFO_STORE_DEBUGINFO_STORE_H
#define CAIRN_DEBUGINFO_STORE_DEBUGINFO_STORE_H

/**
 * @file
 * Durable store of objects by build-id.
 *
 * DIR/objects/ab/cdef.../KIND-HASH.zst           seekable zstd, one file per object
 * DIR/partial/                                   resumable uploads (partial.h)
 * DIR/meta/                                      LMDB records (docs/formats/debuginfo-store.md)
 * DIR/object-store                               the address, when the objects are in an object store
 *
 * Objects are verified before they are stored: ELF form, claimed build-id, claimed hash. An object is written to a
 * temporary file, synced and renamed, then its record is committed; a crash leaves the old object, the new one, or
 * neither.
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
#include "elf-image/quality.h"

struct debuginfo_store;

enum object_kind {
        OBJECT_DEBUGINFO,
        OBJECT_EXECUTABLE,
        OBJECT_SOURCE,        /* a bundle of all source files of the build-id (source-bundle/bundle.h) */
        OBJECT_SUPPLEMENTARY, /* a dwz supplementary file, under its own id */
        OBJECT_DWP,           /* a package of split DWARF, under the build-id of its executable */
        OBJECT_DWO,           /* split DWARF of one unit, under object_make_dwo_id() */
        OBJECT_SYMBOLS,       /* a symbol file (symbolizer/formats/portable_symbols.h), for the index only */
        OBJECT_KIND_COUNT
};
/** For messages. */
#define OBJECT_KIND_NAMES "debuginfo, executable, source, supplementary, dwp, dwo or symbols"
const char *object_kind_name(enum object_kind k);
bool object_kind_parse(const char *name, enum object_kind *ret);
/** The build-id that a split DWARF unit is stored under: its 8-byte id, big-endian, as readelf prints it. */
void object_make_dwo_id(struct build_id *ret, uint64_t dwo_id);

enum object_source { SOURCE_UPLOAD, SOURCE_UPSTREAM };
const char *object_source_name(enum object_source s); /* "upload", "upstream" */

/** Key of an object. */
struct object_name {
        struct build_id build_id;
        enum object_kind kind;
};

#define OBJECT_TAG_SIZE 64

struct stored_object {
        struct build_id build_id;
        enum object_kind kind;
        enum object_source source;
        enum symbol_quality quality;
        uint64_t size_bytes; /* uncompressed */
        uint64_t stored_bytes;
        uint8_t sha256[32];
        uint64_t put_id; /* in an object store: drawn for each put, part of its key (object_key.h); else 0 */
        int64_t stored_unix_s;
        int64_t used_unix_s;         /* last served or offered by an uploader, within OBJECT_USE_STEP_S */
        bool is_pinned;              /* never garbage-collected */
        char name[128];              /* file name given by the uploader; "": unknown */
        char tag[OBJECT_TAG_SIZE];   /* set by the uploader, for retention rules: "release"; "": none */
        char token[OBJECT_TAG_SIZE]; /* name of the uploader's access token; "": none */
};

/**
 * Keep the objects of a new store in an object store at url, durably (storage/s3/store_address.h). No effect when they
 * are. Local files below DIR are then only records, uploads and a cache.
 * @return ST_USAGE when they are elsewhere.
 */
enum status debuginfo_store_set_address(const char *dir, const char *url, struct error *err) MUST_CHECK;

/** Memory of the local disk for parts of objects in an object store, in DIR/cache: the default. */
#define DEBUGINFO_CACHE_BYTES GiB(8)

/** Limit the cache of stores that are opened from now on. Before other threads start. */
void set_debuginfo_cache_limit(uint64_t bytes);

/** Limit how many uploads to an object store are verified and compressed at once, likewise; by default
 * LIMIT_UPLOAD_THREADS. */
void set_debuginfo_upload_threads(unsigned count);

/**
 * Of objects in an object store, the records are made equal to its table unless read_only. When the object store is
 * away, they stay as they were known here until debuginfo_store_follow() can read the table.
 */
enum status debuginfo_store_open(const char *dir, bool read_only, struct debuginfo_store **ret,
                                 struct error *err) MUST_CHECK;
/** ST_BUSY while that table has not been read, so that an object without a record may be there nevertheless. */
enum status debuginfo_store_check_records(struct debuginfo_store *store, struct error *err) MUST_CHECK;
/**
 * Open a directory whose objects are in an object store as a replica: what the store has is read, and never changed.
 * Its records are those of this directory, which no service may use, and are made equal to the table now and by each
 * debuginfo_store_follow().
 */
enum status debuginfo_store_open_replica(const char *dir, struct debuginfo_store **ret, struct error *err) MUST_CHECK;

/** Read what others committed to the table of objects since. One thread at a time. */
enum status debuginfo_store_follow(struct debuginfo_store *store, bool *changed_ret, struct error *err) MUST_CHECK;

void debuginfo_store_close(struct debuginfo_store *store);

/**
 * Find the object that serves a request: of this kind, or for debuginfo a supplementary file with that id and vice
 * versa, since debuginfod clients request both in the same way. @return ST_NOT_FOUND.
 */
enum status debuginfo_store_find(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                 struct stored_object *ret, struct error *err) MUST_CHECK;

/** Find the object of exactly this kind. @return ST_NOT_FOUND. */
enum status debuginfo_store_stat(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                 struct stored_object *ret, struct error *err) MUST_CHECK;

/** A file that an uploader offers to send. */
struct object_offer {
        struct build_id build_id;
        enum object_kind kind;
        enum symbol_quality quality;
        bool is_wanted;     /* result: the uploader should send it */
        const char *reason; /* static text for the uploader; if set by the caller, the offer is already decided */
};

/**
 * Decide for each offer whether the file would improve the store. A symbol file does not if debuginfo or an executable
 * has the same quality. A stored object that makes an offer unwanted is marked as used (debuginfo_store_note_use()), so
 * that a running garbage collection does not remove it.
 */
enum status debuginfo_store_assess_offers(struct debuginfo_store *store, struct object_offer *offers, size_t count,
                                          struct error *err) MUST_CHECK;

/* ---- receiving one object, as a stream ---- */

struct object_upload; /* one thread; at most one per connection */

struct object_claim {
        struct build_id build_id; /* size 0: not claimed; htlhash is then */
        enum object_kind kind;
        enum object_source source;
        uint64_t size_bytes; /* uncompressed; 0: not claimed */
        uint64_t max_bytes;  /* larger objects are refused; 0: LIMIT_OBJECT_BYTES, the maximum */
        uint8_t sha256[32];  /* of the uncompressed content; all zero: not claimed */
        const char *name;    /* may be NULL, like tag and token; copied */
        const char *tag, *token;
        struct build_id htlhash; /* htlhash of the executable that the debuginfo was split from; size 0: not claimed */
        bool has_quality;        /* quality is claimed; only for symbol files */
        enum symbol_quality quality;
        bool is_zstd;      /* appended bytes are compressed */
        bool force;        /* replace an object of the same or better quality */
        bool is_resumable; /* keep the received part for a day if the upload is interrupted; requires size and sha256 */
        uint64_t offset;   /* uncompressed bytes already received; the appended bytes follow them */
};

/** Why an upload was refused: error.reason of the functions below. The names are part of the protocol. */
enum refusal {
        REFUSED_NOT, /* a failure of the service */
        REFUSED_NOT_ELF,
        REFUSED_TRUNCATED,
        REFUSED_BUILD_ID,
        REFUSED_HASH,
        REFUSED_SIZE,
        REFUSED_TOO_BIG,
        REFUSED_ENCODING,
        REFUSED_NO_SYMBOLS,
        REFUSED_NOT_BETTER,
        REFUSED_NOT_SOURCE,
        REFUSED_NOT_SYMBOLS,
        REFUSED_QUALITY,   /* the symbols do not have the claimed quality */
        REFUSED_KIND,      /* a companion of another kind, or not a companion */
        REFUSED_OFFSET,    /* offset does not match the received bytes */
        REFUSED_INCOMPLETE /* not an error: the received part is kept */
};
const char *refusal_name(enum refusal r); /* "not_elf", "truncated", "build_id_mismatch", ... */

/** Number of uncompressed bytes received of a resumable upload. */
enum status object_upload_find_offset(struct debuginfo_store *store, const struct object_claim *claim, uint64_t *ret,
                                      struct error *err) MUST_CHECK;

/** ST_BUSY if another connection sends the same resumable upload. */
enum status object_upload_begin(struct debuginfo_store *store, const struct object_claim *claim,
                                struct object_upload **ret, struct error *err) MUST_CHECK;
/**
 * Append some of *n bytes and set *n to the number consumed: a call decompresses, hashes and writes about
 * LIMIT_UPLOAD_STEP_BYTES, which bounds its duration. ST_BUSY if the memory budget of uploads is exhausted.
 */
enum status object_upload_append_some(struct object_upload *u, const void *data, size_t *n,
                                      struct error *err) MUST_CHECK;
/** Append all bytes. */
enum status object_upload_append(struct object_upload *u, const void *data, size_t n, struct error *err) MUST_CHECK;

/**
 * Verify in a confined worker, store and sync. Takes u, also on failure.
 * @param same_ret set if the same content was already stored.
 */
enum status object_upload_finish(struct object_upload *u, struct stored_object *ret, bool *same_ret,
                                 struct error *err) MUST_CHECK;
/**
 * The same, and return the uploaded file.
 * @param fd_ret read-only descriptor of the uncompressed content, owned, if it was stored by this call; else -1.
 */
enum status object_upload_finish_open(struct object_upload *u, struct stored_object *ret, bool *same_ret, int *fd_ret,
                                      struct error *err) MUST_CHECK;
/** Discard the upload. The received part of a resumable upload is kept. */
void object_upload_abort(struct object_upload *u);
/** Uncompressed bytes received so far. */
uint64_t object_upload_get_size(const struct object_upload *u);

/* ---- reading ---- */

struct object_reader; /* one thread */

/** Open the object found by debuginfo_store_find(). */
enum status object_reader_open(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                               struct object_reader **ret, struct stored_object *object_ret,
                               struct error *err) MUST_CHECK;
/** Read uncompressed bytes [offset, offset + n), fewer only at the end. */
ssize_t object_reader_pread(struct object_reader *r, void *to, size_t n, uint64_t offset, struct error *err) MUST_CHECK;
void object_reader_close(struct object_reader *r);
/**
 * Read through the store's frame cache (frame_cache.h), for small reads.
 */
void object_reader_use_cache(struct object_reader *r);

/** Find a section's offset and size. ST_NOT_FOUND: no such section; ST_UNSUPPORTED: no list is stored. */
enum status object_reader_find_section(const struct object_reader *r, const char *name, uint64_t *offset_ret,
                                       uint64_t *size_ret, struct error *err) MUST_CHECK;

#define OBJECT_CACHED_SECTION_MAX_BYTES KiB(128) /* longer sections are not returned */

/**
 * Read a section from the frame cache, without disk access.
 * @param object from debuginfo_store_find().
 * @param ret    owned, free(); untouched on failure.
 * @return ST_NOT_FOUND: no such section; ST_BUSY: an object_reader is required.
 */
enum status debuginfo_store_read_cached_section(struct debuginfo_store *store, const struct stored_object *object,
                                                const char *name, void **ret, size_t *size_ret,
                                                struct error *err) MUST_CHECK;

/** Decompress an object into an unlinked temporary file. @param fd_ret owned. */
enum status debuginfo_store_unpack(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                   int *fd_ret, struct error *err) MUST_CHECK;

/**
 * Decompress a stored object and compare its SHA-256 with its record.
 * @return ST_BAD_DATA: it is damaged; ST_NOT_FOUND: it is no longer stored.
 */
enum status debuginfo_store_check_object(struct debuginfo_store *store, const struct object_name *name,
                                         struct error *err) MUST_CHECK;

/* ---- aliases and companions ---- */

#define OBJECT_ALIASES_MAX 3

/**
 * Resolve an alias: returns id itself if an object is stored under it, else the build-id of the object with that alias
 * (docs/formats/debuginfo-store.md, "Aliases"). @return ST_NOT_FOUND.
 */
enum status debuginfo_store_resolve_alias(struct debuginfo_store *store, const struct build_id *id,
                                          struct build_id *ret, struct error *err) MUST_CHECK;

/** The aliases that resolve to a build-id. */
enum status debuginfo_store_list_aliases(struct debuginfo_store *store, const struct build_id *id, struct build_id *ret,
                                         size_t max, size_t *count_ret, struct error *err) MUST_CHECK;

/**
 * The companions required by stored objects, whether stored or not, sorted by object_name_compare(). @param ret owned.
 */
enum status debuginfo_store_list_companions(struct debuginfo_store *store, struct object_name **ret, size_t *count_ret,
                                            struct error *err) MUST_CHECK;
int object_name_compare(const void *a, const void *b);

/**
 * The companions required by one stored object, as found by its verification. @param ret owned, free().
 * @return ST_NOT_FOUND: not recorded, as by versions without links.
 */
enum status debuginfo_store_get_companions(struct debuginfo_store *store, const struct object_name *name,
                                           struct object_name **ret, size_t *count_ret, struct error *err) MUST_CHECK;

/** Call each for every object, in build-id order; a status other than ST_OK ends the listing. */
typedef enum status debuginfo_store_each(void *context, const struct stored_object *object);
enum status debuginfo_store_list(struct debuginfo_store *store, debuginfo_store_each *each, void *context,
                                 struct error *err) MUST_CHECK;

/** A use is recorded only if the last recorded one is this old, so that serving an object rarely writes. */
#define OBJECT_USE_STEP_S 3600

/** Whether the next use has to be recorded. */
bool object_is_use_due(const struct stored_object *object);

/** Record a use of these objects now; objects that are not stored are skipped. Durable, in one commit. */
enum status debuginfo_store_note_use(struct debuginfo_store *store, const struct object_name *names, size_t count,
                                     struct error *err) MUST_CHECK;

/** Pin or unpin an object. ST_NOT_FOUND if it is not stored. */
/**
 * Change the recorded quality of an object if its content is still that of `seen`, for what only a later reading shows.
 * An object with quality none is replaced by any file with symbols. ST_OK also when it has changed or is gone.
 */
enum status debuginfo_store_set_quality(struct debuginfo_store *store, const struct stored_object *seen,
                                        enum symbol_quality quality, struct error *err) MUST_CHECK;
enum status debuginfo_store_set_pin(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                    bool pinned, struct error *err) MUST_CHECK;

/** Whether the text is a valid tag: letters, digits and "._-/:@+", fewer than OBJECT_TAG_SIZE. */
bool object_tag_is_valid(const char *text);

/** Remove an object: first its record, durably, then its file. */
enum status debuginfo_store_remove(struct debuginfo_store *store, const struct build_id *id, enum object_kind kind,
                                   struct error *err) MUST_CHECK;

#endif
