/* SPDX-License-Identifier: Apache-2.0 */
/* cairn store quarantine: list, retry, remove or export the batches that could not be flushed. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/commands/store/store_command.h"
#include "common/files/file.h"
#include "common/files/output_file.h"
#include "common/json/json_out.h"
#include "common/limits.h"
#include "common/text/number_text.h"
#include "common/text/utf8.h"
#include "common/text.h"
#include "profile-formats/otlp/otlp.h"
#include "profile-store/profile_store.h"
#include "profile-store/queue/quarantine.h"

/* Untrusted bytes must not reach the terminal unescaped. */
static void print_masked(const char *text)
{
        for (; *text; text++)
                putchar((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text);
}

/* Print labels that identify the sender of a batch, from its first sample. */
static void describe_sender(const struct store_command *c, const struct quarantine_item *item, char *ret, size_t size,
                            uint64_t *samples_ret)
{
        static const char *const keys[] = { "host.name", "host_name", "service.name", "service_name" };
        struct profile p;
        size_t n = 0;

        snprintf(ret, size, "unknown");
        *samples_ret = 0;
        if (item->damaged || quarantine_decode(c->dir, item, &p, NULL))
                return;
        *samples_ret = p.samples.count;
        for (uint32_t i = 0; p.samples.count && i < p.samples.items[0].label_count; i++) {
                const struct profile_label *l = &p.labels.items[p.samples.items[0].first_label + i];

                for (size_t k = 0; k < sizeof keys / sizeof *keys && n < size; k++)
                        if (strcmp(profile_text(&p, l->key), keys[k]) == 0)
                                n += (size_t)snprintf(ret + n, size - n, "%s%s=%s", n ? " " : "", keys[k],
                                                      profile_text(&p, l->value));
        }
        profile_deinit(&p);
}

static void print_quarantined_item(const struct store_command *c, const struct quarantine_item *item,
                                   struct json_out *j)
{
        char id[33], received[40], sender[200];
        uint64_t samples;

        hex_encode(item->batch_id.bytes, sizeof item->batch_id.bytes, id);
        format_store_time(item->received_unix_ns, received);
        describe_sender(c, item, sender, sizeof sender, &samples);
        if (c->json) {
                json_out_object(j, NULL);
                json_out_str(j, "batch_id", id);
                json_out_uint(j, "position", item->position);
                json_out_uint(j, "bytes", item->bytes);
                json_out_uint(j, "samples", samples);
                json_out_str(j, "sender", sender);
                json_out_int(j, "received_unix_ns", item->received_unix_ns);
                json_out_int(j, "quarantined_unix_ns", item->quarantined_unix_ns);
                json_out_bool(j, "damaged", item->damaged);
                json_out_str(j, "reason", item->reason);
                json_out_object_end(j);
                return;
        }
        printf("%s %s %" PRIu64 " bytes, %s, sender ", id, received, item->bytes,
               COUNTED(samples, "sample", "samples"));
        print_masked(sender);
        printf("\n  ");
        print_masked(item->reason);
        printf("\n");
}

static enum status list_quarantine(const struct store_command *c, const struct quarantine_item *items, size_t count,
                                   struct error *err)
{
        _cleanup_buf_ struct buf out;
        struct json_out j;
        enum status st;

        buf_init(&out, LIMIT_RESPONSE_BYTES);
        json_out_init(&j, &out);
        json_out_array(&j, NULL);
        for (size_t i = 0; i < count; i++)
                print_quarantined_item(c, &items[i], &j);
        json_out_array_end(&j);
        st = buf_status(&out, err, "the list");
        if (!st && c->json)
                printf("%.*s\n", (int)out.size, (const char *)out.data);
        return st;
}

static enum status export_quarantined_item(const struct store_command *c, const struct quarantine_item *item,
                                           const char *path, struct error *err)
{
        _cleanup_buf_ struct buf plain;
        struct profile p;
        enum status st;

        buf_init(&plain, LIMIT_PROFILE_MEMORY_BYTES);
        st = quarantine_decode(c->dir, item, &p, err);
        if (st)
                return st;
        st = otlp_encode(&p, &plain, err);
        profile_deinit(&p);
        return st ? st : output_file_write(path, OUTPUT_OF_COMMAND, plain.data, plain.size, err);
}

static bool is_quarantine_match(const struct quarantine_item *item, const char *id)
{
        char hex[33];

        return strcmp(id, "all") == 0 ||
               strcmp(hex_encode(item->batch_id.bytes, sizeof item->batch_id.bytes, hex), id) == 0;
}

/*
 * Write one batch to the file --output, or each batch to a file of its own in the directory --output. Batches with the
 * same id are distinguished by their position.
 */
static enum status export_quarantine(const struct store_command *c, const char *id, const struct quarantine_item *items,
                                     size_t count, struct error *err)
{
        struct stat info;
        bool to_directory = c->output && stat(c->output, &info) == 0 && S_ISDIR(info.st_mode);
        size_t found = 0, failed = 0;
        enum status st = ST_OK;

        for (size_t i = 0; i < count; i++)
                found += is_quarantine_match(&items[i], id);
        if (!c->output)
                return error_set(err, ST_USAGE, "--output names the file or directory to export to");
        if (found > 1 && !to_directory)
                return error_set(err, ST_USAGE, "%zu batches need an existing directory: '%s' is not one", found,
                                 c->output);
        if (!found && strcmp(id, "all") != 0)
                return error_set(err, ST_NOT_FOUND, "no batch '%.40s' is in the quarantine", id);
        for (size_t i = 0; !st && i < count; i++) {
                char hex[33], name[64];
                _cleanup_free_ char *path = NULL;
                struct error why;

                if (!is_quarantine_match(&items[i], id))
                        continue;
                hex_encode(items[i].batch_id.bytes, sizeof items[i].batch_id.bytes, hex);
                snprintf(name, sizeof name, "%020" PRIu64 "-%s.otlp", items[i].position, hex);
                path = to_directory ? path_join(c->output, name) : strdup(c->output);
                if (!path)
                        return error_no_memory(err);
                st = export_quarantined_item(c, &items[i], path, &why);
                if (st == ST_BAD_DATA && found > 1) { /* the others are still exported */
                        fprintf(stderr, "cairn store: %s: %s\n", hex, PRINTABLE(why.text));
                        failed++;
                        st = ST_OK;
                } else if (st && err) {
                        *err = why;
                }
        }
        if (st)
                return st;
        if (c->json)
                printf("{\"batches\":%zu,\"action\":\"export\",\"damaged\":%zu}\n", found - failed, failed);
        else
                fprintf(stderr, "%s: export done\n", COUNTED(found - failed, "batch", "batches"));
        return failed ? error_set(err, ST_BAD_DATA, "%s, of %zu",
                                  COUNTED(failed, "batch is damaged", "batches are damaged"), found)
                      : ST_OK;
}

typedef enum status quarantine_change(struct profile_store *store, const struct quarantine_item *item,
                                      struct error *err);

static enum status load_quarantine(const struct store_command *c, struct quarantine_item **items_ret, size_t *count_ret,
                                   struct error *err)
{
        enum status st = profile_store_check_exists(c->dir, err);

        return st ? st : quarantine_list(c->dir, items_ret, count_ret, err);
}

/* Requeue or discard; the service must be stopped. */
static enum status change_quarantine(const struct store_command *c, const char *action, quarantine_change *change,
                                     const char *id, struct error *err)
{
        const struct profile_store_options options = { .size = sizeof options, .flush_interval_ms = UINT64_MAX };
        _cleanup_free_ struct quarantine_item *items = NULL;
        struct profile_store *store = NULL;
        size_t found = 0, count = 0;
        enum status st = load_quarantine(c, &items, &count, err);

        if (!st)
                st = profile_store_open(c->dir, &options, &store, err);
        if (st)
                return st;
        for (size_t i = 0; !st && i < count; i++) {
                if (!is_quarantine_match(&items[i], id))
                        continue;
                found++;
                st = change(store, &items[i], err);
        }
        profile_store_close(store);
        if (st)
                return st;
        if (!found && strcmp(id, "all") != 0)
                return error_set(err, ST_NOT_FOUND, "no batch '%.40s' is in the quarantine", id);
        if (c->json)
                printf("{\"batches\":%zu,\"action\":\"%s\"}\n", found, action);
        else
                printf("%s: %s done\n", COUNTED(found, "batch", "batches"), action);
        return ST_OK;
}

enum status quarantine_list_command(const struct store_command *c, const char *argument, struct error *err)
{
        _cleanup_free_ struct quarantine_item *items = NULL;
        size_t count = 0;
        enum status st = load_quarantine(c, &items, &count, err);

        (void)argument;
        return st ? st : list_quarantine(c, items, count, err);
}

enum status quarantine_retry_command(const struct store_command *c, const char *id, struct error *err)
{
        return change_quarantine(c, "retry", profile_store_requeue, id, err);
}

enum status quarantine_remove_command(const struct store_command *c, const char *id, struct error *err)
{
        return change_quarantine(c, "remove", profile_store_discard, id, err);
}

enum status quarantine_export_command(const struct store_command *c, const char *id, struct error *err)
{
        _cleanup_free_ struct quarantine_item *items = NULL;
        size_t count = 0;
        enum status st = load_quarantine(c, &items, &count, err);

        return st ? st : export_quarantine(c, id, items, count, err);
}
