/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/faulty_storage.h"

#include <string.h>
#include <sys/mman.h>

#include "common/memory/array.h"

static struct faulty_storage *get_faulty(struct storage *s)
{
        return (struct faulty_storage *)s;
}

static bool is_lacked(const struct faulty_storage *f, const char *key)
{
        return f->lacked && strstr(key, f->lacked);
}

struct call {
        bool has_effect, is_failing;
};

static struct call begin_call(struct storage *s, const char *name, const char *key)
{
        struct faulty_storage *f = get_faulty(s);
        struct call c = { .has_effect = true };

        if (f->before)
                f->before(f, name, key);
        if (f->is_cut || (f->is_away && is_lacked(f, key)))
                return (struct call){ .is_failing = true };
        if (++f->calls != f->fault_at || !f->fault)
                return c;
        f->is_cut = f->fault == STORAGE_FAULT_CUT || f->fault == STORAGE_FAULT_CUT_LATE;
        c.is_failing = true;
        c.has_effect = f->fault == STORAGE_FAULT_ANSWER_LOST || f->fault == STORAGE_FAULT_CUT_LATE;
        return c;
}

static enum status fail_call(const char *name, const char *key, struct error *err)
{
        return error_os(err, EIO, "cannot %s '%s'", name, key);
}

static void close_faulty_storage(struct storage *s)
{
        struct faulty_storage *f = get_faulty(s);

        storage_close(f->inner);
        for (size_t i = 0; i < f->unlisted_count; i++)
                free(f->unlisted[i]);
        free(f->unlisted);
        free(f);
}

static enum status make_faulty_folder(struct storage *s, const char *key, struct error *err)
{
        return storage_make_folder(get_faulty(s)->inner, key, err);
}

static enum status begin_faulty_upload(struct storage *s, struct storage_upload *u, struct error *err)
{
        struct call c = begin_call(s, "begin", u->key);
        struct storage *inner = get_faulty(s)->inner;

        return c.is_failing ? fail_call("begin", u->key, err) : inner->operations->begin(inner, u, err);
}

static void note_unlisted_key(struct faulty_storage *f, const char *key)
{
        if (!array_reserve(&f->unlisted, &f->unlisted_capacity, f->unlisted_count) ||
            !(f->unlisted[f->unlisted_count] = strdup(key)))
                abort();
        f->unlisted_count++;
}

static enum status publish_faulty_upload(struct storage *s, struct storage_upload *u, enum storage_mode mode,
                                         struct error *err)
{
        struct call c = begin_call(s, "publish", u->key);
        struct storage *inner = get_faulty(s)->inner;
        enum status st;

        if (!c.has_effect) {
                close(u->fd);
                unlink(u->tmp);
                return fail_call("publish", u->key, err);
        }
        st = inner->operations->publish(inner, u, mode, err);
        if (!st && get_faulty(s)->is_list_late)
                note_unlisted_key(get_faulty(s), u->key);
        return c.is_failing ? fail_call("publish", u->key, err) : st;
}

static enum status read_faulty_object(struct storage *s, const char *key, struct buf *ret,
                                      struct storage_info *info_ret, struct error *err)
{
        struct storage *inner = get_faulty(s)->inner;

        return begin_call(s, "read", key).is_failing ? fail_call("read", key, err)
                                                     : inner->operations->read(inner, key, ret, info_ret, err);
}

static enum status open_faulty_object(struct storage *s, const char *key, int *fd_ret, struct storage_info *ret,
                                      struct error *err)
{
        return begin_call(s, "open", key).is_failing ? fail_call("open", key, err)
                                                     : storage_open(get_faulty(s)->inner, key, fd_ret, ret, err);
}

static enum status map_faulty_object(struct storage *s, const char *key, size_t max, struct storage_map *ret,
                                     struct error *err)
{
        struct storage_map *whole;
        enum status st;

        if (begin_call(s, "map", key).is_failing)
                return fail_call("map", key, err);
        whole = malloc(sizeof *whole);
        st = whole ? storage_map(get_faulty(s)->inner, key, max, whole, err) : error_no_memory(err);
        if (st) {
                free(whole);
                return st;
        }
        ret->state = whole;
        ret->file = (struct file_map){ .size = whole->file.size };
        if (!whole->file.size)
                return ST_OK;
        ret->file.data = mmap(NULL, whole->file.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (ret->file.data == MAP_FAILED)
                abort();
        memset((void *)ret->file.data, STORAGE_ABSENT_BYTE, whole->file.size);
        return ST_OK;
}

static enum status require_faulty_ranges(struct storage_map *m, const struct file_range *ranges, size_t count,
                                         struct error *err)
{
        const struct storage_map *whole = m->state;

        if (begin_call(m->storage, m->is_cached_only ? "require cached" : "require", "").is_failing)
                return fail_call("fetch", "a range", err);
        for (size_t i = 0; i < count; i++) {
                if (ranges[i].offset > m->file.size || ranges[i].size > m->file.size - ranges[i].offset)
                        abort();
                memcpy((char *)m->file.data + ranges[i].offset, (const char *)whole->file.data + ranges[i].offset,
                       ranges[i].size);
        }
        return ST_OK;
}

static void unmap_faulty_object(struct storage_map *m)
{
        if (m->state)
                storage_unmap(m->state);
        free(m->state);
        file_map_close(&m->file);
}

struct late_list {
        struct faulty_storage *f;
        storage_visit *visit;
        void *context;
};

static enum status visit_listed_key(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        const struct late_list *l = context;

        for (size_t i = 0; l->f->is_list_late && i < l->f->unlisted_count; i++) {
                if (strcmp(l->f->unlisted[i], key) == 0)
                        return ST_OK;
        }
        return l->visit(l->context, key, info, err);
}

static enum status list_faulty_objects(struct storage *s, const char *folder, const char *after, storage_visit *visit,
                                       void *context, struct error *err)
{
        struct late_list l = { .f = get_faulty(s), .visit = visit, .context = context };

        return begin_call(s, "list", folder).is_failing
                       ? fail_call("list", folder, err)
                       : storage_list(l.f->inner, folder, after, visit_listed_key, &l, err);
}

static enum status stat_faulty_object(struct storage *s, const char *key, struct storage_info *ret, struct error *err)
{
        return begin_call(s, "stat", key).is_failing ? fail_call("stat", key, err)
                                                     : storage_stat(get_faulty(s)->inner, key, ret, err);
}

static enum status remove_faulty_object(struct storage *s, const char *key, struct error *err)
{
        struct call c = begin_call(s, "remove", key);
        enum status st = c.has_effect ? storage_remove(get_faulty(s)->inner, key, err) : ST_OK;

        return c.is_failing ? fail_call("remove", key, err) : st;
}

static enum status remove_faulty_unfinished(struct storage *s, const char *folder, int64_t before_ms,
                                            uint64_t *count_ret, struct error *err)
{
        struct call c = begin_call(s, "remove unfinished", folder);
        enum status st = c.has_effect
                                 ? storage_remove_unfinished(get_faulty(s)->inner, folder, before_ms, count_ret, err)
                                 : ST_OK;

        return c.is_failing ? fail_call("clean up", folder, err) : st;
}

static enum status export_faulty_object(struct storage *s, const char *key, const char *path,
                                        uint64_t *copied_bytes_ret, struct error *err)
{
        return begin_call(s, "export", key).is_failing
                       ? fail_call("export", key, err)
                       : storage_export(get_faulty(s)->inner, key, path, copied_bytes_ret, err);
}

static bool has_at_hand(struct storage *s, const char *key)
{
        return get_faulty(s)->has_ends || !is_lacked(get_faulty(s), key);
}

static void ask_faulty_storage(struct storage *s, struct storage_question *questions, size_t count)
{
        const enum faulty_asking asking = get_faulty(s)->asking;

        if (asking == ASKS_AT_ONCE)
                storage_ask_at_once(s, questions, count);
        for (size_t i = 0; asking != ASKS_AT_ONCE && i < count; i++)
                storage_answer(s, &questions[asking == ASKS_BACKWARDS ? count - 1 - i : i]);
}

static uint64_t get_faulty_free_bytes(struct storage *s)
{
        return storage_get_free_bytes(get_faulty(s)->inner);
}

static int64_t read_faulty_clock(struct storage *s)
{
        const struct faulty_storage *f = get_faulty(s);

        return f->now_ms ? f->now_ms : storage_now_ms(f->inner) + f->ahead_ms;
}

static const struct storage_operations faulty_operations = {
        .close = close_faulty_storage,
        .make_folder = make_faulty_folder,
        .begin = begin_faulty_upload,
        .publish = publish_faulty_upload,
        .read = read_faulty_object,
        .open = open_faulty_object,
        .map = map_faulty_object,
        .require = require_faulty_ranges,
        .unmap = unmap_faulty_object,
        .list = list_faulty_objects,
        .stat = stat_faulty_object,
        .has_at_hand = has_at_hand,
        .ask = ask_faulty_storage,
        .remove = remove_faulty_object,
        .remove_unfinished = remove_faulty_unfinished,
        .export = export_faulty_object,
        .get_free_bytes = get_faulty_free_bytes,
        .now_ms = read_faulty_clock,
};

struct faulty_storage *faulty_storage_create(struct storage *inner)
{
        struct faulty_storage *f = calloc(1, sizeof *f);

        if (!f)
                abort();
        f->inner = inner;
        f->storage = (struct storage){ .operations = &faulty_operations, .root = strdup(storage_root(inner)) };
        return f;
}

void faulty_storage_set(struct faulty_storage *f, enum storage_fault fault, unsigned at)
{
        f->fault = fault;
        f->fault_at = at;
        f->calls = 0;
        f->is_cut = false;
}
