/* SPDX-License-Identifier: Apache-2.0 */
#include "uploader/send_all.h"

#include <fcntl.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/threads/condition.h"
#include "elf-image/elf_image.h"
#include "uploader/send.h"
#include "uploader/split.h"
#include "uploader/symbols.h"

/* ---- one item ---- */

/* Open the content to send: the split file, or the file itself. The build-id must be the one that was offered. */
static enum status open_upload_content(const struct upload_item *item, const struct source_options *sources,
                                       int *fd_ret, uint64_t *size_ret, struct error *err)
{
        _cleanup_elf_image_ struct elf_image img = { 0 };
        _cleanup_close_ int fd = open(item->path, O_RDONLY | O_CLOEXEC);
        _cleanup_close_ int tmp = -1;
        struct split_range ranges[SPLIT_GO_RANGES_MAX];
        size_t found, named;
        enum status st;

        if (fd < 0)
                return error_os(err, errno, "cannot open '%s'", item->path);
        st = elf_image_from_fd(fd, item->path, &img, err);
        if (st)
                return st;
        if ((item->kind == UPLOAD_EXECUTABLE || item->kind == UPLOAD_SOURCE ||
             (item->kind == UPLOAD_DEBUGINFO && img.build_id.size)) &&
            !build_id_equal(&img.build_id, &item->build_id))
                return error_set(err, ST_NOT_FOUND, "'%s' was replaced while it was offered; upload it again",
                                 item->path);
        if (!item->split && item->kind != UPLOAD_SOURCE) {
                *size_ret = img.size;
                *fd_ret = steal_fd(&fd);
                return ST_OK;
        }
        st = split_create_temporary(&tmp, err);
        if (!st && item->kind == UPLOAD_SOURCE)
                st = sources_write(&img, sources, tmp, size_ret, &found, &named, err);
        else if (!st)
                st = split_write(&img, ranges, split_find_go_ranges(&img, ranges), tmp, size_ret, err);
        if (!st)
                *fd_ret = steal_fd(&tmp);
        return st;
}

static enum status open_symbols_content(struct upload_item *item, int *fd_ret, uint64_t *size_ret,
                                        const atomic_bool *stop, struct error *err)
{
        _cleanup_close_ int tmp = -1;
        enum status st = split_create_temporary(&tmp, err);

        if (!st)
                st = symbols_write(item, tmp, size_ret, stop, err);
        if (!st)
                *fd_ret = steal_fd(&tmp);
        return st;
}

static enum status send_item(struct http_client *client, struct upload_item *item, const struct send_options *o,
                             _Atomic uint64_t *moved, const atomic_bool *stop, struct error *err)
{
        _cleanup_close_ int fd = -1;
        struct upload_content content = { .moved = moved, .stop = stop };
        enum status st = item->kind == UPLOAD_SYMBOLS
                                 ? open_symbols_content(item, &fd, &content.size_bytes, stop, err)
                                 : open_upload_content(item, &o->sources, &fd, &content.size_bytes, err);

        if (st == ST_NOT_FOUND &&
            item->kind == UPLOAD_SOURCE) { /* not a failure: sources of a library are rarely present */
                item->state = UPLOAD_REFUSED;
                snprintf(item->reason, sizeof item->reason, "%s", err->text);
                return ST_OK;
        }
        content.fd = fd;
        return st ? st : send_content(client, item, &content, o, err);
}

/* ---- all items ---- */

#define GIVE_UP_AFTER 3 /* consecutive failures of the service, not of a file */

struct send_pool {
        struct upload_list *list;
        struct report *report;
        const struct send_options *options;
        const atomic_bool *stop;
        atomic_size_t next; /* next item to send */
        atomic_uint failures_in_a_row;
        atomic_bool give_up;
        atomic_uint running;
        pthread_mutex_t lock;
        pthread_cond_t ended; /* running decreased */
};

struct send_thread {
        struct send_pool *crew;
        struct http_client *client;
        pthread_t thread;
};

static void count_failure_in_row(struct send_pool *c, enum status st)
{
        if (st == ST_USAGE || (st == ST_BUSY && atomic_fetch_add(&c->failures_in_a_row, 1) + 1 >= GIVE_UP_AFTER))
                atomic_store(&c->give_up, true);
        else if (st != ST_BUSY)
                atomic_store(&c->failures_in_a_row, 0);
}

static void *run_send_thread(void *context)
{
        struct send_thread *w = context;
        struct send_pool *c = w->crew;

        for (;;) {
                size_t i = atomic_fetch_add(&c->next, 1);
                struct upload_item *item;
                struct error err;
                enum status st;

                if (i >= c->list->count || atomic_load(&c->give_up) || (c->stop && atomic_load(c->stop)))
                        break;
                item = &c->list->items[i];
                if (item->state != UPLOAD_WANTED)
                        continue;
                st = send_item(w->client, item, c->options, &c->report->moved, c->stop, &err);
                if (st) {
                        item->state = UPLOAD_FAILED;
                        item->failure = st;
                        snprintf(item->reason, sizeof item->reason, "%s", err.text);
                }
                count_failure_in_row(c, st);
                report_add_item(c->report, item);
        }
        pthread_mutex_lock(&c->lock);
        atomic_fetch_sub(&c->running, 1);
        pthread_cond_signal(&c->ended);
        pthread_mutex_unlock(&c->lock);
        return NULL;
}

static void count_items_to_send(const struct upload_list *list, struct report *report)
{
        for (size_t i = 0; i < list->count; i++) {
                if (list->items[i].state != UPLOAD_WANTED)
                        continue;
                report->total++;
                report->total_bytes += list->items[i].size_bytes;
        }
}

#define PROGRESS_NS 200000000 /* interval of progress updates */

static void wait_for_send_threads(struct send_pool *c)
{
        pthread_mutex_lock(&c->lock);
        while (atomic_load(&c->running)) {
                condition_wait_until(&c->ended, &c->lock, monotonic_ns() + PROGRESS_NS);
                report_draw_progress(c->report);
        }
        pthread_mutex_unlock(&c->lock);
}

enum status send_items(const struct http_client_options *options, struct upload_list *list, unsigned jobs,
                       const struct send_options *how, struct report *report, struct error *err)
{
        struct send_pool crew = { .list = list,
                                  .report = report,
                                  .options = how,
                                  .stop = options->stop,
                                  .lock = PTHREAD_MUTEX_INITIALIZER,
                                  .ended = PTHREAD_COND_INITIALIZER };
        struct send_thread workers[SEND_JOBS_MAX];
        unsigned started = 0;
        enum status st = ST_OK;

        count_items_to_send(list, report);
        if (jobs > report->total)
                jobs = (unsigned)report->total;
        for (; started < jobs && started < SEND_JOBS_MAX && !st; started++) {
                struct send_thread *w = &workers[started];
                int rc;

                *w = (struct send_thread){ .crew = &crew };
                st = http_client_create(options, &w->client, err);
                if (st)
                        break;
                atomic_fetch_add(&crew.running, 1);
                rc = pthread_create(&w->thread, NULL, run_send_thread, w);
                if (rc) {
                        atomic_fetch_sub(&crew.running, 1);
                        http_client_destroy(w->client);
                        st = error_os(err, rc, "cannot start a thread");
                        break;
                }
        }
        wait_for_send_threads(&crew);
        for (unsigned i = 0; i < started; i++) {
                pthread_join(workers[i].thread, NULL);
                http_client_destroy(workers[i].client);
        }
        return started ? ST_OK : st;
}
