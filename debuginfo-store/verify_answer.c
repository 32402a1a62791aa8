/* SPDX-License-Identifier: Apache-2.0 */
#include "debuginfo-store/verify_answer.h"

#include <stdlib.h>
#include <string.h>

#include "common/limits.h"
#include "common/reader.h"

void verified_deinit(struct verified *v)
{
        free(v->needs);
        free(v->sections);
        *v = (struct verified){ 0 };
}

static void put_id(struct buf *to, const struct build_id *id)
{
        buf_append_u8(to, id->size);
        buf_append(to, id->bytes, id->size);
}

void verify_answer_encode(struct buf *to, const struct verified *v)
{
        buf_append_u8(to, (uint8_t)v->form);
        buf_append_u8(to, (uint8_t)v->quality);
        buf_append_u8(to, v->has_code);
        buf_append_u32(to, v->package_units);
        buf_append_u32(to, v->asked_units);
        put_id(to, &v->build_id);
        put_id(to, &v->go_id);
        buf_append_u32(to, v->need_count);
        for (uint32_t i = 0; i < v->need_count; i++) {
                buf_append_u8(to, (uint8_t)v->needs[i].kind);
                put_id(to, &v->needs[i].build_id);
        }
        buf_append_u32(to, v->sections_bytes);
        buf_append(to, v->sections, v->sections_bytes);
}

static bool read_id(struct reader *r, struct build_id *ret)
{
        const uint8_t *bytes;
        uint8_t size;

        if (!reader_u8(r, &size) || size > BUILD_ID_MAX || !reader_bytes(r, size, &bytes))
                return false;
        *ret = (struct build_id){ 0 };
        return !size || build_id_from_bytes(ret, bytes, size);
}

static bool read_need(struct reader *r, struct object_name *ret)
{
        uint8_t kind;

        if (!reader_u8(r, &kind) || (kind != OBJECT_SUPPLEMENTARY && kind != OBJECT_DWO) || !read_id(r, &ret->build_id))
                return false;
        ret->kind = kind;
        return ret->build_id.size > 0;
}

static bool read_head(struct reader *r, struct verified *v)
{
        uint8_t form, quality, code;

        if (!reader_u8(r, &form) || !reader_u8(r, &quality) || !reader_u8(r, &code) || !reader_u32(r, &v->package_units) ||
            !reader_u32(r, &v->asked_units) || !read_id(r, &v->build_id) || !read_id(r, &v->go_id) ||
            !reader_u32(r, &v->need_count))
                return false;
        v->form = form;
        v->quality = quality;
        v->has_code = code;
        return form < VERIFIED_FORM_COUNT && quality <= QUALITY_DWARF && v->need_count <= LIMIT_COMPANIONS + 1;
}

/* What the list says is checked where it is used. */
static bool read_sections(struct reader *r, struct verified *v)
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

enum status verify_answer_decode(const void *bytes, size_t n, struct verified *ret, struct error *err)
{
        struct verified v = { 0 };
        struct reader r;
        bool ok;

        reader_init(&r, bytes, n);
        ok = read_head(&r, &v);
        if (ok && v.need_count) {
                v.needs = calloc(v.need_count, sizeof *v.needs);
                if (!v.needs)
                        return error_no_memory(err);
        }
        for (uint32_t i = 0; ok && i < v.need_count; i++)
                ok = read_need(&r, &v.needs[i]);
        if (!ok || !read_sections(&r, &v)) {
                verified_deinit(&v);
                return error_set(err, ST_BAD_DATA, "the verifier's answer is damaged");
        }
        *ret = v;
        return ST_OK;
}
