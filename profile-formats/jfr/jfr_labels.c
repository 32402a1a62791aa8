/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/jfr/jfr_labels.h"

#include <stdlib.h>

#include "common/memory/array.h"
#include "common/limits.h"
#include "profile-formats/proto/jfr_labels.pb-c.h"
#include "profile-formats/proto_message.h"
#include "profile-formats/sample_labels.h"

typedef JfrLabels__LabelsSnapshot__StringEntry proto_string;
typedef JfrLabels__LabelsSnapshot__ContextEntry proto_context;
typedef JfrLabels__Context__LabelEntry proto_label;

static struct number_key make_label_id_key(uint64_t id)
{
        return (struct number_key){ { (uint32_t)(id >> 32), (uint32_t)id } };
}

static enum status add_label_string(struct jfr_labels *l, struct profile *p, const proto_string *e, struct error *err)
{
        const struct number_key key = make_label_id_key((uint64_t)e->key);
        size_t n = utf8_truncate(e->value.data, e->value.len, LIMIT_LABEL_BYTES);
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
        return profile_add_string(p, n ? (const char *)e->value.data : "", n, &l->string_numbers[number], err);
}

static enum status read_context_labels(const struct jfr_labels *l, const JfrLabels__Context *context,
                                       struct sample_labels *labels, struct error *err)
{
        enum status st = ST_OK;

        for (size_t i = 0; context && !st && i < context->n_labels; i++) {
                const proto_label *e = context->labels[i];
                uint32_t name = jfr_labels_find_string(l, (uint64_t)e->key),
                         value = jfr_labels_find_string(l, (uint64_t)e->value);

                if (name && value)
                        st = sample_labels_set(labels, name, value, err);
        }
        return st;
}

static enum status add_context(struct jfr_labels *l, struct profile *p, const proto_context *e, struct error *err)
{
        const struct number_key key = make_label_id_key((uint64_t)e->key);
        struct sample_labels labels = { .count = 0 };
        struct jfr_label_set set = { 0 };
        uint32_t number = 0;
        bool fresh = false;
        enum status st;

        if (l->contexts.count >= LIMIT_JFR_CONTEXTS)
                return error_set(err, ST_TOO_BIG, "the labels of the recording have more than %d contexts",
                                 LIMIT_JFR_CONTEXTS);
        st = read_context_labels(l, e->value, &labels, err);
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

enum status jfr_labels_read(const void *data, size_t n, struct profile *p, struct jfr_labels *ret, struct error *err)
{
        _cleanup_arena_ struct arena memory;
        const JfrLabels__LabelsSnapshot *labels;
        const void *message;
        enum status st;

        arena_init(&memory, LIMIT_JFR_LABEL_MEMORY);
        *ret = (struct jfr_labels){ .is_given = n > 0 };
        if (!n)
                return ST_OK;
        st = proto_message_decode(&jfr_labels__labels_snapshot__descriptor, data, n, &memory,
                                  "the labels of the recording", &message, err);
        if (st)
                return st;
        labels = message;
        for (size_t i = 0; !st && i < labels->n_strings; i++) /* first, since contexts refer to them */
                st = add_label_string(ret, p, labels->strings[i], err);
        for (size_t i = 0; !st && i < labels->n_contexts; i++)
                st = add_context(ret, p, labels->contexts[i], err);
        return st;
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
