/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/debuginfo/section_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "elf-image/section_list.h"

#define SETS 2048
#define WAYS 4 /* set-associative: a file uses one of these slots in the set chosen by its identity's hash */
#define IDENTITY_SIZE 72

struct slot {
        char identity[IDENTITY_SIZE];
        void *table; /* owned; NULL: empty */
        size_t size;
        uint64_t used; /* value of cache.uses at the last use */
};

static struct {
        pthread_mutex_t lock;
        struct slot slots[SETS][WAYS];
        size_t bytes;
        uint64_t uses;
        size_t hand; /* next set to clear when the total size is too large */
} cache = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct slot *get_table_set(const char *identity)
{
        return cache.slots[hash_bytes64(identity, strlen(identity)) % SETS];
}

static struct slot *find_section_table(const char *identity)
{
        struct slot *set = get_table_set(identity);

        for (size_t i = 0; i < WAYS; i++)
                if (set[i].table && strcmp(set[i].identity, identity) == 0)
                        return &set[i];
        return NULL;
}

static struct slot *find_oldest_table(const char *identity)
{
        struct slot *set = get_table_set(identity), *ret = set;

        for (size_t i = 1; i < WAYS; i++)
                if (set[i].used < ret->used)
                        ret = &set[i];
        return ret;
}

static void clear_section_table(struct slot *s)
{
        cache.bytes -= s->size;
        free(s->table);
        *s = (struct slot){ .table = NULL };
}

void section_table_insert(const char *identity, void *table, size_t n)
{
        struct slot *s;

        if (strlen(identity) >= IDENTITY_SIZE || n > LIMIT_SECTION_TABLES_BYTES / 8) {
                free(table);
                return;
        }
        pthread_mutex_lock(&cache.lock);
        while (cache.bytes && cache.bytes + n > LIMIT_SECTION_TABLES_BYTES) {
                for (size_t i = 0; i < WAYS; i++)
                        clear_section_table(&cache.slots[cache.hand][i]);
                cache.hand = (cache.hand + 1) % SETS;
        }
        s = find_section_table(identity);
        s = s ? s : find_oldest_table(identity);
        clear_section_table(s);
        memcpy(s->identity, identity, strlen(identity) + 1);
        s->table = table;
        s->size = n;
        s->used = ++cache.uses;
        cache.bytes += n;
        pthread_mutex_unlock(&cache.lock);
}

enum section_found section_table_find(const char *identity, const char *name, uint64_t *offset_ret, uint64_t *size_ret)
{
        enum section_found ret = SECTION_UNKNOWN;
        struct slot *s;

        pthread_mutex_lock(&cache.lock);
        s = find_section_table(identity);
        if (s) {
                s->used = ++cache.uses;
                ret = section_list_find(s->table, s->size, name, offset_ret, size_ret, NULL) ? SECTION_ABSENT
                                                                                             : SECTION_FOUND;
        }
        pthread_mutex_unlock(&cache.lock);
        return ret;
}
