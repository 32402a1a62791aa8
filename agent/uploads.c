/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/uploads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "agent/uploads_internal.h"
#include "common/clock.h"
#include "common/condition.h"
#include "common/log.h"

#define VERIFY_TIMEOUT_S 900 /* the service answers after it has read the whole object in a worker */

void uploads_end(struct uploads *u, const struct build_id *id, enum upload_end end, uint64_t *counter)
{
        pthread_mutex_lock(&u->lock);
        upload_known_end(&u->known, id, end, monotonic_ns());
        if (counter)
                ++*counter;
        pthread_mutex_unlock(&u->lock);
}

bool uploads_wait(struct uploads *u, uint64_t ms)
{
        int64_t until = monotonic_ns() + (int64_t)ms * 1000000;

        pthread_mutex_lock(&u->lock);
        while (!atomic_load(&u->stop) && condition_wait_until(&u->changed, &u->lock, until))
                ;
        pthread_mutex_unlock(&u->lock);
        return !atomic_load(&u->stop);
}

/* A supplementary file is met by the file that links to it, not by a sample. */
static bool is_new(struct uploads *u, const struct upload_offer *o, const struct upload_file *f)
{
        bool ret;

        if (build_id_equal(&o->id, &f->id))
                return true;
        pthread_mutex_lock(&u->lock);
        ret = upload_known_begin(&u->known, &f->id, monotonic_ns());
        pthread_mutex_unlock(&u->lock);
        return ret;
}

static void add_file(struct uploads *u, struct upload_round *r, const struct upload_offer *o, struct upload_file *f)
{
        if (!is_new(u, o, f)) {
                upload_file_deinit(f);
                return;
        }
        if (f->sent_bytes > u->options.max_bytes) {
                log_info("agent", "the symbols of '%s' are %" PRIu64 " bytes, more than --upload-max-size", f->path,
                         f->sent_bytes);
                uploads_end(u, &f->id, UPLOAD_END_SETTLED, &u->stats.too_big);
                upload_file_deinit(f);
                return;
        }
        r->fds[r->list.count] = f->fd;
        r->list.items[r->list.count++] = (struct upload_item){ .path = f->path, .build_id = f->id, .kind = UPLOAD_DEBUGINFO,
                                                               .quality = f->quality, .split = f->has_code,
                                                               .size_bytes = f->sent_bytes };
}

/* Look at what the drain handed over. */
static void inspect_offers(struct uploads *u, struct upload_offer *offers, size_t count, struct upload_round *r)
{
        for (size_t from = 0; from < count && !atomic_load(&u->stop); from += WORKER_INSPECT_FILES) {
                size_t n = count - from < WORKER_INSPECT_FILES ? count - from : WORKER_INSPECT_FILES;
                struct inspected inspected[WORKER_INSPECT_FILES];
                int fds[WORKER_INSPECT_FILES];

                for (size_t i = 0; i < n; i++)
                        fds[i] = offers[from + i].fd;
                inspect_files(&u->workers, fds, n, inspected);
                for (size_t i = 0; i < n; i++) {
                        struct upload_file files[UPLOAD_FILES_MAX];
                        bool is_unseen;
                        size_t found = upload_files_find(&offers[from + i], &inspected[i], &u->workers, files, &is_unseen);

                        if (!found)
                                uploads_end(u, &offers[from + i].id, is_unseen ? UPLOAD_END_FAILED : UPLOAD_END_SETTLED,
                                            is_unseen ? &u->stats.failed : &u->stats.no_symbols);
                        for (size_t k = 0; k < found; k++)
                                add_file(u, r, &offers[from + i], &files[k]);
                }
        }
}

static void work_on(struct uploads *u, struct upload_offer *offers, size_t count)
{
        struct upload_round r = { .list.items = calloc(UPLOAD_FILES_MAX * count, sizeof *r.list.items) };

        for (size_t i = 0; i < count && !r.list.items; i++)
                uploads_end(u, &offers[i].id, UPLOAD_END_LATER, NULL);
        if (r.list.items)
                inspect_offers(u, offers, count, &r);
        if (r.list.count && !atomic_load(&u->stop))
                upload_round_run(u, &r);
        for (size_t i = 0; i < r.list.count; i++)
                close(r.fds[i]);
        upload_list_deinit(&r.list);
}

static void *run(void *arg)
{
        struct uploads *u = arg;
        struct upload_offer offers[LIMIT_AGENT_UPLOAD_OFFERS];
        uint64_t dice = 0;

        upload_be_the_nicest();
        if (u->options.first_wait_ms && getrandom(&dice, sizeof dice, 0) == sizeof dice)
                (void)uploads_wait(u, dice % u->options.first_wait_ms);
        pthread_mutex_lock(&u->lock);
        while (!atomic_load(&u->stop)) {
                size_t count = u->offer_count;

                if (!count) {
                        pthread_cond_wait(&u->changed, &u->lock);
                        continue;
                }
                memcpy(offers, u->offers, count * sizeof *offers);
                u->offer_count = 0;
                pthread_mutex_unlock(&u->lock);
                work_on(u, offers, count);
                for (size_t i = 0; i < count; i++)
                        upload_offer_deinit(&offers[i]);
                pthread_mutex_lock(&u->lock);
                u->stats.waiting -= count;
        }
        pthread_mutex_unlock(&u->lock);
        return NULL;
}

enum status uploads_create(const struct uploads_options *o, struct uploads **ret, struct error *err)
{
        struct uploads *u = calloc(1, sizeof *u);
        struct http_client_options http = {
                .size = sizeof http,
                .base_url = o->server,
                .ca_file = o->ca_file,
                .token = o->token,
                .user_agent = "cairn-agent/" CAIRN_VERSION,
                .idle_timeout_s = VERIFY_TIMEOUT_S,
                .send_bytes_per_s = o->bytes_per_s,
        };
        enum status st;
        int e;

        if (!u)
                return error_no_memory(err);
        u->options = *o;
        u->workers = (struct upload_workers){ .nursery = o->nursery, .stop = &u->stop };
        http.stop = &u->stop;
        st = http_client_create(&http, &u->client, err);
        if (st) {
                free(u);
                return st;
        }
        pthread_mutex_init(&u->lock, NULL);
        pthread_cond_init(&u->changed, NULL);
        e = pthread_create(&u->thread, NULL, run, u);
        if (e) {
                pthread_cond_destroy(&u->changed);
                pthread_mutex_destroy(&u->lock);
                http_client_destroy(u->client);
                free(u);
                return error_os(err, e, "cannot start the thread that uploads");
        }
        pthread_setname_np(u->thread, "uploads");
        *ret = u;
        return ST_OK;
}

void uploads_destroy(struct uploads *u)
{
        if (!u)
                return;
        pthread_mutex_lock(&u->lock);
        atomic_store(&u->stop, true);
        pthread_cond_broadcast(&u->changed);
        pthread_mutex_unlock(&u->lock);
        pthread_join(u->thread, NULL);
        for (size_t i = 0; i < u->offer_count; i++)
                upload_offer_deinit(&u->offers[i]);
        upload_known_deinit(&u->known);
        pthread_cond_destroy(&u->changed);
        pthread_mutex_destroy(&u->lock);
        http_client_destroy(u->client);
        free(u);
}

void uploads_stats(struct uploads *u, struct uploads_stats *ret)
{
        pthread_mutex_lock(&u->lock);
        *ret = u->stats;
        pthread_mutex_unlock(&u->lock);
}
