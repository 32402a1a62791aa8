/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads. The agent's thread calls uploads_add_profile() (last section): it chooses build-ids that are due, those
 * with the most samples first, and opens their files while the processes live. The thread of this file (run_uploads())
 * takes these offers, has a worker inspect them, and moves the files to its own upload_queue. Then it sends one file
 * per round, so that a file found meanwhile can come before the others: ask_for_states() offers the files to the
 * service, settle_unwanted_files() removes those it does not want, upload_item_file() sends the next one.
 *
 * Each build-id has an entry in `history`, begun when it is chosen and ended with an outcome (record_outcome()), which
 * decides when it is due again. A failed offer, or an upload that the token does not permit, pauses all requests and
 * drops the queue: the files are found again by a later profile, so nothing is stored on disk.
 *
 * Lock: service.lock protects `history`, `offers`, `stats` and the pauses. It is not held while files are opened or
 * read or requests run. `workers`, `health`, `opener` and the queue belong to the thread.
 */
#include "agent/uploads/uploads.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "agent/uploads/upload_files.h"
#include "agent/uploads/upload_history.h"
#include "agent/uploads/upload_queue.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/threads/condition.h"
#include "http/http_client.h"
#include "http/service_thread.h"
#include "sampling/objects/mount_probe.h"
#include "sampling/objects/object_cache.h"
#include "sampling/processes/process_read.h"
#include "uploader/offer.h"
#include "uploader/send.h"

struct uploads {
        struct uploads_options options; /* strings are borrowed */
        struct upload_workers workers;  /* used by the thread only, as is health */
        struct worker_health health;
        struct file_opener opener;     /* used by the thread only */
        struct service_thread service; /* its lock protects the members that follow */
        struct upload_history history;
        struct upload_offer offers[LIMIT_AGENT_UPLOAD_OFFERS];
        size_t offer_count;
        int64_t not_before_ns; /* no requests before this time */
        uint64_t pause_ms;     /* the last pause */
        struct uploads_stats stats;
};

static void upload_next_file(struct uploads *u, struct upload_queue *q);

#define VERIFY_TIMEOUT_S 900 /* the service responds after verifying the whole object */

/* @param counter  incremented too; NULL: none. */
static void record_outcome(struct uploads *u, const struct build_id *id, enum upload_history_outcome end,
                           uint64_t *counter)
{
        pthread_mutex_lock(&u->service.lock);
        upload_history_end(&u->history, id, end, monotonic_ns());
        if (counter)
                ++*counter;
        pthread_mutex_unlock(&u->service.lock);
}

/* Caller does not hold the lock. False when the agent stops. */
static bool wait_unless_stopped(struct uploads *u, uint64_t ms)
{
        int64_t until = monotonic_ns() + (int64_t)ms * 1000000;

        pthread_mutex_lock(&u->service.lock);
        while (!atomic_load(&u->service.stop) && condition_wait_until(&u->service.changed, &u->service.lock, until))
                ;
        pthread_mutex_unlock(&u->service.lock);
        return !atomic_load(&u->service.stop);
}

/* A supplementary file is found through the file that links to it, not through a sample. */
static bool begin_supplementary_file(struct uploads *u, const struct upload_offer *o, const struct upload_file *f)
{
        bool ret;

        if (build_id_equal(&o->id, &f->id))
                return true;
        pthread_mutex_lock(&u->service.lock);
        ret = upload_history_begin(&u->history, &f->id, monotonic_ns());
        pthread_mutex_unlock(&u->service.lock);
        return ret;
}

/* Caller does not hold the lock. */
static void change_waiting(struct uploads *u, int64_t by)
{
        pthread_mutex_lock(&u->service.lock);
        assert(by >= 0 || u->stats.waiting >= (uint64_t)-by);
        u->stats.waiting += (uint64_t)by;
        pthread_mutex_unlock(&u->service.lock);
}

static void queue_upload_file(struct uploads *u, struct upload_queue *q, const struct upload_offer *o,
                              struct upload_file *f)
{
        struct queued_upload queued = { .item = { .path = f->path,
                                                  .build_id = f->id,
                                                  .kind = upload_is_stripped(f->quality) ? UPLOAD_SYMBOLS
                                                                                         : UPLOAD_DEBUGINFO,
                                                  .quality = f->quality,
                                                  .split = f->has_code,
                                                  .size_bytes = f->sent_bytes },
                                        .fd = f->fd,
                                        .samples = o->samples };

        if (!begin_supplementary_file(u, o, f)) {
                upload_file_deinit(f);
                return;
        }
        if (f->sent_bytes > u->options.max_bytes) {
                log_info("agent", "the symbols of '%s' are %" PRIu64 " bytes, more than --upload-max-size", f->path,
                         f->sent_bytes);
                record_outcome(u, &f->id, UPLOAD_OUTCOME_SETTLED, &u->stats.too_big);
                upload_file_deinit(f);
                return;
        }
        if (upload_queue_add(q, &queued))
                change_waiting(u, 1);
        else
                record_outcome(u, &f->id, UPLOAD_OUTCOME_LATER, NULL);
}

/* Inspect the files queued by a drain. */
static void inspect_offers(struct uploads *u, struct upload_offer *offers, size_t count, struct upload_queue *q)
{
        for (size_t from = 0; from < count && !atomic_load(&u->service.stop); from += WORKER_INSPECT_FILES) {
                size_t n = count - from < WORKER_INSPECT_FILES ? count - from : WORKER_INSPECT_FILES;
                struct inspected_file inspected[WORKER_INSPECT_FILES];
                struct error ignored; /* logged by u->health */
                int fds[WORKER_INSPECT_FILES];

                for (size_t i = 0; i < n; i++) {
                        upload_offer_open(&offers[from + i], &u->workers);
                        fds[i] = offers[from + i].fd;
                }
                (void)!upload_inspect_files(&u->workers, fds, n, inspected, &ignored);
                for (size_t i = 0; i < n; i++) {
                        struct upload_file files[UPLOAD_FILES_MAX];
                        enum inspect_end end;
                        size_t found = upload_files_find(&offers[from + i], &inspected[i], &u->workers, files, &end);

                        if (!found)
                                record_outcome(u, &offers[from + i].id,
                                               end == INSPECT_DONE ? UPLOAD_OUTCOME_SETTLED : UPLOAD_OUTCOME_FAILED,
                                               end == INSPECT_DONE      ? &u->stats.no_symbols
                                               : end == INSPECT_SKIPPED ? &u->stats.failed
                                                                        : &u->stats.no_worker);
                        for (size_t k = 0; k < found; k++)
                                queue_upload_file(u, q, &offers[from + i], &files[k]);
                }
        }
}

/* Take the files of new build-ids, waiting for them if nothing else is to be done. */
static size_t take_offers(struct uploads *u, bool wait, struct upload_offer ret[static LIMIT_AGENT_UPLOAD_OFFERS])
{
        size_t count;

        pthread_mutex_lock(&u->service.lock);
        while (wait && !u->offer_count && !atomic_load(&u->service.stop))
                pthread_cond_wait(&u->service.changed, &u->service.lock);
        count = u->offer_count;
        memcpy(ret, u->offers, count * sizeof *ret);
        u->offer_count = 0;
        pthread_mutex_unlock(&u->service.lock);
        return count;
}

static void *run_uploads(void *arg)
{
        struct uploads *u = arg;
        struct upload_offer offers[LIMIT_AGENT_UPLOAD_OFFERS];
        struct upload_queue queue = { 0 };
        uint64_t random = 0;

        upload_lower_priority();
        if (u->options.first_wait_ms && getrandom(&random, sizeof random, 0) == sizeof random)
                (void)wait_unless_stopped(u, random % u->options.first_wait_ms);
        while (!atomic_load(&u->service.stop)) {
                size_t count = take_offers(u, !queue.count, offers);

                inspect_offers(u, offers, count, &queue);
                for (size_t i = 0; i < count; i++)
                        upload_offer_deinit(&offers[i]);
                change_waiting(u, -(int64_t)count);
                if (!atomic_load(&u->service.stop))
                        upload_next_file(u, &queue);
        }
        upload_queue_deinit(&queue);
        file_opener_end(&u->opener);
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
                .tenant = o->tenant,
                .user_agent = "cairn-agent/" CAIRN_VERSION,
                .idle_timeout_s = VERIFY_TIMEOUT_S,
                .send_bytes_per_s = o->bytes_per_s,
        };
        enum status st;

        if (!u)
                return error_no_memory(err);
        u->options = *o;
        u->health.missing = "no symbols are uploaded";
        u->workers = (struct upload_workers){ .fork_server = o->fork_server,
                                              .stop = &u->service.stop,
                                              .opener = &u->opener,
                                              .max_bytes = o->max_bytes,
                                              .health = &u->health };
        u->opener = (struct file_opener){ .temporary = o->temporary, .stop = &u->service.stop };
        st = service_thread_init(&u->service, &http, err);
        if (st) {
                free(u);
                return st;
        }
        if (debuginfo_fetcher_is_configured())
                st = debuginfo_fetcher_create(&(struct debuginfo_fetcher_options){ .cancel = &u->service.stop },
                                              &u->workers.fetcher, err);
        if (!st)
                st = service_thread_start(&u->service, "uploads", run_uploads, u, err);
        if (st) {
                uploads_destroy(u);
                return st;
        }
        *ret = u;
        return ST_OK;
}

enum status uploads_set_token(struct uploads *u, const char *token, struct error *err)
{
        return http_client_set_token(u->service.client, token, err);
}

void uploads_destroy(struct uploads *u)
{
        if (!u)
                return;
        if (!service_thread_stop(&u->service)) { /* the thread uses u until the disk responds */
                log_warn("agent", "the thread of symbol uploads does not end: a file does not respond");
                return;
        }
        for (size_t i = 0; i < u->offer_count; i++)
                upload_offer_deinit(&u->offers[i]);
        upload_history_deinit(&u->history);
        service_thread_deinit(&u->service);
        debuginfo_fetcher_destroy(u->workers.fetcher);
        free(u);
}

void uploads_get_stats(struct uploads *u, struct uploads_stats *ret)
{
        pthread_mutex_lock(&u->service.lock);
        *ret = u->stats;
        pthread_mutex_unlock(&u->service.lock);
}

#define ANSWER_AGE_NS (60 * INT64_C(1000000000)) /* after that time another host may have sent the file */
#define FIRST_PAUSE_MS 30000
#define LONGEST_PAUSE_MS 600000
#define REFUSED_PAUSE_MS 3600000

/* Exponential backoff. The files are queued again later. */
static void pause_requests(struct uploads *u, enum status st, const struct error *err)
{
        bool is_away = st == ST_BUSY || st == ST_OS || st == ST_NO_MEMORY;
        uint64_t ms;

        if (atomic_load(&u->service.stop))
                return;
        pthread_mutex_lock(&u->service.lock);
        ms = u->pause_ms ? 2 * u->pause_ms : FIRST_PAUSE_MS;
        u->pause_ms = !is_away ? REFUSED_PAUSE_MS : ms < LONGEST_PAUSE_MS ? ms : LONGEST_PAUSE_MS;
        u->not_before_ns = monotonic_ns() + (int64_t)u->pause_ms * 1000000;
        pthread_mutex_unlock(&u->service.lock);
        log_warn("agent", "pausing symbol uploads for %" PRIu64 " s: %s%s", u->pause_ms / 1000, err->text,
                 st == ST_USAGE ? "; it needs a token with the scope upload, or --no-upload" : "");
}

/* The files are found again by a later profile. */
static void drop_queue(struct uploads *u, struct upload_queue *q)
{
        for (size_t i = 0; i < q->count; i++)
                record_outcome(u, &q->items[i].item.build_id, UPLOAD_OUTCOME_LATER, NULL);
        change_waiting(u, -(int64_t)q->count);
        upload_queue_deinit(q);
}

/* Whether the service must be asked about the file, for the first time or again. */
static bool is_answer_missing(const struct queued_upload *f, int64_t now_ns)
{
        return !f->asked_ns || now_ns - f->asked_ns > ANSWER_AGE_NS;
}

/* Remove the files that the service does not want. */
static void settle_unwanted_files(struct uploads *u, struct upload_queue *q)
{
        for (size_t i = 0; i < q->count;) {
                struct queued_upload f;

                if (q->items[i].item.state == UPLOAD_WANTED) {
                        i++;
                        continue;
                }
                upload_queue_remove(q, i, &f);
                record_outcome(u, &f.item.build_id, UPLOAD_OUTCOME_SETTLED,
                               f.item.state == UPLOAD_THERE ? &u->stats.there : &u->stats.refused);
                queued_upload_deinit(&f);
                change_waiting(u, -1);
        }
}

/* Offer the files whose answer is missing, in one request. */
static enum status ask_for_states(struct uploads *u, struct upload_queue *q, struct error *err)
{
        _cleanup_free_ struct upload_item *asked = calloc(q->count, sizeof *asked);
        struct upload_list list = { .items = asked };
        int64_t now_ns = monotonic_ns();
        enum status st;

        if (!asked)
                return error_no_memory(err);
        for (size_t i = 0; i < q->count; i++)
                if (is_answer_missing(&q->items[i], now_ns))
                        asked[list.count++] = q->items[i].item; /* its strings are borrowed */
        if (!list.count)
                return ST_OK;
        st = offer_files(u->service.client, &list, err);
        if (st)
                return st;
        for (size_t i = 0, k = 0; i < q->count; i++)
                if (is_answer_missing(&q->items[i], now_ns)) {
                        q->items[i].item = asked[k++];
                        q->items[i].asked_ns = now_ns;
                }
        pthread_mutex_lock(&u->service.lock);
        u->stats.offered += list.count;
        u->pause_ms = 0;
        pthread_mutex_unlock(&u->service.lock);
        return ST_OK;
}

/* The bytes to send: made by a worker in a temporary file, unless the file is sent as it is. */
static enum status prepare_content(struct uploads *u, struct upload_item *item, int fd, int *temporary_ret,
                                   struct error *err)
{
        enum status st = ST_BUSY;

        if (!item->split && item->kind != UPLOAD_SYMBOLS)
                return ST_OK;
        for (int tries = 0; tries < 2 && st == ST_BUSY && !atomic_load(&u->service.stop);
             tries++) { /* ST_BUSY: see sandbox/fork_server.h */
                if (*temporary_ret >= 0)
                        close(*temporary_ret);
                *temporary_ret = file_opener_create_temporary(&u->opener);
                if (*temporary_ret < 0)
                        return error_os(err, errno, "cannot create a temporary file");
                st = item->kind == UPLOAD_SYMBOLS
                             ? upload_extract_symbols(&u->workers, fd, *temporary_ret, item, u->options.max_bytes, err)
                             : upload_split_file(&u->workers, fd, *temporary_ret, u->options.max_bytes, err);
        }
        return st;
}

static enum status send_file(struct uploads *u, struct upload_item *item, int fd, struct error *err)
{
        static const struct send_options options = { 0 };
        _cleanup_close_ int temporary = -1;
        int64_t from_ns = monotonic_ns();
        struct stat info;
        enum status st = prepare_content(u, item, fd, &temporary, err);
        struct upload_content content = { .fd = temporary >= 0 ? temporary : fd, .stop = &u->service.stop };

        if (st)
                return st;
        if (fstat(content.fd, &info) < 0)
                return error_os(err, errno, "cannot stat '%s'", item->path);
        content.size_bytes = (uint64_t)info.st_size;
        st = send_content(u->service.client, item, &content, &options, err);
        if (u->options.bytes_per_s) { /* the client limits the rate per file only */
                uint64_t took_ms = (uint64_t)(monotonic_ns() - from_ns) / 1000000;
                uint64_t should_ms = item->sent_bytes * 1000 / u->options.bytes_per_s;

                if (should_ms > took_ms)
                        (void)wait_unless_stopped(u, should_ms - took_ms);
        }
        return st;
}

/* False when further uploads are pointless. */
static bool upload_item_file(struct uploads *u, struct upload_item *item, int fd)
{
        char hex[BUILD_ID_HEX_MAX];
        struct error err;
        enum status st = send_file(u, item, fd, &err);

        if (atomic_load(&u->service.stop))
                return false;
        pthread_mutex_lock(&u->service.lock);
        u->stats.sent_bytes += item->sent_bytes;
        pthread_mutex_unlock(&u->service.lock);
        if (!st) {
                if (item->state == UPLOAD_SENT)
                        log_info("agent", "uploaded the symbols of '%s' (%s): %" PRIu64 " bytes", item->path,
                                 build_id_hex(&item->build_id, hex), item->sent_bytes);
                record_outcome(u, &item->build_id, UPLOAD_OUTCOME_SETTLED,
                               item->state == UPLOAD_SENT ? &u->stats.sent : &u->stats.there);
                return true;
        }
        if (err.reason == WORKER_NOT_STARTED) { /* logged by u->health */
                record_outcome(u, &item->build_id, UPLOAD_OUTCOME_FAILED, &u->stats.no_worker);
                return true;
        }
        log_warn("agent", "cannot upload the symbols of '%s': %s, ignoring", item->path, err.text);
        record_outcome(u, &item->build_id, st == ST_TOO_BIG ? UPLOAD_OUTCOME_SETTLED : UPLOAD_OUTCOME_FAILED,
                       &u->stats.failed);
        if (st == ST_USAGE)
                pause_requests(u, st, &err);
        return st != ST_USAGE;
}

/* Send one file, so that those found meanwhile can come before the others. */
static void upload_next_file(struct uploads *u, struct upload_queue *q)
{
        struct queued_upload f;
        struct error err;
        enum status st = q->count ? ask_for_states(u, q, &err) : ST_OK;

        if (st) {
                pause_requests(u, st, &err);
                drop_queue(u, q);
                return;
        }
        settle_unwanted_files(u, q);
        if (!upload_queue_take(q, &f))
                return;
        if (!upload_item_file(u, &f.item, f.fd) && !atomic_load(&u->service.stop))
                drop_queue(u, q);
        queued_upload_deinit(&f);
        change_waiting(u, -1);
}

/* ---- opening files of new build-ids while their processes live ---- */

struct pending_offer {
        const struct build_id *id; /* in the profile */
        const char *path;
        struct upload_offer offer;
        bool found;
};

struct ranked_mapping {
        uint32_t mapping;
        uint64_t samples;
};

static int compare_mapping_samples(const void *pa, const void *pb)
{
        const struct ranked_mapping *a = pa, *b = pb;

        if (a->samples != b->samples)
                return a->samples > b->samples ? -1 : 1;
        return a->mapping < b->mapping ? -1 : 1;
}

/* The mappings of a profile, those with the highest value of samples first; owned. NULL without memory. */
static struct ranked_mapping *rank_mappings(const struct profile *p)
{
        _cleanup_free_ uint32_t *counted = calloc(p->mappings.count + 1, sizeof *counted);
        struct ranked_mapping *ret = calloc(p->mappings.count + 1, sizeof *ret);

        if (!ret || !counted) {
                free(ret);
                return NULL;
        }
        for (uint32_t i = 0; i < p->mappings.count; i++)
                ret[i].mapping = i;
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_stack *stack = &p->stacks.items[p->samples.items[i].stack];

                for (uint32_t k = 0; k < stack->location_count; k++) {
                        uint32_t m = p->locations.items[p->stack_locations.items[stack->first_location + k]].mapping;

                        if (m == PROFILE_NONE || counted[m] == i + 1)
                                continue;
                        counted[m] = i + 1;
                        ret[m].samples += (uint64_t)p->samples.items[i].value;
                }
        }
        qsort(ret, p->mappings.count, sizeof *ret, compare_mapping_samples);
        return ret;
}

static bool has_due_mapping(const struct upload_history *h, const struct profile *p, int64_t now_ns)
{
        for (uint32_t i = 0; i < p->mappings.count; i++) {
                const struct build_id *id = &p->mappings.items[i].build_id;

                if (id->size && upload_history_is_due(h, id, now_ns))
                        return true;
        }
        return false;
}

/* Caller holds the lock. Build-ids past the limit are found again by a later profile. */
static size_t choose_offers(struct uploads *u, const struct profile *p, struct pending_offer *ret)
{
        _cleanup_free_ struct ranked_mapping *ranked = NULL;
        int64_t now = monotonic_ns();
        size_t n = 0;

        assert(u->offer_count <= u->stats.waiting);
        if (u->not_before_ns > now || u->stats.waiting >= LIMIT_AGENT_UPLOAD_OFFERS ||
            !has_due_mapping(&u->history, p, now))
                return 0;
        ranked = rank_mappings(p);
        for (uint32_t i = 0; ranked && i < p->mappings.count && u->stats.waiting + n < LIMIT_AGENT_UPLOAD_OFFERS; i++) {
                const struct profile_mapping *m = &p->mappings.items[ranked[i].mapping];

                if (!m->build_id.size || !upload_history_begin(&u->history, &m->build_id, now))
                        continue;
                ret[n++] = (struct pending_offer){
                        .id = &m->build_id,
                        .path = profile_text(p, m->file),
                        .offer = { .id = m->build_id, .fd = -1, .root_fd = -1, .samples = ranked[i].samples }
                };
        }
        u->stats.found += n;
        return n;
}

/* A file on a mount with a server is opened by the thread, since even to close it may block (file_opener.h). */
static void open_offer_in_process(struct pending_offer *w, const struct process *process, const struct proc_mapping *m)
{
        _cleanup_close_ int proc_fd = process_open(&process->id);

        if (proc_fd < 0)
                return;
        w->offer.root_fd = openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (mount_probe_is_local(makedev(m->device_major, m->device_minor)))
                w->offer.fd = object_cache_open(proc_fd, m);
        else if (w->offer.root_fd >= 0 && !m->deleted)
                w->found = true;
        w->found = w->found || w->offer.fd >= 0;
        if (!w->found && w->offer.root_fd >= 0) {
                close(w->offer.root_fd);
                w->offer.root_fd = -1;
        }
}

static void match_process_objects(const struct process *process, struct pending_offer *pending, size_t count)
{
        for (size_t i = 0; i < process->maps.count; i++) {
                const struct object *o = process->objects[i];

                for (size_t k = 0; o && k < count; k++)
                        if (!pending[k].found && build_id_equal(&o->build_id, pending[k].id))
                                open_offer_in_process(&pending[k], process, &process->maps.items[i]);
        }
}

void uploads_add_profile(struct uploads *u, const struct profile *p, const struct process_table *processes)
{
        struct pending_offer pending[LIMIT_AGENT_UPLOAD_OFFERS];
        size_t count;

        pthread_mutex_lock(&u->service.lock);
        count = choose_offers(u, p, pending);
        pthread_mutex_unlock(&u->service.lock);
        if (!count)
                return;
        for (size_t i = 0; i < processes->count; i++)
                if (processes->items[i]->has_maps && processes->items[i]->objects)
                        match_process_objects(processes->items[i], pending, count);
        for (size_t i = 0; i < count; i++) {
                if (!pending[i]
                             .found) /* the kernel, or an ended process: the path on the host, if it is the same file */
                        pending[i].offer.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
                pending[i].offer.path = strdup(pending[i].path);
        }
        pthread_mutex_lock(&u->service.lock);
        for (size_t i = 0; i < count; i++) {
                if (pending[i].offer.path) {
                        u->offers[u->offer_count++] = pending[i].offer;
                        u->stats.waiting++;
                } else {
                        upload_history_end(&u->history, pending[i].id, UPLOAD_OUTCOME_LATER, monotonic_ns());
                        upload_offer_deinit(&pending[i].offer);
                }
        }
        pthread_cond_broadcast(&u->service.changed);
        pthread_mutex_unlock(&u->service.lock);
}
