/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One list in the order of the batches' numbers. The bytes of a batch are in memory, in the spool (disk_bytes not 0),
 * or in both while it is in flight. queued_bytes counts those that are only in memory. Batches of an earlier run enter
 * the list by the names of their files; id, time and bytes are read when it is their turn.
 *
 * outbox_put() appends to memory first and then writes to the spool all that is not there yet, so a failed write needs
 * no other path: the next put tries again. Limits drop the oldest batch of the place that is full, never the one in
 * flight.
 *
 * Order: list, limits, spooling, sending and syncing, batches of earlier runs with outbox_init().
 */
#include "sending/outbox.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/program/log.h"
#include "common/stable_clock.h"
#include "common/text.h"
#include "common/text/number_text.h"

#define DAMAGED_FILES_MAX 64 /* kept for inspection; further ones are removed */

_Static_assert(LIMIT_AGENT_SPOOL_AGE_S + 3600 < LIMIT_BATCH_ID_AGE_S,
               "a service remembers ids for longer than a spool keeps batches");

struct hash128 batch_id_generate(void)
{
        struct hash128 id;

        while (getrandom(&id, sizeof id, 0) != sizeof id) /* never short after boot */
                ;
        return id;
}

const char *batch_id_to_hex(const struct hash128 *id, char ret[static BATCH_ID_HEX])
{
        return hex_encode(id->bytes, sizeof id->bytes, ret);
}

/* ---- list ---- */

static void append_batch(struct outbox *o, struct outbox_batch *b)
{
        if (o->last)
                o->last->next = b;
        else
                o->first = b;
        o->last = b;
        o->stats.queued++;
}

static void unlink_batch(struct outbox *o, struct outbox_batch *b)
{
        struct outbox_batch **at = &o->first, *before = NULL;

        assert(o->stats.queued);
        while (*at != b) {
                before = *at;
                at = &before->next;
        }
        *at = b->next;
        if (o->last == b)
                o->last = before;
        o->stats.queued--;
}

static void free_batch_bytes(struct outbox *o, struct outbox_batch *b)
{
        if (!b->disk_bytes)
                o->stats.queued_bytes -= b->payload_size;
        buf_deinit(&b->bytes);
        b->payload = NULL;
}

static void destroy_batch(struct outbox *o, struct outbox_batch *b)
{
        free_batch_bytes(o, b);
        free(b);
}

static void subtract_spooled_batch(struct outbox *o, struct outbox_batch *b)
{
        assert(o->stats.spooled && o->stats.spool_bytes >= b->disk_bytes);
        o->stats.spooled--;
        o->stats.spool_bytes -= b->disk_bytes;
}

void outbox_remove(struct outbox *o, struct outbox_batch *b)
{
        struct error err;

        unlink_batch(o, b);
        if (b->disk_bytes) {
                if (spool_remove(o->spool, b->number, &err))
                        log_warn("sender", "%s, ignoring", err.text);
                subtract_spooled_batch(o, b);
        }
        destroy_batch(o, b);
}

void outbox_drop(struct outbox *o, struct outbox_batch *b, enum outbox_drop_reason why)
{
        assert(why < DROP_COUNT);
        o->stats.dropped[why]++;
        outbox_remove(o, b);
}

/* ---- limits ---- */

static struct outbox_batch *find_oldest_batch(struct outbox *o, bool on_disk)
{
        struct outbox_batch *b = o->first;

        while (b && (b->in_flight || (b->disk_bytes != 0) != on_disk))
                b = b->next;
        return b;
}

static void make_room_in_memory(struct outbox *o, size_t n)
{
        struct outbox_batch *b;

        while (o->stats.queued_bytes + n > LIMIT_AGENT_QUEUE_BYTES && (b = find_oldest_batch(o, false)))
                outbox_drop(o, b, DROP_MEMORY_FULL);
}

static bool make_room_in_spool(struct outbox *o, uint64_t disk_bytes)
{
        struct outbox_batch *b;

        if (disk_bytes > o->spool_max)
                return false;
        while ((o->stats.spool_bytes + disk_bytes > o->spool_max || o->stats.spooled >= LIMIT_AGENT_SPOOL_FILES) &&
               (b = find_oldest_batch(o, true)))
                outbox_drop(o, b, DROP_SPOOL_FULL);
        return o->stats.spool_bytes + disk_bytes <= o->spool_max;
}

/* ---- spooling ---- */

static bool write_to_spool(struct outbox *o, struct outbox_batch *b)
{
        const struct spool_batch file = { .number = b->number,
                                          .made_unix_ns = b->made_unix_ns,
                                          .id = b->id,
                                          .payload = b->payload,
                                          .payload_size = b->payload_size };
        uint64_t disk_bytes = spool_disk_bytes(b->payload_size);
        struct error err;

        if (!make_room_in_spool(o, disk_bytes))
                return false;
        if (spool_write(o->spool, &file, &err)) {
                if (err.os_errno == ENOSPC || err.os_errno == EDQUOT)
                        o->stats.spool_disk_full++;
                else
                        o->stats.spool_failed++;
                if (!o->spool_failing)
                        log_error("sender", "%s; batches wait in memory until the spool works again", err.text);
                o->spool_failing = true;
                return false;
        }
        if (o->spool_failing)
                log_info("sender", "the spool accepts batches again");
        o->spool_failing = false;
        if (!b->in_flight)
                free_batch_bytes(o, b);
        else
                o->stats.queued_bytes -= b->payload_size;
        b->disk_bytes = disk_bytes;
        o->stats.spooled++;
        o->stats.spool_bytes += disk_bytes;
        return true;
}

static struct outbox_batch *find_oldest_unspooled(struct outbox *o)
{
        struct outbox_batch *b = o->first;

        while (b && (b->disk_bytes || spool_disk_bytes(b->payload_size) > o->spool_max))
                b = b->next;
        return b;
}

/* Write the new batch, and batches left in memory by earlier failures. */
static void write_all_to_spool(struct outbox *o)
{
        struct outbox_batch *b;

        while (o->stats.spooled < o->stats.queued && (b = find_oldest_unspooled(o)) && write_to_spool(o, b))
                ;
}

enum status outbox_put(struct outbox *o, const struct hash128 *id, struct buf *packed, struct error *err)
{
        struct outbox_batch *b = calloc(1, sizeof *b);

        if (!b) {
                buf_deinit(packed);
                return error_no_memory(err);
        }
        b->number = o->next_number++;
        b->id = *id;
        b->made_unix_ns = wall_clock_ns();
        b->bytes = *packed;
        *packed = (struct buf){ 0 };
        b->payload = b->bytes.data;
        b->payload_size = b->bytes.size;
        make_room_in_memory(o, b->payload_size);
        o->stats.queued_bytes += b->payload_size;
        append_batch(o, b);
        if (o->spool)
                write_all_to_spool(o);
        return ST_OK;
}

/* ---- sending ---- */

static void set_damaged_batch_aside(struct outbox *o, struct outbox_batch *b)
{
        struct error err;

        if (o->damaged_files < DAMAGED_FILES_MAX && !spool_set_aside(o->spool, b->number, &err))
                o->damaged_files++;
        outbox_drop(o, b, DROP_DAMAGED);
}

static enum status load_spooled_batch(struct outbox *o, struct outbox_batch *b, struct error *err)
{
        struct spool_batch file;
        enum status st;

        buf_init(&b->bytes, LIMIT_AGENT_QUEUE_BYTES + SPOOL_FILE_HEADER_BYTES);
        st = spool_read(o->spool, b->number, &b->bytes, &file, err);
        if (st) {
                buf_deinit(&b->bytes);
                return st;
        }
        b->id = file.id;
        b->made_unix_ns = file.made_unix_ns;
        b->payload = file.payload;
        b->payload_size = file.payload_size;
        return ST_OK;
}

struct outbox_batch *outbox_take(struct outbox *o)
{
        struct error err;
        struct outbox_batch *b;

        while ((b = o->first)) {
                enum status st = b->payload ? ST_OK : load_spooled_batch(o, b, &err);

                if (st == ST_NO_MEMORY || (st == ST_OS && (err.os_errno == EMFILE || err.os_errno == ENFILE)))
                        return NULL;
                if (st) {
                        log_error("sender", "%s; setting it aside", err.text);
                        set_damaged_batch_aside(o, b);
                } else if (b->made_unix_ns < (stable_unix_s() - LIMIT_AGENT_SPOOL_AGE_S) * INT64_C(1000000000)) {
                        outbox_drop(o, b, DROP_TOO_OLD);
                } else {
                        b->in_flight = true;
                        return b;
                }
        }
        return NULL;
}

void outbox_put_back(struct outbox *o, struct outbox_batch *b)
{
        assert(b->in_flight);
        b->in_flight = false;
        if (b->disk_bytes)
                free_batch_bytes(o, b);
}

size_t outbox_list_unsynced(const struct outbox *o, uint64_t numbers[static OUTBOX_SYNC_MAX])
{
        size_t n = 0;

        for (const struct outbox_batch *b = o->first; b && n < OUTBOX_SYNC_MAX; b = b->next)
                if (b->disk_bytes && !b->synced)
                        numbers[n++] = b->number;
        return n;
}

enum status outbox_sync(struct outbox *o, const uint64_t *numbers, size_t count, struct error *err)
{
        return spool_sync(o->spool, numbers, count, err);
}

void outbox_mark_synced(struct outbox *o, const uint64_t *numbers, size_t count)
{
        size_t i = 0;

        for (struct outbox_batch *b = o->first; b && i < count; b = b->next) {
                while (i < count && numbers[i] < b->number)
                        i++;
                if (i < count && numbers[i] == b->number)
                        b->synced = true;
        }
}

void outbox_deinit(struct outbox *o)
{
        while (o->first) {
                struct outbox_batch *b = o->first;

                unlink_batch(o, b);
                destroy_batch(o, b);
        }
        spool_close(o->spool);
        o->spool = NULL;
}

/* ---- batches of earlier runs ---- */

#define FOREIGN_NAMES_MAX 8 /* listed in the log */

struct foreign_files {
        const char *dir;
        size_t count;
};

static void log_foreign_file(void *context, const char *name)
{
        struct foreign_files *f = context;

        if (f->count++ < FOREIGN_NAMES_MAX)
                log_warn("sender", "the spool '%s' holds '%.64s', which is not a batch, leaving it alone", f->dir,
                         name);
}

static enum status append_found_batches(struct outbox *o, const struct spool_found *found, struct error *err)
{
        o->next_number = found->last_number + 1;
        for (size_t i = 0; i < found->count; i++) {
                struct outbox_batch *b = calloc(1, sizeof *b);

                if (!b)
                        return error_no_memory(err);
                b->number = found->entries[i].number;
                b->disk_bytes = found->entries[i].disk_bytes ? found->entries[i].disk_bytes : spool_disk_bytes(0);
                o->stats.spooled++;
                o->stats.spool_bytes += b->disk_bytes;
                append_batch(o, b);
        }
        (void)make_room_in_spool(o, 0);
        if (o->stats.spooled)
                log_info("sender", "%s in the spool '%s'",
                         COUNTED(o->stats.spooled, "batch of an earlier run waits", "batches of an earlier run wait"),
                         spool_dir(o->spool));
        if (found->damaged)
                log_warn("sender", "the spool '%s' holds %s not needed", spool_dir(o->spool),
                         COUNTED(found->damaged, "damaged file (*.damaged); remove it when it is",
                                 "damaged files (*.damaged); remove them when they are"));
        return ST_OK;
}

enum status outbox_init(struct outbox *o, const char *dir, uint64_t spool_max, struct error *err)
{
        struct foreign_files foreign = { .dir = dir };
        struct spool_found found;
        enum status st;

        *o = (struct outbox){ .spool_max = spool_max, .next_number = 1 };
        if (!dir)
                return ST_OK;
        st = spool_open(dir, log_foreign_file, &foreign, &o->spool, &found, err);
        if (st)
                return st;
        if (foreign.count > FOREIGN_NAMES_MAX)
                log_warn("sender", "the spool '%s' holds %s", dir,
                         COUNTED(foreign.count, "file that is not a batch", "files that are not batches"));
        o->damaged_files = found.damaged;
        st = append_found_batches(o, &found, err);
        spool_found_deinit(&found);
        if (st)
                outbox_deinit(o);
        return st;
}
