/* SPDX-License-Identifier: Apache-2.0 */
#include "server/access/csrf_token.h"

#include <string.h>

#include "common/metrics.h"

#define CSRF_HEADER "X-Cairn-CSRF"

static struct metric csrf_refusals = METRIC_COUNTER("cairn_csrf_refused_total",
                                                    "Requests of signed-in browsers refused: not proven to come from a "
                                                    "page of the service.",
                                                    "");
void csrf_write_token(const struct access_control *control, const char *secret, char ret[static SHA256_HEX_MAX])
{
        uint8_t mac[SHA256_BYTES] = { 0 };

        if (hmac_sha256(control->csrf_key, sizeof control->csrf_key, secret, strlen(secret), mac))
                sha256_hex(mac, ret);
        else
                ret[0] = 0;
}

static bool is_reading_method(const struct http_request *req)
{
        return strcmp(http_method(req), "GET") == 0 || strcmp(http_method(req), "HEAD") == 0;
}

static bool has_csrf_token(const struct access_control *control, const struct http_request *req, const char *secret)
{
        const char *sent = http_header(req, CSRF_HEADER);
        char expected[SHA256_HEX_MAX];
        uint8_t a[SHA256_BYTES], b[SHA256_BYTES];

        csrf_write_token(control, secret, expected);
        return sent && sha256_parse(sent, a) && sha256_parse(expected, b) && sha256_equal(a, b);
}

bool csrf_check(const struct access_control *control, struct http_request *req, const char *secret)
{
        const char *problem = NULL;

        if (is_reading_method(req))
                return true;
        if (!http_is_same_origin(req))
                problem = "neither Sec-Fetch-Site nor Origin shows that a page of this service sent it";
        else if (!http_is_type(http_header(req, "Content-Type"), "application/json"))
                problem = "its Content-Type must be application/json";
        else if (!has_csrf_token(control, req, secret))
                problem = CSRF_HEADER " must have the text of csrf in /api/v1/session";
        if (!problem)
                return true;
        metric_add(&csrf_refusals, 1);
        http_fail_code(req, 403, "csrf", "a signed-in browser may not send this: %s; programs send a token instead",
                       problem);
        return false;
}
