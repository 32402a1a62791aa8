/* SPDX-License-Identifier: Apache-2.0 */
/* From received bytes to a stored object; debuginfo-store/upload.c has the rules that this keeps. */
#include <dirent.h>
#include <string.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/limits.h"
#include "debuginfo-store/judge.h"
#include "debuginfo-store/seekable.h"
#include "debuginfo-store/upload_internal.h"

static enum status hash_piece(void *context, const void *data, size_t n, struct error *err)
{
        (void)err;
        sha256_update(context, data, n);
        return ST_OK;
}

/* Some of it came by another connection. */
static enum status hash_again(struct object_upload *u, struct error *err)
{
        uint64_t size;
        enum status st;

        sha256_deinit(&u->sha);
        if (sha256_init(&u->sha, err))
                return ST_NO_MEMORY;
        st = file_read_pieces(u->fd, "an upload again", hash_piece, &u->sha, &size, err);
        if (!st && size != u->size)
                st = error_os(err, EIO, "cannot read an upload again");
        return st;
}

static enum status check_claim(struct object_upload *u, struct stored_object *object, struct judged *judged,
                               enum refusal *why, struct error *err)
{
        static const uint8_t not_claimed[32];
        enum status st = upload_drain(u, why, err);

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
        st = object_judge(u->store, &u->claim, u->fd, u->size, judged, why, err);
        if (st)
                return st;
        object->build_id = judged->build_id;
        object->kind = judged->kind;
        object->source = u->claim.source;
        object->quality = judged->quality;
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
static enum status publish(struct object_upload *u, const struct stored_object *object, const struct judged *judged,
                           const char *tmp, int fd, struct error *err)
{
        const struct section_note sections = { judged->found.sections, judged->found.sections_bytes };
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
                st = meta_put(u->store->meta, object, &judged->links, &sections, err);
        if (!st)
                sweep(path);
        return st;
}

/*
 * What to do with a verified object, given what is stored (have; zero, nothing of its kind): ST_OK store it, ST_BUSY the same
 * is there, else refuse.
 */
static enum status compare(struct object_upload *u, const struct stored_object *object, struct stored_object *have,
                           enum refusal *why, struct error *err)
{
        struct stored_object rival;
        enum status st;

        *have = (struct stored_object){ 0 };
        st = meta_get(u->store->meta, &object->build_id, object->kind, have, err);
        if (!st && memcmp(have->sha256, object->sha256, sizeof have->sha256) == 0)
                return ST_BUSY;
        if (!st || st == ST_NOT_FOUND)
                st = object_rival(u->store, &object->build_id, object->kind, &rival, err);
        if (st)
                return st == ST_NOT_FOUND ? ST_OK : st;
        if (rival.quality < object->quality || u->claim.force)
                return ST_OK;
        *why = REFUSED_NOT_BETTER;
        return error_set(err, ST_USAGE, "what is stored is as good or better (%s of quality %s, this is %s)",
                         object_kind_name(rival.kind), symbol_quality_name(rival.quality), symbol_quality_name(object->quality));
}

enum status object_upload_finish(struct object_upload *upload, struct stored_object *ret, bool *same_ret,
                                 enum refusal *why, struct error *err)
{
        _cleanup_(upload_cleanup) struct object_upload *u = upload;
        _cleanup_free_ char *tmp = NULL;
        struct stored_object object = { 0 }, have = { 0 };
        _cleanup_judged_ struct judged judged = { .found.form = VERIFIED_ELF };
        int fd = -1;
        enum status st;

        *why = REFUSED_NOT;
        if (!upload_stop_being_live(u)) {
                free(steal_ptr(u->partial)); /* it is the other one's */
                return error_set(err, ST_BUSY, "another connection has taken this upload over");
        }
        st = check_claim(u, &object, &judged, why, err);
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
                        st = publish(u, &object, &judged, tmp, fd, err);
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
        if (object.kind == OBJECT_DEBUGINFO || object.kind == OBJECT_EXECUTABLE || object.kind == OBJECT_DWP)
                object_confirm_package(u->store, &object.build_id);
        *ret = st == ST_BUSY ? have : object;
        *same_ret = st == ST_BUSY;
        return ST_OK;
}
