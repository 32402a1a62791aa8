/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store compact: merge small files of the tables, at a service or in a data directory. */
#include <inttypes.h>

#include "cli/commands/store/store_command.h"
#include "common/files/file.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "profile-store/profile_store.h"

static bool show_compaction_progress(void *context, const struct compaction_result *so_far, uint64_t files_due)
{
        (void)context;
        if (isatty(STDERR_FILENO))
                fprintf(stderr, "\rcairn store compact: %s into %" PRIu64 ", %" PRIu64 " due ",
                        COUNTED(so_far->files_before, "file merged", "files merged"), so_far->files_after, files_due);
        return true;
}

/* ---- in a directory ----------------------------------------------------------------------------- */

static enum status compact_directory(const char *profiles, struct compaction_result *ret, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        struct profile_store *store;
        enum status st = profile_store_check_exists(profiles, err);

        if (!st)
                st = profile_store_open(profiles, &options, &store, err);
        if (st)
                return st;
        st = profile_store_compact(store, show_compaction_progress, NULL, ret, err);
        if (ret->merges && isatty(STDERR_FILENO))
                fputc('\n', stderr);
        profile_store_close(store);
        return st;
}

/* ---- at a service --------------------------------------------------------------------------------- */

static enum status parse_compaction_answer(const struct buf *body, struct compaction_result *ret, struct error *err)
{
        const struct {
                const char *name;
                uint64_t *to;
        } members[] = {
                { "merges", &ret->merges },
                { "files_before", &ret->files_before },
                { "files_after", &ret->files_after },
                { "bytes_read", &ret->bytes_read },
                { "bytes_written", &ret->bytes_written },
                { "skipped_files", &ret->skipped_files },
        };
        struct json_value answer;
        enum status st = json_value_parse(body->data, body->size, &answer, NULL);

        for (size_t i = 0; !st && i < sizeof members / sizeof *members; i++) {
                *members[i].to = json_value_uint(&answer, members[i].name, UINT64_MAX);
                st = *members[i].to == UINT64_MAX ? ST_BAD_DATA : ST_OK;
        }
        return st ? error_set(err, ST_BAD_DATA,
                              "unexpected response of /api/v1/store/compact; is the server a Cairn service?")
                  : ST_OK;
}

static enum status compact_at_service(const struct service_options *service, struct compaction_result *ret,
                                      struct error *err)
{
        _cleanup_buf_ struct buf body, answer;
        enum status st;

        buf_init(&body, LIMIT_HTTP_JSON_BYTES);
        buf_init(&answer, LIMIT_RESPONSE_BYTES);
        buf_append_str(&body, "{}");
        st = service_post_json(service, "/api/v1/store/compact", &body, &answer, err);
        return st ? st : parse_compaction_answer(&answer, ret, err);
}

enum status store_compact_command(const struct store_command *c, const char *argument, struct error *err)
{
        struct compaction_result r = { 0 };
        char bytes_read[40], bytes_written[40];
        enum status st = c->at_service ? compact_at_service(&c->service, &r, err) : compact_directory(c->dir, &r, err);

        (void)argument;
        if (st)
                return st;
        if (c->json)
                printf("{\"merges\":%" PRIu64 ",\"files_before\":%" PRIu64 ",\"files_after\":%" PRIu64
                       ",\"bytes_read\":%" PRIu64 ",\"bytes_written\":%" PRIu64 ",\"skipped_files\":%" PRIu64 "}\n",
                       r.merges, r.files_before, r.files_after, r.bytes_read, r.bytes_written, r.skipped_files);
        else
                printf("%s: %s %" PRIu64 ", %s read, %s written, %s\n", COUNTED(r.merges, "merge", "merges"),
                       COUNTED(r.files_before, "file became", "files became"), r.files_after,
                       format_store_bytes(r.bytes_read, bytes_read), format_store_bytes(r.bytes_written, bytes_written),
                       COUNTED(r.skipped_files, "file skipped", "files skipped"));
        return ST_OK;
}
