/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sequences of upload operations: begin, append, finish, abandon and query, on three concurrent connections, with
 * correct, truncated and arbitrary content, interleaved with removals, pins, garbage collections and restarts of the
 * store. Afterwards one complete object is stored or none, and no other files remain.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/files/file.h"
#include "common/hash/sha256.h"
#include "common/limits.h"
#include "common/reader.h"
#include "debuginfo-store/debuginfo_store_internal.h"
#include "debuginfo-store/gc.h"
#include "debuginfo-store/verify_worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OBJECTS 2
#define VARIANTS 3 /* of each object; later ones have a better quality */
#define CONNECTIONS 3
#define OPERATIONS_MAX 60
#define CONTENT_BYTES 700

struct content {
        uint8_t bytes[CONTENT_BYTES], packed[2 * CONTENT_BYTES], sha256[SHA256_BYTES];
        size_t packed_size;
};

struct connection {
        struct object_upload *upload;
        const struct content *content;
        bool is_zstd;
        size_t sent; /* of the content, plain or compressed */
};

static struct content contents[OBJECTS][VARIANTS];
static struct debuginfo_store *store;
static char dir[64];

static void require(bool ok)
{
        if (!ok)
                abort();
}

/* The worker's part has a fuzz target of its own; here the content encodes its object and quality. */
enum status verify_file_in_worker(int fd, int other, struct verify_result *ret, struct error *err)
{
        uint8_t head[2];

        (void)other;
        if (pread(fd, head, sizeof head, 0) != sizeof head || head[1] > QUALITY_DWARF)
                return error_set(err, ST_BAD_DATA, "no object");
        *ret = (struct verify_result){ .quality = head[1], .has_code = true };
        build_id_from_bytes(&ret->build_id, (const uint8_t[20]){ head[0] }, 20);
        return ST_OK;
}

static struct build_id get_build_id(uint8_t object)
{
        struct build_id id;

        build_id_from_bytes(&id, (const uint8_t[20]){ object }, 20);
        return id;
}

static void remove_dir(void)
{
        debuginfo_store_close(store);
        (void)!file_remove_tree(dir, NULL);
}

static void make_content(struct content *c, uint8_t object, uint8_t variant)
{
        struct sha256 sha;

        c->bytes[0] = object;
        c->bytes[1] = (uint8_t)(QUALITY_SYMTAB + variant);
        for (size_t i = 2; i < CONTENT_BYTES; i++)
                c->bytes[i] = (uint8_t)(i * 7 / (variant + 2u) + object);
        require(sha256_init(&sha, NULL) == ST_OK);
        sha256_update(&sha, c->bytes, CONTENT_BYTES);
        sha256_final(&sha, c->sha256);
        sha256_deinit(&sha);
        c->packed_size = ZSTD_compress(c->packed, sizeof c->packed, c->bytes, CONTENT_BYTES, 1);
        require(!ZSTD_isError(c->packed_size));
}

static void begin_case(void)
{
        static bool begun;

        if (begun)
                return;
        begun = true;
        for (uint8_t o = 0; o < OBJECTS; o++)
                for (uint8_t v = 0; v < VARIANTS; v++)
                        make_content(&contents[o][v], o, v);
        snprintf(dir, sizeof dir, "%s/cairn-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        require(mkdtemp(dir) && debuginfo_store_open(dir, false, &store, NULL) == ST_OK);
        atexit(remove_dir);
}

/* ---- operations ---- */

static void abandon_upload(struct connection *c)
{
        object_upload_abort(c->upload);
        *c = (struct connection){ 0 };
}

static void start_upload(struct connection *c, uint8_t which, uint8_t how)
{
        const struct content *content = &contents[which % OBJECTS][which / OBJECTS % VARIANTS];
        struct object_claim claim = { .build_id = get_build_id(which % OBJECTS),
                                      .size_bytes = CONTENT_BYTES,
                                      .name = "n",
                                      .is_zstd = how & 1,
                                      .is_resumable = how & 2,
                                      .force = how & 4,
                                      .kind = how & 64 ? OBJECT_EXECUTABLE : OBJECT_DEBUGINFO };

        abandon_upload(c);
        memcpy(claim.sha256, content->sha256, sizeof claim.sha256);
        if (how & 8)
                claim.sha256[0] ^= 1;
        if (how & 128)
                claim.size_bytes = how;
        if (claim.is_resumable && (how & 16))
                require(object_upload_find_offset(store, &claim, &claim.offset, NULL) == ST_OK);
        else if (claim.is_resumable && (how & 32))
                claim.offset = which;
        if (object_upload_begin(store, &claim, &c->upload, NULL)) {
                c->upload = NULL;
                return;
        }
        require(object_upload_get_size(c->upload) <= LIMIT_OBJECT_BYTES);
        *c = (struct connection){ c->upload, content, claim.is_zstd, claim.is_zstd ? 0 : (size_t)claim.offset };
}

/* The next bytes of the content, or arbitrary ones. */
static void append_bytes(struct connection *c, uint8_t count, struct reader *input)
{
        const uint8_t *bytes = NULL;
        size_t n = count & 127;

        if (!c->upload)
                return;
        if (count & 128) {
                const uint8_t *from = c->is_zstd ? c->content->packed : c->content->bytes;
                size_t size = c->is_zstd ? c->content->packed_size : CONTENT_BYTES;

                n *= 8;
                if (c->sent > size || n > size - c->sent)
                        n = c->sent > size ? 0 : size - c->sent;
                bytes = from + (n ? c->sent : 0);
                c->sent += n;
        } else if (!reader_bytes(input, n, &bytes)) {
                return;
        }
        if (object_upload_append(c->upload, bytes, n, NULL))
                abandon_upload(c);
}

static void finish_upload(struct connection *c)
{
        struct stored_object o;
        struct error err;
        bool same;

        if (!c->upload)
                return;
        if (object_upload_finish(c->upload, &o, &same, &err) == ST_OK)
                require(memcmp(o.sha256, c->content->sha256, sizeof o.sha256) == 0 || o.size_bytes != CONTENT_BYTES);
        *c = (struct connection){ 0 };
}

static void collect_garbage(bool sweep)
{
        const struct gc_options o = { .now_unix_s = 1, .sweep = sweep };
        struct gc_result r;

        require(debuginfo_store_collect_garbage(store, &o, &r, NULL) == ST_OK);
        require(r.objects <= 2 * OBJECTS);
}

static void run_operation(struct connection connections[static CONNECTIONS], struct reader *input)
{
        const struct build_id ids[OBJECTS] = { get_build_id(0), get_build_id(1) };
        uint8_t what, a, b;
        struct connection *c;

        if (!reader_u8(input, &what) || !reader_u8(input, &a) || !reader_u8(input, &b))
                return;
        c = &connections[what / 16 % CONNECTIONS];
        switch (what % 10) {
        case 0:
        case 1:
                start_upload(c, a, b);
                break;
        case 2:
        case 3:
        case 4:
                append_bytes(c, a, input);
                break;
        case 5:
                finish_upload(c);
                break;
        case 6:
                abandon_upload(c);
                break;
        case 7:
                (void)!debuginfo_store_remove(store, &ids[a % OBJECTS], b % 2, NULL);
                break;
        case 8:
                (void)!debuginfo_store_set_pin(store, &ids[a % OBJECTS], b % 2, a & 2, NULL);
                break;
        case 9:
                collect_garbage(a & 1);
                break;
        }
}

/* ---- the remaining files ---- */

static size_t count_files(const char *name, uint64_t *bytes)
{
        _cleanup_free_ char *path = path_join(dir, name);
        _cleanup_closedir_ DIR *d = path ? opendir(path) : NULL;
        struct dirent *e;
        size_t ret = 0;

        while (d && (e = readdir(d))) {
                _cleanup_free_ char *inner = path_join(name, e->d_name);
                struct stat st;

                if (e->d_name[0] == '.' && strncmp(e->d_name, ".tmp-", 5) != 0)
                        continue;
                require(inner && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
                *bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
                ret += S_ISREG(st.st_mode) ? 1 : count_files(inner, bytes);
        }
        return ret;
}

static enum status require_complete(void *context, const struct stored_object *o)
{
        const struct object_name name = { o->build_id, o->kind };
        size_t *count = context;

        require(o->build_id.bytes[0] < OBJECTS && debuginfo_store_check_object(store, &name, NULL) == ST_OK);
        ++*count;
        return ST_OK;
}

static enum status remove_stored(void *context, const struct stored_object *o)
{
        (void)context;
        require(debuginfo_store_remove(store, &o->build_id, o->kind, NULL) == ST_OK);
        return ST_OK;
}

static void check_state(void)
{
        _cleanup_free_ char *partial = path_join(dir, "partial");
        uint64_t bytes = 0;
        size_t count = 0;

        collect_garbage(true);
        require(debuginfo_store_list(store, require_complete, &count, NULL) == ST_OK);
        require(count_files("objects", &bytes) == count);
        require(count_files("incoming", &bytes) == 0);
        bytes = 0;
        require(count_files("partial", &bytes) <= 256 && bytes <= 256 * CONTENT_BYTES);
        require(debuginfo_store_list(store, remove_stored, NULL, NULL) == ST_OK);
        require(partial && file_remove_tree(partial, NULL) == ST_OK && mkdir(partial, 0700) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct connection connections[CONNECTIONS] = { 0 };
        struct reader input;

        begin_case();
        reader_init(&input, data, size);
        for (unsigned i = 0; i < OPERATIONS_MAX && reader_left(&input); i++)
                run_operation(connections, &input);
        for (unsigned i = 0; i < CONNECTIONS; i++)
                abandon_upload(&connections[i]);
        if (size > 1 && data[size - 1] == 0xff) {
                debuginfo_store_close(store);
                require(debuginfo_store_open(dir, false, &store, NULL) == ST_OK);
        }
        check_state();
        return 0;
}
