/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/profiles/s3_list.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "common/text/xml_text.h"
#include "profile-store/delta/delta_log.h"
#include "server/api/profiles/table_files.h"

#define LOG_FOLDER "_delta_log"

struct s3_list {
        const struct tenant *tenant;
        const struct s3_list_request *request;
        struct buf contents, prefixes;   /* XML */
        char last[S3_KEY_BYTES_MAX + 1]; /* last key, or common prefix, of the answer */
        uint64_t count;
        bool is_truncated;
};

/* ---- texts ---- */

static void append_element(struct buf *to, const char *name, const char *text)
{
        buf_printf(to, "<%s>", name);
        xml_append_text(to, text);
        buf_printf(to, "</%s>", name);
}

/* Append an element whose text is URL-encoded if encoding-type says so. */
static void append_key_element(const struct s3_list_request *request, struct buf *to, const char *name, const char *key)
{
        if (!request->encodes_url) {
                append_element(to, name, key);
                return;
        }
        buf_printf(to, "<%s>", name);
        buf_append_url_encoded(to, key, "/");
        buf_printf(to, "</%s>", name);
}

static void append_token(struct buf *to, const char *key)
{
        for (const char *p = key; *p; p++)
                buf_printf(to, "%02x", (unsigned char)*p);
}

bool parse_s3_token(const char *token, char key_ret[static S3_KEY_BYTES_MAX + 1])
{
        size_t n = strlen(token) / 2;

        if (n > S3_KEY_BYTES_MAX || strlen(token) % 2 || !hex_decode(token, n, (uint8_t *)key_ret))
                return false;
        key_ret[n] = 0;
        return strlen(key_ret) == n;
}

/* ---- keys ---- */

static void append_object(struct s3_list *l, const char *key, const struct table_file *f)
{
        struct buf *to = &l->contents;
        char modified[40];
        struct tm tm;

        gmtime_r(&(time_t){ f->info.modified_ms / 1000 }, &tm);
        strftime(modified, sizeof modified, "%Y-%m-%dT%H:%M:%S.000Z", &tm);
        buf_append_str(to, "<Contents>");
        append_key_element(l->request, to, "Key", key);
        buf_printf(to, "<LastModified>%s</LastModified><ETag>&quot;%s&quot;</ETag><Size>%" PRIu64 "</Size>", modified,
                   f->etag, f->info.size);
        buf_append_str(to, "<StorageClass>STANDARD</StorageClass></Contents>");
}

/* Whether the answer has room for one more key; else it is truncated. */
static bool has_room(struct s3_list *l)
{
        l->is_truncated |= l->count == l->request->max_keys;
        return !l->is_truncated;
}

/* Add the next file in key order. A file that was unlinked after the log was read is omitted. */
static enum status add_key(struct s3_list *l, const char *table, const char *path, struct error *err)
{
        const struct s3_list_request *request = l->request;
        size_t prefix_size = strlen(request->prefix);
        char key[S3_KEY_BYTES_MAX + 1];
        const char *end = NULL;
        struct table_file f;
        enum status st;

        if ((size_t)snprintf(key, sizeof key, "%s/%s", table, path) >= sizeof key)
                return ST_OK;
        if (strncmp(key, request->prefix, prefix_size) != 0 || strcmp(key, request->start_after) <= 0)
                return ST_OK;
        if (*request->delimiter)
                end = strstr(key + prefix_size, request->delimiter);
        if (end) {
                key[(size_t)(end - key) + strlen(request->delimiter)] = 0;
                /* Keys of a prefix are adjacent; if the previous page ended with the prefix, all of them are listed. */
                if (strcmp(key, l->last) == 0 || (*request->token && strcmp(key, request->start_after) == 0) ||
                    !has_room(l))
                        return ST_OK;
                buf_append_str(&l->prefixes, "<CommonPrefixes>");
                append_key_element(request, &l->prefixes, "Prefix", key);
                buf_append_str(&l->prefixes, "</CommonPrefixes>");
        } else {
                if (!has_room(l))
                        return ST_OK;
                st = open_table_file(l->tenant, table, path, &f, err);
                if (st)
                        return st == ST_NOT_FOUND ? ST_OK : st;
                close(f.fd);
                append_object(l, key, &f);
        }
        snprintf(l->last, sizeof l->last, "%s", key);
        l->count++;
        return ST_OK;
}

/* Whether a key below this folder ("samples/") can match. */
static bool may_have_keys(const struct s3_list_request *request, const char *folder)
{
        size_t n = strlen(folder), k = strlen(request->prefix);

        if (strncmp(request->prefix, folder, n < k ? n : k) != 0)
                return false;
        /* False when all keys of the folder are before start_after. */
        return strcmp(request->start_after, folder) <= 0 || strncmp(request->start_after, folder, n) == 0;
}

/* ---- a table's log ---- */

struct log_keys {
        struct s3_list *list;
        const char *table;
};

static enum status add_log_key(void *context, const char *key, const struct storage_info *info, struct error *err)
{
        const struct log_keys *k = context;
        const char *path = key + strlen(k->table) + 1;

        (void)info;
        if (k->list->is_truncated || !is_readable_table_path(path))
                return ST_OK;
        return add_key(k->list, k->table, path, err);
}

static enum status add_log_keys(struct s3_list *l, const char *table, struct error *err)
{
        struct log_keys k = { .list = l, .table = table };
        char folder[64];

        snprintf(folder, sizeof folder, "%s/" LOG_FOLDER "/", table);
        return may_have_keys(l->request, folder)
                       ? storage_list(l->tenant->tables, folder, l->request->start_after, add_log_key, &k, err)
                       : ST_OK;
}

/* ---- a table's files ---- */

static enum status add_data_keys(struct s3_list *l, const char *table, struct error *err)
{
        struct delta_snapshot *snapshot = NULL;
        struct delta_table *log = NULL;
        char log_folder[64];
        size_t prefix_size = strlen(l->request->prefix);
        enum status st;

        /* No data file matches a prefix inside the log's folder. */
        snprintf(log_folder, sizeof log_folder, "%s/" LOG_FOLDER "/", table);
        if (prefix_size >= strlen(log_folder) && strncmp(l->request->prefix, log_folder, strlen(log_folder)) == 0)
                return ST_OK;
        st = delta_table_open(l->tenant->tables, table, &log, err);
        if (!st)
                st = delta_snapshot_acquire(log, &snapshot, err);
        for (size_t i = 0; !st && i < snapshot->file_count && !l->is_truncated; i++)
                st = add_key(l, table, snapshot->files[i]->path, err);
        if (snapshot)
                delta_snapshot_release(snapshot);
        delta_table_close(log);
        return st == ST_NOT_FOUND ? ST_OK : st; /* a table without a log has no files */
}

/* In key order, the log's folder precedes all data files, because '_' precedes lower case letters. */
static enum status add_table_keys(struct s3_list *l, const char *table, struct error *err)
{
        char folder[64];
        enum status st;

        snprintf(folder, sizeof folder, "%s/", table);
        if (l->is_truncated || !may_have_keys(l->request, folder))
                return ST_OK;
        st = add_log_keys(l, table, err);
        return st ? st : add_data_keys(l, table, err);
}

/* ---- answer ---- */

static void append_list_head(struct s3_list *l, struct buf *out)
{
        const struct s3_list_request *request = l->request;

        buf_append_str(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                            "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
        append_element(out, "Name", S3_BUCKET);
        append_key_element(request, out, "Prefix", request->prefix);
        if (*request->delimiter)
                append_key_element(request, out, "Delimiter", request->delimiter);
        if (*request->requested_start_after)
                append_key_element(request, out, "StartAfter", request->requested_start_after);
        if (request->encodes_url)
                append_element(out, "EncodingType", "url");
        if (*request->token)
                append_element(out, "ContinuationToken", request->token);
        buf_printf(out, "<MaxKeys>%" PRIu64 "</MaxKeys><KeyCount>%" PRIu64 "</KeyCount><IsTruncated>%s</IsTruncated>",
                   request->max_keys, l->count, l->is_truncated ? "true" : "false");
        if (!l->is_truncated)
                return;
        buf_append_str(out, "<NextContinuationToken>");
        append_token(out, l->last);
        buf_append_str(out, "</NextContinuationToken>");
}

enum status write_s3_list(const struct tenant *t, const struct s3_list_request *request, struct buf *out,
                          struct error *err)
{
        struct s3_list l = { .tenant = t, .request = request };
        enum status st = ST_OK;

        buf_init_budget(&l.contents, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        buf_init_budget(&l.prefixes, LIMIT_RESPONSE_BYTES, MEMORY_ANSWERS);
        for (size_t i = 0; !st && request->max_keys && i < TABLE_NAME_COUNT; i++)
                st = add_table_keys(&l, table_names[i], err);
        if (!st)
                st = buf_status(&l.contents, err, "a listing");
        if (!st)
                st = buf_status(&l.prefixes, err, "a listing");
        if (!st) {
                append_list_head(&l, out);
                buf_append(out, l.contents.data, l.contents.size);
                buf_append(out, l.prefixes.data, l.prefixes.size);
                buf_append_str(out, "</ListBucketResult>\n");
                st = buf_status(out, err, "a listing");
        }
        buf_deinit(&l.contents);
        buf_deinit(&l.prefixes);
        return st;
}
