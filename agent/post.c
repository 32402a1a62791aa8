/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/post.h"

#include <string.h>

#include "common/limits.h"
#include "profile-formats/otlp.h"

#define PATH "/v1development/profiles"

/* A proxy or a portal may answer anything with 200. */
static enum verdict read_success(const struct http_client_response *r, struct post_result *result)
{
        if (r->body.size && (strncmp(r->content_type, "text/html", 9) == 0 ||
                             (strncmp(r->content_type, "application/x-protobuf", 22) == 0 &&
                              otlp_read_response(r->body.data, r->body.size, &result->rejected_samples, NULL)))) {
                error_set(&result->err, ST_BAD_DATA, "HTTP %u, but the answer is not that of an OTLP service; check --server",
                          r->code);
                return VERDICT_LATER;
        }
        return VERDICT_TAKEN;
}

static enum verdict judge(enum status st, unsigned code)
{
        if (code == 413)
                return VERDICT_TOO_BIG;
        if (code == 500 || code == 501)
                return VERDICT_FAILED;
        /* Tokens, addresses and redirections are ours to mend: no reason to lose a batch. */
        if (code < 400 || code == 401 || code == 403 || code == 404 || code == 405 || code == 407 || code == 415)
                return VERDICT_LATER;
        return st == ST_BUSY || st == ST_OS || st == ST_NO_MEMORY ? VERDICT_LATER : VERDICT_REFUSED;
}

struct post_result post_batch(struct http_client *client, const struct batch *b)
{
        char id_header[64], hex[BATCH_ID_HEX];
        const char *const headers[] = {
                "Content-Type: application/x-protobuf",
                "Content-Encoding: gzip",
                "Expect:", /* a batch is small: no asking first */
                id_header,
                NULL,
        };
        const struct http_client_request request = {
                .method = "POST",
                .path = PATH,
                .headers = headers,
                .body = b->payload,
                .body_size = b->payload_size,
                .repeatable = true,
        };
        _cleanup_http_client_response_ struct http_client_response response = { 0 };
        struct post_result result = { 0 };
        enum status st;

        snprintf(id_header, sizeof id_header, "X-Cairn-Batch: %s", batch_id_hex(&b->id, hex));
        st = http_client_send(client, &request, &response, &result.err);
        result.verdict = st ? judge(st, response.code) : read_success(&response, &result);
        result.retry_after_ms = response.retry_after_ms < LIMIT_AGENT_RETRY_AFTER_MS ? response.retry_after_ms
                                                                                     : LIMIT_AGENT_RETRY_AFTER_MS;
        return result;
}
