/* SPDX-License-Identifier: Apache-2.0 */
#include "server/api/symbolize/symbolicate_request.h"

#include <stdlib.h>
#include <string.h>

#include "common/json/json_scan.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/utf8.h"
#include "common/text.h"

#define AGE_DIGITS_MAX 8

void symbolicate_request_deinit(struct symbolicate_request *r)
{
        arena_deinit(&r->arena);
        free(r->modules);
        free(r->frames);
        free(r->stack_ends);
        free(r->jobs);
        *r = (struct symbolicate_request){ 0 };
}

/* Reserve space for one more item. */
static enum status reserve_array_item(void *array, size_t count, size_t *capacity, size_t size, size_t max,
                                      const char *what, struct error *err)
{
        if (count == max)
                return error_set(err, ST_TOO_BIG, "more than %zu %s; split them into several requests", max, what);
        return count < *capacity || array_grow(array, capacity, count, 1, size) ? ST_OK : error_no_memory(err);
}

bool debug_id_parse(const char *text, size_t n, uint8_t guid[static DEBUG_ID_GUID_BYTES])
{
        static const uint8_t order[DEBUG_ID_GUID_BYTES] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };

        if (n <= 2 * DEBUG_ID_GUID_BYTES || n > 2 * DEBUG_ID_GUID_BYTES + AGE_DIGITS_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                if (hex_digit_value(text[i]) < 0)
                        return false;
        for (size_t i = 0; i < DEBUG_ID_GUID_BYTES; i++)
                guid[order[i]] = (uint8_t)(hex_digit_value(text[2 * i]) << 4 | hex_digit_value(text[2 * i + 1]));
        return true;
}

static bool scan_text(struct json_scan *s, struct json_span *ret)
{
        return json_scan_str(s, ret) &&
               (utf8_valid(ret->text, ret->size) || json_scan_fail(s, (const uint8_t *)ret->text, "text in UTF-8"));
}

static enum status read_module(struct json_scan *s, struct symbolicate_request *r, struct error *err)
{
        struct json_span name, debug_id;
        struct symbolicate_module m = { 0 };
        enum status st = reserve_array_item(&r->modules, r->module_count, &r->module_capacity, sizeof *r->modules,
                                            LIMIT_SYMBOLIZE_OBJECTS, "modules", err);

        if (st)
                return st;
        json_scan_array(s);
        if (!json_scan_item(s) || !scan_text(s, &name) || !json_scan_item(s) || !scan_text(s, &debug_id) ||
            json_scan_item(s)) {
                json_scan_fail(s, s->at, "a pair of debug name and debug id");
                return ST_OK;
        }
        m.name = arena_strndup(&r->arena, name.text, name.size);
        m.debug_id = arena_strndup(&r->arena, debug_id.text, debug_id.size);
        m.is_valid = debug_id_parse(debug_id.text, debug_id.size, m.guid);
        if (!m.name || !m.debug_id)
                return error_no_memory(err);
        r->modules[r->module_count++] = m;
        return ST_OK;
}

static enum status read_symbolicate_frame(struct json_scan *s, struct symbolicate_request *r, size_t first_module,
                                          struct error *err)
{
        int64_t module, offset;
        enum status st = reserve_array_item(&r->frames, r->frame_count, &r->frame_capacity, sizeof *r->frames,
                                            LIMIT_SYMBOLIZE_KEYS, "frames", err);

        if (st)
                return st;
        json_scan_array(s);
        if (!json_scan_item(s) || !json_scan_int(s, &module) || !json_scan_item(s) || !json_scan_int(s, &offset) ||
            json_scan_item(s) || module < -1 || module >= LIMIT_SYMBOLIZE_OBJECTS || (offset < 0 && module >= 0)) {
                json_scan_fail(s, s->at, "a pair of module index and offset");
                return ST_OK;
        }
        r->frames[r->frame_count++] =
                (struct symbolicate_frame){ (uint64_t)offset,
                                            module < 0 ? UINT32_MAX : (uint32_t)(first_module + (size_t)module) };
        return ST_OK;
}

static enum status read_symbolicate_stacks(struct json_scan *s, struct symbolicate_request *r, size_t first_module,
                                           struct error *err)
{
        enum status st = ST_OK;

        json_scan_array(s);
        while (!st && json_scan_item(s)) {
                json_scan_array(s);
                while (!st && json_scan_item(s))
                        st = read_symbolicate_frame(s, r, first_module, err);
                if (!st)
                        st = reserve_array_item(&r->stack_ends, r->stack_count, &r->stack_capacity,
                                                sizeof *r->stack_ends, LIMIT_SYMBOLIZE_KEYS, "stacks", err);
                if (!st)
                        r->stack_ends[r->stack_count++] = r->frame_count;
        }
        return st;
}

/* Read the value of a job's member; false, with nothing read, when the key is not one of a job. */
static bool read_symbolicate_member(struct json_scan *s, const struct json_span *key, struct symbolicate_request *r,
                                    size_t first_module, enum status *st, struct error *err)
{
        if (json_span_is(key, "memoryMap")) {
                json_scan_array(s);
                while (!*st && json_scan_item(s))
                        *st = read_module(s, r, err);
                return true;
        }
        if (!json_span_is(key, "stacks"))
                return false;
        *st = read_symbolicate_stacks(s, r, first_module, err);
        return true;
}

/* Checks module indexes at the end of a job, because frames may precede the modules that they refer to. */
static enum status finish_symbolicate_job(struct json_scan *s, struct symbolicate_request *r, size_t first_frame,
                                          struct error *err)
{
        enum status st = reserve_array_item(&r->jobs, r->job_count, &r->job_capacity, sizeof *r->jobs,
                                            LIMIT_SYMBOLIZE_OBJECTS, "jobs", err);

        if (st || s->failed)
                return st;
        for (size_t i = first_frame; i < r->frame_count; i++)
                if (r->frames[i].module != UINT32_MAX && r->frames[i].module >= r->module_count)
                        return error_set(err, ST_BAD_DATA,
                                         "frame %zu of job %zu refers to a module past the end of memoryMap",
                                         i - first_frame, r->job_count);
        r->jobs[r->job_count++] = (struct symbolicate_job){ r->module_count, r->stack_count };
        return ST_OK;
}

static enum status read_job(struct json_scan *s, struct symbolicate_request *r, struct error *err)
{
        size_t first_module = r->module_count, first_frame = r->frame_count;
        struct json_span key;
        enum status st = ST_OK;

        json_scan_object(s);
        while (!st && json_scan_key(s, &key))
                if (!read_symbolicate_member(s, &key, r, first_module, &st, err))
                        json_scan_skip(s);
        return st ? st : finish_symbolicate_job(s, r, first_frame, err);
}

/* {"jobs": [job...]}, or a single job. */
enum status symbolicate_request_read(const void *data, size_t n, struct symbolicate_request *ret, struct error *err)
{
        struct json_span key;
        struct json_scan s;
        bool has_jobs = false, is_job = false;
        enum status st = ST_OK;

        *ret = (struct symbolicate_request){ 0 };
        arena_init_budget(&ret->arena, LIMIT_HTTP_BODY_BYTES * 4, MEMORY_BODIES);
        json_scan_init(&s, data, n);
        json_scan_object(&s);
        while (!st && json_scan_key(&s, &key)) {
                if (json_span_is(&key, "jobs") && !has_jobs && !is_job) {
                        has_jobs = true;
                        json_scan_array(&s);
                        while (!st && json_scan_item(&s))
                                st = read_job(&s, ret, err);
                } else if (!has_jobs && read_symbolicate_member(&s, &key, ret, 0, &st, err)) {
                        is_job = true;
                } else {
                        json_scan_skip(&s);
                }
        }
        if (!st)
                st = json_scan_end(&s, err);
        if (!st && !has_jobs && !is_job)
                return error_set(err, ST_BAD_DATA, "the body has neither 'jobs' nor 'memoryMap' and 'stacks'");
        return !st && is_job ? finish_symbolicate_job(&s, ret, 0, err) : st;
}
