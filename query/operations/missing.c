/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "common/files/distribution.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/csv.h"
#include "common/text/utf8.h"
#include "query/engine/merged_profile.h"
#include "query/engine/no_samples.h"
#include "query/engine/query_call.h"
#include "query/engine/source_lines.h"
#include "query/engine/type_plan.h"
#include "symbol-index/symbol_state.h"

/*
 * The operations "missing" and "uploads": objects whose locations have no frames, and the most useful uploads of
 * debuginfo, each with its command (docs/formats/query-api.md).
 */

struct uploads_form {
        struct work_meter *meter; /* NULL: unlimited; borrowed */
        const char *server;       /* shown in upload commands; NULL: none */
        const char *distribution; /* debuginfod server for files of distributions */
        uint64_t limit;           /* objects in each list; 0: all */
        int64_t from_unix_ns, to_unix_ns;
};

/* Whether the host's own file should be uploaded; in all other states it is known to be stripped. */
static bool is_on_host(const struct scan_upload *u)
{
        return (u->state == SYMBOL_NO_DEBUGINFO || u->state == SYMBOL_OUTSIDE) && *u->mapping != '[';
}

/* Size of an OTLP htlhash, the identity of a file without a GNU build-id; some build-ids have the same size. */
#define HTLHASH_BYTES 16

/* Whether a mapping is the kernel, which hosts do not have as a file of that name. */
static bool is_kernel_file(const char *mapping)
{
        return strcmp(mapping, "vmlinux") == 0;
}

/* Only a file with the same bytes has the same htlhash: neither a debug file nor another build matches it. */
static bool has_htlhash(const struct scan_upload *u)
{
        return u->build_id.size == HTLHASH_BYTES;
}

/* Whether the debuginfod server of a distribution has the debuginfo; the file on the host is stripped. */
static bool is_of_distribution_server(const struct scan_upload *u)
{
        return !has_htlhash(u) && (is_kernel_file(u->mapping) || is_distribution_path(u->mapping));
}

static void put_upload_options(const struct scan_upload *u, const struct uploads_form *form, struct buf *ret)
{
        buf_append_str(ret, "cairn-upload");
        if (form->server)
                buf_printf(ret, " --server %s", is_shell_plain(form->server) ? form->server : "URL");
        if (!is_of_distribution_server(u) && is_on_host(u) && (u->state == SYMBOL_OUTSIDE || has_htlhash(u)))
                buf_append_str(ret, " --executables");
}

/*
 * Some senders, such as the OpenTelemetry eBPF profiler, send base names only: the command then searches the host.
 * Nothing when no upload would help.
 */
static void put_upload_command(const struct scan_upload *u, const struct uploads_form *form, struct buf *ret)
{
        const char *name = path_base(u->mapping);
        char id[BUILD_ID_HEX_MAX];

        if (is_of_distribution_server(u)) {
                put_upload_options(u, form, ret);
                buf_printf(ret, " \"$(DEBUGINFOD_URLS=%s debuginfod-find debuginfo %s)\"", form->distribution,
                           build_id_hex(&u->build_id, id));
        } else if (!is_on_host(u)) { /* its file is known to be stripped */
                if (has_htlhash(u))
                        return;
                put_upload_options(u, form, ret);
                if (*name && *name != '[' && is_shell_plain(name))
                        buf_printf(ret, " %s.debug", name);
                else
                        buf_append_str(ret, " FILE");
        } else if (is_shell_plain(u->mapping) && !strchr(u->mapping, '/')) {
                buf_printf(ret, "find / -xdev -type f -name %s -exec ", u->mapping);
                put_upload_options(u, form, ret);
                buf_append_str(ret, " {} +");
        } else {
                put_upload_options(u, form, ret);
                buf_printf(ret, " %s", is_shell_plain(u->mapping) ? u->mapping : "FILE");
        }
}

static void put_upload_next_step(const struct scan_upload *u, const struct uploads_form *form, struct buf *ret)
{
        if (is_of_distribution_server(u))
                buf_printf(ret, "add the debuginfod server of the object's distribution: cairn serve --upstream %s",
                           form->distribution);
        else if (!is_on_host(u) && has_htlhash(u))
                buf_append_str(ret, "link the program with --build-id and build it with -g: without a build-id, no "
                                    "debug file belongs to it");
        else if (u->state == SYMBOL_RESOLVED || u->state == SYMBOL_SENDER)
                buf_append_str(ret, "build it with -g, or upload its debug file: its names have neither lines nor "
                                    "inlined frames");
        else
                buf_append_str(ret, symbol_state_next_step(u->state));
}

static double compute_sample_percent(const struct scan_upload *u, const struct scan_uploads *all)
{
        uint64_t whole = sample_count_round(all->samples), part = sample_count_round(u->samples);

        return whole ? (double)(uint64_t)((double)part / (double)whole * 10000 + 0.5) / 100 : 0;
}

static const char *name_counted(struct counted_samples samples)
{
        return samples.are_stacks ? "stacks" : "samples";
}

static size_t count_shown_objects(size_t count, const struct uploads_form *form)
{
        return form->limit && form->limit < count ? (size_t)form->limit : count;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_upload_object(struct json_out *j, const struct scan_upload *u, const struct scan_uploads *all,
                              const struct uploads_form *form)
{
        _cleanup_buf_ struct buf command, next_step;
        char id[BUILD_ID_HEX_MAX];

        buf_init(&command, LIMIT_RESPONSE_BYTES);
        buf_init(&next_step, LIMIT_RESPONSE_BYTES);
        put_upload_command(u, form, &command);
        put_upload_next_step(u, form, &next_step);
        json_out_object(j, NULL);
        json_out_str(j, "build_id", build_id_hex(&u->build_id, id));
        json_out_str(j, "mapping", u->mapping);
        json_out_str(j, "state", symbol_state_name(u->state));
        json_out_str(j, "quality", symbol_quality_name(u->quality));
        json_out_uint(j, "locations", u->locations);
        put_counted_samples(j, "samples", "samples_are", u->samples);
        json_out_double(j, "percent", compute_sample_percent(u, all));
        if (*all->unit)
                json_out_int(j, "value", u->value);
        json_out_str(j, "next_step", buf_cstr(&next_step));
        json_out_str(j, "command", buf_cstr(&command));
        json_out_object_end(j);
}

static void put_upload_list(struct json_out *j, const char *key, const struct scan_upload *items, size_t count,
                            const struct scan_uploads *all, const struct uploads_form *form)
{
        json_out_array(j, key);
        for (size_t i = 0; i < count_shown_objects(count, form) && !work_meter_add(form->meter, 256, NULL); i++)
                put_upload_object(j, &items[i], all, form);
        json_out_array_end(j);
}

static void put_uploads_json(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret)
{
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_int(&j, "from_ms", form->from_unix_ns / 1000000);
        json_out_int(&j, "to_ms", form->to_unix_ns / 1000000);
        put_counted_samples(&j, "samples", "samples_are", u->samples);
        if (*u->unit)
                json_out_str(&j, "unit", u->unit);
        put_upload_list(&j, "missing", u->missing, u->missing_count, u, form);
        put_upload_list(&j, "poor", u->poor, u->poor_count, u, form);
        json_out_object_end(&j);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void put_upload_rows(const struct scan_upload *items, size_t count, bool poor, const struct scan_uploads *all,
                            const struct uploads_form *form, struct buf *ret)
{
        char id[BUILD_ID_HEX_MAX];

        buf_printf(ret, "%12s  %6s  %-13s  %-40s  %s\n", name_counted(all->samples), "share",
                   poor ? "names by" : "reason", "build-id", "file");
        for (size_t i = 0; i < count_shown_objects(count, form) && !work_meter_add(form->meter, 256, NULL); i++) {
                const struct scan_upload *u = &items[i];
                size_t before;

                buf_printf(ret, "%12" PRIu64 "  %5.1f%%  %-13s  %-40s  ", sample_count_round(u->samples),
                           compute_sample_percent(u, all),
                           !poor || u->state == SYMBOL_SENDER ? symbol_state_name(u->state)
                                                              : symbol_quality_name(u->quality),
                           build_id_hex(&u->build_id, id));
                utf8_append_escaped(ret, u->mapping);
                buf_printf(ret, "\n%37s", "");
                before = ret->size;
                put_upload_command(u, form, ret);
                if (ret->size == before)
                        put_upload_next_step(u, form, ret);
                buf_append_u8(ret, '\n');
        }
        if (count_shown_objects(count, form) < count)
                buf_printf(ret, "... %zu more\n", count - count_shown_objects(count, form));
}

static size_t count_distribution_objects(const struct scan_upload *items, size_t count)
{
        size_t ret = 0;

        for (size_t i = 0; i < count; i++)
                ret += is_of_distribution_server(&items[i]);
        return ret;
}

/* The rows have a command for each of these objects; one option of the service does it for all, also for later ones. */
static void put_distribution_advice(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret)
{
        size_t count = count_distribution_objects(u->missing, u->missing_count) +
                       count_distribution_objects(u->poor, u->poor_count);

        if (count)
                buf_printf(ret,
                           "\n%zu %s of a distribution; the service fetches such debuginfo itself with\n"
                           "  cairn serve --upstream %s\n",
                           count, count == 1 ? "object is" : "objects are", form->distribution);
}

static void put_uploads_text(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret)
{
        if (u->missing_count)
                put_upload_rows(u->missing, u->missing_count, false, u, form, ret);
        else
                buf_append_str(ret, "no object of these samples lacks debuginfo\n");
        if (u->poor_count) {
                buf_append_str(ret, "\nobjects with names only, which would gain lines and inlined frames:\n");
                put_upload_rows(u->poor, u->poor_count, true, u, form, ret);
        }
        put_distribution_advice(u, form, ret);
}

/* ---- CSV ---- */

static void put_upload_csv_rows(const char *list, const struct scan_upload *items, size_t count,
                                const struct scan_uploads *all, const struct uploads_form *form, struct buf *ret)
{
        for (size_t i = 0; i < count_shown_objects(count, form) && !work_meter_add(form->meter, 256, NULL); i++) {
                const struct scan_upload *u = &items[i];
                _cleanup_buf_ struct buf command, next_step;
                char id[BUILD_ID_HEX_MAX];

                buf_init(&command, LIMIT_RESPONSE_BYTES);
                buf_init(&next_step, LIMIT_RESPONSE_BYTES);
                put_upload_command(u, form, &command);
                put_upload_next_step(u, form, &next_step);
                buf_printf(ret, "%s,%s,", list, build_id_hex(&u->build_id, id));
                csv_put_text(ret, u->mapping, ',');
                buf_printf(ret, "%s,%s,%" PRIu64 ",%" PRIu64 ",%.2f,", symbol_state_name(u->state),
                           symbol_quality_name(u->quality), u->locations, sample_count_round(u->samples),
                           compute_sample_percent(u, all));
                if (*all->unit)
                        buf_printf(ret, "%" PRId64, u->value);
                buf_append_u8(ret, ',');
                csv_put_text(ret, buf_cstr(&next_step) ? buf_cstr(&next_step) : "", ',');
                csv_put_text(ret, buf_cstr(&command) ? buf_cstr(&command) : "", '\r');
                buf_append_u8(ret, '\n');
        }
}

static void put_uploads_csv(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret)
{
        buf_append_str(ret,
                       "list,build_id,mapping,state,quality,locations,samples,percent,value,next_step,command\r\n");
        put_upload_csv_rows("missing", u->missing, u->missing_count, u, form, ret);
        put_upload_csv_rows("poor", u->poor, u->poor_count, u, form, ret);
}

/* ---- answers ---- */

static void put_missing_text(const struct scan_missing *m, const char *build_id, struct buf *ret)
{
        buf_printf(ret, "%-40s  %-14s %8" PRIu64 " %s %6" PRIu64 " locations  ", build_id, m->state,
                   sample_count_round(m->samples), name_counted(m->samples), m->locations);
        utf8_append_escaped(ret, m->mapping);
        buf_append_u8(ret, '\n');
}

static void put_missing_csv(const struct scan_missing *m, const char *build_id, struct buf *ret)
{
        csv_put_text(ret, build_id, ',');
        csv_put_text(ret, m->mapping, ',');
        csv_put_text(ret, m->state, ',');
        buf_printf(ret, "%" PRIu64 ",%" PRIu64 "\r\n", m->locations, sample_count_round(m->samples));
}

static void put_missing_json(const struct scan_missing *m, const char *build_id, struct json_out *j)
{
        json_out_object(j, NULL);
        json_out_str(j, "build_id", build_id);
        json_out_str(j, "object", m->mapping);
        json_out_str(j, "state", m->state);
        json_out_uint(j, "locations", m->locations);
        put_counted_samples(j, "samples", "samples_are", m->samples);
        json_out_object_end(j);
}

enum status query_answer_missing(struct query_call *q)
{
        struct scan_missing *items = NULL;
        const struct scan_filter filter = query_selection_make_filter(&q->r.selection, NULL);
        char hex[BUILD_ID_HEX_MAX];
        struct json_out j;
        size_t count;
        enum status st = store_scan_list_missing(q->scan, &filter, &items, &count, q->err);

        if (!st && !count)
                st = note_empty_selection(q, &q->r.selection);
        if (st)
                return st;
        if (q->r.limit && q->r.limit < count)
                count = (size_t)q->r.limit;
        q->content_type = query_call_content_type(q);
        json_out_init(&j, q->ret);
        if (q->r.format == FORMAT_JSON)
                json_out_array(&j, NULL);
        else if (q->r.format == FORMAT_CSV)
                buf_append_str(q->ret, "build_id,object,state,locations,samples\r\n");
        for (size_t i = 0; i < count && !work_meter_add(q->meter, 64, NULL); i++) {
                build_id_hex(&items[i].build_id, hex);
                if (q->r.format == FORMAT_TEXT)
                        put_missing_text(&items[i], hex, q->ret);
                else if (q->r.format == FORMAT_CSV)
                        put_missing_csv(&items[i], hex, q->ret);
                else
                        put_missing_json(&items[i], hex, &j);
        }
        if (q->r.format == FORMAT_JSON)
                json_out_array_end(&j);
        return ST_OK;
}

enum status query_answer_uploads(struct query_call *q)
{
        const struct query_selection *selection = &q->r.selection;
        const struct scan_filter filter = query_selection_make_filter(selection, NULL);
        _cleanup_type_plan_ struct type_plan plan = { 0 };
        struct scan_uploads uploads;
        struct scan_names types;
        struct uploads_form form = { .meter = q->meter,
                                     .server = query_param_get(&q->params, "", "server"),
                                     .distribution = get_distribution_debuginfod(),
                                     .limit = q->r.limit,
                                     .from_unix_ns = q->r.selection.from_unix_ns,
                                     .to_unix_ns = q->r.selection.to_unix_ns };
        enum status st = ST_OK;

        if (q->r.type)
                st = type_plan_make_for_request(q->scan, &selection, 1, &q->r, &plan, q->err);
        if (st)
                return st;
        type_plan_put_note(&plan, &q->note);
        types = (struct scan_names){ plan.types, plan.type_count };
        st = store_scan_rank_uploads(q->scan, &filter, q->r.type ? &types : NULL, &uploads, q->err);
        if (!st && !sample_count_round(uploads.samples))
                st = note_empty_selection(q, &q->r.selection);
        if (st)
                return st;
        q->content_type = query_call_content_type(q);
        if (q->r.format == FORMAT_TEXT) {
                form.limit = query_call_text_limit(q);
                put_uploads_text(&uploads, &form, q->ret);
        } else if (q->r.format == FORMAT_CSV) {
                put_uploads_csv(&uploads, &form, q->ret);
        } else {
                put_uploads_json(&uploads, &form, q->ret);
        }
        return ST_OK;
}
