/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames become nodes of trees rooted at the outermost functions: a node is a
 * frame and its caller's node. Equal nodes are stored once, so that chains share
 * their outer frames. Nodes and texts are numbered in address order, for
 * locality of lookups.
 */
#include "symbolizer/formats/symcache.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/hash/hash_table.h"
#include "common/hash.h"
#include "common/limits.h"
#include "common/memory/array.h"
#include "common/text/utf8.h"
#include "symbol-index/demangle.h"
#include "symbolizer/formats/symcache_internal.h"
#include "symbolizer/table/huge_array.h"

/* ---- writing ---- */

struct made_path {
        uint32_t offset, text; /* offset in the table's strings; number of the text made of it */
};

/* A node and its detail; without positions the detail is zero and not written. */
struct made_node {
        struct symcache_node node;
        struct symcache_detail detail;
};

struct symcache_writer {
        const struct symbol_table *t;
        struct made_node *nodes; /* owned; 0 is "no frame" */
        size_t node_count, node_capacity;
        struct hash_table node_table; /* nodes by their content */
        struct made_path *paths;      /* owned */
        size_t path_count, path_capacity;
        struct hash_table path_table; /* paths by their offset */
        uint32_t *function_texts;     /* owned; by function, 0 not yet made */
        uint32_t *chain_nodes;        /* owned; by chain, 0 not yet made */
        struct buf texts, scratch;
        struct symcache_header header;
};

static void writer_deinit(struct symcache_writer *w)
{
        free(w->nodes);
        free(w->paths);
        hash_table_deinit(&w->node_table);
        hash_table_deinit(&w->path_table);
        free(w->function_texts);
        free(w->chain_nodes);
        buf_deinit(&w->texts);
        buf_deinit(&w->scratch);
}

/* ---- texts ---- */

/* @return the text's number, 0 without memory (texts.failed). */
static uint32_t add_symcache_text(struct symcache_writer *w, const char *text, size_t size, const char *linkage_name,
                                  bool is_same)
{
        static const uint8_t zeros[SYMCACHE_TEXT_ALIGNMENT];
        struct symcache_text_header head = { (uint32_t)size,
                                             is_same ? SYMCACHE_SAME_NAME : (uint32_t)strlen(linkage_name) };
        uint32_t number = (uint32_t)(w->texts.size / SYMCACHE_TEXT_ALIGNMENT);

        assert(w->texts.failed || w->texts.size % SYMCACHE_TEXT_ALIGNMENT == 0);
        buf_append(&w->texts, &head, sizeof head);
        buf_append(&w->texts, text, size + 1);
        if (!is_same)
                buf_append(&w->texts, linkage_name, head.linkage_size + 1ul);
        buf_append(&w->texts, zeros, -w->texts.size % SYMCACHE_TEXT_ALIGNMENT);
        return w->texts.failed ? 0 : number;
}

static uint32_t make_function_text(struct symcache_writer *w, uint32_t function)
{
        const struct symbol_table *t = w->t;
        const char *linkage_name, *readable;

        if (function == SYMBOL_NO_FUNCTION)
                return 0;
        if (w->function_texts[function])
                return w->function_texts[function];
        linkage_name = t->strings + t->functions[function].linkage_name;
        readable =
                linkage_name[0] ? symbol_demangle(linkage_name, &w->scratch) : t->strings + t->functions[function].name;
        w->function_texts[function] =
                add_symcache_text(w, readable, strlen(readable), linkage_name, readable == linkage_name);
        return w->function_texts[function];
}

static bool is_path_at_offset(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct symcache_writer *w = context;

        return memcmp(&w->paths[entry].offset, key, size) == 0;
}

static bool make_path_text(struct symcache_writer *w, uint32_t offset, uint32_t *ret)
{
        uint32_t hash = hash_table_hash(&offset, sizeof offset), i;
        const char *path = w->t->strings + offset;

        *ret = 0;
        if (!path[0])
                return true;
        if (!hash_table_find(&w->path_table, hash, is_path_at_offset, w, &offset, sizeof offset, &i)) {
                if (hash_table_reserve(&w->path_table, NULL) ||
                    !array_reserve(&w->paths, &w->path_capacity, w->path_count))
                        return false;
                i = (uint32_t)w->path_count++;
                w->paths[i] = (struct made_path){ offset, add_symcache_text(w, path, strlen(path), "", false) };
                hash_table_insert(&w->path_table, hash, i);
        }
        *ret = w->paths[i].text;
        return true;
}

/* ---- nodes ---- */

static bool is_equal_node(const void *context, uint32_t entry, const void *key, size_t size)
{
        const struct symcache_writer *w = context;

        return memcmp(&w->nodes[entry], key, size) == 0;
}

static bool intern_node(struct symcache_writer *w, const struct made_node *n, uint32_t *ret)
{
        uint32_t hash = hash_table_hash(n, sizeof *n);

        if (hash_table_find(&w->node_table, hash, is_equal_node, w, n, sizeof *n, ret))
                return true;
        if (hash_table_reserve(&w->node_table, NULL) ||
            !huge_array_reserve(&w->nodes, &w->node_capacity, w->node_count))
                return false;
        *ret = (uint32_t)w->node_count++;
        w->nodes[*ret] = *n;
        hash_table_insert(&w->node_table, hash, *ret);
        return true;
}

static bool set_node_detail(struct symcache_writer *w, const struct symbol_table_frame *f, struct made_node *n)
{
        const struct symbol_function *function =
                f->function == SYMBOL_NO_FUNCTION ? NULL : &w->t->functions[f->function];
        const struct symbol_position *p = &w->t->positions[f->line];

        assert(f->line < w->t->position_count);
        n->node.line = p->place.line;
        n->detail = (struct symcache_detail){ .column = p->place.column,
                                              .discriminator = p->place.discriminator,
                                              .entry = p->entry };
        if (!function)
                return true;
        n->detail.start_line = function->start_line;
        return make_path_text(w, function->file, &n->detail.start_file);
}

/* From the outermost frame inwards. */
static bool add_chain_nodes(struct symcache_writer *w, uint32_t number)
{
        const struct symbol_chain *c = &w->t->chains[number];
        uint32_t node = 0;

        for (uint32_t i = c->frame_count; i > 0; i--) {
                const struct symbol_table_frame *f = &w->t->frames[c->first_frame + i - 1];
                struct made_node n = {
                        .node = { .function = make_function_text(w, f->function), .line = f->line, .caller = node }
                };

                if (w->node_count >= UINT32_MAX || !make_path_text(w, f->file, &n.node.file) ||
                    (w->t->has_positions && !set_node_detail(w, f, &n)) || !intern_node(w, &n, &node))
                        return false;
        }
        assert(node != 0);
        w->chain_nodes[number] = node;
        return true;
}

static enum status add_all_chains(struct symcache_writer *w, struct error *err)
{
        const struct symbol_table *t = w->t;
        const struct made_node none = { 0 };

        w->function_texts = calloc(t->function_count + 1ul, sizeof *w->function_texts);
        w->chain_nodes = calloc(t->chain_count + 1ul, sizeof *w->chain_nodes);
        if (!w->function_texts || !w->chain_nodes || !huge_array_reserve(&w->nodes, &w->node_capacity, 0))
                return error_no_memory(err);
        w->nodes[w->node_count++] = none;
        add_symcache_text(w, "", 0, "", false); /* number 0: unknown */
        for (uint32_t i = 0; i < t->range_count; i++)
                if (!w->chain_nodes[t->ranges[i].chain] && !add_chain_nodes(w, t->ranges[i].chain))
                        return error_no_memory(err);
        return buf_status(&w->texts, err, "symcache");
}

/* ---- ranges ---- */

/* Write all ranges; gaps are ranges of node 0. With starts NULL only count. */
static uint64_t list_ranges(const struct symcache_writer *w, uint64_t *starts, uint32_t *nodes_of)
{
        const struct symbol_table *t = w->t;
        uint64_t count = 0, end = t->range_count ? t->ranges[0].start : 0;
        uint32_t last = 0;

        for (uint32_t i = 0; i < t->range_count; i++) {
                const struct symbol_range *r = &t->ranges[i];
                uint32_t node = w->chain_nodes[r->chain];
                bool gap = r->start != end;

                if (gap && starts) {
                        starts[count] = end;
                        nodes_of[count] = 0;
                }
                count += gap;
                if (gap || node != last || i == 0) {
                        if (starts) {
                                starts[count] = r->start;
                                nodes_of[count] = node;
                        }
                        count++;
                }
                last = node;
                end = r->end;
        }
        if (starts)
                starts[count] = end;
        return count;
}

/* About as many buckets as ranges, each a power of two of addresses wide. */
static void choose_buckets(struct symcache_writer *w)
{
        const struct symbol_table *t = w->t;
        struct symcache_header *h = &w->header;
        uint64_t span;

        if (!t->range_count)
                return;
        h->base = t->ranges[0].start;
        span = t->ranges[t->range_count - 1].end - 1 - h->base;
        while (span >> h->shift > h->range_count)
                h->shift++;
        h->bucket_count = (span >> h->shift) + 1;
}

/* Entry k: the last range that begins at or before the bucket's first address. */
static void fill_buckets(const struct symcache_header *h, const uint64_t *starts, uint32_t *buckets)
{
        uint64_t range = 0;

        for (uint64_t k = 0; k <= h->bucket_count && h->range_count; k++) {
                while (k < h->bucket_count && range + 1 < h->range_count &&
                       starts[range + 1] - h->base <= k << h->shift)
                        range++;
                buckets[k] = (uint32_t)(k < h->bucket_count ? range : h->range_count - 1);
        }
}

/* ---- the file ---- */

static void fill_body(struct symcache_writer *w, const struct symcache_layout *l, uint8_t *body)
{
        list_ranges(w, (uint64_t *)(void *)(body + l->starts), (uint32_t *)(void *)(body + l->nodes_of));
        fill_buckets(&w->header, (const uint64_t *)(const void *)(body + l->starts),
                     (uint32_t *)(void *)(body + l->buckets));
        for (size_t i = 0; i < w->node_count; i++) {
                memcpy(body + l->nodes + i * sizeof(struct symcache_node), &w->nodes[i].node,
                       sizeof(struct symcache_node));
                if (l->detail_count)
                        memcpy(body + l->details + i * sizeof(struct symcache_detail), &w->nodes[i].detail,
                               sizeof(struct symcache_detail));
        }
        memcpy(body + l->texts, w->texts.data, w->texts.size);
}

static void fill_front(struct symcache_writer *w, const struct symcache_layout *l, uint8_t *file)
{
        struct symcache_header *h = &w->header;
        uint8_t *checksums = file + symcache_front_bytes(h), *segments = file + sizeof *h + h->partial_size;
        uint64_t chunks = symcache_chunk_count(l);

        memcpy(file + sizeof *h, symbol_table_partial_text(w->t), h->partial_size);
        for (uint32_t i = 0; i < h->segment_count; i++) {
                const struct symcache_segment s = { w->t->segments[i].address, w->t->segments[i].file_size };

                memcpy(segments + i * sizeof s, &s, sizeof s);
        }
        for (uint64_t i = 0; i < chunks; i++) {
                uint64_t at = i << SYMCACHE_CHUNK_SHIFT, left = l->body_size - at;
                uint64_t checksum =
                        hash_bytes64(file + l->body + at, left < SYMCACHE_CHUNK_BYTES ? left : SYMCACHE_CHUNK_BYTES);

                memcpy(checksums + i * sizeof checksum, &checksum, sizeof checksum);
        }
        h->checksum = 0;
        h->checksum = hash_bytes64(h, sizeof *h) ^
                      hash_bytes64(file + sizeof *h, symcache_front_bytes(h) - sizeof *h + chunks * sizeof(uint64_t));
        memcpy(file, h, sizeof *h);
}

static enum status map_and_write(struct symcache_writer *w, int fd, struct error *err)
{
        struct symcache_layout l;
        uint8_t *file;
        size_t size;

        if (!symcache_compute_layout(&w->header, &l) || l.body + l.body_size > LIMIT_SYMBOL_TABLE_BYTES)
                return error_set(err, ST_TOO_BIG, "the symbols exceed the size of a symcache");
        size = (size_t)(l.body + l.body_size);
        if (ftruncate(fd, (off_t)size))
                return error_os(err, errno, "cannot allocate a symcache");
        file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (file == MAP_FAILED)
                return error_os(err, errno, "cannot map a symcache");
        fill_body(w, &l, file + l.body);
        fill_front(w, &l, file);
        munmap(file, size);
        return ST_OK;
}

static enum status write_symcache(struct symcache_writer *w, int fd, struct error *err)
{
        struct symcache_header *h = &w->header;
        const struct build_id *id = &w->t->build_id;
        enum status st = add_all_chains(w, err);

        if (st)
                return st;
        memcpy(h->magic, SYMCACHE_MAGIC, sizeof h->magic);
        h->version = SYMCACHE_VERSION;
        h->byte_order = SYMCACHE_BYTE_ORDER;
        h->quality = (uint32_t)w->t->quality;
        h->flags = (w->t->is_complete ? SYMCACHE_IS_COMPLETE : 0) | (w->t->has_positions ? SYMCACHE_HAS_DETAILS : 0);
        h->range_count = list_ranges(w, NULL, NULL);
        h->node_count = w->node_count;
        h->text_bytes = w->texts.size;
        h->partial_size = (uint32_t)strlen(symbol_table_partial_text(w->t)) + 1;
        h->build_id_size = id->size;
        h->segment_count = w->t->segment_count;
        memcpy(h->build_id, id->bytes, id->size);
        choose_buckets(w);
        return map_and_write(w, fd, err);
}

enum status symcache_write(const struct symbol_table *t, int fd, struct error *err)
{
        struct symcache_writer w = { .t = t };
        enum status st;

        buf_init(&w.texts, LIMIT_SYMBOL_TABLE_BYTES);
        buf_init(&w.scratch, LIMIT_DEMANGLED_BYTES + 1);
        st = write_symcache(&w, fd, err);
        writer_deinit(&w);
        return st;
}

/* ---- reading ---- */

void symcache_close(struct symcache *b)
{
        file_map_close(&b->map);
        free(b->seen);
        free(b->plain);
        *b = (struct symcache){ 0 };
}

static enum status set_file_error(const char *name, const char *what, struct error *err)
{
        return error_set(err, ST_BAD_DATA, "cannot read '%s': %s", name, what);
}

static enum status parse_symcache(struct symcache *b, const char *name, struct error *err)
{
        const uint8_t *data = b->map.data;
        struct symcache_header h;
        uint64_t checksum, bytes;
        size_t front;

        if (b->map.size < sizeof h || memcmp(data, SYMCACHE_MAGIC, sizeof h.magic) != 0)
                return set_file_error(name, "not a symcache", err);
        memcpy(&h, data, sizeof h);
        if (h.version != SYMCACHE_VERSION || h.byte_order != SYMCACHE_BYTE_ORDER)
                return error_set(err, ST_UNSUPPORTED,
                                 "cannot read '%s': the symcache has another version or byte order", name);
        if (!symcache_compute_layout(&h, &b->at) || b->at.body > b->map.size ||
            b->at.body_size != b->map.size - b->at.body)
                return set_file_error(name, "the sizes in the symcache's header are inconsistent", err);
        front = (size_t)(symcache_front_bytes(&h) + symcache_chunk_count(&b->at) * sizeof(uint64_t));
        checksum = h.checksum;
        h.checksum = 0;
        bytes = hash_bytes64(&h, sizeof h) ^ hash_bytes64(data + sizeof h, front - sizeof h);
        if (bytes != checksum || h.quality > QUALITY_DWARF || data[sizeof h + h.partial_size - 1] != 0)
                return set_file_error(name, "the symcache's header has a wrong checksum", err);
        b->partial = (const char *)data + sizeof h;
        b->segments = data + sizeof h + h.partial_size;
        b->segment_count = h.segment_count;
        b->checksums = data + symcache_front_bytes(&h);
        b->body = data + b->at.body;
        b->quality = (enum symbol_quality)h.quality;
        b->is_complete = h.flags & SYMCACHE_IS_COMPLETE;
        b->build_id.size = (uint8_t)h.build_id_size;
        memcpy(b->build_id.bytes, h.build_id, sizeof h.build_id);
        b->seen = calloc(symcache_chunk_count(&b->at) + 1, 1);
        b->plain = calloc(b->at.text_bytes / SYMCACHE_TEXT_ALIGNMENT / CHAR_BIT + 1, 1);
        return b->seen && b->plain ? ST_OK : error_no_memory(err);
}

enum status symcache_open(int fd, const char *name, struct symcache *ret, struct error *err)
{
        struct symcache b = { .seen = NULL };
        enum status st = file_map_fd(fd, LIMIT_SYMBOL_TABLE_BYTES, name, &b.map, err);

        if (st)
                return st;
        st = parse_symcache(&b, name, err);
        if (st) {
                symcache_close(&b);
                return st;
        }
        madvise((void *)b.map.data, b.map.size, MADV_WILLNEED);
        *ret = b;
        return ST_OK;
}

/* ---- chunks ---- */

static bool verify_chunk(struct symcache *b, uint64_t chunk)
{
        uint64_t at = chunk << SYMCACHE_CHUNK_SHIFT, size = b->at.body_size - at, checksum;

        memcpy(&checksum, b->checksums + chunk * sizeof checksum, sizeof checksum);
        if (hash_bytes64(b->body + at, size < SYMCACHE_CHUNK_BYTES ? size : SYMCACHE_CHUNK_BYTES) != checksum)
                return false;
        b->seen[chunk] = 1;
        return true;
}

/* Verify the chunk of an offset at its first access. An element never spans two chunks: its size divides theirs. */
static inline bool is_verified_at(struct symcache *b, uint64_t offset)
{
        return __builtin_expect(b->seen[offset >> SYMCACHE_CHUNK_SHIFT], 1) ||
               verify_chunk(b, offset >> SYMCACHE_CHUNK_SHIFT);
}

static bool verify_bytes(struct symcache *b, uint64_t offset, uint64_t size)
{
        uint64_t last = (offset + size - 1) >> SYMCACHE_CHUNK_SHIFT;

        for (uint64_t chunk = offset >> SYMCACHE_CHUNK_SHIFT; chunk <= last; chunk++)
                if (!b->seen[chunk] && !verify_chunk(b, chunk))
                        return false;
        return true;
}

static inline const void *get_element(struct symcache *b, uint64_t array, uint64_t i, size_t size)
{
        return b->body + array + i * size;
}

static inline bool is_verified_element(struct symcache *b, uint64_t array, uint64_t i, size_t size)
{
        return is_verified_at(b, array + i * size);
}

static enum status set_damaged_error(struct error *err)
{
        return error_set(err, ST_BAD_DATA, "the symcache is damaged");
}

/* ---- from addresses to frames ---- */

struct bucket_search {
        uint64_t low, high; /* the range is one of [low, high] */
        bool is_outside;
};

/* The ranges that start in the bucket of the address: from its entry to the next one's. */
static bool open_bucket(struct symcache *b, uint64_t address, struct bucket_search *s)
{
        uint64_t bucket = (address - b->at.base) >> b->at.shift;
        uint32_t ends[2];

        s->is_outside = address < b->at.base || bucket >= b->at.bucket_count;
        if (s->is_outside)
                return true;
        if (!is_verified_element(b, b->at.buckets, bucket, sizeof *ends) ||
            !is_verified_element(b, b->at.buckets, bucket + 1, sizeof *ends))
                return false;
        memcpy(ends, get_element(b, b->at.buckets, bucket, sizeof *ends), sizeof ends);
        if (ends[0] > ends[1] || ends[1] >= b->at.range_count)
                return false;
        s->low = ends[0];
        s->high = ends[1];
        __builtin_prefetch(get_element(b, b->at.starts, s->low, sizeof(uint64_t)));
        __builtin_prefetch(get_element(b, b->at.nodes_of, s->low, sizeof(uint32_t)));
        return true;
}

/* The last range that begins at or before the address. */
static bool search_bucket(struct symcache *b, uint64_t address, struct bucket_search *s)
{
        while (s->low < s->high) {
                uint64_t mid = s->low + (s->high - s->low + 1) / 2, start;

                if (!is_verified_element(b, b->at.starts, mid, sizeof start))
                        return false;
                memcpy(&start, get_element(b, b->at.starts, mid, sizeof start), sizeof start);
                if (start <= address)
                        s->low = mid;
                else
                        s->high = mid - 1;
        }
        return is_verified_element(b, b->at.nodes_of, s->low, sizeof(uint32_t));
}

/* starts[range_count] is the end of the last range. */
static bool is_past_end(struct symcache *b, uint64_t address, const struct bucket_search *s, bool *ret)
{
        uint64_t end;

        *ret = false;
        if (s->low + 1 < b->at.range_count)
                return true;
        if (!is_verified_element(b, b->at.starts, b->at.range_count, sizeof end))
                return false;
        memcpy(&end, get_element(b, b->at.starts, b->at.range_count, sizeof end), sizeof end);
        *ret = address >= end;
        return true;
}

static bool find_node(struct symcache *b, uint64_t address, struct bucket_search *s, uint32_t *ret)
{
        *ret = 0;
        if (s->is_outside)
                return true;
        if (!search_bucket(b, address, s) || !is_past_end(b, address, s, &s->is_outside))
                return false;
        if (s->is_outside)
                return true;
        memcpy(ret, get_element(b, b->at.nodes_of, s->low, sizeof *ret), sizeof *ret);
        if (*ret >= b->at.node_count)
                return false;
        __builtin_prefetch(get_element(b, b->at.nodes, *ret, sizeof(struct symcache_node)));
        return true;
}

enum status symcache_find(struct symcache *b, const uint64_t *addresses, size_t count, uint32_t *frames_ret,
                          struct error *err)
{
        struct bucket_search searches[SYMCACHE_LOOKUP_BATCH];

        for (size_t done = 0; done < count; done += SYMCACHE_LOOKUP_BATCH) {
                size_t n = count - done < SYMCACHE_LOOKUP_BATCH ? count - done : SYMCACHE_LOOKUP_BATCH;
                const uint64_t *a = addresses + done;

                for (size_t i = 0; i < n; i++)
                        __builtin_prefetch(get_element(b, b->at.buckets,
                                                       a[i] >= b->at.base && (a[i] - b->at.base) >> b->at.shift <
                                                                                     b->at.bucket_count
                                                               ? (a[i] - b->at.base) >> b->at.shift
                                                               : 0,
                                                       sizeof(uint32_t)));
                for (size_t i = 0; i < n; i++)
                        if (!open_bucket(b, a[i], &searches[i]))
                                return set_damaged_error(err);
                for (size_t i = 0; i < n; i++)
                        if (!find_node(b, a[i], &searches[i], &frames_ret[done + i]))
                                return set_damaged_error(err);
        }
        return ST_OK;
}

enum status symcache_get_frame(struct symcache *b, uint32_t frame, struct symcache_frame *ret, struct error *err)
{
        struct symcache_node n;

        if (frame >= b->at.node_count || !is_verified_element(b, b->at.nodes, frame, sizeof n))
                return set_damaged_error(err);
        memcpy(&n, get_element(b, b->at.nodes, frame, sizeof n), sizeof n);
        if (n.caller >= frame || n.function >= b->at.text_bytes / SYMCACHE_TEXT_ALIGNMENT ||
            n.file >= b->at.text_bytes / SYMCACHE_TEXT_ALIGNMENT)
                return set_damaged_error(err);
        __builtin_prefetch(get_element(b, b->at.texts, n.function, SYMCACHE_TEXT_ALIGNMENT));
        __builtin_prefetch(get_element(b, b->at.texts, n.file, SYMCACHE_TEXT_ALIGNMENT));
        if (n.caller)
                __builtin_prefetch(get_element(b, b->at.nodes, n.caller, sizeof n));
        *ret = (struct symcache_frame){ n.function, n.file, n.line, n.caller };
        return ST_OK;
}

enum status symcache_get_detail(struct symcache *b, uint32_t frame, struct symcache_frame_detail *ret,
                                struct error *err)
{
        struct symcache_detail d = { .entry = UINT64_MAX };

        if (b->at.detail_count) {
                if (frame >= b->at.detail_count || !is_verified_element(b, b->at.details, frame, sizeof d))
                        return set_damaged_error(err);
                memcpy(&d, get_element(b, b->at.details, frame, sizeof d), sizeof d);
        }
        *ret = (struct symcache_frame_detail){ d.column, d.discriminator, d.start_file, d.start_line, d.entry };
        return ST_OK;
}

static bool is_plain_text(const struct symcache_text *t)
{
        return utf8_count_plain(t->data, t->size) == t->size;
}

/* Texts are examined once, not for every frame in which they appear; the few that are not plain, each time. */
static bool is_plain_slot(struct symcache *b, uint32_t text, const struct symcache_text *first,
                          const struct symcache_text *second)
{
        uint8_t *byte = &b->plain[text / CHAR_BIT], bit = (uint8_t)(1u << text % CHAR_BIT);

        if (!(*byte & bit) && is_plain_text(first) && is_plain_text(second))
                *byte |= bit;
        return *byte & bit;
}

/* @param linkage_ret "" for a path. */
static bool read_text_slot(struct symcache *b, uint32_t text, struct symcache_text *ret,
                           struct symcache_text *linkage_ret)
{
        uint64_t at = (uint64_t)text * SYMCACHE_TEXT_ALIGNMENT, left, size;
        struct symcache_text_header head;
        bool is_same;

        if (at + sizeof head > b->at.text_bytes || !is_verified_at(b, b->at.texts + at))
                return false;
        memcpy(&head, get_element(b, b->at.texts, text, SYMCACHE_TEXT_ALIGNMENT), sizeof head);
        left = b->at.text_bytes - at - sizeof head;
        is_same = head.linkage_size == SYMCACHE_SAME_NAME;
        size = (uint64_t)head.size + 1 + (is_same ? 0 : head.linkage_size + UINT64_C(1));
        if (size > left || !verify_bytes(b, b->at.texts + at, sizeof head + size))
                return false;
        *ret = (struct symcache_text){ .data = (const char *)b->body + b->at.texts + at + sizeof head,
                                       .size = head.size };
        *linkage_ret =
                is_same ? *ret : (struct symcache_text){ .data = ret->data + ret->size + 1, .size = head.linkage_size };
        if (ret->data[ret->size] || linkage_ret->data[linkage_ret->size])
                return false;
        ret->is_plain = linkage_ret->is_plain = is_plain_slot(b, text, ret, linkage_ret);
        return true;
}

enum status symcache_get_names(struct symcache *b, uint32_t function, struct symcache_text *readable_ret,
                               struct symcache_text *linkage_ret, struct error *err)
{
        return read_text_slot(b, function, readable_ret, linkage_ret) ? ST_OK : set_damaged_error(err);
}

enum status symcache_get_path(struct symcache *b, uint32_t file, struct symcache_text *ret, struct error *err)
{
        struct symcache_text none;

        return read_text_slot(b, file, ret, &none) ? ST_OK : set_damaged_error(err);
}

enum symbol_state symcache_gap_state(const struct symcache *b, uint64_t address)
{
        bool has_bytes = false;

        if (b->is_complete && !b->at.range_count)
                return SYMBOL_STRIPPED;
        for (uint32_t i = 0; i < b->segment_count; i++) {
                struct symcache_segment s;

                memcpy(&s, b->segments + i * sizeof s, sizeof s);
                if (address >= s.address && address - s.address < s.size)
                        return SYMBOL_UNCOVERED;
                has_bytes |= s.size != 0;
        }
        return has_bytes ? SYMBOL_NOT_IN_OBJECT : SYMBOL_OUTSIDE;
}
