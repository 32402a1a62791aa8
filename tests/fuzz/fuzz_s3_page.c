/* SPDX-License-Identifier: Apache-2.0 */
/* An XML answer of an object store as a list: entries have keys, and a page that goes on says where. */
#include <string.h>

#include "common/limits.h"
#include "storage/s3/s3_page.h"
#include "storage/s3/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum status check_entry(void *context, const struct s3_page_entry *e, struct error *err)
{
        (void)context, (void)err;
        if (!e->key[0] || strlen(e->key) > 1024 || (e->upload_id && !e->upload_id[0]))
                __builtin_trap();
        return ST_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char code[16];
        struct buf next;

        buf_init(&next, KiB(4));
        if (s3_page_read(data, size, check_entry, NULL, &next, NULL) == ST_OK && next.size && !buf_cstr(&next))
                __builtin_trap();
        buf_deinit(&next);
        if (s3_xml_find(data, size, "Code", code, sizeof code, NULL) && code[0])
                __builtin_trap();
        return 0;
}
