/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/threads/waiting_tasks.h"
#include "storage/storage_operations.h"

void storage_close(struct storage *s)
{
        char *root = s ? s->root : NULL;

        if (s)
                s->operations->close(s);
        free(root);
}

void storage_close_pointer(struct storage **s)
{
        storage_close(*s);
}

const char *storage_root(const struct storage *s)
{
        return s->root;
}

char *storage_make_name(const struct storage *s, const char *key)
{
        return path_join(s->root, key);
}

/* ---- writing ---- */

enum status storage_make_folder(struct storage *s, const char *key, struct error *err)
{
        return s->operations->make_folder(s, key, err);
}

static void clear_upload(struct storage_upload *u)
{
        free(u->name);
        free(u->tmp);
        *u = (struct storage_upload){ .fd = -1 };
}

enum status storage_begin(struct storage *s, const char *key, struct storage_upload *ret, struct error *err)
{
        enum status st;

        assert(*key && *key != '/');
        *ret = (struct storage_upload){ .storage = s, .name = storage_make_name(s, key), .fd = -1 };
        if (ret->name)
                ret->key = ret->name + strlen(s->root) + 1;
        st = ret->name ? s->operations->begin(s, ret, err) : error_no_memory(err);
        if (st)
                clear_upload(ret);
        return st;
}

enum status storage_publish(struct storage_upload *u, enum storage_mode mode, struct error *err)
{
        enum status st = u->storage->operations->publish(u->storage, u, mode, err);

        clear_upload(u);
        return st;
}

void storage_discard(struct storage_upload *u)
{
        if (!u->name)
                return;
        close(u->fd);
        unlink(u->tmp);
        clear_upload(u);
}

enum status storage_put(struct storage *s, const char *key, const void *data, size_t n, enum storage_mode mode,
                        struct error *err)
{
        struct storage_upload u;
        enum status st = storage_begin(s, key, &u, err);

        if (st)
                return st;
        st = file_write_all(u.fd, data, n, u.name, err);
        if (!st)
                return storage_publish(&u, mode, err);
        storage_discard(&u);
        return st;
}

/* ---- reading ---- */

enum status storage_read(struct storage *s, const char *key, struct buf *ret, struct error *err)
{
        return s->operations->read(s, key, ret, NULL, err);
}

enum status storage_open(struct storage *s, const char *key, int *fd_ret, struct storage_info *ret, struct error *err)
{
        return s->operations->open(s, key, fd_ret, ret, err);
}

enum status storage_map(struct storage *s, const char *key, size_t max, struct storage_map *ret, struct error *err)
{
        *ret = (struct storage_map){ .storage = s };
        return s->operations->map(s, key, max, ret, err);
}

void storage_unmap(struct storage_map *m)
{
        if (m->storage && m->storage->operations->unmap)
                m->storage->operations->unmap(m);
        else
                file_map_close(&m->file);
        *m = (struct storage_map){ 0 };
}

enum status storage_require(struct storage_map *m, const struct file_range *ranges, size_t count, struct error *err)
{
        return m->storage->operations->require ? m->storage->operations->require(m, ranges, count, err) : ST_OK;
}

bool storage_can_reload(const struct storage_map *m)
{
        return m->storage->operations->reload;
}

enum status storage_reload(struct storage_map *m, const struct file_range *ranges, size_t count, struct error *err)
{
        return storage_can_reload(m) ? m->storage->operations->reload(m, ranges, count, err) : ST_UNSUPPORTED;
}

bool storage_has_at_hand(struct storage *s, const char *key)
{
        return !s->operations->has_at_hand || s->operations->has_at_hand(s, key);
}

enum status storage_list(struct storage *s, const char *folder, const char *after, storage_visit *visit, void *context,
                         struct error *err)
{
        assert(!*folder || folder[strlen(folder) - 1] == '/');
        return s->operations->list(s, folder, after, visit, context, err);
}

enum status storage_stat(struct storage *s, const char *key, struct storage_info *ret, struct error *err)
{
        return s->operations->stat(s, key, ret, err);
}

void storage_answer(struct storage *s, struct storage_question *q)
{
        q->error = (struct error){ 0 };
        q->status = q->text ? s->operations->read(s, q->key, q->text, &q->info, &q->error)
                            : storage_stat(s, q->key, &q->info, &q->error);
}

struct questions {
        struct storage *storage;
        struct storage_question *items;
};

static void answer_question(void *context, size_t index)
{
        const struct questions *all = context;

        storage_answer(all->storage, &all->items[index]);
}

void storage_ask_at_once(struct storage *s, struct storage_question *questions, size_t count)
{
        do_waiting_tasks(count, answer_question, &(struct questions){ s, questions });
}

void storage_ask(struct storage *s, struct storage_question *questions, size_t count)
{
        if (s->operations->ask)
                s->operations->ask(s, questions, count);
        else
                for (size_t i = 0; i < count; i++)
                        storage_answer(s, &questions[i]);
}

enum status storage_export(struct storage *s, const char *key, const char *path, uint64_t *copied_bytes_ret,
                           struct error *err)
{
        return s->operations->export(s, key, path, copied_bytes_ret, err);
}

/* ---- removal, space, time ---- */

enum status storage_remove(struct storage *s, const char *key, struct error *err)
{
        return s->operations->remove(s, key, err);
}

enum status storage_remove_unfinished(struct storage *s, const char *folder, int64_t before_ms, uint64_t *count_ret,
                                      struct error *err)
{
        return s->operations->remove_unfinished(s, folder, before_ms, count_ret, err);
}

uint64_t storage_get_free_bytes(struct storage *s)
{
        return s->operations->get_free_bytes(s);
}

int64_t storage_now_ms(struct storage *s)
{
        return s->operations->now_ms(s);
}
