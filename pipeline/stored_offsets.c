/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/stored_offsets.h"

#include "common/cleanup.h"
#include "common/json/json_out.h"
#include "pipeline/elf_job.h"

/* The dwz file that a debug file refers to; -1: none, or it is not stored. */
static int unpack_dwz_of(struct debuginfo_store *objects, int fd, const atomic_bool *cancel)
{
        struct elf_supplement found;
        int ret = -1;

        if (elf_job_read_supplement(fd, NULL, cancel, &found, NULL) || !found.needed.size)
                return -1;
        return debuginfo_store_unpack(objects, &found.needed, OBJECT_SUPPLEMENTARY, &ret, NULL) ? -1 : ret;
}

static enum status find_stored_offsets(struct debuginfo_store *objects, const struct build_id *id,
                                       const char *const *fields, size_t count, const atomic_bool *cancel,
                                       struct struct_offset *ret, struct error *err)
{
        _cleanup_close_ int fd = -1, altlink = -1;
        enum status st = debuginfo_store_unpack(objects, id, OBJECT_DEBUGINFO, &fd, err);

        if (st == ST_NOT_FOUND)
                st = debuginfo_store_unpack(objects, id, OBJECT_EXECUTABLE, &fd, err);
        if (st)
                return st;
        altlink = unpack_dwz_of(objects, fd, cancel);
        return struct_offsets_find(fd, altlink, fields, count, cancel, ret, err);
}

enum status stored_offsets_write(struct debuginfo_store *objects, const struct build_id *id, const char *const *fields,
                                 size_t count, const atomic_bool *cancel, struct buf *ret, struct error *err)
{
        struct struct_offset found[STRUCT_FIELDS_MAX];
        char hex[BUILD_ID_HEX_MAX];
        struct build_id owner;
        struct json_out j;
        enum status st;

        if (debuginfo_store_resolve_alias(objects, id, &owner, NULL) == ST_OK)
                id = &owner;
        st = count <= STRUCT_FIELDS_MAX
                     ? find_stored_offsets(objects, id, fields, count, cancel, found, err)
                     : error_set(err, ST_USAGE, "more than %d fields; split them into several requests",
                                 STRUCT_FIELDS_MAX);
        if (st)
                return st;
        json_out_init(&j, ret);
        json_out_object(&j, NULL);
        json_out_str(&j, "build_id", build_id_hex(id, hex));
        json_out_array(&j, "fields");
        for (size_t i = 0; i < count; i++) {
                json_out_object(&j, NULL);
                json_out_str(&j, "field", fields[i]);
                json_out_str(&j, "state", struct_offset_state_name(found[i].state));
                if (found[i].state == STRUCT_OFFSET_FOUND) {
                        json_out_uint(&j, "offset", found[i].offset);
                        json_out_uint(&j, "size", found[i].size);
                }
                json_out_object_end(&j);
        }
        json_out_array_end(&j);
        json_out_object_end(&j);
        return buf_status(ret, err, "the answer");
}
