/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-store/queue/quarantine.h"

#include <dirent.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/build_id.h"
#include "common/clock.h"
#include "common/files/file.h"
#include "common/json/json_out.h"
#include "common/json/json_value.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text.h"
#include "profile-store/queue/payload.h"

#define FOLDER "queue/quarantine"
#define SUFFIX ".batch"
#define POSITION_DIGITS 20
#define ID_DIGITS 32
#define NAME_LENGTH (POSITION_DIGITS + 1 + ID_DIGITS + sizeof SUFFIX - 1)

/* ---- names ---- */

static char *quarantine_path(const char *dir, uint64_t position, const struct hash128 *batch_id)
{
        char hex[ID_DIGITS + 1], *ret;

        hex_encode(batch_id->bytes, sizeof batch_id->bytes, hex);
        return asprintf(&ret, "%s/" FOLDER "/%0*" PRIu64 "-%s" SUFFIX, dir, POSITION_DIGITS, position, hex) < 0 ? NULL
                                                                                                                : ret;
}

static bool parse_quarantine_name(const char *name, struct quarantine_item *ret)
{
        struct build_id id; /* used as a parser of hexadecimal */
        uint64_t position = 0;

        if (strlen(name) != NAME_LENGTH || name[POSITION_DIGITS] != '-' ||
            strcmp(name + POSITION_DIGITS + 1 + ID_DIGITS, SUFFIX) != 0)
                return false;
        for (int i = 0; i < POSITION_DIGITS; i++) {
                if (name[i] < '0' || name[i] > '9' || __builtin_mul_overflow(position, 10, &position) ||
                    __builtin_add_overflow(position, (uint64_t)(name[i] - '0'), &position))
                        return false;
        }
        if (!build_id_from_hex(&id, name + POSITION_DIGITS + 1, ID_DIGITS) || id.size != sizeof ret->batch_id.bytes)
                return false;
        *ret = (struct quarantine_item){ .position = position };
        memcpy(ret->batch_id.bytes, id.bytes, sizeof ret->batch_id.bytes);
        return true;
}

/* ---- write ---- */

enum status quarantine_add(const char *dir, const struct raw_record *record, const char *reason, uint64_t *bytes_ret,
                           struct error *err)
{
        _cleanup_free_ char *path = quarantine_path(dir, record->position, &record->batch_id);
        _cleanup_free_ char *folder = path_join(dir, FOLDER);
        uint8_t segment[RAW_SEGMENT_HEADER_BYTES], header[RAW_RECORD_HEADER_BYTES];
        _cleanup_buf_ struct buf bytes;
        struct json_out j;
        enum status st;

        buf_init(&bytes, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
        if (!path || !folder)
                return error_no_memory(err);
        raw_segment_encode_header(record->position, segment);
        raw_record_encode_header(record, header);
        buf_append(&bytes, segment, sizeof segment);
        buf_append(&bytes, header, sizeof header);
        buf_append(&bytes, record->payload, record->payload_size);
        json_out_init(&j, &bytes);
        json_out_object(&j, NULL);
        json_out_int(&j, "quarantined_unix_ns", wall_clock_ns());
        json_out_str(&j, "reason", reason);
        json_out_object_end(&j);
        buf_append_str(&bytes, "\n");
        st = buf_status(&bytes, err, "a quarantined batch");
        if (!st)
                st = file_make_dirs(folder, err);
        if (!st)
                st = file_write_durable(path, bytes.data, bytes.size, err);
        if (!st && bytes_ret)
                *bytes_ret = bytes.size;
        return st;
}

enum status quarantine_remove(const char *dir, const struct quarantine_item *item, struct error *err)
{
        _cleanup_free_ char *path = quarantine_path(dir, item->position, &item->batch_id);

        if (!path)
                return error_no_memory(err);
        if (unlink(path) < 0)
                return errno == ENOENT ? error_set(err, ST_NOT_FOUND, "'%s' does not exist any more", path)
                                       : error_os(err, errno, "cannot unlink '%s'", path);
        return file_sync_parent(path, err);
}

/* ---- read ---- */

bool quarantine_contains(const char *dir, uint64_t position, const struct hash128 *batch_id)
{
        _cleanup_free_ char *path = quarantine_path(dir, position, batch_id);

        return path && access(path, F_OK) == 0;
}

static void read_reason(const char *text, size_t n, struct quarantine_item *item)
{
        struct json_value o;

        if (json_value_parse(text, n < KiB(4) ? n : KiB(4), &o, NULL))
                return;
        item->quarantined_unix_ns = (int64_t)json_value_uint(&o, "quarantined_unix_ns", 0);
        (void)json_value_text(&o, "reason", item->reason, sizeof item->reason);
}

/* Parse a file: the record and the line after it; ST_BAD_DATA when the record is damaged. */
static enum status parse_quarantine_file(const char *path, struct buf *file, struct quarantine_item *item,
                                         struct raw_record *ret, struct error *err)
{
        struct raw_segment s = { 0 };
        enum status st = file_read(path, file, err);

        if (st)
                return st;
        item->bytes = file->size;
        st = raw_segment_begin(&s, file->data, file->size, path, err);
        if (st)
                return st;
        if (!raw_segment_next(&s, ret) || ret->position != item->position ||
            memcmp(&ret->batch_id, &item->batch_id, sizeof item->batch_id) != 0)
                return error_set(err, ST_BAD_DATA,
                                 "'%s' is damaged: its batch does not match its checksums or its name", path);
        item->received_unix_ns = ret->received_unix_ns;
        read_reason((const char *)file->data + s.valid_end, file->size - s.valid_end, item);
        return ST_OK;
}

enum status quarantine_read(const char *dir, const struct quarantine_item *item, struct buf *file,
                            struct raw_record *ret, struct error *err)
{
        _cleanup_free_ char *path = quarantine_path(dir, item->position, &item->batch_id);
        struct quarantine_item copy = *item;

        return path ? parse_quarantine_file(path, file, &copy, ret, err) : error_no_memory(err);
}

enum status quarantine_decode(const char *dir, const struct quarantine_item *item, struct profile *ret,
                              struct error *err)
{
        _cleanup_buf_ struct buf file;
        struct raw_record record;
        enum status st;

        buf_init(&file, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
        st = quarantine_read(dir, item, &file, &record, err);
        return st ? st : payload_decode(record.payload, record.payload_size, ret, err);
}

static int compare_positions(const void *a, const void *b)
{
        const struct quarantine_item *x = a, *y = b;

        return (x->position > y->position) - (x->position < y->position);
}

enum status quarantine_list_names(const char *dir, struct quarantine_item **ret, size_t *count_ret, struct error *err)
{
        _cleanup_free_ char *folder = path_join(dir, FOLDER);
        _cleanup_closedir_ DIR *d = folder ? opendir(folder) : NULL;
        struct quarantine_item *items = NULL;
        size_t count = 0, capacity = 0;
        struct dirent *e;

        if (!folder)
                return error_no_memory(err);
        if (!d && errno != ENOENT)
                return error_os(err, errno, "cannot list '%s'", folder);
        while (d && (e = readdir(d))) {
                struct quarantine_item item;
                struct stat st;

                if (!parse_quarantine_name(e->d_name, &item) || fstatat(dirfd(d), e->d_name, &st, 0) < 0)
                        continue;
                if (!array_reserve(&items, &capacity, count)) {
                        free(items);
                        return error_no_memory(err);
                }
                item.bytes = (uint64_t)st.st_size;
                items[count++] = item;
        }
        if (count)
                qsort(items, count, sizeof *items, compare_positions);
        *ret = items;
        *count_ret = count;
        return ST_OK;
}

enum status quarantine_list(const char *dir, struct quarantine_item **ret, size_t *count_ret, struct error *err)
{
        struct quarantine_item *items;
        size_t count, kept = 0;
        enum status st = quarantine_list_names(dir, &items, &count, err);

        for (size_t i = 0; !st && i < count; i++) {
                _cleanup_free_ char *path = quarantine_path(dir, items[i].position, &items[i].batch_id);
                _cleanup_buf_ struct buf file;
                struct raw_record record;
                struct error why;

                buf_init(&file, LIMIT_QUEUE_SEGMENT_FILE_BYTES);
                st = path ? parse_quarantine_file(path, &file, &items[i], &record, &why) : error_no_memory(&why);
                items[i].damaged = st == ST_BAD_DATA || st == ST_UNSUPPORTED || st == ST_TOO_BIG;
                if (items[i].damaged)
                        snprintf(items[i].reason, sizeof items[i].reason, "%s", why.text);
                if (!st || items[i].damaged)
                        items[kept++] = items[i];
                else if (st != ST_NOT_FOUND && err)
                        *err = why;
                st = items[i].damaged || st == ST_NOT_FOUND ? ST_OK : st;
        }
        if (st) {
                free(items);
                return st;
        }
        *ret = items;
        *count_ret = kept;
        return ST_OK;
}

struct quarantine_totals quarantine_count(const char *dir)
{
        struct quarantine_totals ret = { 0 };
        _cleanup_free_ struct quarantine_item *items = NULL;

        if (quarantine_list_names(dir, &items, &ret.batches, NULL))
                return (struct quarantine_totals){ 0 };
        for (size_t i = 0; i < ret.batches; i++)
                ret.bytes += items[i].bytes;
        return ret;
}

struct hash128 quarantine_retry_id(const struct hash128 *batch_id)
{
        static const char purpose[] = "cairn quarantine retry";
        uint8_t seed[sizeof batch_id->bytes + sizeof purpose];

        memcpy(seed, batch_id->bytes, sizeof batch_id->bytes);
        memcpy(seed + sizeof batch_id->bytes, purpose, sizeof purpose);
        return hash_bytes128(seed, sizeof seed);
}
