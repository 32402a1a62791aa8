/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo upstreams: how the upstreams of a service do. */
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#include "cli/debuginfo.h"
#include "common/utf8.h"
#include "common/limits.h"

static unsigned long long number(struct json_object *from, const char *name)
{
        struct json_object *value;

        return json_object_object_get_ex(from, name, &value) ? json_object_get_uint64(value) : 0;
}

static const char *text(struct json_object *from, const char *name)
{
        struct json_object *value;
        const char *s = json_object_object_get_ex(from, name, &value) ? json_object_get_string(value) : NULL;

        return s ? s : "";
}

static void print_upstream(struct json_object *u)
{
        printf("%-40s  %-9s  %8llu  %8llu  %8llu  %8llu  %8llu  %8llu\n", PRINTABLE(text(u, "url")), PRINTABLE(text(u, "breaker")), number(u, "found"),
               number(u, "missing"), number(u, "failed") + number(u, "refused"), number(u, "skipped"), number(u, "mean_ms"),
               number(u, "slowest_ms"));
        if (strcmp(text(u, "breaker"), "closed") != 0)
                printf("  failed %llu times in a row, asked again in %llu s\n", number(u, "failures_in_a_row"), number(u, "retry_in_s"));
        if (text(u, "last_error")[0])
                printf("  last: %s\n", PRINTABLE(text(u, "last_error")));
}

static void print(struct json_object *all)
{
        struct json_object *list = json_object_object_get(all, "upstreams"), *questions;
        size_t count = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

        if (count == 0) {
                printf("the service has no upstreams: give it --upstream URL\n");
                return;
        }
        printf("%-40s  %-9s  %8s  %8s  %8s  %8s  %8s  %8s\n", "UPSTREAM", "BREAKER", "FOUND", "MISSING", "FAILED", "SKIPPED",
               "MEAN MS", "SLOW MS");
        for (size_t i = 0; i < count; i++)
                print_upstream(json_object_array_get_idx(list, i));
        if (json_object_object_get_ex(all, "questions", &questions))
                printf("%llu questions wait, %llu are under way; %llu objects are known to be missing, %llu not asked for again yet\n",
                       number(questions, "queued"), number(questions, "in_flight"), number(questions, "known_missing"),
                       number(questions, "known_failed"));
}

enum status debuginfo_upstreams(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        struct json_object *all;
        _cleanup_buf_ struct buf body;
        enum status st;

        (void)ids;
        (void)count;
        buf_init(&body, LIMIT_RESPONSE_BYTES);
        if (o->ask.data)
                return error_set(err, ST_USAGE, "upstreams asks a service, a directory has none");
        st = debuginfo_request(o, "GET", "/api/v1/debuginfo/upstreams", NULL, &body, err);
        if (!st && o->json) {
                printf("%.*s", (int)body.size, (const char *)body.data);
                return ST_OK;
        }
        if (st)
                return st;
        all = json_tokener_parse(buf_cstr(&body));
        if (!json_object_is_type(all, json_type_object))
                st = error_set(err, ST_BAD_DATA, "the service's answer is not a JSON object");
        else
                print(all);
        json_object_put(all);
        return st;
}
