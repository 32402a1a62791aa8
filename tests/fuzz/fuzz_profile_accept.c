/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reduction of a batch before it is acknowledged. The input is an OTLP body. Whatever its labels and times, the
 * accepted samples must satisfy the limits on which the tables rely.
 */
#include <stdlib.h>

#include "common/limits.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-formats/profile_accept.h"
#include "tests/support/profile_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct profile_window window = { 1600000000000000000, 1900000000000000000 };

static void check_accepted(const struct profile *p, bool labels_accepted)
{
        _cleanup_free_ uint8_t *seen = calloc(p->strings.count, 1);
        size_t keys = 0, bytes = 0;

        WALK_CHECK(seen != NULL);
        for (uint32_t i = 0; i < p->samples.count; i++) {
                const struct profile_sample *s = &p->samples.items[i];

                WALK_CHECK(s->time_unix_ns >= window.oldest_unix_ns && s->time_unix_ns <= window.newest_unix_ns);
                for (uint32_t j = 0; j < s->label_count; j++) {
                        uint32_t key = p->labels.items[s->first_label + j].key;

                        WALK_CHECK(p->strings.items[key].size <= LIMIT_LABEL_KEY_BYTES);
                        keys += !seen[key];
                        bytes += seen[key] ? 0 : p->strings.items[key].size;
                        seen[key] = 1;
                }
        }
        WALK_CHECK(labels_accepted == (keys <= LIMIT_BATCH_LABEL_KEYS && bytes <= LIMIT_BATCH_LABEL_KEY_BYTES));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct profile p;
        struct error err;
        struct profile_rejections by_reason;
        uint64_t rejected;
        uint32_t count;

        if (otlp_decode(data, size, &p, &err))
                return 0;
        profile_set_missing_times(&p, 1700000000000000000);
        if (profile_add_label_to_all(&p, "service_name", "x", &err) == ST_OK) {
                profile_walk(&p);
                rejected = p.rejected_samples;
                count = p.samples.count;
                WALK_CHECK(profile_reject_unacceptable(&p, &window, &by_reason, &err) == ST_OK);
                WALK_CHECK(p.samples.count + (p.rejected_samples - rejected) == count);
                WALK_CHECK(by_reason.too_old + by_reason.too_far_ahead + by_reason.long_label_key ==
                           p.rejected_samples - rejected);
                WALK_CHECK(p.rejected_samples == 0 || p.rejected_reason[0]);
                WALK_CHECK(utf8_valid(p.rejected_reason, strlen(p.rejected_reason)));
                check_accepted(&p, profile_check_labels(&p, &err) == ST_OK);
        }
        profile_deinit(&p);
        return 0;
}
