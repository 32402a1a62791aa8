/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/doctor_internal.h"
#include "http/client.h"
#include "uploader/want.h"

#define ASK_TIMEOUT_S 10

/* A question about symbols that nobody has changes nothing and takes the same right as sending them. */
static enum status ask(const char *server, const char *ca_file, const char *token, struct error *err)
{
        const struct http_client_options http = { .size = sizeof http,
                                                  .base_url = server,
                                                  .ca_file = ca_file,
                                                  .token = token,
                                                  .user_agent = "cairn-agent/" CAIRN_VERSION,
                                                  .idle_timeout_s = ASK_TIMEOUT_S };
        char nowhere[] = "nowhere";
        struct upload_item item = { .path = nowhere, .build_id = { .size = 20 }, .kind = UPLOAD_DEBUGINFO,
                                    .quality = QUALITY_SYMTAB, .size_bytes = 1 };
        struct upload_list list = { .items = &item, .count = 1 };
        struct http_client *client = NULL;
        enum status st = http_client_create(&http, &client, err);

        if (!st)
                st = want_ask(client, &list, err);
        http_client_destroy(client);
        return st;
}

void doctor_service(struct doctor *d, const char *server, const char *ca_file, const char *token)
{
        struct error err = { 0 };
        enum status st = ask(server, ca_file, token, &err);
        const char *mend = st == ST_USAGE ? "give a token with the scope upload (--token-file), or --no-upload: else the service "
                                            "gets no symbols that this host has" :
                                            "the service must answer there: else samples wait (--spool keeps them), and no symbols "
                                            "are uploaded";

        doctor_add(d, "uploads", SAMPLER_AUTO, st ? DOCTOR_LESS : DOCTOR_OK, mend, "%s",
                   st ? err.text : "the service takes symbols from here");
}
