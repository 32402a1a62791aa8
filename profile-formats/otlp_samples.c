/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/otlp_samples.h"

#include <string.h>

#include "common/limits.h"

const char otlp_too_old[] = "its sender speaks OTLP profiles older than 1.8.0, update the sender";

enum status otlp_add_attribute(struct label_list *l, const struct otlp_attribute *a, struct error *err)
{
        return a->usable && a->key ? label_list_set(l, a->key, a->value, err) : ST_OK;
}

enum status otlp_add_indexed(struct otlp_decoder *d, struct wire_field *f, const struct reader *at,
                             struct label_list *l, bool *truncated, struct error *err)
{
        uint64_t index;
        enum status st = ST_OK;

        while (!st && wire_next_number(f, WIRE_VARINT, &index)) {
                const struct otlp_attribute *a;

                st = otlp_check_index(&d->dictionary, DICTIONARY_ATTRIBUTES, index, at, err);
                if (st || index == 0)
                        continue;
                a = &d->dictionary.attributes[index];
                if (truncated && a->key == d->dictionary.truncated_key)
                        *truncated = true;
                else
                        st = otlp_add_attribute(l, a, err);
        }
        if (!st && f->bytes.failed)
                st = reader_error(&f->bytes, err, "OTLP attribute indices");
        return st;
}

static enum status collect(struct wire_field *f, enum wire_type element, struct buf *numbers, struct error *err)
{
        uint64_t v;

        while (wire_next_number(f, element, &v))
                buf_append(numbers, &v, sizeof v);
        if (f->bytes.failed)
                return reader_error(&f->bytes, err, "OTLP sample");
        return buf_status(numbers, err, "OTLP sample");
}

static uint64_t number_at(const struct buf *numbers, size_t i)
{
        uint64_t v;

        memcpy(&v, numbers->data + i * sizeof v, sizeof v);
        return v;
}

/* The label set of a sample: its own attributes over those of its surroundings. */
static enum status sample_labels(struct otlp_decoder *d, const struct otlp_context *c, const struct reader *message,
                                 const struct reader *attributes, struct profile_sample *s, bool *truncated,
                                 struct error *err)
{
        struct label_list own;
        struct wire_field f = { .type = WIRE_BYTES, .bytes = *attributes };
        enum status st;

        *truncated = false;
        if (d->last_valid && d->last_attributes.size == attributes->size &&
            (attributes->size == 0 || memcmp(d->last_attributes.data, attributes->data, attributes->size) == 0)) {
                s->first_label = d->last_first_label;
                s->label_count = d->last_label_count;
                *truncated = d->last_truncated;
                return ST_OK;
        }
        own = c->labels;
        st = otlp_add_indexed(d, &f, message, &own, truncated, err);
        if (!st)
                st = profile_add_label_set(d->p, own.items, own.count, &s->first_label, err);
        if (st)
                return st;
        s->label_count = own.count;
        d->last_attributes = *attributes;
        d->last_first_label = s->first_label;
        d->last_label_count = s->label_count;
        d->last_truncated = *truncated;
        d->last_valid = true;
        return ST_OK;
}

static enum status add_events(struct otlp_decoder *d, const struct otlp_context *c, struct profile_sample *s,
                              struct error *err)
{
        size_t values = d->values.size / sizeof(uint64_t), times = d->timestamps.size / sizeof(uint64_t);
        enum status st = ST_OK;
        uint32_t number;

        if (values == 0 && times == 0) {
                profile_reject_sample(d->p, "a sample has neither values nor timestamps");
                return ST_OK;
        }
        if (values && times && values != times) {
                profile_reject_sample(d->p, "a sample has a different number of values than of timestamps");
                return ST_OK;
        }
        if (times == 0) {
                int64_t sum = 0;

                for (size_t i = 0; i < values; i++) {
                        if (__builtin_add_overflow(sum, (int64_t)number_at(&d->values, i), &sum)) {
                                profile_reject_sample(d->p, "the sum of a sample's values passes 64 bits");
                                return ST_OK;
                        }
                }
                s->value = sum;
                s->time_unix_ns = c->time_unix_ns;
                return profile_add_sample(d->p, s, &number, err);
        }
        for (size_t i = 0; !st && i < times; i++) {
                s->value = values ? (int64_t)number_at(&d->values, i) : 1;
                s->time_unix_ns = otlp_clamp_time(number_at(&d->timestamps, i));
                st = profile_add_sample(d->p, s, &number, err);
        }
        return st;
}

enum status otlp_read_sample(struct otlp_decoder *d, struct reader r, const struct otlp_context *c, struct error *err)
{
        struct otlp_dictionary *dict = &d->dictionary;
        struct profile_sample s = { .type = c->type, .duration_ns = c->duration_ns, .stack = dict->stacks[0] };
        const struct reader message = r;
        struct reader attributes;
        struct buf unpacked; /* attribute indices that came one by one or in several runs */
        struct wire_field f;
        bool truncated, first = true;
        uint64_t v;
        enum status st = ST_OK;

        reader_init(&attributes, NULL, 0);
        buf_init(&unpacked, KiB(64));
        buf_clear(&d->values);
        buf_clear(&d->timestamps);
        while (!st && wire_next(&r, &f)) {
                switch (f.number) {
                case SAMPLE_STACK:
                        if (f.type != WIRE_VARINT)
                                break;
                        st = otlp_check_index(dict, DICTIONARY_STACKS, f.value, &message, err);
                        if (!st)
                                s.stack = dict->stacks[f.value];
                        break;
                case SAMPLE_ATTRIBUTES:
                        if (f.type == WIRE_BYTES && first) {
                                attributes = f.bytes;
                                first = false;
                                break;
                        }
                        if (unpacked.size == 0)
                                buf_append(&unpacked, attributes.data, attributes.size);
                        first = false;
                        while (wire_next_number(&f, WIRE_VARINT, &v))
                                buf_append_uleb128(&unpacked, v);
                        st = f.bytes.failed
                                     ? reader_error(&f.bytes, err, "OTLP sample")
                                     : buf_status(&unpacked, err, "list of attribute indices of an OTLP sample");
                        if (!st)
                                reader_init(&attributes, unpacked.data, unpacked.size);
                        break;
                case SAMPLE_LINK:
                        if (f.type == WIRE_BYTES) {
                                st = error_at(err, ST_BAD_DATA, message.base,
                                              "OTLP sample has values in field 3: %s", otlp_too_old);
                                break;
                        }
                        st = otlp_check_index(dict, DICTIONARY_LINKS, f.value, &message, err);
                        if (!st && f.value) {
                                memcpy(s.trace_id, dict->links[f.value].trace_id, sizeof s.trace_id);
                                memcpy(s.span_id, dict->links[f.value].span_id, sizeof s.span_id);
                        }
                        break;
                case SAMPLE_VALUES:
                        st = collect(&f, WIRE_VARINT, &d->values, err);
                        break;
                case SAMPLE_TIMESTAMPS:
                        st = collect(&f, WIRE_FIXED64, &d->timestamps, err);
                        break;
                }
        }
        if (!st && r.failed)
                st = reader_error(&r, err, "OTLP sample");
        if (!st)
                st = sample_labels(d, c, &message, &attributes, &s, &truncated, err);
        if (!st && unpacked.size)
                d->last_valid = false; /* its bytes go now */
        if (!st && truncated)
                d->p->stacks.items[s.stack].truncated = true;
        if (!st)
                st = add_events(d, c, &s, err);
        buf_deinit(&unpacked);
        return st;
}
