/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/storage_probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/clock.h"
#include "common/limits.h"
#include "common/text.h"

#define TEXT_BYTES KiB(96) /* more than the end of an object that a map fetches anyway */

struct race {
        struct storage *storage;
        const char *key;
        pthread_mutex_t lock;
        pthread_cond_t begun;
        bool has_begun;
        struct storage_probe *result;
};

static void *race_for_key(void *context)
{
        struct race *r = context;
        enum status st;

        pthread_mutex_lock(&r->lock);
        while (!r->has_begun)
                pthread_cond_wait(&r->begun, &r->lock);
        pthread_mutex_unlock(&r->lock);
        st = storage_put(r->storage, r->key, "x", 1, STORAGE_NEW, NULL);
        pthread_mutex_lock(&r->lock);
        r->result->created += st == ST_OK;
        r->result->refused += st == ST_BUSY;
        r->result->failed += st && st != ST_BUSY;
        pthread_mutex_unlock(&r->lock);
        return NULL;
}

static enum status probe_races(struct storage *s, const char *key, struct storage_probe *ret, struct error *err)
{
        struct race r = { s, key, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, ret };
        pthread_t racers[STORAGE_PROBE_RACERS];
        unsigned count = 0;

        while (count < STORAGE_PROBE_RACERS && !pthread_create(&racers[count], NULL, race_for_key, &r))
                count++;
        pthread_mutex_lock(&r.lock);
        r.has_begun = true;
        pthread_cond_broadcast(&r.begun);
        pthread_mutex_unlock(&r.lock);
        for (unsigned i = 0; i < count; i++)
                pthread_join(racers[i], NULL);
        if (count < STORAGE_PROBE_RACERS)
                return error_set(err, ST_OS, "cannot start %d threads to probe the object store", STORAGE_PROBE_RACERS);
        if (ret->created <= 1 && ret->refused == 0)
                return error_set(err, ST_OS, "of %d racing creates of one key %u succeeded and %u failed",
                                 STORAGE_PROBE_RACERS, ret->created, ret->failed);
        return storage_remove(s, key, err);
}

/* Whether an object is there and how large it is. A storage that does not answer has said neither. */
static enum status probe_presence(struct storage *s, const char *key, bool *exists_ret, uint64_t *bytes_ret,
                                  struct error *err)
{
        struct storage_info info = { 0 };
        enum status st = storage_stat(s, key, &info, err);

        *exists_ret = st == ST_OK;
        *bytes_ret = info.size;
        return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status note_listed(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        (void)key, (void)info, (void)err;
        *(bool *)context = true;
        return ST_OK;
}

static enum status probe_range(struct storage *s, const char *key, const char *text, struct storage_probe *ret,
                               struct error *err)
{
        _cleanup_storage_map_ struct storage_map map = { 0 };
        struct error why = { 0 };
        enum status st = storage_map(s, key, TEXT_BYTES, &map, &why);

        if (!st)
                st = storage_require(&map, &(struct file_range){ 0, 100 }, 1, &why);
        if (!st)
                ret->has_ranges = map.file.size == TEXT_BYTES && memcmp(map.file.data, text, 100) == 0;
        if (st == ST_OS && why.os_errno == EOPNOTSUPP) /* it has been said that there are none */
                return ST_OK;
        if (st && err)
                *err = why;
        return st;
}

/* So that no range of it equals another. */
static void fill_probe_text(char *text)
{
        for (size_t i = 0; i < TEXT_BYTES; i += 8)
                snprintf(text + i, 8, "%07zu", i);
}

static enum status probe_object(struct storage *s, const char *folder, const char *key, struct storage_probe *ret,
                                struct error *err)
{
        _cleanup_free_ char *text = malloc(TEXT_BYTES);
        bool existed = false, is_there = false, is_kept = false;
        uint64_t bytes = 0, unused;
        enum status st = text ? ST_OK : error_no_memory(err);

        if (st)
                return st;
        fill_probe_text(text);
        st = probe_presence(s, key, &existed, &unused, err); /* the store must not remember that it is absent */
        if (!st)
                st = storage_make_folder(s, key, err);
        if (!st)
                st = storage_put(s, key, text, TEXT_BYTES, STORAGE_NEW, err);
        if (!st)
                st = probe_presence(s, key, &is_there, &bytes, err);
        if (!st)
                st = storage_list(s, folder, "", note_listed, &ret->lists_own_writes, err);
        if (!st)
                st = probe_range(s, key, text, ret, err);
        if (!st)
                st = storage_remove(s, key, err);
        if (!st)
                st = probe_presence(s, key, &is_kept, &unused, err);
        ret->reads_own_writes = !existed && is_there && bytes == TEXT_BYTES && !is_kept;
        return st;
}

enum status storage_run_probe(struct storage *s, struct storage_probe *ret, struct error *err)
{
        char folder[64], object[80], race[80], id[17];
        uint8_t random[8];
        enum status st;

        *ret = (struct storage_probe){ 0 };
        if (getrandom(random, sizeof random, 0) != sizeof random)
                return error_os(err, errno, "cannot get random bytes");
        hex_encode(random, sizeof random, id);
        snprintf(folder, sizeof folder, "probe/%s/", id);
        snprintf(object, sizeof object, "%sobject", folder);
        snprintf(race, sizeof race, "%srace", folder);
        st = probe_object(s, folder, object, ret, err);
        if (!st)
                st = storage_make_folder(s, race, err);
        if (!st)
                st = probe_races(s, race, ret, err);
        ret->ahead_ms = storage_now_ms(s) - wall_clock_ns() / 1000000;
        return st;
}

bool storage_lacks_conditional_put(const struct storage_probe *p)
{
        return p->created > 1;
}
