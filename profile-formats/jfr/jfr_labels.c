/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/jfr/jfr_labels.h"

#include <stdlib.h>

#include "common/array.h"
#include "common/limits.h"
#include "profile-formats/sample_labels.h"
#include "profile-formats/wire.h"

enum { SNAPSHOT_CONTEXTS = 1, SNAPSHOT_STRINGS = 2, CONTEXT_LABELS = 1, ENTRY_KEY = 1, ENTRY_VALUE = 2 };

static struct number_key make_label_id_key(uint64_t id)
{
        return (struct number_key){ { (uint32_t)(id >> 32), (uint32_t)id } };
}

static enum status refuse_labels(struct error *err)
{
        return error_set(err, ST_BAD_DATA, "the labels of the recording are malformed");
}

/* One entry of a map; absent members are 0 or empty. */
struct map_entry {
        uint64_t key, number;
        struct reader bytes;
};

static enum status read_map_entry(struct reader r, struct map_entry *ret, struct error *err)
{
        struct wire_field f;

        *ret = (struct map_entry){ 0 };
        while (wire_next(&r, &f)) {
                if (f.number == ENTRY_KEY && f.type == WIRE_VARINT)
                        ret->key = f.value;
                else if (f.number == ENTRY_VALUE && f.type == WIRE_VARINT)
                        ret->number = f.value;
                else if (f.number == ENTRY_VALUE && f.type == WIRE_BYTES)
                        ret->bytes = f.bytes;
        }
        return r.failed ? refuse_labels(err) : ST_OK;
}

static enum status add_label_string(struct jfr_labels *l, struct profile *p, const struct map_entry *e,
                                    struct error *err)
{
        const struct number_key key = make_label_id_key(e->key);
        size_t n = utf8_truncate(e->bytes.data, e->bytes.size, LIMIT_LABEL_BYTES);
        uint32_t number;
        bool fresh = false;
        enum status st;

        if (l->strings.count >= LIMIT_JFR_CONTEXTS)
                return error_set(err, ST_TOO_BIG, "the labels of the recording have more than %d strings",
                                 LIMIT_JFR_CONTEXTS);
        st = number_map_get(&l->strings, &key, &number, &fresh, err);
        if (st || !fresh)
                return st;
        if (!array_reserve(&l->string_numbers, &l->string_capacity, number))
                return error_no_memory(err);
        l->string_numbers[number] = 0;
        return profile_add_string(p, n ? (const char *)e->bytes.data : "", n, &l->string_numbers[number], err);
}

static enum status read_context_labels(struct jfr_labels *l, struct reader r, struct sample_labels *labels,
                                       struct error *err)
{
        struct map_entry e;
        struct wire_field f;
        enum status st = ST_OK;

        while (!st && wire_next(&r, &f)) {
                uint32_t name, value;

                if (f.number != CONTEXT_LABELS || f.type != WIRE_BYTES)
                        continue;
                st = read_map_entry(f.bytes, &e, err);
                if (st)
                        break;
                name = jfr_labels_find_string(l, e.key);
                value = jfr_labels_find_string(l, e.number);
                if (name && value)
                        st = sample_labels_set(labels, name, value, err);
        }
        return !st && r.failed ? refuse_labels(err) : st;
}

static enum status add_context(struct jfr_labels *l, struct profile *p, const struct map_entry *e, struct error *err)
{
        const struct number_key key = make_label_id_key(e->key);
        struct sample_labels labels = { .count = 0 };
        struct jfr_label_set set = { 0 };
        uint32_t number = 0;
        bool fresh = false;
        enum status st;

        if (l->contexts.count >= LIMIT_JFR_CONTEXTS)
                return error_set(err, ST_TOO_BIG, "the labels of the recording have more than %d contexts",
                                 LIMIT_JFR_CONTEXTS);
        st = read_context_labels(l, e->bytes, &labels, err);
        set.count = labels.count;
        if (!st && set.count)
                st = profile_add_label_set(p, labels.items, labels.count, &set.first, err);
        if (!st)
                st = number_map_get(&l->contexts, &key, &number, &fresh, err);
        if (st || !fresh)
                return st;
        if (!array_reserve(&l->sets, &l->set_capacity, number))
                return error_no_memory(err);
        l->sets[number] = set;
        return ST_OK;
}

/* Strings first, since contexts refer to them. */
static enum status read_label_entries(struct jfr_labels *l, const void *data, size_t n, struct profile *p,
                                      uint32_t field, struct error *err)
{
        struct wire_field f;
        struct map_entry e;
        struct reader r;
        enum status st = ST_OK;

        reader_init(&r, data, n);
        while (!st && wire_next(&r, &f)) {
                if (f.number != field || f.type != WIRE_BYTES)
                        continue;
                st = read_map_entry(f.bytes, &e, err);
                if (!st)
                        st = field == SNAPSHOT_STRINGS ? add_label_string(l, p, &e, err) : add_context(l, p, &e, err);
        }
        return !st && r.failed ? refuse_labels(err) : st;
}

enum status jfr_labels_read(const void *data, size_t n, struct profile *p, struct jfr_labels *ret, struct error *err)
{
        enum status st;

        *ret = (struct jfr_labels){ .is_given = n > 0 };
        st = read_label_entries(ret, data, n, p, SNAPSHOT_STRINGS, err);
        return st ? st : read_label_entries(ret, data, n, p, SNAPSHOT_CONTEXTS, err);
}

void jfr_labels_deinit(struct jfr_labels *l)
{
        number_map_deinit(&l->contexts);
        number_map_deinit(&l->strings);
        free(l->sets);
        free(l->string_numbers);
}

struct jfr_label_set jfr_labels_find(const struct jfr_labels *l, uint64_t context_id)
{
        const struct number_key key = make_label_id_key(context_id);
        uint32_t number;

        return number_map_find(&l->contexts, &key, &number) ? l->sets[number] : (struct jfr_label_set){ 0 };
}

uint32_t jfr_labels_find_string(const struct jfr_labels *l, uint64_t string_id)
{
        const struct number_key key = make_label_id_key(string_id);
        uint32_t number;

        return number_map_find(&l->strings, &key, &number) ? l->string_numbers[number] : 0;
}
