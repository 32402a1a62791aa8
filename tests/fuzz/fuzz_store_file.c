/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that the debuginfo store reads from its disk. The first byte selects how the rest is parsed: as a seekable zstd
 * file, or as a record preceded by its key.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/files/file.h"
#include "common/limits.h"
#include "debuginfo-store/object_record.h"
#include "debuginfo-store/seekable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
        if (!ok)
                abort();
}

static void read_seekable(const uint8_t *data, size_t size)
{
        static uint8_t to[SEEKABLE_FRAME_BYTES];
        const uint64_t places[] = { 0, 1, SEEKABLE_FRAME_BYTES - 1, size, UINT64_MAX - 10 };
        struct seekable_reader *r;
        struct error err;
        int fd = memfd_create("seekable", MFD_CLOEXEC);

        require(fd >= 0 && file_write_all(fd, data, size, "seekable", NULL) == ST_OK);
        if (seekable_open(fd, "seekable", &r, &err))
                return;
        require(seekable_get_size(r) <= LIMIT_OBJECT_BYTES);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
                ssize_t n = seekable_pread(r, to, sizeof to, places[i], &err);

                require(n <= (ssize_t)sizeof to && (n <= 0 || places[i] < seekable_get_size(r)));
        }
        seekable_close(r);
}

/* A record that can be read is written identically, except for version 1. */
static void read_record(const uint8_t *data, size_t size)
{
        size_t key_size = size ? data[0] : 0;
        uint8_t key[RECORD_KEY_MAX];
        struct stored_object o, again;
        _cleanup_buf_ struct buf b;
        struct error err;

        buf_init(&b, 4096);
        if (!size || key_size > size - 1 ||
            record_decode(data + 1, key_size, data + 1 + key_size, size - 1 - key_size, &o, &err))
                return;
        require(memchr(o.name, 0, sizeof o.name) && memchr(o.tag, 0, sizeof o.tag) &&
                memchr(o.token, 0, sizeof o.token));
        record_encode(&b, &o);
        require(!b.failed && record_make_key(key, &o.build_id, o.kind) == key_size &&
                memcmp(key, data + 1, key_size) == 0);
        require(record_decode(key, key_size, b.data, b.size, &again, &err) == ST_OK);
        require(memcmp(&o.sha256, &again.sha256, sizeof o.sha256) == 0 && strcmp(o.name, again.name) == 0 &&
                o.used_unix_s == again.used_unix_s && o.is_pinned == again.is_pinned);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (!size)
                return 0;
        if (data[0] & 1)
                read_seekable(data + 1, size - 1);
        else
                read_record(data + 1, size - 1);
        return 0;
}
