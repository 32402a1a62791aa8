/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-formats/profile_accept.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/limits.h"
#include "profile-formats/sample_labels.h"

/* Bytes of a key in messages. */
#define KEY_SHOWN 40

static bool is_long_key(const struct profile *p, uint32_t string)
{
        return p->strings.items[string].size > LIMIT_LABEL_KEY_BYTES;
}

static int shown_bytes(const struct profile *p, uint32_t string)
{
        return (int)utf8_truncate(profile_text(p, string), p->strings.items[string].size, KEY_SHOWN);
}

/* ---- per sample ---- */

struct accept {
        struct profile *p;
        const struct profile_window *window;
        struct profile_rejections rejections;
        uint8_t *label_sets; /* by first_label: 0 unchecked, 1 acceptable, 2 has a long key */
};

static void reject_time(struct accept *a, int64_t time_unix_ns)
{
        time_t seconds = (time_t)(time_unix_ns / 1000000000);
        bool is_old = time_unix_ns < a->window->oldest_unix_ns;
        char reason[240], time_text[40];
        struct tm tm;

        gmtime_r(&seconds, &tm);
        strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%SZ", &tm);
        snprintf(reason, sizeof reason, "the time %s is %s", time_text,
                 is_old ? "too long ago (--max-age of cairn serve): check the clock of the sending host, or send old "
                          "profiles with cairn import --history"
                        : "too far in the future (--max-ahead of cairn serve): check the clock of the sending host");
        if (is_old)
                a->rejections.too_old++;
        else
                a->rejections.too_far_ahead++;
        profile_reject_sample(a->p, reason);
}

static bool has_long_key(struct accept *a, const struct profile_sample *s)
{
        uint8_t *known = s->label_count ? &a->label_sets[s->first_label] : NULL;

        if (known && !*known) {
                *known = 1;
                for (uint32_t i = 0; i < s->label_count; i++) {
                        if (is_long_key(a->p, a->p->labels.items[s->first_label + i].key))
                                *known = 2;
                }
        }
        return known && *known == 2;
}

static void reject_long_key(struct accept *a, const struct profile_sample *s)
{
        char reason[160];

        for (uint32_t i = 0; i < s->label_count; i++) {
                uint32_t key = a->p->labels.items[s->first_label + i].key;

                if (!is_long_key(a->p, key))
                        continue;
                snprintf(reason, sizeof reason, "the label key '%.*s...' has %u bytes, more than %d",
                         shown_bytes(a->p, key), profile_text(a->p, key), a->p->strings.items[key].size,
                         LIMIT_LABEL_KEY_BYTES);
                a->rejections.long_label_key++;
                profile_reject_sample(a->p, reason);
                return;
        }
}

enum status profile_reject_unacceptable(struct profile *p, const struct profile_window *window,
                                        struct profile_rejections *ret, struct error *err)
{
        struct accept a = { .p = p, .window = window, .label_sets = calloc((size_t)p->labels.count + 1, 1) };
        uint32_t kept = 0;

        if (!a.label_sets)
                return error_no_memory(err);
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];

                if (s->time_unix_ns < window->oldest_unix_ns || s->time_unix_ns > window->newest_unix_ns)
                        reject_time(&a, s->time_unix_ns);
                else if (has_long_key(&a, s))
                        reject_long_key(&a, s);
                else
                        p->samples.items[kept++] = *s;
        }
        p->samples.count = kept;
        *ret = a.rejections;
        free(a.label_sets);
        return ST_OK;
}

/* ---- per batch ---- */

struct key_sum {
        const struct profile *p;
        uint8_t *seen_keys, *seen_sets; /* by string, by first_label */
        uint32_t count;
        size_t bytes;
};

static enum status add_batch_key(struct key_sum *k, uint32_t key, struct error *err)
{
        if (k->seen_keys[key])
                return ST_OK;
        k->seen_keys[key] = 1;
        k->count++;
        k->bytes += k->p->strings.items[key].size;
        if (is_long_key(k->p, key))
                return error_set(err, ST_TOO_BIG, "the label key '%.*s...' has %u bytes, more than %d",
                                 shown_bytes(k->p, key), profile_text(k->p, key), k->p->strings.items[key].size,
                                 LIMIT_LABEL_KEY_BYTES);
        if (k->count > LIMIT_BATCH_LABEL_KEYS)
                return error_set(err, ST_TOO_BIG,
                                 "the samples of a batch have more than %d label keys; send smaller ones",
                                 LIMIT_BATCH_LABEL_KEYS);
        if (k->bytes > LIMIT_BATCH_LABEL_KEY_BYTES)
                return error_set(err, ST_TOO_BIG,
                                 "the label keys of a batch have more than %zu bytes together; send smaller ones",
                                 LIMIT_BATCH_LABEL_KEY_BYTES);
        return ST_OK;
}

enum status profile_check_labels(const struct profile *p, struct error *err)
{
        struct key_sum k = { .p = p,
                             .seen_keys = calloc((size_t)p->strings.count + 1, 1),
                             .seen_sets = calloc((size_t)p->labels.count + 1, 1) };
        enum status st = k.seen_keys && k.seen_sets ? ST_OK : error_no_memory(err);

        for (uint32_t i = 0; !st && i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];

                if (!s->label_count || k.seen_sets[s->first_label] >= s->label_count)
                        continue;
                k.seen_sets[s->first_label] = (uint8_t)s->label_count; /* at most LIMIT_LABELS_PER_SAMPLE */
                for (uint32_t j = 0; !st && j < s->label_count; j++)
                        st = add_batch_key(&k, p->labels.items[s->first_label + j].key, err);
        }
        free(k.seen_keys);
        free(k.seen_sets);
        return st;
}
