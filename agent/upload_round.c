/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/uploads_internal.h"
#include "common/clock.h"
#include "common/log.h"
#include "uploader/send.h"
#include "uploader/split.h"
#include "uploader/want.h"

#define ANSWER_AGE_NS (60 * INT64_C(1000000000)) /* then somebody else may have sent it */
#define FIRST_PAUSE_MS 30000
#define LONGEST_PAUSE_MS 600000
#define REFUSED_PAUSE_MS 3600000

/* Nobody is asked for a while. What was to be sent is met again. */
static void pause_asking(struct uploads *u, enum status st, const struct error *err)
{
        bool is_away = st == ST_BUSY || st == ST_OS || st == ST_NO_MEMORY;
        uint64_t ms;

        if (atomic_load(&u->stop))
                return;
        pthread_mutex_lock(&u->lock);
        ms = u->pause_ms ? 2 * u->pause_ms : FIRST_PAUSE_MS;
        u->pause_ms = !is_away ? REFUSED_PAUSE_MS : ms < LONGEST_PAUSE_MS ? ms : LONGEST_PAUSE_MS;
        u->not_before_ns = monotonic_ns() + (int64_t)u->pause_ms * 1000000;
        pthread_mutex_unlock(&u->lock);
        log_warn("agent", "no symbols are uploaded for %" PRIu64 " s: %s%s", u->pause_ms / 1000, err->text,
                 st == ST_USAGE ? "; it needs a token with the scope upload, or --no-upload" : "");
}

static bool ask(struct uploads *u, struct upload_item *items, size_t count)
{
        struct upload_list rest = { .items = items, .count = count };
        struct error err;
        enum status st = want_ask(u->client, &rest, &err);

        if (st) {
                pause_asking(u, st, &err);
                return false;
        }
        pthread_mutex_lock(&u->lock);
        u->stats.asked += count;
        u->pause_ms = 0;
        pthread_mutex_unlock(&u->lock);
        return true;
}

static int open_temporary(const struct uploads *u, struct error *err)
{
        int fd = u->options.temporary ? open(u->options.temporary, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;

        return fd >= 0 || split_temporary(&fd, err) == ST_OK ? fd : -1;
}

/* The bytes to send, in a file of ours unless they are the file's own. */
static enum status open_content(struct uploads *u, const struct upload_item *item, int fd, int *temporary_ret,
                                struct error *err)
{
        enum status st = ST_BUSY;

        if (!item->split)
                return ST_OK;
        for (int tries = 0; tries < 2 && st == ST_BUSY && !atomic_load(&u->stop); tries++) { /* sandbox/nursery.h */
                if (*temporary_ret >= 0)
                        close(*temporary_ret);
                *temporary_ret = open_temporary(u, err);
                if (*temporary_ret < 0)
                        return err->code;
                st = split_file(&u->workers, fd, *temporary_ret, u->options.max_bytes, err);
        }
        return st;
}

static enum status send_one(struct uploads *u, struct upload_item *item, int fd, struct error *err)
{
        static const struct send_options options = { 0 };
        _cleanup_close_ int temporary = -1;
        int64_t from_ns = monotonic_ns();
        struct stat info;
        enum status st = open_content(u, item, fd, &temporary, err);
        int content = temporary >= 0 ? temporary : fd;

        if (st)
                return st;
        if (fstat(content, &info) < 0)
                return error_os(err, errno, "cannot look at '%s'", item->path);
        st = send_content(u->client, item, content, (uint64_t)info.st_size, &options, NULL, &u->stop, err);
        if (u->options.bytes_per_s) { /* many small files have no average of their own */
                uint64_t took_ms = (uint64_t)(monotonic_ns() - from_ns) / 1000000;
                uint64_t should_ms = item->sent_bytes * 1000 / u->options.bytes_per_s;

                if (should_ms > took_ms)
                        (void)uploads_wait(u, should_ms - took_ms);
        }
        return st;
}

/* False when there is no sense in going on. */
static bool bring(struct uploads *u, struct upload_item *item, int fd)
{
        char hex[BUILD_ID_HEX_MAX];
        struct error err;
        enum status st = send_one(u, item, fd, &err);

        if (atomic_load(&u->stop))
                return false;
        pthread_mutex_lock(&u->lock);
        u->stats.sent_bytes += item->sent_bytes;
        pthread_mutex_unlock(&u->lock);
        if (!st) {
                if (item->state == UPLOAD_SENT)
                        log_info("agent", "uploaded the symbols of '%s' (%s): %" PRIu64 " bytes", item->path,
                                 build_id_hex(&item->build_id, hex), item->sent_bytes);
                uploads_end(u, &item->build_id, UPLOAD_END_SETTLED,
                            item->state == UPLOAD_SENT ? &u->stats.sent : &u->stats.there);
                return true;
        }
        log_warn("agent", "cannot upload the symbols of '%s': %s, ignoring", item->path, err.text);
        uploads_end(u, &item->build_id, st == ST_TOO_BIG ? UPLOAD_END_SETTLED : UPLOAD_END_FAILED, &u->stats.failed);
        if (st == ST_USAGE)
                pause_asking(u, st, &err);
        return st != ST_USAGE;
}

void upload_round_run(struct uploads *u, struct upload_round *round)
{
        struct upload_item *items = round->list.items;
        size_t i = 0, count = round->list.count;
        int64_t asked_ns = 0;
        bool go_on = true;

        for (; i < count && go_on; i++) {
                if (!asked_ns || monotonic_ns() - asked_ns > ANSWER_AGE_NS) {
                        if (!ask(u, &items[i], count - i))
                                break;
                        asked_ns = monotonic_ns();
                }
                if (items[i].state == UPLOAD_WANTED)
                        go_on = bring(u, &items[i], round->fds[i]);
                else
                        uploads_end(u, &items[i].build_id, UPLOAD_END_SETTLED,
                                    items[i].state == UPLOAD_THERE ? &u->stats.there : &u->stats.refused);
        }
        for (; i < count; i++)
                uploads_end(u, &items[i].build_id, UPLOAD_END_LATER, NULL);
}
