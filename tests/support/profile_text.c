/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/profile_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory/buf.h"
#include "common/limits.h"
#include "profile-formats/frame_type.h"

static int compare_text(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

static void put_location(struct buf *b, const struct profile *p, const struct profile_location *l)
{
        char hex[BUILD_ID_HEX_MAX];

        buf_printf(b, " [%d%.1s 0x%" PRIx64, (int)l->kind, frame_type_name(l->frame_type), l->address);
        if (l->mapping != PROFILE_NONE) {
                const struct profile_mapping *m = &p->mappings.items[l->mapping];

                buf_printf(b, " %s@%s", profile_text(p, m->file), build_id_hex(&m->build_id, hex));
        }
        for (uint32_t i = 0; i < l->line_count; i++) {
                const struct profile_line *line = &p->lines.items[l->first_line + i];

                buf_printf(b, " %s|%s|%s:%" PRId64, profile_text(p, line->function),
                           profile_text(p, line->linkage_name), profile_text(p, line->file), line->line);
                if (line->start_line)
                        buf_printf(b, "^%" PRId64, line->start_line);
        }
        buf_append_u8(b, ']');
}

static char *sample_text(const struct profile *p, const struct profile_sample *s)
{
        const struct profile_type *t = &p->types.items[s->type];
        const struct profile_stack *stack = &p->stacks.items[s->stack];
        char *labels[LIMIT_LABELS_PER_SAMPLE];
        struct buf b;

        buf_init(&b, MiB(16));
        buf_printf(&b, "%s %s %" PRId64 " t=%" PRId64 " d=%" PRId64 " v=%" PRId64 " ", profile_text(p, t->id),
                   profile_text(p, t->unit), t->period, s->time_unix_ns, s->duration_ns, s->value);
        for (size_t i = 0; i < sizeof s->trace_id; i++)
                buf_printf(&b, "%02x", s->trace_id[i]);
        for (size_t i = 0; i < sizeof s->span_id; i++)
                buf_printf(&b, "%02x", s->span_id[i]);
        for (uint32_t i = 0; i < s->label_count; i++) {
                const struct profile_label *l = &p->labels.items[s->first_label + i];

                if (asprintf(&labels[i], "%s=%s", profile_text(p, l->key), profile_text(p, l->value)) < 0)
                        abort();
        }
        qsort(labels, s->label_count, sizeof *labels, compare_text);
        for (uint32_t i = 0; i < s->label_count; i++) {
                buf_printf(&b, " {%s}", labels[i]);
                free(labels[i]);
        }
        if (stack->truncated)
                buf_append_str(&b, " truncated");
        for (uint32_t i = 0; i < stack->location_count; i++)
                put_location(&b, p, &p->locations.items[p->stack_locations.items[stack->first_location + i]]);
        if (!buf_cstr(&b))
                abort();
        return (char *)b.data;
}

char *profile_to_text(const struct profile *p)
{
        char **lines = calloc(p->samples.count + 1u, sizeof *lines);
        struct buf b;

        buf_init(&b, MiB(256));
        for (uint32_t i = 0; i < p->samples.count; i++)
                lines[i] = sample_text(p, &p->samples.items[i]);
        qsort(lines, p->samples.count, sizeof *lines, compare_text);
        for (uint32_t i = 0; i < p->samples.count; i++) {
                buf_printf(&b, "%s\n", lines[i]);
                free(lines[i]);
        }
        free(lines);
        if (!buf_cstr(&b))
                abort();
        return (char *)b.data;
}
