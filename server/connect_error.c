/* SPDX-License-Identifier: Apache-2.0 */
#include "server/connect_error.h"

#include <stddef.h>

#include "common/json_out.h"

static const char *code_name(unsigned code)
{
        static const struct {
                unsigned code;
                const char *name;
        } names[] = {
                { 400, "invalid_argument" }, { 401, "unauthenticated" },    { 403, "permission_denied" },
                { 404, "not_found" },        { 409, "failed_precondition" }, { 413, "resource_exhausted" },
                { 415, "unimplemented" },    { 429, "unavailable" },        { 503, "unavailable" },
                { 507, "resource_exhausted" },
        };

        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
                if (names[i].code == code)
                        return names[i].name;
        return "internal";
}

const char *connect_put_error(struct buf *to, const char *type, unsigned code, const char *text)
{
        struct json_out j;

        (void)type;
        json_out_init(&j, to);
        json_out_object(&j, NULL);
        json_out_str(&j, "code", code_name(code));
        json_out_str(&j, "message", text);
        json_out_object_end(&j);
        return "application/json";
}
