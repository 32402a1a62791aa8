/* SPDX-License-Identifier: Apache-2.0 */
#include "query/engine/no_samples.h"

#include <string.h>

#include "common/text/utf8.h"
#include "query/engine/unit_text.h"

#define NAMES_SHOWN 5
#define NAME_BYTES 60 /* longer names are counted, not shown */

static void put_some_names(const struct scan_names *names, struct buf *ret)
{
        size_t shown = 0;

        for (size_t i = 0; i < names->count && shown < NAMES_SHOWN; i++) {
                if (strlen(names->items[i]) > NAME_BYTES)
                        continue;
                buf_append_str(ret, shown++ ? ", " : " ");
                utf8_append_escaped(ret, names->items[i]);
        }
        if (shown < names->count)
                buf_printf(ret, "%s %zu %s", shown ? " and" : "", names->count - shown, shown ? "more" : "long ones");
}

static void put_matcher(const struct label_matcher *m, struct buf *ret)
{
        static const char *const operators[] = {
                [LABEL_EQUAL] = "=", [LABEL_NOT_EQUAL] = "!=", [LABEL_REGEX] = "=~", [LABEL_NOT_REGEX] = "!~"
        };

        utf8_append_escaped_n(ret, m->key, strnlen(m->key, NAME_BYTES));
        buf_printf(ret, "%s\"", operators[m->op]);
        utf8_append_escaped_n(ret, m->value, strnlen(m->value, NAME_BYTES));
        buf_append_str(ret, "\"");
}

/* The first matcher that selects nothing by itself, with the values of its label. */
static enum status note_matcher(struct query_call *q, const struct query_selection *s, struct scan_filter range)
{
        struct scan_names names;
        enum status st;

        for (size_t i = 0; i < s->selector.count; i++) {
                const struct label_matcher *m = &s->selector.matchers[i];

                range.matchers = m;
                range.matcher_count = 1;
                st = store_scan_list_types(q->scan, &range, &names, q->err);
                if (st)
                        return st;
                if (names.count)
                        continue;
                range.matcher_count = 0;
                st = store_scan_list_label_values(q->scan, m->key, &range, &names, q->err);
                if (st)
                        return st;
                buf_append_str(&q->note, "no sample in this time range matches ");
                put_matcher(m, &q->note);
                buf_append_str(&q->note, names.count ? "; its values are" : "; no sample has this label");
                put_some_names(&names, &q->note);
                return ST_OK;
        }
        buf_append_str(&q->note, "no sample in this time range matches all of the selector");
        return ST_OK;
}

static void note_time_range(struct query_call *q, int64_t first_unix_ns, int64_t last_unix_ns)
{
        char first[32], last[32];

        buf_printf(&q->note, "no samples are in this time range; there are some from %s to %s UTC",
                   format_time_utc(first_unix_ns, first, sizeof first),
                   format_time_utc(last_unix_ns, last, sizeof last));
}

enum status note_no_samples(struct query_call *q, const struct query_selection *s, const char *type)
{
        const struct scan_filter selected = query_selection_make_filter(s, NULL);
        const struct scan_filter range = { .from_unix_ns = s->from_unix_ns, .to_unix_ns = s->to_unix_ns };
        struct scan_names types;
        int64_t first, last;
        enum status st;

        if (q->note.size)
                buf_append_str(&q->note, "; ");
        if (store_scan_lacks_tables(q->scan)) {
                buf_append_str(&q->note, "no sample that is here is selected");
                return ST_OK;
        }
        if (!store_scan_get_time_range(q->scan, &first, &last)) {
                buf_append_str(&q->note,
                               "there are no samples yet; cairn-agent, cairn scrape and cairn import send some");
                return ST_OK;
        }
        st = store_scan_list_types(q->scan, &selected, &types, q->err);
        if (!st && types.count) {
                buf_append_str(&q->note, "no selected sample has the type");
                if (type) {
                        buf_append_str(&q->note, " ");
                        utf8_append_escaped_n(&q->note, type, strnlen(type, NAME_BYTES));
                }
                buf_append_str(&q->note, "; there are");
                put_some_names(&types, &q->note);
                return ST_OK;
        }
        if (!st)
                st = store_scan_list_types(q->scan, &range, &types, q->err);
        if (st)
                return st;
        if (types.count)
                return note_matcher(q, s, range);
        note_time_range(q, first, last);
        return ST_OK;
}

enum status note_empty_selection(struct query_call *q, const struct query_selection *s)
{
        const struct scan_filter selected = query_selection_make_filter(s, NULL);
        struct scan_names types;
        enum status st = store_scan_list_types(q->scan, &selected, &types, q->err);

        return st || types.count ? st : note_no_samples(q, s, NULL);
}
