/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uploads in any order: begin, append, finish, give up, ask, on three
 * connections at once, of right contents, cut ones and any bytes; and between
 * them removals, pins, collections and new starts of the store. What is stored
 * afterwards is one whole object or none, and nothing else is left.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#include "common/file.h"
#include "common/limits.h"
#include "common/reader.h"
#include "common/hash/sha256.h"
#include "debuginfo-store/gc.h"
#include "debuginfo-store/store_internal.h"
#include "debuginfo-store/verify_worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OBJECTS 2
#define VARIANTS 3 /* of an object; a later one has a better quality */
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
        size_t sent; /* of the content, plain or packed */
};

static struct content contents[OBJECTS][VARIANTS];
static struct debuginfo_store *store;
static char dir[64];

static void must(bool ok)
{
        if (!ok)
                abort();
}

/* The worker's part has a target of its own; a content tells its object and quality. */
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

static struct build_id id_of(uint8_t object)
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
        must(sha256_init(&sha, NULL) == ST_OK);
        sha256_update(&sha, c->bytes, CONTENT_BYTES);
        sha256_final(&sha, c->sha256);
        sha256_deinit(&sha);
        c->packed_size = ZSTD_compress(c->packed, sizeof c->packed, c->bytes, CONTENT_BYTES, 1);
        must(!ZSTD_isError(c->packed_size));
}

static void begin(void)
{
        static bool begun;

        if (begun)
                return;
        begun = true;
        for (uint8_t o = 0; o < OBJECTS; o++)
                for (uint8_t v = 0; v < VARIANTS; v++)
                        make_content(&contents[o][v], o, v);
        snprintf(dir, sizeof dir, "%s/cairn-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        must(mkdtemp(dir) && debuginfo_store_open(dir, false, &store, NULL) == ST_OK);
        atexit(remove_dir);
}

/* ---- operations ---- */

static void give_up(struct connection *c)
{
        object_upload_abort(c->upload);
        *c = (struct connection){ 0 };
}

static void start(struct connection *c, uint8_t which, uint8_t how)
{
        const struct content *content = &contents[which % OBJECTS][which / OBJECTS % VARIANTS];
        struct object_claim claim = { .build_id = id_of(which % OBJECTS),
                                      .size_bytes = CONTENT_BYTES,
                                      .name = "n",
                                      .is_zstd = how & 1,
                                      .is_resumable = how & 2,
                                      .force = how & 4,
                                      .kind = how & 64 ? OBJECT_EXECUTABLE : OBJECT_DEBUGINFO };

        give_up(c);
        memcpy(claim.sha256, content->sha256, sizeof claim.sha256);
        if (how & 8)
                claim.sha256[0] ^= 1;
        if (how & 128)
                claim.size_bytes = how;
        if (claim.is_resumable && (how & 16))
                must(object_upload_find_offset(store, &claim, &claim.offset, NULL) == ST_OK);
        else if (claim.is_resumable && (how & 32))
                claim.offset = which;
        if (object_upload_begin(store, &claim, &c->upload, NULL)) {
                c->upload = NULL;
                return;
        }
        must(object_upload_get_size(c->upload) <= LIMIT_OBJECT_BYTES);
        *c = (struct connection){ c->upload, content, claim.is_zstd, claim.is_zstd ? 0 : (size_t)claim.offset };
}

/* The content's next bytes, or any. */
static void append(struct connection *c, uint8_t count, struct reader *input)
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
                give_up(c);
}

static void finish(struct connection *c)
{
        struct stored_object o;
        struct error err;
        bool same;

        if (!c->upload)
                return;
        if (object_upload_finish(c->upload, &o, &same, &err) == ST_OK)
                must(memcmp(o.sha256, c->content->sha256, sizeof o.sha256) == 0 || o.size_bytes != CONTENT_BYTES);
        *c = (struct connection){ 0 };
}

static void collect(bool sweep)
{
        const struct gc_options o = { .now_unix_s = 1, .sweep = sweep };
        struct gc_result r;

        must(debuginfo_store_collect_garbage(store, &o, &r, NULL) == ST_OK);
        must(r.objects <= 2 * OBJECTS);
}

static void operate(struct connection connections[static CONNECTIONS], struct reader *input)
{
        const struct build_id ids[OBJECTS] = { id_of(0), id_of(1) };
        uint8_t what, a, b;
        struct connection *c;

        if (!reader_u8(input, &what) || !reader_u8(input, &a) || !reader_u8(input, &b))
                return;
        c = &connections[what / 16 % CONNECTIONS];
        switch (what % 10) {
        case 0:
        case 1:
                start(c, a, b);
                break;
        case 2:
        case 3:
        case 4:
                append(c, a, input);
                break;
        case 5:
                finish(c);
                break;
        case 6:
                give_up(c);
                break;
        case 7:
                (void)!debuginfo_store_remove(store, &ids[a % OBJECTS], b % 2, NULL);
                break;
        case 8:
                (void)!debuginfo_store_set_pin(store, &ids[a % OBJECTS], b % 2, a & 2, NULL);
                break;
        case 9:
                collect(a & 1);
                break;
        }
}

/* ---- what is left ---- */

static size_t files_below(const char *name, uint64_t *bytes)
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
                must(inner && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0);
                *bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
                ret += S_ISREG(st.st_mode) ? 1 : files_below(inner, bytes);
        }
        return ret;
}

static enum status is_whole(void *context, const struct stored_object *o)
{
        const struct object_name name = { o->build_id, o->kind };
        size_t *count = context;

        must(o->build_id.bytes[0] < OBJECTS && debuginfo_store_check_object(store, &name, NULL) == ST_OK);
        ++*count;
        return ST_OK;
}

static enum status take_away(void *context, const struct stored_object *o)
{
        (void)context;
        must(debuginfo_store_remove(store, &o->build_id, o->kind, NULL) == ST_OK);
        return ST_OK;
}

static void look(void)
{
        _cleanup_free_ char *partial = path_join(dir, "partial");
        uint64_t bytes = 0;
        size_t count = 0;

        collect(true);
        must(debuginfo_store_list(store, is_whole, &count, NULL) == ST_OK);
        must(files_below("objects", &bytes) == count);
        must(files_below("incoming", &bytes) == 0);
        bytes = 0;
        must(files_below("partial", &bytes) <= 256 && bytes <= 256 * CONTENT_BYTES);
        must(debuginfo_store_list(store, take_away, NULL, NULL) == ST_OK);
        must(partial && file_remove_tree(partial, NULL) == ST_OK && mkdir(partial, 0700) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct connection connections[CONNECTIONS] = { 0 };
        struct reader input;

        begin();
        reader_init(&input, data, size);
        for (unsigned i = 0; i < OPERATIONS_MAX && reader_left(&input); i++)
                operate(connections, &input);
        for (unsigned i = 0; i < CONNECTIONS; i++)
                give_up(&connections[i]);
        if (size > 1 && data[size - 1] == 0xff) {
                debuginfo_store_close(store);
                must(debuginfo_store_open(dir, false, &store, NULL) == ST_OK);
        }
        look();
        return 0;
}
