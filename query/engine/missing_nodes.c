/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/missing_nodes.h"

#include <string.h>

#include "common/json/json_out.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "query/engine/unit_text.h"

#define NAMED_NODES 3 /* in a note */

static void put_since(int64_t since_unix_s, struct buf *note)
{
        char time[32];

        if (since_unix_s)
                buf_printf(note, " since %s UTC", format_time_utc(since_unix_s * 1000000000, time, sizeof time));
}

void put_missing_nodes_note(const struct missing_nodes *missing, struct buf *note)
{
        for (size_t i = 0; i < missing->count && i < NAMED_NODES; i++) {
                const struct missing_node *m = &missing->items[i];

                buf_append_str(note, note->size ? "; " : "");
                if (m->name[0]) {
                        buf_append_str(note, "samples of ");
                        utf8_append_escaped(note, m->name);
                        put_since(m->since_unix_s, note);
                } else {
                        buf_append_str(note, "commits of other nodes");
                        put_since(m->since_unix_s, note);
                }
                buf_append_str(note, m->name[0] ? " may be missing: it does not answer" : " could not be read");
        }
        if (missing->count > NAMED_NODES)
                buf_printf(note, "; %s not answer",
                           COUNTED(missing->count - NAMED_NODES, "more node does", "more nodes do"));
}

static void put_missing_nodes(const struct missing_nodes *missing, struct buf *ret)
{
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_array(&j, "missing_nodes");
        for (size_t i = 0; i < missing->count; i++) {
                json_out_object(&j, NULL);
                json_out_str(&j, "node", missing->items[i].name);
                if (missing->items[i].since_unix_s)
                        json_out_int(&j, "since_unix_s", missing->items[i].since_unix_s);
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
}

void insert_missing_nodes_member(const struct missing_nodes *missing, struct buf *answer)
{
        _cleanup_buf_ struct buf whole;

        buf_init(&whole, answer->max);
        if (!missing->count || answer->failed || answer->size < 2 || answer->data[0] != '{')
                return;
        put_missing_nodes(missing, &whole);
        buf_append_str(&whole, answer->data[1] == '}' ? "" : ",");
        buf_append(&whole, answer->data + 1, answer->size - 1);
        if (whole.failed)
                return;
        buf_clear(answer);
        buf_append(answer, whole.data, whole.size);
}
