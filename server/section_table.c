/* SPDX-License-Identifier: Apache-2.0 */
#include "server/section_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"

#define SLOTS 1024 /* a file has one place, by its identity's hash */
#define IDENTITY_SIZE 72

struct slot {
        char identity[IDENTITY_SIZE];
        void *table; /* owned; NULL: empty */
        size_t size;
};

static struct {
        pthread_mutex_t lock;
        struct slot slots[SLOTS];
        size_t bytes;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* An identity is a hash in hexadecimal, so its end is as good as a hash of it. */
static struct slot *slot_of(const char *identity)
{
        size_t n = strlen(identity);

        return &known.slots[strtoul(identity + (n > 7 ? n - 7 : 0), NULL, 16) % SLOTS];
}

enum status section_table_look(const void *table, size_t n, const char *name, uint64_t *offset_ret, uint64_t *size_ret,
                               struct error *err)
{
        struct reader r;
        const char *one;

        reader_init(&r, table, n);
        while (reader_left(&r)) {
                if (!reader_cstr(&r, &one) || !reader_u64(&r, offset_ret) || !reader_u64(&r, size_ret))
                        return error_set(err, ST_BAD_DATA, "the worker's answer is damaged");
                if (strcmp(one, name) == 0)
                        return ST_OK;
        }
        return error_set(err, ST_NOT_FOUND, "the file has no section '%.100s'", name);
}

static void empty(struct slot *s)
{
        known.bytes -= s->size;
        free(s->table);
        *s = (struct slot){ .table = NULL };
}

void section_table_put(const char *identity, void *table, size_t n)
{
        struct slot *s;

        if (strlen(identity) >= IDENTITY_SIZE || n > LIMIT_SECTION_TABLES_BYTES / 8) {
                free(table);
                return;
        }
        pthread_mutex_lock(&known.lock);
        s = slot_of(identity);
        empty(s);
        for (size_t i = 0; i < SLOTS && known.bytes + n > LIMIT_SECTION_TABLES_BYTES; i++)
                empty(&known.slots[i]);
        memcpy(s->identity, identity, strlen(identity) + 1);
        s->table = table;
        s->size = n;
        known.bytes += n;
        pthread_mutex_unlock(&known.lock);
}

enum section_found section_table_find(const char *identity, const char *name, uint64_t *offset_ret, uint64_t *size_ret)
{
        enum section_found ret = SECTION_UNKNOWN;
        struct slot *s;

        pthread_mutex_lock(&known.lock);
        s = slot_of(identity);
        if (s->table && strcmp(s->identity, identity) == 0)
                ret = section_table_look(s->table, s->size, name, offset_ret, size_ret, NULL) ? SECTION_ABSENT : SECTION_FOUND;
        pthread_mutex_unlock(&known.lock);
        return ret;
}
