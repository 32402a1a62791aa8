/* SPDX-License-Identifier: Apache-2.0 */
#include "query/uploads.h"

#include <inttypes.h>
#include <string.h>

#include "common/json_out.h"
#include "common/limits.h"
#include "common/utf8.h"
#include "symbolizer/symbol_reason.h"

#define PLAIN "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+,:@%=-"

/* What needs no quotes in a shell and is no option. */
static bool is_plain(const char *text)
{
        return *text && *text != '-' && text[strspn(text, PLAIN)] == 0;
}

/* The host that ran it has the file itself; what the service has of the others shows that it was stripped. */
static bool is_on_host(const struct scan_upload *u)
{
        return (u->state == SYMBOL_NO_DEBUGINFO || u->state == SYMBOL_OUTSIDE) && *u->mapping != '[';
}

static void put_command(const struct scan_upload *u, const struct uploads_form *form, struct buf *ret)
{
        char id[BUILD_ID_HEX_MAX];

        buf_append_str(ret, "cairn-upload");
        if (form->server)
                buf_printf(ret, " --server %s", is_plain(form->server) ? form->server : "URL");
        if (u->state == SYMBOL_OUTSIDE)
                buf_append_str(ret, " --executables");
        if (is_on_host(u))
                buf_printf(ret, " %s", is_plain(u->mapping) ? u->mapping : "FILE");
        else
                buf_printf(ret, " \"$(debuginfod-find debuginfo %s)\"", build_id_hex(&u->build_id, id));
}

static const char *next_step(const struct scan_upload *u)
{
        if (u->state == SYMBOL_RESOLVED || u->state == SYMBOL_SENDER)
                return "upload its debuginfo: its names have neither lines nor inlined frames";
        return symbol_state_next_step(u->state);
}

static double percent(uint64_t samples, const struct scan_uploads *all)
{
        return all->samples ? (double)((samples * 10000 + all->samples / 2) / all->samples) / 100 : 0;
}

static size_t shown(size_t count, const struct uploads_form *form)
{
        return form->limit && form->limit < count ? (size_t)form->limit : count;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_object(struct json_out *j, const struct scan_upload *u, const struct scan_uploads *all,
                       const struct uploads_form *form)
{
        _cleanup_buf_ struct buf command;
        char id[BUILD_ID_HEX_MAX];

        buf_init(&command, LIMIT_RESPONSE_BYTES);
        put_command(u, form, &command);
        json_out_object(j, NULL);
        json_out_str(j, "build_id", build_id_hex(&u->build_id, id));
        json_out_str(j, "mapping", u->mapping);
        json_out_str(j, "state", symbol_state_name(u->state));
        json_out_str(j, "quality", symbol_quality_name(u->quality));
        json_out_uint(j, "locations", u->locations);
        json_out_uint(j, "samples", u->samples);
        json_out_double(j, "percent", percent(u->samples, all));
        if (*all->unit)
                json_out_int(j, "value", u->value);
        json_out_str(j, "next_step", next_step(u));
        json_out_str(j, "command", buf_cstr(&command));
        json_out_object_end(j);
}

static void put_list(struct json_out *j, const char *key, const struct scan_upload *items, size_t count,
                     const struct scan_uploads *all, const struct uploads_form *form)
{
        json_out_array(j, key);
        for (size_t i = 0; i < shown(count, form) && !work_meter_add(form->meter, 256, NULL); i++)
                put_object(j, &items[i], all, form);
        json_out_array_end(j);
}

void uploads_put_json(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret)
{
        struct json_out j;

        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_int(&j, "from_ms", form->from_unix_ns / 1000000);
        json_out_int(&j, "to_ms", form->to_unix_ns / 1000000);
        json_out_uint(&j, "samples", u->samples);
        if (*u->unit)
                json_out_str(&j, "unit", u->unit);
        put_list(&j, "missing", u->missing, u->missing_count, u, form);
        put_list(&j, "poor", u->poor, u->poor_count, u, form);
        json_out_object_end(&j);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void put_rows(const struct scan_upload *items, size_t count, bool poor, const struct scan_uploads *all,
                     const struct uploads_form *form, struct buf *ret)
{
        char id[BUILD_ID_HEX_MAX];

        buf_printf(ret, "%12s  %6s  %-13s  %-40s  %s\n", "samples", "share", poor ? "names by" : "reason", "build-id",
                   "file");
        for (size_t i = 0; i < shown(count, form) && !work_meter_add(form->meter, 256, NULL); i++) {
                const struct scan_upload *u = &items[i];

                buf_printf(ret, "%12" PRIu64 "  %5.1f%%  %-13s  %-40s  ", u->samples, percent(u->samples, all),
                           !poor || u->state == SYMBOL_SENDER ? symbol_state_name(u->state)
                                                              : symbol_quality_name(u->quality),
                           build_id_hex(&u->build_id, id));
                utf8_put_escaped(ret, u->mapping);
                buf_printf(ret, "\n%37s", "");
                put_command(u, form, ret);
                buf_append_u8(ret, '\n');
        }
        if (shown(count, form) < count)
                buf_printf(ret, "... %zu more\n", count - shown(count, form));
}

void uploads_put_text(const struct scan_uploads *u, const struct uploads_form *form, struct buf *ret)
{
        if (u->missing_count)
                put_rows(u->missing, u->missing_count, false, u, form, ret);
        else
                buf_append_str(ret, "no object of these samples waits for debuginfo\n");
        if (!u->poor_count)
                return;
        buf_append_str(ret, "\nthese have names, and would gain lines and inlined frames:\n");
        put_rows(u->poor, u->poor_count, true, u, form, ret);
}
