/* SPDX-License-Identifier: Apache-2.0 */
/* The questions for what is not resolved, and for the uploads that would change that. */
#include "common/json_out.h"
#include "common/utf8.h"
#include "query/question.h"
#include "query/uploads.h"

enum status answer_missing(struct question *q)
{
        struct scan_missing *items = NULL;
        const struct scan_filter filter = selection_filter(&q->r.selection, NULL);
        char hex[BUILD_ID_HEX_MAX];
        struct json_out j;
        size_t count;
        enum status st = store_scan_missing(q->scan, &filter, &items, &count, q->err);

        if (st)
                return st;
        if (q->r.limit && q->r.limit < count)
                count = (size_t)q->r.limit;
        q->content_type = q->r.format == FORMAT_TEXT ? question_text : question_json;
        json_out_init(&j, q->ret);
        if (q->r.format != FORMAT_TEXT)
                json_out_array(&j, NULL);
        for (size_t i = 0; i < count && !work_meter_add(q->meter, 64, NULL); i++) {
                const struct scan_missing *m = &items[i];

                if (q->r.format == FORMAT_TEXT) {
                        buf_printf(q->ret, "%-40s  %-14s %8lld samples %6llu locations  ",
                                   build_id_hex(&m->build_id, hex), m->state, (long long)m->samples,
                                   (unsigned long long)m->locations);
                        utf8_put_escaped(q->ret, m->mapping);
                        buf_append_u8(q->ret, '\n');
                        continue;
                }
                json_out_object(&j, NULL);
                json_out_str(&j, "build_id", build_id_hex(&m->build_id, hex));
                json_out_str(&j, "object", m->mapping);
                json_out_str(&j, "state", m->state);
                json_out_uint(&j, "locations", m->locations);
                json_out_int(&j, "samples", m->samples);
                json_out_object_end(&j);
        }
        if (q->r.format != FORMAT_TEXT)
                json_out_array_end(&j);
        return ST_OK;
}

enum status answer_uploads(struct question *q)
{
        const char *type = NULL;
        struct scan_filter filter;
        struct scan_uploads uploads;
        struct uploads_form form = { .meter = q->meter,
                                     .server = param_get(&q->params, "", "server"),
                                     .limit = q->r.limit,
                                     .from_unix_ns = q->r.selection.from_unix_ns,
                                     .to_unix_ns = q->r.selection.to_unix_ns };
        enum status st = ST_OK;

        if (q->r.type)
                st = choose_type(q->scan, &q->r.selection, q->r.type, &type, q->err);
        filter = selection_filter(&q->r.selection, type);
        if (!st)
                st = store_scan_uploads(q->scan, &filter, &uploads, q->err);
        if (st)
                return st;
        if (q->r.format == FORMAT_TEXT) {
                form.limit = question_text_limit(q);
                uploads_put_text(&uploads, &form, q->ret);
                q->content_type = question_text;
        } else {
                uploads_put_json(&uploads, &form, q->ret);
        }
        return ST_OK;
}
