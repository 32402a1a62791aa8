/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving one object.
 *
 * The uncompressed bytes are counted, hashed and written to an unlinked file in DIR/incoming, or for a resumable upload
 * to a file in DIR/partial; a resumed upload is rehashed when it is complete. object_upload_finish() lets a confined
 * worker verify the file, compresses it to a temporary file, syncs and renames it, and then commits the record. The
 * file's name contains its hash, so:
 *
 *  1. a record always refers to a file that was completed and synced before;
 *  2. a crash before the commit leaves the old record and its old file;
 *  3. an orphaned file is removed by the next upload of the object (sweep()).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "common/clock.h"
#include "common/compress/compress.h"
#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/partial.h"
#include "debuginfo-store/seekable.h"
#include "debuginfo-store/validate_upload.h"

struct object_upload {
        struct debuginfo_store *store;
        struct object_claim claim;
        char name[sizeof(((struct stored_object *)0)->name)];
        char tag[OBJECT_TAG_SIZE], token[OBJECT_TAG_SIZE];
        int fd;
        char *partial;               /* path of a resumable upload's file until it is stored or refused; else NULL */
        struct active_upload active; /* if partial is set */
        bool is_active;
        uint64_t size;
        struct sha256 sha;
        ZSTD_DCtx *zstd;
        size_t zstd_left;                 /* bytes expected by the decoder for the current frame; 0: between frames */
        struct memory_reservation memory; /* of zstd and unpacked */
        void *unpacked;
        size_t unpacked_capacity;
};

/* Stop takeovers of the upload. False: another connection has taken it over. */
static bool unregister_upload(struct object_upload *u)
{
        bool was_live = u->is_active;

        u->is_active = false;
        return !was_live || active_upload_unregister(&u->store->active_uploads, &u->active);
}

void object_upload_abort(struct object_upload *u)
{
        if (!u)
                return;
        if (unregister_upload(u) && u->partial && u->size == 0)
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

static void cleanup_object_upload(struct object_upload **u)
{
        object_upload_abort(*u);
}

uint64_t object_upload_get_size(const struct object_upload *u)
{
        return u->size;
}

enum status object_upload_find_offset(struct debuginfo_store *store, const struct object_claim *claim, uint64_t *ret,
                                      struct error *err)
{
        return partial_find_size(store, claim, ret, err);
}

static enum status open_resumable_upload(struct object_upload *u, struct error *err)
{
        enum status st = partial_open(u->store, &u->claim, &u->fd, &u->partial, &u->size, err);

        if (st)
                return st;
        active_upload_register(&u->store->active_uploads, &u->active, u->partial, u->fd);
        u->is_active = true;
        if (u->size == u->claim.offset)
                return ST_OK;
        return error_refuse(err, ST_USAGE, REFUSED_OFFSET,
                            "%llu bytes of the object were received; continue there and not at %llu",
                            (unsigned long long)u->size, (unsigned long long)u->claim.offset);
}

enum status object_upload_begin(struct debuginfo_store *store, const struct object_claim *claim,
                                struct object_upload **ret, struct error *err)
{
        _cleanup_(cleanup_object_upload) struct object_upload *u = calloc(1, sizeof *u);
        enum status st;

        if (!u)
                return error_no_memory(err);
        u->fd = -1;
        u->store = store;
        u->claim = *claim;
        u->memory.use = MEMORY_UPLOADS;
        if (claim->name)
                snprintf(u->name, sizeof u->name, "%s", path_base(claim->name));
        snprintf(u->tag, sizeof u->tag, "%s", claim->tag ? claim->tag : "");
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
                st = memory_reserve(&u->memory, LIMIT_ZSTD_CONTEXT_BYTES,
                                    err); /* the first frame may have the largest window */
                if (st)
                        return st;
        }
        if (claim->is_resumable) {
                st = open_resumable_upload(u, err);
        } else {
                u->fd = object_create_temporary(store, err);
                st = u->fd < 0 ? ST_OS : ST_OK;
        }
        if (!st)
                *ret = steal_ptr(u);
        return st;
}

static enum status append_unpacked(struct object_upload *u, const void *data, size_t n, struct error *err)
{
        uint64_t most = u->claim.max_bytes ? u->claim.max_bytes : LIMIT_OBJECT_BYTES;
        uint64_t limit = u->claim.size_bytes && u->claim.size_bytes < most ? u->claim.size_bytes : most;

        /* A resumed upload may have received more than this request claims. */
        if (u->size > limit || n > limit - u->size) {
                if (limit == most) {
                        return error_refuse(err, ST_TOO_BIG, REFUSED_TOO_BIG, "the object is larger than %zu bytes",
                                            (size_t)limit);
                }
                return error_refuse(err, ST_BAD_DATA, REFUSED_SIZE,
                                    "the object is larger than its announced %llu bytes", (unsigned long long)limit);
        }
        sha256_update(&u->sha, data, n);
        u->size += n;
        return file_write_all(u->fd, data, n, u->partial ? u->partial : u->store->dir, err);
}

/* A frame header selects the window size: reserve the largest window before it, and the actual size of the decoder
 * after it. */
static enum status reserve_decoder_window(struct object_upload *u, struct error *err)
{
        return u->zstd_left ? ST_OK : memory_resize(&u->memory, LIMIT_ZSTD_CONTEXT_BYTES, err);
}

static enum status refuse_zstd_stream(size_t failed, struct error *err)
{
        if (ZSTD_getErrorCode(failed) == ZSTD_error_frameParameter_windowTooLarge)
                return error_refuse(err, ST_BAD_DATA, REFUSED_ENCODING, ZSTD_WINDOW_TEXT);
        return error_refuse(err, ST_BAD_DATA, REFUSED_ENCODING, "the zstd stream is damaged: %s",
                            ZSTD_getErrorName(failed));
}

/* Consume some of *n bytes and set *n to their number: stops after LIMIT_UPLOAD_STEP_BYTES uncompressed bytes. */
static enum status decode_some(struct object_upload *u, const void *data, size_t *n, struct error *err)
{
        ZSTD_inBuffer in = { data, *n, 0 };
        uint64_t before = u->size;
        enum status st = ST_OK;

        if (!u->zstd)
                return append_unpacked(u, data, *n, err);
        while (!st && in.pos < in.size && u->size - before < LIMIT_UPLOAD_STEP_BYTES) {
                ZSTD_outBuffer out = { u->unpacked, u->unpacked_capacity, 0 };

                st = reserve_decoder_window(u, err);
                if (st)
                        break;
                u->zstd_left = ZSTD_decompressStream(u->zstd, &out, &in);
                if (ZSTD_isError(u->zstd_left))
                        return refuse_zstd_stream(u->zstd_left, err);
                st = append_unpacked(u, out.dst, out.pos, err);
        }
        if (u->size > before) /* after the header: the decoder has allocated its window */
                memory_shrink(&u->memory, ZSTD_sizeof_DCtx(u->zstd) + u->unpacked_capacity);
        *n = in.pos;
        return st;
}

enum status object_upload_append_some(struct object_upload *u, const void *data, size_t *n, struct error *err)
{
        enum status st;

        if (!u->is_active)
                return decode_some(u, data, n, err);
        st = active_upload_lock(&u->active, err);
        if (st)
                return st;
        st = decode_some(u, data, n, err);
        active_upload_unlock(&u->active);
        return st;
}

enum status object_upload_append(struct object_upload *u, const void *data, size_t n, struct error *err)
{
        enum status st = ST_OK;

        for (size_t done = 0, taken; !st && done < n; done += taken) {
                taken = n - done;
                st = object_upload_append_some(u, (const uint8_t *)data + done, &taken, err);
        }
        return st;
}

static enum status append_file_chunk(void *context, const void *data, size_t n, struct error *err)
{
        return object_upload_append(context, data, n, err);
}

enum status object_upload_append_file(struct object_upload *u, int fd, struct error *err)
{
        uint64_t size;

        return file_read_chunks(fd, "the fetched file", append_file_chunk, u, &size, err);
}

static enum status drain_decoder(struct object_upload *u, struct error *err)
{
        while (u->zstd && u->zstd_left) {
                ZSTD_inBuffer in = { "", 0, 0 };
                ZSTD_outBuffer out = { u->unpacked, u->unpacked_capacity, 0 };
                enum status st;

                u->zstd_left = ZSTD_decompressStream(u->zstd, &out, &in);
                if (!ZSTD_isError(u->zstd_left) && out.pos) {
                        st = append_unpacked(u, out.dst, out.pos, err);
                        if (st)
                                return st;
                        continue;
                }
                if (u->zstd_left) {
                        return error_refuse(err, ST_BAD_DATA, u->partial ? REFUSED_INCOMPLETE : REFUSED_TRUNCATED,
                                            "the zstd stream ends after %llu unpacked bytes, too early",
                                            (unsigned long long)u->size);
                }
        }
        return ST_OK;
}

/* ---- from received bytes to a stored object ---- */

static enum status hash_file_chunk(void *context, const void *data, size_t n, struct error *err)
{
        (void)err;
        sha256_update(context, data, n);
        return ST_OK;
}

/* Hash the whole file: part of it was received by another connection. */
static enum status rehash_upload(struct object_upload *u, struct error *err)
{
        uint64_t size;
        enum status st;

        sha256_deinit(&u->sha);
        if (sha256_init(&u->sha, err))
                return ST_NO_MEMORY;
        st = file_read_chunks(u->fd, "an upload for hashing", hash_file_chunk, &u->sha, &size, err);
        if (!st && size != u->size)
                st = error_os(err, EIO, "cannot read an upload for hashing");
        return st;
}

/* A descriptor with which another process or thread can read but not change the file; -1 and err on failure. */
static int reopen_read_only(int fd, struct error *err)
{
        char path[48];
        int ret;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ret = open(path, O_RDONLY | O_CLOEXEC);
        if (ret < 0)
                error_os(err, errno, "cannot reopen '%s'", path);
        return ret;
}

static enum status check_upload_claim(struct object_upload *u, struct stored_object *object,
                                      struct validated_upload *validated, struct error *err)
{
        static const uint8_t not_claimed[32];
        _cleanup_close_ int fd = -1;
        enum status st = drain_decoder(u, err);

        if (st)
                return st;
        if (u->partial && u->size < u->claim.size_bytes) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_INCOMPLETE, "%llu of %llu bytes were received",
                                    (unsigned long long)u->size, (unsigned long long)u->claim.size_bytes);
        }
        if (u->claim.size_bytes && u->size != u->claim.size_bytes) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_TRUNCATED,
                                    "the object has %llu bytes, not the announced %llu", (unsigned long long)u->size,
                                    (unsigned long long)u->claim.size_bytes);
        }
        if (u->claim.offset) {
                st = rehash_upload(u, err);
                if (st)
                        return st;
        }
        sha256_final(&u->sha, object->sha256);
        if (memcmp(u->claim.sha256, not_claimed, 32) != 0 && memcmp(u->claim.sha256, object->sha256, 32) != 0) {
                return error_refuse(err, ST_BAD_DATA, REFUSED_HASH, "the object does not have the announced SHA-256");
        }
        fd = reopen_read_only(u->fd, err); /* the content is hashed: a compromised worker must not change it */
        if (fd < 0)
                return ST_OS;
        st = validate_upload(u->store, &u->claim, fd, u->size, validated, err);
        if (st)
                return st;
        object->build_id = validated->build_id;
        object->kind = validated->kind;
        object->source = u->claim.source;
        object->quality = validated->quality;
        object->size_bytes = u->size;
        object->stored_unix_s = object->used_unix_s = wall_clock_ns() / 1000000000;
        memcpy(object->name, u->name, sizeof object->name);
        memcpy(object->tag, u->tag, sizeof object->tag);
        memcpy(object->token, u->token, sizeof object->token);
        return ST_OK;
}

/* A search for the other objects of a build-id and kind. */
struct superseded {
        struct storage *storage;
        const char *key;  /* of the one that stays */
        size_t kind_size; /* of the part of the key that they share */
};

static enum status remove_superseded_object(void *context, const char *key, const struct storage_info *info,
                                            struct error *err)
{
        const struct superseded *s = context;

        (void)info;
        (void)err;
        if (strncmp(key, s->key, s->kind_size) == 0 && strcmp(key, s->key) != 0)
                (void)!storage_remove(s->storage, key, NULL);
        return ST_OK;
}

/* What cannot be removed is left to the collection of garbage. */
static void remove_superseded_objects(struct storage *storage, const char *key)
{
        const char *base = path_base(key);
        struct superseded s = { .storage = storage, .key = key, .kind_size = (size_t)(strchr(base, '-') - key) + 1 };
        _cleanup_free_ char *folder = strndup(key, (size_t)(base - key));

        if (folder)
                (void)!storage_list(storage, folder, "", remove_superseded_object, &s, NULL);
}

/* Write the compressed object to an upload, and sync it: publishing it, under the lock, then takes no time. */
static enum status stage_compressed(struct object_upload *u, struct stored_object *object, struct storage_upload *ret,
                                    struct error *err)
{
        _cleanup_free_ char *key = object_format_key(object);
        enum status st = key ? storage_begin(u->store->storage, key, ret, err) : error_no_memory(err);

        if (st)
                return st;
        st = seekable_compress(u->fd, u->size, ret->fd, ret->tmp, &object->stored_bytes, err);
        if (!st && file_sync_timed(ret->fd, SYNC_FILE) < 0)
                st = error_os(err, errno, "cannot sync '%s'", ret->tmp);
        if (st)
                storage_discard(ret);
        return st;
}

/*
 * Compare a verified object with the stored one. @param have the stored object of its kind; zero: none. @return ST_OK:
 * store it; ST_BUSY: the same content is stored; other: refuse it.
 */
static enum status compare_with_stored(const struct object_upload *u, const struct stored_object *object,
                                       struct stored_object *have, struct error *err)
{
        struct stored_object rival;
        enum status st;

        *have = (struct stored_object){ 0 };
        st = meta_get(u->store->meta, &object->build_id, object->kind, have, err);
        if (!st && memcmp(have->sha256, object->sha256, sizeof have->sha256) == 0)
                return ST_BUSY;
        if (!st || st == ST_NOT_FOUND)
                st = object_find_incumbent(u->store, &object->build_id, object->kind, &rival, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        if (rival.quality < object->quality || u->claim.force)
                return ST_OK;
        return error_refuse(err, ST_USAGE, REFUSED_NOT_BETTER,
                            "the stored object is as good or better (%s of quality %s, this is %s)",
                            object_kind_name(rival.kind), symbol_quality_name(rival.quality),
                            symbol_quality_name(object->quality));
}

static enum status publish_object(struct object_upload *u, const struct stored_object *object,
                                  const struct validated_upload *validated, struct storage_upload *staged,
                                  struct error *err)
{
        const struct section_note sections = { validated->verified.sections, validated->verified.sections_bytes };
        _cleanup_free_ char *key = strdup(staged->key);
        enum status st = key ? storage_make_folder(u->store->storage, key, err) : error_no_memory(err);

        if (!st)
                st = storage_publish(staged, STORAGE_REPLACE, err);
        if (!st)
                st = meta_put(u->store->meta, object, &validated->links, &sections, err);
        if (!st)
                remove_superseded_objects(u->store->storage, key);
        return st;
}

/* Another thread may have stored one since the comparison: compare again under the lock. */
static enum status publish_if_better(struct object_upload *u, struct stored_object *object,
                                     const struct validated_upload *validated, struct storage_upload *staged,
                                     struct stored_object *have, struct error *err)
{
        enum status st;

        pthread_mutex_lock(&u->store->publish);
        st = compare_with_stored(u, object, have, err);
        if (!st) {
                object->is_pinned = have->is_pinned;
                st = publish_object(u, object, validated, staged, err);
        }
        storage_discard(staged);
        pthread_mutex_unlock(&u->store->publish);
        return st;
}

/* ---- publishing in an object store ---- */

struct upload_commit {
        struct object_commit commit; /* first */
        const struct object_upload *upload;
        struct stored_object *object, *have;
        const struct validated_upload *validated;
        struct buf links;
};

static enum status prepare_upload_commit(struct object_commit *commit, struct error *err)
{
        struct upload_commit *c = (struct upload_commit *)commit;
        enum status st = compare_with_stored(c->upload, c->object, c->have, err);

        if (st)
                return st;
        c->object->is_pinned = c->have->is_pinned;
        commit->change = (struct object_change){ .row = { .object = *c->object,
                                                          .links = c->links.data,
                                                          .links_size = c->links.size,
                                                          .sections = c->validated->verified.sections,
                                                          .sections_size = c->validated->verified.sections_bytes } };
        return ST_OK;
}

static enum status apply_upload_commit(struct object_commit *commit, struct error *err)
{
        const struct upload_commit *c = (const struct upload_commit *)commit;
        const struct section_note sections = { c->validated->verified.sections, c->validated->verified.sections_bytes };

        return meta_put(c->upload->store->meta, c->object, &c->validated->links, &sections, err);
}

/* One that no row names any more. Others may be those of uploads that wait for their commit. */
static void remove_unnamed_object(struct storage *storage, const struct stored_object *object)
{
        _cleanup_free_ char *key = object->build_id.size ? object_format_key(object) : NULL;

        if (key)
                (void)!storage_remove(storage, key, NULL);
}

/*
 * The object is put before the commit that names it, without the lock, since this takes long and no other put has its
 * key. It is removed when it was in no commit, as when another upload of the same content was committed meanwhile; but
 * a commit whose answer is lost may have named it, so it then stays, at the latest until garbage is collected.
 */
static enum status publish_remotely(struct object_upload *u, struct stored_object *object,
                                    const struct validated_upload *validated, struct storage_upload *staged,
                                    struct stored_object *have, struct error *err)
{
        struct upload_commit c = { .commit = { .name = { object->build_id, object->kind },
                                               .prepare = prepare_upload_commit,
                                               .apply = apply_upload_commit },
                                   .upload = u,
                                   .object = object,
                                   .have = have,
                                   .validated = validated };
        enum status st = storage_publish(staged, STORAGE_REPLACE, err);

        buf_init(&c.links, MiB(16));
        links_encode(&c.links, &validated->links);
        if (!st)
                st = buf_status(&c.links, err, "links of an object");
        if (!st)
                st = object_commits_run(u->store->commits, &c.commit, err);
        buf_deinit(&c.links);
        if (!st)
                remove_unnamed_object(u->store->storage, have);
        else if (!c.commit.is_prepared)
                remove_unnamed_object(u->store->storage, object);
        return st;
}

/* Verify, compare and compress. @return as compare_with_stored(). */
static enum status prepare_stored_object(struct object_upload *u, struct stored_object *object,
                                         struct validated_upload *validated, struct storage_upload *staged,
                                         struct stored_object *have, struct error *err)
{
        enum status st = check_upload_claim(u, object, validated, err);

        if (!st)
                st = compare_with_stored(u, object, have, err);
        if (!st && u->store->is_remote)
                st = object_draw_put_id(&object->put_id, err);
        return st ? st : stage_compressed(u, object, staged, err);
}

static enum status store_locally(struct object_upload *u, struct stored_object *object,
                                 struct validated_upload *validated, struct stored_object *have, struct error *err)
{
        struct storage_upload staged = { .fd = -1 };
        enum status st = prepare_stored_object(u, object, validated, &staged, have, err);

        return st ? st : publish_if_better(u, object, validated, &staged, have, err);
}

/* More uploads wait for a commit than are worked on. */
static enum status store_remotely(struct object_upload *u, struct stored_object *object,
                                  struct validated_upload *validated, struct stored_object *have, struct error *err)
{
        struct storage_upload staged = { .fd = -1 };
        enum status st;

        object_commits_expect(u->store->commits, 1);
        while (sem_wait(&u->store->finishing) < 0)
                ; /* EINTR */
        st = prepare_stored_object(u, object, validated, &staged, have, err);
        sem_post(&u->store->finishing);
        if (!st)
                st = publish_remotely(u, object, validated, &staged, have, err);
        object_commits_expect(u->store->commits, -1);
        return st;
}

enum status object_upload_finish_open(struct object_upload *upload, struct stored_object *ret, bool *same_ret,
                                      int *fd_ret, struct error *err)
{
        _cleanup_(cleanup_object_upload) struct object_upload *u = upload;
        struct stored_object object = { 0 }, have = { 0 };
        _cleanup_validated_upload_ struct validated_upload validated = { .verified.form = VERIFIED_ELF };
        struct error own = { 0 };
        enum status st;

        err = err ? err : &own; /* its reason is used */
        if (fd_ret)
                *fd_ret = -1;
        if (!unregister_upload(u)) {
                free(steal_ptr(u->partial)); /* the file now belongs to the other connection */
                return error_set(err, ST_BUSY, "another connection took over this upload");
        }
        st = u->store->is_remote ? store_remotely(u, &object, &validated, &have, err)
                                 : store_locally(u, &object, &validated, &have, err);
        if (u->partial && (!st || st == ST_BUSY || (err->reason != REFUSED_NOT && err->reason != REFUSED_INCOMPLETE))) {
                unlink(u->partial);
                free(steal_ptr(u->partial));
        }
        if (st && st != ST_BUSY)
                return st;
        if (object.kind == OBJECT_DEBUGINFO || object.kind == OBJECT_EXECUTABLE || object.kind == OBJECT_DWP)
                validate_stored_package(u->store, &object.build_id);
        *ret = st == ST_BUSY ? have : object;
        if (!st && fd_ret)
                *fd_ret = reopen_read_only(u->fd, NULL);
        *same_ret = st == ST_BUSY;
        return ST_OK;
}

enum status object_upload_finish(struct object_upload *u, struct stored_object *ret, bool *same_ret, struct error *err)
{
        return object_upload_finish_open(u, ret, same_ret, NULL, err);
}
