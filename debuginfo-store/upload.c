/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving one object.
 *
 * The unpacked bytes go to an unlinked file in DIR/incoming while they are
 * counted and hashed; those of a resumable upload to a file that stays, and
 * one that was resumed is hashed when it is whole. finish() has the file verified by a confined worker,
 * writes it compressed under a temporary name in the object's folder, syncs,
 * renames, and then commits the record. The file's name carries its hash, so:
 *
 *  1. a record always names a file that was complete and synced before it;
 *  2. a crash before the commit leaves the old record and its old file;
 *  3. a file that no record names is waste, and the next upload of the object
 *     removes it (sweep()).
 */
#include <dirent.h>
#include <string.h>
#include <zstd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/sha256.h"
#include "debuginfo-store/partial.h"
#include "debuginfo-store/seekable.h"
#include "debuginfo-store/store_internal.h"
#include "debuginfo-store/verify.h"

struct object_upload {
        struct debuginfo_store *store;
        struct object_claim claim;
        char name[sizeof(((struct stored_object *)0)->name)];
        char label[OBJECT_LABEL_SIZE], token[OBJECT_LABEL_SIZE];
        int fd;
        char *partial;    /* path of the file of a resumable upload, until it is stored or found wrong; else NULL */
        uint64_t size;
        struct sha256 sha;
        ZSTD_DCtx *zstd;
        size_t zstd_left; /* what the decoder still expects of the current frame; 0 between frames */
        void *unpacked;
        size_t unpacked_capacity;
};

void object_upload_abort(struct object_upload *u)
{
        if (!u)
                return;
        if (u->partial && u->size == 0)
                unlink(u->partial);
        free(u->partial);
        if (u->fd >= 0)
                close(u->fd);
        sha256_deinit(&u->sha);
        ZSTD_freeDCtx(u->zstd);
        free(u->unpacked);
        free(u);
}

static void cleanup_upload(struct object_upload **u)
{
        object_upload_abort(*u);
}

uint64_t object_upload_size(const struct object_upload *u)
{
        return u->size;
}

enum status object_upload_offset(struct debuginfo_store *store, const struct object_claim *claim, uint64_t *ret,
                                 struct error *err)
{
        return partial_size(store, claim, ret, err);
}

static enum status open_partial(struct object_upload *u, enum refusal *why, struct error *err)
{
        enum status st = partial_open(u->store, &u->claim, &u->fd, &u->partial, &u->size, err);

        if (st || u->size == u->claim.offset)
                return st;
        *why = REFUSED_OFFSET;
        return error_set(err, ST_USAGE, "%llu bytes of the object are here, go on there and not at %llu",
                         (unsigned long long)u->size, (unsigned long long)u->claim.offset);
}

enum status object_upload_begin(struct debuginfo_store *store, const struct object_claim *claim,
                                struct object_upload **ret, enum refusal *why, struct error *err)
{
        _cleanup_(cleanup_upload) struct object_upload *u = calloc(1, sizeof *u);
        enum status st;

        *why = REFUSED_NOT;
        if (!u)
                return error_no_memory(err);
        u->fd = -1;
        u->store = store;
        u->claim = *claim;
        if (claim->name)
                snprintf(u->name, sizeof u->name, "%s", path_base(claim->name));
        snprintf(u->label, sizeof u->label, "%s", claim->label ? claim->label : "");
        snprintf(u->token, sizeof u->token, "%s", claim->token ? claim->token : "");
        if (sha256_init(&u->sha, err))
                return ST_NO_MEMORY;
        if (claim->is_zstd) {
                u->zstd = ZSTD_createDCtx();
                u->unpacked_capacity = ZSTD_DStreamOutSize();
                u->unpacked = malloc(u->unpacked_capacity);
                if (!u->zstd || !u->unpacked)
                        return error_no_memory(err);
                ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, 27);
        }
        if (claim->is_resumable) {
                st = open_partial(u, why, err);
        } else {
                u->fd = object_scratch(store, err);
                st = u->fd < 0 ? ST_OS : ST_OK;
        }
        if (!st)
                *ret = steal_ptr(u);
        return st;
}

static enum status take(struct object_upload *u, const void *data, size_t n, enum refusal *why, struct error *err)
{
        uint64_t limit = u->claim.size_bytes ? u->claim.size_bytes : LIMIT_OBJECT_BYTES;

        if (limit > LIMIT_OBJECT_BYTES)
                limit = LIMIT_OBJECT_BYTES;
        if (n > limit - u->size) {
                if (limit == LIMIT_OBJECT_BYTES) {
                        *why = REFUSED_TOO_BIG;
                        return error_set(err, ST_TOO_BIG, "the object is larger than %zu bytes", (size_t)limit);
                }
                *why = REFUSED_SIZE;
                return error_set(err, ST_BAD_DATA, "the object is larger than the %llu bytes it was announced with",
                                 (unsigned long long)limit);
        }
        sha256_update(&u->sha, data, n);
        u->size += n;
        return file_write_all(u->fd, data, n, "incoming object", err);
}

enum status object_upload_append(struct object_upload *u, const void *data, size_t n, enum refusal *why,
                                 struct error *err)
{
        ZSTD_inBuffer in = { data, n, 0 };

        *why = REFUSED_NOT;
        if (!u->zstd)
                return take(u, data, n, why, err);
        while (in.pos < in.size) {
                ZSTD_outBuffer out = { u->unpacked, u->unpacked_capacity, 0 };
                enum status st;

                u->zstd_left = ZSTD_decompressStream(u->zstd, &out, &in);
                if (ZSTD_isError(u->zstd_left)) {
                        *why = REFUSED_ENCODING;
                        return error_set(err, ST_BAD_DATA, "the zstd stream is damaged: %s",
                                         ZSTD_getErrorName(u->zstd_left));
                }
                st = take(u, out.dst, out.pos, why, err);
                if (st)
                        return st;
        }
        return ST_OK;
}

enum status object_upload_append_file(struct object_upload *u, int fd, enum refusal *why, struct error *err)
{
        _cleanup_free_ char *bytes = malloc(MiB(1));
        uint64_t at = 0;

        *why = REFUSED_NOT;
        if (!bytes)
                return error_no_memory(err);
        for (;;) {
                ssize_t n = pread(fd, bytes, MiB(1), (off_t)at);
                enum status st;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_os(err, errno, "cannot read the fetched file");
                if (n == 0)
                        return ST_OK;
                st = object_upload_append(u, bytes, (size_t)n, why, err);
                if (st)
                        return st;
                at += (uint64_t)n;
        }
}

/* The last bytes of a frame may still be inside the decoder. */
static enum status drain(struct object_upload *u, enum refusal *why, struct error *err)
{
        while (u->zstd && u->zstd_left) {
                ZSTD_inBuffer in = { "", 0, 0 };
                ZSTD_outBuffer out = { u->unpacked, u->unpacked_capacity, 0 };
                enum status st;

                u->zstd_left = ZSTD_decompressStream(u->zstd, &out, &in);
                if (!ZSTD_isError(u->zstd_left) && out.pos) {
                        st = take(u, out.dst, out.pos, why, err);
                        if (st)
                                return st;
                        continue;
                }
                if (u->zstd_left) {
                        *why = u->partial ? REFUSED_INCOMPLETE : REFUSED_TRUNCATED;
                        return error_set(err, ST_BAD_DATA, "the zstd stream ends after %llu unpacked bytes, too early",
                                         (unsigned long long)u->size);
                }
        }
        return ST_OK;
}

/* Some of it came by another connection. */
static enum status hash_again(struct object_upload *u, struct error *err)
{
        _cleanup_free_ uint8_t *bytes = malloc(MiB(1));

        if (!bytes)
                return error_no_memory(err);
        sha256_deinit(&u->sha);
        if (sha256_init(&u->sha, err))
                return ST_NO_MEMORY;
        for (uint64_t at = 0; at < u->size;) {
                ssize_t n = pread(u->fd, bytes, MiB(1), (off_t)at);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return error_os(err, n ? errno : EIO, "cannot read an upload again");
                sha256_update(&u->sha, bytes, (size_t)n);
                at += (uint64_t)n;
        }
        return ST_OK;
}

static enum status check_claim(struct object_upload *u, struct stored_object *object, enum refusal *why,
                               struct error *err)
{
        static const uint8_t not_claimed[32];
        struct verified found;
        char claimed_hex[BUILD_ID_HEX_MAX], found_hex[BUILD_ID_HEX_MAX];
        enum status st = drain(u, why, err);

        if (st)
                return st;
        if (u->partial && u->size < u->claim.size_bytes) {
                *why = REFUSED_INCOMPLETE;
                return error_set(err, ST_BAD_DATA, "%llu of %llu bytes are here", (unsigned long long)u->size,
                                 (unsigned long long)u->claim.size_bytes);
        }
        if (u->claim.size_bytes && u->size != u->claim.size_bytes) {
                *why = REFUSED_TRUNCATED;
                return error_set(err, ST_BAD_DATA, "the object has %llu bytes, %llu were announced",
                                 (unsigned long long)u->size, (unsigned long long)u->claim.size_bytes);
        }
        if (u->claim.offset) {
                st = hash_again(u, err);
                if (st)
                        return st;
        }
        sha256_final(&u->sha, object->sha256);
        if (memcmp(u->claim.sha256, not_claimed, 32) != 0 && memcmp(u->claim.sha256, object->sha256, 32) != 0) {
                *why = REFUSED_HASH;
                return error_set(err, ST_BAD_DATA, "the object's SHA-256 is not the announced one");
        }
        st = verify_object(u->fd, &found, err);
        if (st) {
                if (st == ST_BAD_DATA)
                        *why = REFUSED_NOT_ELF;
                return st;
        }
        if (!build_id_equal(&found.build_id, &u->claim.build_id)) {
                *why = REFUSED_BUILD_ID;
                return error_set(err, ST_BAD_DATA, "the file's build-id is %s, not the claimed %s",
                                 found.build_id.size ? build_id_hex(&found.build_id, found_hex) : "absent",
                                 build_id_hex(&u->claim.build_id, claimed_hex));
        }
        if (found.is_source != (u->claim.kind == OBJECT_SOURCE)) {
                *why = found.is_source ? REFUSED_NOT_ELF : REFUSED_NOT_SOURCE;
                return error_set(err, ST_BAD_DATA, found.is_source ? "the file is a source bundle: send it as source"
                                                                   : "the file is no source bundle: cairn-upload --sources makes one");
        }
        if (u->claim.kind == OBJECT_EXECUTABLE && !found.has_code) {
                *why = REFUSED_NO_SYMBOLS;
                return error_set(err, ST_BAD_DATA, "the file holds no code: send it as debuginfo, not as executable");
        }
        /* What an upstream has is taken as it is: clients may want its sections. */
        if (u->claim.kind == OBJECT_DEBUGINFO && u->claim.source == SOURCE_UPLOAD && !found.quality && !found.is_supplement) {
                *why = REFUSED_NO_SYMBOLS;
                return error_set(err, ST_BAD_DATA, "the file holds no symbols; send the one from before strip, or its .debug file");
        }
        object->build_id = u->claim.build_id;
        object->kind = u->claim.kind;
        object->source = u->claim.source;
        object->quality = found.quality;
        object->size_bytes = u->size;
        object->stored_unix_s = object->used_unix_s = wall_clock_ns() / 1000000000;
        memcpy(object->name, u->name, sizeof object->name);
        memcpy(object->label, u->label, sizeof object->label);
        memcpy(object->token, u->token, sizeof object->token);
        return ST_OK;
}

/* Remove the files of this object and kind that its record does not name. */
static void sweep(const char *path)
{
        const char *base = path_base(path);
        size_t kind_size = (size_t)(strchr(base, '-') - base) + 1;
        _cleanup_free_ char *dir = strndup(path, (size_t)(base - path));
        _cleanup_closedir_ DIR *d = dir ? opendir(dir) : NULL;
        struct dirent *e;

        while (d && (e = readdir(d)))
                if (strncmp(e->d_name, base, kind_size) == 0 && strcmp(e->d_name, base) != 0)
                        unlinkat(dirfd(d), e->d_name, 0);
}

/* The compressed object, synced, under a temporary name in DIR/incoming. */
static enum status stage(struct object_upload *u, struct stored_object *object, char **tmp_ret, int *fd_ret,
                         struct error *err)
{
        _cleanup_free_ char *path = NULL;
        _cleanup_free_ char *tmp = NULL;
        int fd;
        enum status st;

        if (asprintf(&path, "%s/incoming/object", u->store->dir) < 0) {
                path = NULL;
                return error_no_memory(err);
        }
        st = file_create_temporary(path, &tmp, &fd, err);
        if (st)
                return st;
        st = seekable_compress(u->fd, u->size, fd, tmp, &object->stored_bytes, err);
        if (!st && fdatasync(fd) < 0)
                st = error_os(err, errno, "cannot sync '%s'", tmp);
        if (st) {
                close(fd);
                unlink(tmp);
                return st;
        }
        *tmp_ret = steal_ptr(tmp);
        *fd_ret = fd;
        return ST_OK;
}

/* Takes fd. */
static enum status publish(struct object_upload *u, const struct stored_object *object, const char *tmp, int fd,
                           struct error *err)
{
        _cleanup_free_ char *path = object_path(u->store, object);
        _cleanup_free_ char *dir = path ? strndup(path, (size_t)(path_base(path) - path - 1)) : NULL;
        enum status st = dir ? file_make_dirs(dir, err) : error_no_memory(err);

        if (st) {
                close(fd);
                unlink(tmp);
                return st;
        }
        st = file_publish(fd, tmp, path, err);
        if (!st)
                st = meta_put(u->store->meta, object, err);
        if (!st)
                sweep(path);
        return st;
}

/* What to do with a verified object, given what is stored: ST_OK store it, ST_BUSY the same is there, else refuse. */
static enum status compare(struct object_upload *u, const struct stored_object *object, struct stored_object *have,
                           enum refusal *why, struct error *err)
{
        enum status st = meta_get(u->store->meta, &object->build_id, object->kind, have, err);

        if (st == ST_NOT_FOUND)
                return ST_OK;
        if (st)
                return st;
        if (memcmp(have->sha256, object->sha256, sizeof have->sha256) == 0)
                return ST_BUSY;
        if (have->quality < object->quality || u->claim.force)
                return ST_OK;
        *why = REFUSED_NOT_BETTER;
        return error_set(err, ST_USAGE, "what is stored is as good or better (%s, this is %s)",
                         symbol_quality_name(have->quality), symbol_quality_name(object->quality));
}

enum status object_upload_finish(struct object_upload *upload, struct stored_object *ret, bool *same_ret,
                                 enum refusal *why, struct error *err)
{
        _cleanup_(cleanup_upload) struct object_upload *u = upload;
        _cleanup_free_ char *tmp = NULL;
        struct stored_object object = { 0 }, have = { 0 };
        int fd = -1;
        enum status st;

        *why = REFUSED_NOT;
        st = check_claim(u, &object, why, err);
        if (!st)
                st = compare(u, &object, &have, why, err);
        if (!st)
                st = stage(u, &object, &tmp, &fd, err);
        if (!st) {
                /* Somebody may have stored one meanwhile, so the question is asked again where the answer holds. */
                pthread_mutex_lock(&u->store->publish);
                st = compare(u, &object, &have, why, err);
                if (!st) {
                        object.is_pinned = have.is_pinned;
                        st = publish(u, &object, tmp, fd, err);
                } else {
                        close(fd);
                        unlink(tmp);
                }
                pthread_mutex_unlock(&u->store->publish);
        }
        if (u->partial && (!st || st == ST_BUSY || (*why != REFUSED_NOT && *why != REFUSED_INCOMPLETE))) {
                unlink(u->partial);
                free(steal_ptr(u->partial));
        }
        if (st && st != ST_BUSY)
                return st;
        *ret = st == ST_BUSY ? have : object;
        *same_ret = st == ST_BUSY;
        return ST_OK;
}
