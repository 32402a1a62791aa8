/* SPDX-License-Identifier: Apache-2.0 */
#include "server/core/senders.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/hash/lru_table.h"
#include "common/limits.h"
#include "common/memory/memory_budget.h"

#define KEY_SIZE (SENDER_HOST_SIZE + SENDER_AGENT_SIZE + SENDER_ADDRESS_SIZE)

struct kept_sender {
        struct lru_entry lru;
        struct sender_record sender;
};

struct senders {
        pthread_mutex_t lock;
        uint64_t forgotten;
        struct memory_reservation memory;
        struct lru_table table;
};

enum status senders_create(struct senders **ret, struct error *err)
{
        struct senders *s = calloc(1, sizeof *s);

        if (!s)
                return error_no_memory(err);
        if (lru_table_init(&s->table, LIMIT_SENDERS, err)) {
                free(s);
                return ST_NO_MEMORY;
        }
        pthread_mutex_init(&s->lock, NULL);
        s->memory.use = MEMORY_CACHES;
        *ret = s;
        return ST_OK;
}

void senders_destroy(struct senders *s)
{
        if (!s)
                return;
        for (struct lru_entry *oldest; (oldest = lru_table_oldest(&s->table));) {
                lru_table_remove(&s->table, oldest);
                free(oldest);
        }
        lru_table_deinit(&s->table);
        memory_release(&s->memory);
        pthread_mutex_destroy(&s->lock);
        free(s);
}

/* Length of a text after truncation to its buffer. */
static size_t get_kept_length(const char *text, size_t size)
{
        return strnlen(text, size - 1);
}

/* Length of the program name in a User-Agent, without its version. */
static size_t get_program_length(const char *agent)
{
        size_t program = strcspn(agent, "/");

        return program < SENDER_AGENT_SIZE - 1 ? program : SENDER_AGENT_SIZE - 1;
}

/* Hash of the host, or of the address without one, and the program. */
static uint64_t hash_sender(const struct sender_name *name)
{
        bool has_host = *name->host;
        const char *where = has_host ? name->host : name->address;
        size_t n = get_kept_length(where, has_host ? SENDER_HOST_SIZE : SENDER_ADDRESS_SIZE);
        size_t program = get_program_length(name->agent);
        char key[KEY_SIZE];

        key[0] = has_host ? 'h' : 'a';
        memcpy(key + 1, where, n);
        key[1 + n] = 0;
        memcpy(key + 2 + n, name->agent, program);
        return keyed_hash(key, 2 + n + program);
}

static bool is_sender(const struct lru_entry *entry, const void *key)
{
        const struct sender_record *s = &((const struct kept_sender *)entry)->sender;
        const struct sender_name *name = key;
        size_t program = get_program_length(s->agent);

        if (get_program_length(name->agent) != program || memcmp(s->agent, name->agent, program) != 0)
                return false;
        if (*s->host || *name->host)
                return strncmp(s->host, name->host, SENDER_HOST_SIZE - 1) == 0;
        return strncmp(s->address, name->address, SENDER_ADDRESS_SIZE - 1) == 0;
}

/* Reuses the least recently used entry when the limit or the memory budget is reached. NULL when there is none. */
static struct kept_sender *add_sender(struct senders *s, uint64_t hash)
{
        struct kept_sender *k = NULL;

        if (s->table.count < LIMIT_SENDERS && !memory_reserve(&s->memory, sizeof *k, NULL)) {
                k = malloc(sizeof *k);
                if (!k)
                        memory_shrink(&s->memory, s->table.count * sizeof *k);
        }
        if (!k) {
                k = (struct kept_sender *)lru_table_oldest(&s->table);
                if (!k)
                        return NULL;
                lru_table_remove(&s->table, &k->lru);
                s->forgotten++;
        }
        memset(k, 0, sizeof *k);
        lru_table_insert(&s->table, &k->lru, hash);
        return k;
}

static void record_sender_batch(struct sender_record *to, const struct sender_name *name,
                                const struct sender_batch *batch)
{
        if (!to->batches)
                to->first_unix_ns = batch->now_unix_ns;
        snprintf(to->host, sizeof to->host, "%s", name->host);
        snprintf(to->agent, sizeof to->agent, "%s", name->agent);
        snprintf(to->address, sizeof to->address, "%s", name->address);
        to->last_unix_ns = batch->now_unix_ns;
        to->newest_unix_ns = batch->newest_unix_ns;
        to->last_samples = batch->samples;
        to->batches++;
        to->samples += batch->samples;
        to->rejected += batch->rejected;
}

void senders_note_batch(struct senders *s, const struct sender_name *name, const struct sender_batch *batch)
{
        uint64_t hash = hash_sender(name);
        struct kept_sender *k;

        pthread_mutex_lock(&s->lock);
        k = (struct kept_sender *)lru_table_find(&s->table, hash, is_sender, name);
        if (!k)
                k = add_sender(s, hash);
        if (k) {
                record_sender_batch(&k->sender, name, batch);
                lru_table_touch(&s->table, &k->lru);
        }
        pthread_mutex_unlock(&s->lock);
}

void senders_count(struct senders *s, size_t *kept_ret, uint64_t *forgotten_ret)
{
        pthread_mutex_lock(&s->lock);
        *kept_ret = s->table.count;
        *forgotten_ret = s->forgotten;
        pthread_mutex_unlock(&s->lock);
}

enum status senders_copy(struct senders *s, size_t max, struct sender_record **ret, size_t *count_ret,
                         struct error *err)
{
        struct sender_record *items = calloc(max + 1, sizeof *items);
        size_t count = 0;

        if (!items)
                return error_no_memory(err);
        pthread_mutex_lock(&s->lock);
        for (struct lru_entry *k = lru_table_newest(&s->table); k && count < max; k = lru_entry_older(k))
                items[count++] = ((struct kept_sender *)k)->sender;
        pthread_mutex_unlock(&s->lock);
        *ret = items;
        *count_ret = count;
        return ST_OK;
}
