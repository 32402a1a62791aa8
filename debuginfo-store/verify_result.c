/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding and decoding of the verifying worker's result. Separate from verify_worker.c, so that tests can replace the
 * worker. */
#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"
#include "debuginfo-store/verify_worker.h"

void verify_result_deinit(struct verify_result *v)
{
        free(v->companions);
        free(v->sections);
        *v = (struct verify_result){ 0 };
}

static void append_verified_id(struct buf *to, const struct build_id *id)
{
        buf_append_u8(to, id->size);
        buf_append(to, id->bytes, id->size);
}

void verify_result_encode(struct buf *to, const struct verify_result *v)
{
        buf_append_u8(to, (uint8_t)v->form);
        buf_append_u8(to, (uint8_t)v->quality);
        buf_append_u8(to, v->has_code);
        buf_append_u32(to, v->package_units);
        buf_append_u32(to, v->asked_units);
        append_verified_id(to, &v->build_id);
        append_verified_id(to, &v->go_id);
        buf_append_u32(to, v->companion_count);
        for (uint32_t i = 0; i < v->companion_count; i++) {
                buf_append_u8(to, (uint8_t)v->companions[i].kind);
                append_verified_id(to, &v->companions[i].build_id);
        }
        buf_append_u32(to, v->sections_bytes);
        buf_append(to, v->sections, v->sections_bytes);
}

static bool read_verified_id(struct reader *r, struct build_id *ret)
{
        const uint8_t *bytes;
        uint8_t size;

        if (!reader_u8(r, &size) || size > BUILD_ID_MAX || !reader_bytes(r, size, &bytes))
                return false;
        *ret = (struct build_id){ 0 };
        return !size || build_id_from_bytes(ret, bytes, size);
}

static bool read_verified_companion(struct reader *r, struct object_name *ret)
{
        uint8_t kind;

        if (!reader_u8(r, &kind) || (kind != OBJECT_SUPPLEMENTARY && kind != OBJECT_DWO) ||
            !read_verified_id(r, &ret->build_id))
                return false;
        ret->kind = kind;
        return ret->build_id.size > 0;
}

static bool read_verify_head(struct reader *r, struct verify_result *v)
{
        uint8_t form, quality, code;

        if (!reader_u8(r, &form) || !reader_u8(r, &quality) || !reader_u8(r, &code) ||
            !reader_u32(r, &v->package_units) || !reader_u32(r, &v->asked_units) ||
            !read_verified_id(r, &v->build_id) || !read_verified_id(r, &v->go_id) ||
            !reader_u32(r, &v->companion_count))
                return false;
        v->form = form;
        v->quality = quality;
        v->has_code = code;
        return form < VERIFIED_FORM_COUNT && quality <= QUALITY_DWARF && v->companion_count <= LIMIT_COMPANIONS + 1;
}

/* The content of the list is checked by its readers. */
static bool read_verified_sections(struct reader *r, struct verify_result *v)
{
        const uint8_t *bytes;

        if (!reader_u32(r, &v->sections_bytes) || v->sections_bytes > LIMIT_SECTION_LIST_BYTES ||
            !reader_bytes(r, v->sections_bytes, &bytes))
                return false;
        v->sections = v->sections_bytes ? malloc(v->sections_bytes) : NULL;
        if (v->sections)
                memcpy(v->sections, bytes, v->sections_bytes);
        else
                v->sections_bytes = 0;
        return true;
}

enum status verify_result_decode(const void *bytes, size_t n, struct verify_result *ret, struct error *err)
{
        struct verify_result v = { 0 };
        struct reader r;
        bool ok;

        reader_init(&r, bytes, n);
        ok = read_verify_head(&r, &v);
        if (ok && v.companion_count) {
                v.companions = calloc(v.companion_count, sizeof *v.companions);
                if (!v.companions)
                        return error_no_memory(err);
        }
        for (uint32_t i = 0; ok && i < v.companion_count; i++)
                ok = read_verified_companion(&r, &v.companions[i]);
        if (!ok || !read_verified_sections(&r, &v)) {
                verify_result_deinit(&v);
                return error_set(err, ST_BAD_DATA, "the verifier's result is damaged");
        }
        *ret = v;
        return ST_OK;
}
