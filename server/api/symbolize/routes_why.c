/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/v1/why: docs/formats/why.md */
#include <string.h>

#include "common/metrics.h"
#include "common/text/number_text.h"
#include "pipeline/why_report.h"
#include "server/core/route_tables.h"
#include "server/core/server_internal.h"
#include "server/protocol/respond.h"
#include "symbolizer/explain/explain.h"

#define JOBS_MAX 2

static struct metric reports = METRIC_COUNTER("cairn_why_reports_total", "Reports on how addresses are resolved.", "");
static _Atomic unsigned jobs;

/* Parse a list such as "0x10,0x20". */
static enum status read_why_addresses(const char *text, uint64_t *addresses, size_t *count_ret, struct error *err)
{
        size_t count = 0;

        if (!text || !*text)
                return error_set(err, ST_USAGE, "give address=0x..., separate several with commas");
        while (text) {
                const char *comma = strchr(text, ',');
                size_t n = comma ? (size_t)(comma - text) : strlen(text);
                char one[20];

                if (count == EXPLAIN_ADDRESSES_MAX)
                        return error_set(err, ST_USAGE, "more than %d addresses; split them into several requests",
                                         EXPLAIN_ADDRESSES_MAX);
                snprintf(one, sizeof one, "%.*s", n < sizeof one ? (int)n : (int)sizeof one, text);
                if (n >= sizeof one || !parse_hex(one, &addresses[count++]))
                        return error_set(err, ST_USAGE, "'%s' is not a hexadecimal address", one);
                text = comma ? comma + 1 : NULL;
        }
        *count_ret = count;
        return ST_OK;
}

static bool is_true(const char *value)
{
        return value && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

static enum status read_address_kind(const char *text, bool *are_file_offsets_ret, struct error *err)
{
        *are_file_offsets_ret = text && strcmp(text, "file_offset") == 0;
        if (text && !*are_file_offsets_ret && strcmp(text, "object") != 0)
                return error_set(err, ST_USAGE, "address_kind is object or file_offset, not '%.40s'", text);
        return ST_OK;
}

static enum status answer_why(struct http_request *req, struct debuginfo_space *s, struct buf *ret, struct error *err)
{
        const char *hex = http_query(req, "build_id");
        uint64_t addresses[EXPLAIN_ADDRESSES_MAX];
        struct why_request q = { .addresses = addresses,
                                 .second_opinion = is_true(http_query(req, "second_opinion")),
                                 .cancel = http_request_cancelled(req) };
        struct build_id id;
        enum status st;

        if (!s->symbols)
                return error_set(err, ST_NOT_FOUND, "this read-only service has no symbol index; use another service");
        if (!hex || !build_id_from_hex(&id, hex, strlen(hex)))
                return error_set(err, ST_USAGE, "'%.130s' is not a build-id", hex ? hex : "(none)");
        scan_demand_request(&s->scan_demand, &id);
        st = read_why_addresses(http_query(req, "address"), addresses, &q.count, err);
        if (!st)
                st = read_address_kind(http_query(req, "address_kind"), &q.are_file_offsets, err);
        if (st)
                return st;
        if (atomic_fetch_add(&jobs, 1) >= JOBS_MAX)
                st = error_set(err, ST_BUSY, "%d reports are being written; retry later", JOBS_MAX);
        else
                st = explain_stored_object(s->symbols, s->objects, &id, &q, ret, err);
        atomic_fetch_sub(&jobs, 1);
        /* A cancelled worker leaves the report incomplete, without an error. */
        return st ? st : deadline_check(http_request_deadline(req), err);
}

static void handle_why(struct http_request *req)
{
        struct buf body;
        struct error err;
        enum status st;

        buf_init(&body, 2 * EXPLAIN_REPORT_BYTES_MAX);
        st = answer_why(req, get_request_space(req), &body, &err);
        if (!st) {
                metric_add(&reports, 1);
                respond_json(req, &body);
                return;
        }
        buf_deinit(&body);
        http_fail(req, st, &err);
}

static const struct http_route routes[] = {
        { ROUTE("GET", "/api/v1/why", SCOPE_READ, TENANCY_SPACE), .pool = POOL_SYMBOLIZE, .handle = handle_why },
};
const struct route_table why_routes = ROUTE_TABLE(ROLE_SYMBOLIZE, routes);
