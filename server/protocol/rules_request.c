/* SPDX-License-Identifier: Apache-2.0 */
#include "server/protocol/rules_request.h"

#include "common/json/json_value.h"

#define RULE_TEXT_BYTES 1024

enum status read_rules_request(struct http_request *req, size_t max, parse_rule *parse, void *context,
                               bool *has_rules_ret, bool *dry_run_ret, struct error *err)
{
        static const char *const members[] = { "dry_run", "rules", NULL };
        struct json_value request, list, item;
        char text[RULE_TEXT_BYTES];
        struct json_scan items;
        const uint8_t *data;
        size_t n;
        enum status st;

        *dry_run_ret = *has_rules_ret = false;
        data = http_body(req, &n);
        if (n == 0)
                return ST_OK;
        st = json_value_parse(data, n, &request, err);
        if (!st) /* a misspelt dry_run must not cause a real removal */
                st = json_value_check_members(&request, members, err);
        if (st)
                return st;
        if (!json_value_bool(&request, "dry_run", dry_run_ret))
                return error_set(err, ST_BAD_DATA, "'dry_run' is neither true nor false");
        if (!json_value_member(&request, "rules", &list))
                return ST_OK;
        if (!json_value_open_array(&list, &items))
                return error_set(err, ST_BAD_DATA, "'rules' is not an array");
        *has_rules_ret = true;
        if (json_value_count(&list, max) > max)
                return error_set(err, ST_TOO_BIG, "'rules' has more than %zu entries", max);
        while (!st && json_value_next(&items, &item))
                st = json_value_copy(&item, text, sizeof text)
                             ? parse(context, text, err)
                             : error_set(err, ST_BAD_DATA,
                                         "'rules' holds something that is not text of less than %d bytes",
                                         RULE_TEXT_BYTES);
        return st;
}
