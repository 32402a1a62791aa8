/* SPDX-License-Identifier: Apache-2.0 */
#include "symbol-index/index_object.h"

#include <assert.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/reader.h"
#include "symbol-index/block_bits.h"
#include "symbol-index/index_load.h"

#define RECORD_VERSION 1
#define SEGMENT_BYTES 24
#define CHECKSUM_BYTES 8

static bool read_object_text(struct reader *r, uint8_t size, char *ret, size_t ret_size)
{
        const uint8_t *text;

        if (size >= ret_size || !reader_bytes(r, size, &text))
                return false;
        memcpy(ret, text, size);
        return true;
}

static bool read_record_inputs(struct reader *r, struct symbol_inputs *ret)
{
        if (!reader_u8(r, &ret->count) || ret->count > SYMBOL_INPUTS_MAX)
                return false;
        for (unsigned i = 0; i < ret->count; i++)
                if (!reader_u64(r, &ret->items[i]))
                        return false;
        return true;
}

static enum status parse_object_record(const MDB_val *value, struct index_object *ret)
{
        struct index_object o = { 0 };
        uint8_t version, state, quality, reason_size, partial_size;
        struct reader r;
        uint64_t indexed, changed;

        if (value->mv_size < CHECKSUM_BYTES ||
            load_le64((const uint8_t *)value->mv_data + value->mv_size - CHECKSUM_BYTES) !=
                    hash_bytes64(value->mv_data, value->mv_size - CHECKSUM_BYTES))
                return ST_BAD_DATA;
        reader_init(&r, value->mv_data, value->mv_size - CHECKSUM_BYTES);
        if (!reader_u8(&r, &version) || version != RECORD_VERSION || !reader_u8(&r, &state) ||
            !reader_u8(&r, &quality) || !reader_u8(&r, &reason_size) || !reader_u32(&r, &o.number) ||
            !reader_u64(&r, &o.range_count) || !reader_u64(&r, &o.function_count) || !reader_u64(&r, &o.file_count) ||
            !reader_u64(&r, &o.chain_count) || !reader_u64(&r, &o.block_bytes) || !reader_u64(&r, &o.string_bytes) ||
            !reader_u64(&r, &indexed) || !reader_u64(&r, &changed) ||
            !read_object_text(&r, reason_size, o.reason, sizeof o.reason) || !reader_u8(&r, &partial_size) ||
            !read_object_text(&r, partial_size, o.partial, sizeof o.partial) || !read_record_inputs(&r, &o.inputs) ||
            !reader_u32(&r, &o.segment_count) ||
            !reader_bytes(&r, (uint64_t)o.segment_count * SEGMENT_BYTES, &o.segments) || reader_left(&r) > 0)
                return ST_BAD_DATA;
        if (state > OBJECT_FAILED || quality > QUALITY_DWARF)
                return ST_BAD_DATA;
        o.state = (enum symbol_object_state)state;
        o.quality = (enum symbol_quality)quality;
        o.indexed_unix_s = (int64_t)indexed;
        o.changed_unix_s = (int64_t)changed;
        *ret = o;
        return ST_OK;
}

enum status index_object_get(struct symbol_index *index, MDB_txn *txn, const struct build_id *id,
                             struct index_object *ret, struct error *err)
{
        MDB_val key = { id->size, (void *)id->bytes }, value;
        char hex[BUILD_ID_HEX_MAX];
        int rc = id->size ? mdb_get(txn, index->objects, &key, &value) : MDB_NOTFOUND;

        if (rc == MDB_NOTFOUND) {
                *ret = (struct index_object){ .state = OBJECT_ABSENT };
                return ST_OK;
        }
        if (rc)
                return index_set_error(err, index, rc, "cannot read an object of the index");
        if (parse_object_record(&value, ret))
                return error_set(err, ST_BAD_DATA, "index record of object %s is damaged; index its file again",
                                 build_id_hex(id, hex));
        return ST_OK;
}

static void append_record_segments(struct buf *b, const struct index_object *o, const struct symbol_segment *segments,
                                   uint32_t segment_count)
{
        if (!segments) {
                buf_append_u32(b, o->segment_count);
                buf_append(b, o->segments, (size_t)o->segment_count * SEGMENT_BYTES);
                return;
        }
        buf_append_u32(b, segment_count);
        for (uint32_t i = 0; i < segment_count; i++) {
                buf_append_u64(b, segments[i].file_offset);
                buf_append_u64(b, segments[i].file_size);
                buf_append_u64(b, segments[i].address);
        }
}

enum status index_object_put(struct index_write *w, const struct build_id *id, const struct index_object *o,
                             const struct symbol_segment *segments, uint32_t segment_count, struct error *err)
{
        size_t reason_size = strlen(o->reason), partial_size = strlen(o->partial);
        _cleanup_buf_ struct buf b;
        enum status st;

        assert(id->size > 0 && reason_size < sizeof o->reason && partial_size < sizeof o->partial);
        buf_init(&b, KiB(64) + LIMIT_ELF_SEGMENTS * SEGMENT_BYTES);
        buf_append_u8(&b, RECORD_VERSION);
        buf_append_u8(&b, (uint8_t)o->state);
        buf_append_u8(&b, (uint8_t)o->quality);
        buf_append_u8(&b, (uint8_t)reason_size);
        buf_append_u32(&b, o->number);
        buf_append_u64(&b, o->range_count);
        buf_append_u64(&b, o->function_count);
        buf_append_u64(&b, o->file_count);
        buf_append_u64(&b, o->chain_count);
        buf_append_u64(&b, o->block_bytes);
        buf_append_u64(&b, o->string_bytes);
        buf_append_u64(&b, (uint64_t)o->indexed_unix_s);
        buf_append_u64(&b, (uint64_t)(wall_clock_ns() / 1000000000));
        buf_append(&b, o->reason, reason_size);
        buf_append_u8(&b, (uint8_t)partial_size);
        buf_append(&b, o->partial, partial_size);
        buf_append_u8(&b, o->inputs.count);
        for (unsigned i = 0; i < o->inputs.count; i++)
                buf_append_u64(&b, o->inputs.items[i]);
        append_record_segments(&b, o, segments, segment_count);
        if (!b.failed)
                buf_append_u64(&b, hash_bytes64(b.data, b.size));
        st = buf_status(&b, err, "an object's record");
        return st ? st
                  : index_write_put(w, w->index->objects, &(struct index_record){ id->bytes, id->size, b.data, b.size },
                                    0, err);
}

bool index_object_has_bytes(const struct index_object *o)
{
        for (uint32_t i = 0; i < o->segment_count; i++)
                if (load_le64(o->segments + (size_t)i * SEGMENT_BYTES + 8))
                        return true;
        return false;
}

bool index_object_holds(const struct index_object *o, uint64_t address)
{
        for (uint32_t i = 0; i < o->segment_count; i++) {
                const uint8_t *s = o->segments + (size_t)i * SEGMENT_BYTES;
                uint64_t begin = load_le64(s + 16);

                if (address >= begin && address - begin < load_le64(s + 8))
                        return true;
        }
        return false;
}

bool index_object_translate(const struct index_object *o, uint64_t file_offset, uint64_t *address_ret)
{
        for (uint32_t i = 0; i < o->segment_count; i++) {
                const uint8_t *s = o->segments + (size_t)i * SEGMENT_BYTES;
                uint64_t begin = load_le64(s);

                if (file_offset >= begin && file_offset - begin < load_le64(s + 8)) {
                        *address_ret = load_le64(s + 16) + (file_offset - begin);
                        return true;
                }
        }
        return false;
}

uint64_t index_object_base(const struct index_object *o)
{
        return o->segment_count ? load_le64(o->segments + 16) : 0;
}

uint64_t index_object_kernel_base(const struct index_object *o)
{
        uint64_t base = 0;

        for (uint32_t i = 0; i < o->segment_count; i++) {
                uint64_t begin = load_le64(o->segments + (size_t)i * SEGMENT_BYTES + 16);

                if (begin >= KERNEL_ADDRESSES && (!base || begin < base))
                        base = begin;
        }
        return base;
}

static enum status write_object_state(struct index_write *w, const struct build_id *id, enum symbol_object_state state,
                                      const char *reason, const struct symbol_inputs *inputs, struct error *err)
{
        struct index_object o = { 0 };
        enum status st = index_object_get(w->index, w->txn, id, &o, NULL);

        if (st == ST_BAD_DATA)
                o = (struct index_object){ 0 };
        else if (st)
                return error_set(err, st, "cannot read the index");
        if (state == OBJECT_ABSENT && o.number == 0) {
                MDB_val key = { id->size, (void *)id->bytes };
                int rc = mdb_del(w->txn, w->index->objects, &key, NULL);

                return rc == MDB_NOTFOUND ? ST_OK : index_set_error(err, w->index, rc, "cannot write the index");
        }
        o.state = state == OBJECT_ABSENT ? OBJECT_INDEXED : state;
        memset(o.reason, 0, sizeof o.reason);
        if (reason && o.state == OBJECT_FAILED)
                memcpy(o.reason, reason, strnlen(reason, sizeof o.reason - 1));
        if (inputs)
                o.inputs = *inputs;
        return index_object_put(w, id, &o, NULL, 0, err);
}

enum status symbol_index_set_state(struct symbol_index *index, const struct build_id *id,
                                   enum symbol_object_state state, const char *reason,
                                   const struct symbol_inputs *inputs, struct error *err)
{
        struct index_write w;
        enum status st;

        if (index->read_only)
                return error_set(err, ST_USAGE, "index '%s' is open for reading only", index->dir);
        if (id->size == 0 || state == OBJECT_INDEXED)
                return error_set(err, ST_USAGE, "the state requires a build-id and cannot be 'indexed'");
        pthread_mutex_lock(&index->write_lock);
        st = index_write_begin(&w, index, err);
        if (!st) {
                st = write_object_state(&w, id, state, reason, inputs, err);
                if (!st)
                        st = index_write_commit(&w, err);
                index_write_abort(&w);
        }
        pthread_mutex_unlock(&index->write_lock);
        return st;
}

/* ---- aliases ---- */

static bool is_alias_of(const MDB_val *value, const struct build_id *id)
{
        return value->mv_size == id->size && memcmp(value->mv_data, id->bytes, id->size) == 0;
}

enum status index_object_find(struct symbol_index *index, MDB_txn *txn, const struct build_id *id,
                              struct index_object *ret, struct error *err)
{
        MDB_val key = { id->size, (void *)id->bytes }, value;
        enum status st = index_object_get(index, txn, id, ret, err);
        struct build_id owner;

        if (st || ret->number || !id->size || mdb_get(txn, index->aliases, &key, &value) ||
            !build_id_from_bytes(&owner, value.mv_data, value.mv_size))
                return st;
        return index_object_get(index, txn, &owner, ret, err);
}

static enum status put_alias(struct index_write *w, const struct build_id *id, const struct build_id *alias,
                             bool *changed_ret, struct error *err)
{
        MDB_val key = { alias->size, (void *)alias->bytes }, value;
        int rc = mdb_get(w->txn, w->index->aliases, &key, &value);

        *changed_ret = rc || !is_alias_of(&value, id);
        if (rc && rc != MDB_NOTFOUND)
                return index_set_error(err, w->index, rc, "cannot read an alias");
        return *changed_ret ? index_write_put(w, w->index->aliases,
                                              &(struct index_record){ alias->bytes, alias->size, id->bytes, id->size },
                                              0, err)
                            : ST_OK;
}

enum status symbol_index_add_aliases(struct symbol_index *index, const struct build_id *id,
                                     const struct build_id *aliases, size_t count, bool *changed_ret, struct error *err)
{
        struct index_write w;
        bool any = false;
        enum status st;

        if (index->read_only)
                return error_set(err, ST_USAGE, "index '%s' is open for reading only", index->dir);
        if (!count)
                return ST_OK;
        pthread_mutex_lock(&index->write_lock);
        st = index_write_begin(&w, index, err);
        for (size_t i = 0; !st && i < count; i++) {
                bool changed;

                st = put_alias(&w, id, &aliases[i], &changed, err);
                if (!st && changed_ret)
                        changed_ret[i] = changed;
                any = any || (!st && changed);
        }
        if (!st && any)
                st = index_write_commit(&w, err);
        index_write_abort(&w);
        pthread_mutex_unlock(&index->write_lock);
        return st;
}
