/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header checks that precede routing, authorization and the body.
 *
 * Framing: the server and a proxy in front of it must agree on where a body ends; otherwise bytes of one client's body
 * become the next client's request (request smuggling). Ambiguous framing is refused and the connection closed. RFC
 * 9112, 6.1, 6.3; RFC 9110, 5.6.2.
 */
#include "http/http_server_internal.h"

#include <ctype.h>

/* ---- framing ---- */

struct framing {
        unsigned lengths, encodings, hosts, authorizations;
        bool bad_name, bad_value;
};

static bool is_token_char(unsigned char c)
{
        return isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static enum MHD_Result check_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_size,
                                    const char *value, size_t value_size)
{
        struct framing *f = context;

        (void)kind;
        f->lengths += strcasecmp(name, "Content-Length") == 0;
        f->encodings += strcasecmp(name, "Transfer-Encoding") == 0;
        f->hosts += strcasecmp(name, "Host") == 0;
        f->authorizations += strcasecmp(name, "Authorization") == 0;
        /*
         * libmicrohttpd 0.9.75 appends a continuation line (obs-fold) to the name of the preceding header, in memory
         * after the value: "Content-Length: 5" becomes "Content-Length0". Normally names precede their values.
         */
        f->bad_name |= name_size == 0 || (value && (uintptr_t)name > (uintptr_t)value);
        for (size_t i = 0; i < name_size; i++)
                f->bad_name |= !is_token_char((unsigned char)name[i]);
        for (size_t i = 0; value && i < value_size; i++)
                f->bad_value |= ((unsigned char)value[i] < ' ' && value[i] != '\t') || value[i] == 0x7f;
        return MHD_YES;
}

void request_check_framing(struct http_request *req, const char *version)
{
        const char *encoding = http_header(req, "Transfer-Encoding"), *length = http_header(req, "Content-Length");
        const char *problem = NULL;
        struct framing f = { 0 };

        MHD_get_connection_values_n(req->connection, MHD_HEADER_KIND, check_header, &f);
        if (f.bad_name || f.bad_value)
                problem = "a header's name or value has an invalid character";
        else if (f.lengths > 1)
                problem = "there are several Content-Length headers";
        else if (f.hosts > 1)
                problem = "there are several Host headers";
        else if (f.authorizations > 1) /* a proxy may read another one than this server */
                problem = "there are several Authorization headers";
        else if (f.lengths && f.encodings)
                problem = "there are both Content-Length and Transfer-Encoding";
        else if (f.encodings > 1 || (encoding && strcasecmp(encoding, "chunked") != 0))
                problem = "Transfer-Encoding must be 'chunked' alone";
        else if (encoding && strcmp(version, "HTTP/1.0") == 0)
                problem = "HTTP/1.0 has no Transfer-Encoding";
        else if (length && (!*length || length[strspn(length, "0123456789")]))
                problem = "Content-Length is not a number";
        if (!problem)
                return;
        req->must_close = true;
        http_fail_code(req, 400, "bad_data", "%s; the connection is closed", problem);
}

/* ---- Content-Type ---- */

void request_check_type(struct http_request *req)
{
        const char *type = http_header(req, "Content-Type"), *wanted = req->route->body_type;

        if (wanted && request_has_body(req) && !http_is_type(type, wanted))
                http_fail_code(req, 415, "unsupported", "Content-Type '%.60s' is not supported; send %s",
                               type ? type : "(none)", wanted);
}
