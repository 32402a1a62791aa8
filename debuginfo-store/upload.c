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
#include <string.h>
#include <zstd_errors.h>

#include "common/compress.h"
#include "common/file.h"
#include "common/limits.h"
#include "debuginfo-store/partial.h"
#include "debuginfo-store/upload_internal.h"

bool upload_stop_being_live(struct object_upload *u)
{
        bool was_live = u->is_live;

        u->is_live = false;
        return !was_live || live_remove(&u->store->live, &u->live);
}

void object_upload_abort(struct object_upload *u)
{
        if (!u)
                return;
        if (upload_stop_being_live(u) && u->partial && u->size == 0)
                unlink(u->partial);
        free(u->partial);
        if (u->fd >= 0)
                close(u->fd);
        sha256_deinit(&u->sha);
        ZSTD_freeDCtx(u->zstd);
        free(u->unpacked);
        memory_release(&u->memory);
        free(u);
}

void upload_cleanup(struct object_upload **u)
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

        if (st)
                return st;
        live_add(&u->store->live, &u->live, u->partial, u->fd);
        u->is_live = true;
        if (u->size == u->claim.offset)
                return ST_OK;
        *why = REFUSED_OFFSET;
        return error_set(err, ST_USAGE, "%llu bytes of the object are here, go on there and not at %llu",
                         (unsigned long long)u->size, (unsigned long long)u->claim.offset);
}

enum status object_upload_begin(struct debuginfo_store *store, const struct object_claim *claim,
                                struct object_upload **ret, enum refusal *why, struct error *err)
{
        _cleanup_(upload_cleanup) struct object_upload *u = calloc(1, sizeof *u);
        enum status st;

        *why = REFUSED_NOT;
        if (!u)
                return error_no_memory(err);
        u->fd = -1;
        u->store = store;
        u->claim = *claim;
        u->memory.use = MEMORY_UPLOADS;
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
                ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, LIMIT_ZSTD_WINDOW_LOG);
                st = memory_reserve(&u->memory, LIMIT_ZSTD_CONTEXT_BYTES, err); /* a first frame with the largest window */
                if (st)
                        return st;
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
        return file_write_all(u->fd, data, n, u->partial ? u->partial : u->store->dir, err);
}

/* A frame's header chooses the window: before it the largest is reserved, after it what the decoder has. */
static enum status reserve_window(struct object_upload *u, struct error *err)
{
        return u->zstd_left ? ST_OK : memory_resize(&u->memory, LIMIT_ZSTD_CONTEXT_BYTES, err);
}

static enum status refuse_stream(size_t failed, enum refusal *why, struct error *err)
{
        *why = REFUSED_ENCODING;
        if (ZSTD_getErrorCode(failed) == ZSTD_error_frameParameter_windowTooLarge)
                return error_set(err, ST_BAD_DATA, ZSTD_WINDOW_TEXT);
        return error_set(err, ST_BAD_DATA, "the zstd stream is damaged: %s", ZSTD_getErrorName(failed));
}

/* Takes some of *n bytes and says how many: not all when LIMIT_UPLOAD_STEP_BYTES were unpacked. */
static enum status append_step(struct object_upload *u, const void *data, size_t *n, enum refusal *why, struct error *err)
{
        ZSTD_inBuffer in = { data, *n, 0 };
        uint64_t before = u->size;
        enum status st = ST_OK;

        if (!u->zstd)
                return take(u, data, *n, why, err);
        while (!st && in.pos < in.size && u->size - before < LIMIT_UPLOAD_STEP_BYTES) {
                ZSTD_outBuffer out = { u->unpacked, u->unpacked_capacity, 0 };

                st = reserve_window(u, err);
                if (st)
                        break;
                u->zstd_left = ZSTD_decompressStream(u->zstd, &out, &in);
                if (ZSTD_isError(u->zstd_left))
                        return refuse_stream(u->zstd_left, why, err);
                st = take(u, out.dst, out.pos, why, err);
        }
        if (u->size > before) /* past the header: the decoder has its window */
                memory_shrink(&u->memory, ZSTD_sizeof_DCtx(u->zstd) + u->unpacked_capacity);
        *n = in.pos;
        return st;
}

enum status object_upload_step(struct object_upload *u, const void *data, size_t *n, enum refusal *why, struct error *err)
{
        enum status st;

        *why = REFUSED_NOT;
        if (!u->is_live)
                return append_step(u, data, n, why, err);
        st = live_enter(&u->live, err);
        if (st)
                return st;
        st = append_step(u, data, n, why, err);
        live_leave(&u->live);
        return st;
}

enum status object_upload_append(struct object_upload *u, const void *data, size_t n, enum refusal *why,
                                 struct error *err)
{
        enum status st = ST_OK;

        *why = REFUSED_NOT;
        for (size_t done = 0, taken; !st && done < n; done += taken) {
                taken = n - done;
                st = object_upload_step(u, (const uint8_t *)data + done, &taken, why, err);
        }
        return st;
}

struct appended {
        struct object_upload *upload;
        enum refusal *why;
};

static enum status append_piece(void *context, const void *data, size_t n, struct error *err)
{
        struct appended *a = context;

        return object_upload_append(a->upload, data, n, a->why, err);
}

enum status object_upload_append_file(struct object_upload *u, int fd, enum refusal *why, struct error *err)
{
        struct appended a = { u, why };
        uint64_t size;

        *why = REFUSED_NOT;
        return file_read_pieces(fd, "the fetched file", append_piece, &a, &size, err);
}

enum status upload_drain(struct object_upload *u, enum refusal *why, struct error *err)
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
