/* SPDX-License-Identifier: Apache-2.0 */
/* cairn debuginfo rm, pin and unpin. */
#include <stdio.h>

#include "cli/debuginfo.h"
#include "common/limits.h"

enum change { CHANGE_REMOVE, CHANGE_PIN, CHANGE_UNPIN };
static const char *const done[] = { "removed", "pinned", "unpinned" };

static enum status in_directory(struct debuginfo_store *objects, const struct build_id *id, enum object_kind kind,
                                enum change what, struct error *err)
{
        if (what == CHANGE_REMOVE)
                return debuginfo_store_remove(objects, id, kind, err);
        return debuginfo_store_pin(objects, id, kind, what == CHANGE_PIN, err);
}

static enum status at_server(const struct debuginfo_options *o, const char *hex, enum change what, struct error *err)
{
        char path[80 + BUILD_ID_HEX_MAX];
        _cleanup_buf_ struct buf body;

        buf_init(&body, MiB(1));
        snprintf(path, sizeof path, "/api/v1/debuginfo/%s/%s%s", hex, object_kind_name(o->kind),
                 what == CHANGE_REMOVE ? "" : "/pin");
        return debuginfo_request(o, what == CHANGE_PIN ? "PUT" : "DELETE", path, NULL, &body, err);
}

static enum status change(const struct debuginfo_options *o, const struct build_id *ids, size_t count, enum change what,
                          struct error *err)
{
        struct debuginfo_dir dir = { 0 };
        enum status st = o->ask.data ? debuginfo_dir_open(o->ask.data, true, &dir, err) : ST_OK;

        for (size_t i = 0; i < count && !st; i++) {
                char hex[BUILD_ID_HEX_MAX];

                build_id_hex(&ids[i], hex);
                st = o->ask.data ? in_directory(dir.objects, &ids[i], o->kind, what, err) : at_server(o, hex, what, err);
                if (!st && !o->json)
                        printf("%s  %-10s  %s\n", hex, object_kind_name(o->kind), done[what]);
                else if (!st)
                        printf("{\"build_id\":\"%s\",\"kind\":\"%s\",\"state\":\"%s\"}\n", hex, object_kind_name(o->kind),
                               done[what]);
        }
        debuginfo_dir_close(&dir);
        return st;
}

enum status debuginfo_rm(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        return change(o, ids, count, CHANGE_REMOVE, err);
}

enum status debuginfo_pin(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        return change(o, ids, count, CHANGE_PIN, err);
}

enum status debuginfo_unpin(const struct debuginfo_options *o, const struct build_id *ids, size_t count, struct error *err)
{
        return change(o, ids, count, CHANGE_UNPIN, err);
}
