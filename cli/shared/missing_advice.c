/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shared/missing_advice.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json/json_value.h"
#include "common/text/utf8.h"

static void add_missing_object(struct missing_advice *a, const struct json_value *object, uint64_t samples)
{
        char text[sizeof a->steps[0].text] = "";
        struct missing_step *step = a->steps;

        json_value_text(object, "next_step", text, sizeof text);
        a->object_count++;
        while (step < a->steps + a->step_count && strcmp(step->text, text) != 0)
                step++;
        if (step < a->steps + a->step_count) {
                step->more_objects++;
        } else if (a->step_count < MISSING_ADVICE_STEPS) {
                *step = (struct missing_step){
                        .percent = samples ? 100 * (double)json_value_uint(object, "samples", 0) / (double)samples : 0
                };
                memcpy(step->text, text, sizeof step->text);
                json_value_text(object, "mapping", step->object, sizeof step->object);
                a->step_count++;
        }
}

bool missing_advice_read(const struct buf *body, struct missing_advice *ret)
{
        struct json_value root, list, object;
        struct json_scan items;

        if (!body->size || json_value_parse(body->data, body->size, &root, NULL) ||
            !json_value_member(&root, "missing", &list) || !json_value_open_array(&list, &items))
                return false;
        *ret = (struct missing_advice){ 0 };
        while (json_value_next(&items, &object))
                add_missing_object(ret, &object, json_value_uint(&root, "samples", 0));
        return true;
}

const char *missing_step_format(const struct missing_step *step, char *ret, size_t size)
{
        int n = snprintf(ret, size, "%s (%.1f%% of samples)", *step->object ? PRINTABLE(step->object) : "an object",
                         step->percent);

        if (step->more_objects && n > 0 && (size_t)n < size)
                snprintf(ret + n, size - (size_t)n, " and %" PRIu64 " more object%s", step->more_objects,
                         step->more_objects > 1 ? "s" : "");
        return ret;
}
