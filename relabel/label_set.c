/* SPDX-License-Identifier: Apache-2.0 */
#include "relabel/label_set.h"

#include <ctype.h>
#include <string.h>

#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/utf8.h"

static void free_set_label(struct set_label *l)
{
        free(l->name);
        free(l->value);
}

void label_set_deinit(struct label_set *l)
{
        for (size_t i = 0; i < l->count; i++)
                free_set_label(&l->items[i]);
        free(l->items);
        *l = (struct label_set){ 0 };
}

/* The index of a name, or where to insert it. */
static size_t find_set_label(const struct label_set *l, const char *name, bool *found_ret)
{
        size_t i = 0;
        int order = 1;

        while (i < l->count && (order = strcmp(l->items[i].name, name)) < 0)
                i++;
        *found_ret = i < l->count && order == 0;
        return i;
}

const char *label_set_get(const struct label_set *l, const char *name)
{
        bool found;
        size_t i = find_set_label(l, name, &found);

        return found ? l->items[i].value : "";
}

static void remove_set_label(struct label_set *l, size_t i)
{
        free_set_label(&l->items[i]);
        memmove(&l->items[i], &l->items[i + 1], (l->count - i - 1) * sizeof *l->items);
        l->count--;
}

static size_t count_label_bytes(const struct label_set *l)
{
        size_t n = 0;

        for (size_t i = 0; i < l->count; i++)
                n += strlen(l->items[i].name) + strlen(l->items[i].value);
        return n;
}

static enum status insert_set_label(struct label_set *l, size_t i, const char *name, char **value, struct error *err)
{
        char *copy;

        if (l->count >= LIMIT_RELABEL_LABELS)
                return error_set(err, ST_TOO_BIG, "more than %d labels", LIMIT_RELABEL_LABELS);
        if (!array_reserve(&l->items, &l->capacity, l->count))
                return error_no_memory(err);
        copy = strdup(name);
        if (!copy)
                return error_no_memory(err);
        memmove(&l->items[i + 1], &l->items[i], (l->count - i) * sizeof *l->items);
        l->items[i] = (struct set_label){ copy, steal_ptr(*value) };
        l->count++;
        return ST_OK;
}

enum status label_set_put(struct label_set *l, const char *name, const char *value, struct error *err)
{
        _cleanup_free_ char *copy = NULL;
        bool found;
        size_t i = find_set_label(l, name, &found);

        if (!*value) {
                if (found)
                        remove_set_label(l, i);
                return ST_OK;
        }
        if (strlen(name) > LIMIT_LABEL_KEY_BYTES || strlen(value) > LIMIT_LABEL_BYTES)
                return error_set(err, ST_TOO_BIG, "label '%.60s' is longer than a name of %d or a value of %zu bytes",
                                 PRINTABLE(name), LIMIT_LABEL_KEY_BYTES, LIMIT_LABEL_BYTES);
        if (count_label_bytes(l) + strlen(name) + strlen(value) > LIMIT_RELABEL_LABELS_BYTES)
                return error_set(err, ST_TOO_BIG, "label '%.60s' exceeds the limit of all labels together, %zu bytes",
                                 PRINTABLE(name), LIMIT_RELABEL_LABELS_BYTES);
        copy = strdup(value);
        if (!copy)
                return error_no_memory(err);
        if (!found)
                return insert_set_label(l, i, name, &copy, err);
        free(l->items[i].value);
        l->items[i].value = steal_ptr(copy);
        return ST_OK;
}

enum status label_set_put_all(struct label_set *l, const struct label_set *from, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < from->count; i++)
                st = label_set_put(l, from->items[i].name, from->items[i].value, err);
        return st;
}

bool label_set_equal(const struct label_set *a, const struct label_set *b)
{
        if (a->count != b->count)
                return false;
        for (size_t i = 0; i < a->count; i++)
                if (strcmp(a->items[i].name, b->items[i].name) != 0 ||
                    strcmp(a->items[i].value, b->items[i].value) != 0)
                        return false;
        return true;
}

bool label_name_is_valid(const char *name)
{
        const unsigned char *c = (const unsigned char *)name;

        if (!*c || isdigit(*c) || *c == '.')
                return false;
        while (*c < 0x80 && (isalnum(*c) || *c == '_' || *c == '.'))
                c++;
        return !*c;
}
