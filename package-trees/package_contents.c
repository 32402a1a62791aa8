/* SPDX-License-Identifier: Apache-2.0 */
#include "package-trees/package_contents.h"

#include <string.h>

#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/reader.h"

/* The first byte of each record. */
enum { RECORD_OBJECT = 'o', RECORD_SOURCE = 's', RECORD_END = 'e' };

void package_contents_put_object(struct buf *to, const struct package_object *o)
{
        buf_append_u8(to, RECORD_OBJECT);
        buf_append_u8(to, o->build_id.size);
        buf_append(to, o->build_id.bytes, o->build_id.size);
        buf_append_u8(to, o->kinds);
        buf_append_u8(to, (uint8_t)o->quality);
        buf_append_u64(to, o->size_bytes);
        buf_append_u32(to, o->ordinal);
        buf_append(to, o->path, strlen(o->path) + 1);
        buf_append_u32(to, o->sections_bytes);
        buf_append(to, o->sections, o->sections_bytes);
}

void package_contents_put_source(struct buf *to, uint64_t path_hash, uint32_t ordinal)
{
        buf_append_u8(to, RECORD_SOURCE);
        buf_append_u64(to, path_hash);
        buf_append_u32(to, ordinal);
}

void package_contents_put_end(struct buf *to, uint32_t odd_paths, uint32_t broken)
{
        buf_append_u8(to, RECORD_END);
        buf_append_u32(to, odd_paths);
        buf_append_u32(to, broken);
}

static bool read_package_object(struct reader *r, struct package_object *o)
{
        const uint8_t *id;
        uint8_t size, quality;
        const uint8_t *sections;

        if (!reader_u8(r, &size) || !reader_bytes(r, size, &id) || !reader_u8(r, &o->kinds) ||
            !reader_u8(r, &quality) || !reader_u64(r, &o->size_bytes) || !reader_u32(r, &o->ordinal) ||
            !reader_cstr(r, &o->path) || !reader_u32(r, &o->sections_bytes) ||
            o->sections_bytes > LIMIT_SECTION_LIST_BYTES || !reader_bytes(r, o->sections_bytes, &sections) ||
            quality > QUALITY_DWARF || !o->kinds || o->kinds > (PACKAGE_DEBUGINFO | PACKAGE_EXECUTABLE))
                return false;
        o->quality = quality;
        o->sections = sections;
        return build_id_from_bytes(&o->build_id, id, size);
}

/* False for an invalid record. @param memory_ret false if out of memory */
static bool read_contents_record(struct reader *r, struct package_contents *c, bool *end_ret, bool *memory_ret)
{
        uint8_t what;

        if (!reader_u8(r, &what))
                return false;
        switch (what) {
        case RECORD_OBJECT:
                *memory_ret = array_reserve(&c->objects, &c->object_capacity, c->object_count);
                return *memory_ret && read_package_object(r, &c->objects[c->object_count]) && ++c->object_count;
        case RECORD_SOURCE:
                *memory_ret = array_reserve(&c->sources, &c->source_capacity, c->source_count);
                return *memory_ret && reader_u64(r, &c->sources[c->source_count].path_hash) &&
                       reader_u32(r, &c->sources[c->source_count].ordinal) && ++c->source_count;
        case RECORD_END:
                *end_ret = true;
                return reader_u32(r, &c->odd_paths) && reader_u32(r, &c->broken) && reader_left(r) == 0;
        default:
                return false;
        }
}

enum status package_contents_read(void *bytes, size_t n, struct package_contents *ret, struct error *err)
{
        struct package_contents c = { .bytes = bytes };
        bool end = false, memory = true;
        struct reader r;

        reader_init(&r, bytes, n);
        while (!end) {
                if (read_contents_record(&r, &c, &end, &memory))
                        continue;
                package_contents_deinit(&c);
                return memory ? error_at(err, ST_BAD_DATA, r.pos, "the worker's result is damaged")
                              : error_no_memory(err);
        }
        *ret = c;
        return ST_OK;
}

void package_contents_deinit(struct package_contents *c)
{
        free(c->objects);
        free(c->sources);
        free(c->bytes);
        *c = (struct package_contents){ 0 };
}

uint64_t package_path_hash(const char *path)
{
        return hash_bytes64(path, strlen(path));
}
