/* SPDX-License-Identifier: Apache-2.0 */
#include "storage/s3/s3_page.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "storage/s3/s3_xml.h"

#define KEY_BYTES 1025 /* the longest key has 1,024 */

struct list_page {
        char key[KEY_BYTES], upload_id[KEY_BYTES];
        struct s3_page_entry entry;
        bool is_truncated;
        struct buf *next;
        s3_page_visit *visit;
        void *context;
};

static enum status copy_list_text(const char *name, const char *text, char ret[static KEY_BYTES], struct error *err)
{
        return (size_t)snprintf(ret, KEY_BYTES, "%s", text) < KEY_BYTES
                       ? ST_OK
                       : error_set(err, ST_BAD_DATA, "a list of the object store has a <%s> of more than %d bytes",
                                   name, KEY_BYTES - 1);
}

static enum status note_entry_member(struct list_page *p, const char *name, const char *text, struct error *err)
{
        if (strcmp(name, "Key") == 0)
                return copy_list_text(name, text, p->key, err);
        if (strcmp(name, "UploadId") == 0)
                return copy_list_text(name, text, p->upload_id, err);
        if (strcmp(name, "Size") == 0)
                p->entry.size = strtoull(text, NULL, 10);
        else if (strcmp(name, "LastModified") == 0 || strcmp(name, "Initiated") == 0)
                p->entry.modified_ms = s3_parse_time(text);
        return ST_OK;
}

static enum status visit_entry(struct list_page *p, struct error *err)
{
        enum status st = ST_OK;

        p->entry.key = p->key;
        p->entry.upload_id = *p->upload_id ? p->upload_id : NULL;
        if (*p->key)
                st = p->visit(p->context, &p->entry, err);
        p->entry = (struct s3_page_entry){ 0 };
        p->key[0] = p->upload_id[0] = 0;
        return st;
}

static enum status note_list_element(void *context, const char *parent, const char *name, const char *text,
                                     struct error *err)
{
        struct list_page *p = context;

        if (strcmp(parent, "Contents") == 0 || strcmp(parent, "Upload") == 0)
                return note_entry_member(p, name, text, err);
        if (strcmp(name, "Contents") == 0 || strcmp(name, "Upload") == 0)
                return visit_entry(p, err);
        if (strcmp(name, "IsTruncated") == 0)
                p->is_truncated = strcmp(text, "true") == 0;
        else if (strcmp(name, "NextContinuationToken") == 0 || strcmp(name, "NextKeyMarker") == 0)
                return buf_append_str(p->next, text);
        return ST_OK;
}

enum status s3_page_read(const void *data, size_t n, s3_page_visit *visit, void *context, struct buf *next_ret,
                         struct error *err)
{
        _cleanup_free_ struct list_page *p = calloc(1, sizeof *p);
        enum status st;

        if (!p)
                return error_no_memory(err);
        p->next = next_ret;
        p->visit = visit;
        p->context = context;
        st = s3_xml_parse(data, n, note_list_element, p, err);
        if (!st)
                st = buf_status(next_ret, err, "the token of a list's next page");
        if (!st && !p->is_truncated)
                buf_clear(next_ret);
        if (!st && p->is_truncated && !next_ret->size)
                st = error_set(err, ST_BAD_DATA,
                               "a list of the object store is cut, and does not say where it goes on");
        return st;
}
