/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a table to a book. Frames become nodes of trees whose roots are the
 * outermost functions: a node is a frame and its caller's node, each kept once,
 * so that chains share what is around them. Nodes and texts are numbered in the
 * order of the addresses that lead to them: who asks for neighbours finds them
 * side by side.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/hash.h"
#include "common/limits.h"
#include "symbolizer/demangle.h"
#include "symbolizer/huge_array.h"
#include "symbolizer/symbol_book_internal.h"
#include "symbolizer/symbol_table_builder.h"

struct file_text {
        uint32_t offset, text; /* offset in the table's strings; 0: a free slot */
};

struct writer {
        const struct symbol_table *t;
        struct book_node *nodes; /* owned; 0 is nobody */
        size_t node_count, node_capacity;
        uint32_t *node_slots;     /* owned; node numbers by hash, 0 free */
        size_t node_slot_count;   /* a power of two */
        struct file_text *files;  /* owned; by hash of the offset */
        size_t file_count, file_slot_count;
        uint32_t *function_texts; /* owned; by function, 0 not yet made */
        uint32_t *chain_nodes;    /* owned; by chain, 0 not yet made */
        struct buf texts, scratch;
        struct book_header header;
};

static void writer_deinit(struct writer *w)
{
        free(w->nodes);
        free(w->node_slots);
        free(w->files);
        free(w->function_texts);
        free(w->chain_nodes);
        buf_deinit(&w->texts);
        buf_deinit(&w->scratch);
}

/* ---- texts ---- */

/* @return the text's number, 0 without memory (texts.failed). */
static uint32_t add_text(struct writer *w, const char *text, size_t size, const char *linkage_name, bool is_same)
{
        static const uint8_t zeros[BOOK_TEXT_UNIT];
        struct book_text_head head = { (uint32_t)size, is_same ? BOOK_SAME : (uint32_t)strlen(linkage_name) };
        uint32_t number = (uint32_t)(w->texts.size / BOOK_TEXT_UNIT);

        buf_append(&w->texts, &head, sizeof head);
        buf_append(&w->texts, text, size + 1);
        if (!is_same)
                buf_append(&w->texts, linkage_name, head.linkage_size + 1ul);
        buf_append(&w->texts, zeros, -w->texts.size % BOOK_TEXT_UNIT);
        return w->texts.failed ? 0 : number;
}

static uint32_t function_text(struct writer *w, uint32_t function)
{
        const struct symbol_table *t = w->t;
        const char *linkage_name, *readable;

        if (function == SYMBOL_NO_FUNCTION)
                return 0;
        if (w->function_texts[function])
                return w->function_texts[function];
        linkage_name = t->strings + t->functions[function].linkage_name;
        readable = linkage_name[0] ? symbol_demangle(linkage_name, &w->scratch) :
                                     t->strings + t->functions[function].name;
        w->function_texts[function] = add_text(w, readable, strlen(readable), linkage_name, readable == linkage_name);
        return w->function_texts[function];
}

static struct file_text *file_slot(struct file_text *slots, size_t slot_count, uint32_t offset)
{
        size_t at = (size_t)(offset * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (slot_count - 1);

        while (slots[at].offset && slots[at].offset != offset)
                at = (at + 1) & (slot_count - 1);
        return &slots[at];
}

static bool grow_files(struct writer *w)
{
        size_t slot_count = w->file_slot_count ? w->file_slot_count * 2 : 256;
        struct file_text *slots;

        if (w->file_count * 2 < w->file_slot_count)
                return true;
        slots = calloc(slot_count, sizeof *slots);
        if (!slots)
                return false;
        for (size_t i = 0; i < w->file_slot_count; i++)
                if (w->files[i].offset)
                        *file_slot(slots, slot_count, w->files[i].offset) = w->files[i];
        free(w->files);
        w->files = slots;
        w->file_slot_count = slot_count;
        return true;
}

static bool file_text(struct writer *w, uint32_t offset, uint32_t *ret)
{
        const char *path = w->t->strings + offset;
        struct file_text *slot;

        *ret = 0;
        if (!path[0])
                return true;
        if (!grow_files(w))
                return false;
        slot = file_slot(w->files, w->file_slot_count, offset);
        if (!slot->offset) {
                *slot = (struct file_text){ offset, add_text(w, path, strlen(path), "", false) };
                w->file_count++;
        }
        *ret = slot->text;
        return true;
}

/* ---- nodes ---- */

static uint32_t *node_slot(const struct writer *w, uint32_t *slots, size_t slot_count, const struct book_node *n)
{
        size_t at = (size_t)hash64(n, sizeof *n) & (slot_count - 1);

        while (slots[at] && memcmp(&w->nodes[slots[at]], n, sizeof *n) != 0)
                at = (at + 1) & (slot_count - 1);
        return &slots[at];
}

static bool grow_nodes(struct writer *w)
{
        size_t slot_count = w->node_slot_count ? w->node_slot_count * 2 : 1024;
        uint32_t *slots;

        if (!huge_array_reserve(&w->nodes, &w->node_capacity, w->node_count))
                return false;
        if (w->node_count * 2 < w->node_slot_count)
                return true;
        slots = calloc(slot_count, sizeof *slots);
        if (!slots)
                return false;
        for (size_t i = 1; i < w->node_count; i++)
                *node_slot(w, slots, slot_count, &w->nodes[i]) = (uint32_t)i;
        free(w->node_slots);
        w->node_slots = slots;
        w->node_slot_count = slot_count;
        return true;
}

static bool add_node(struct writer *w, const struct book_node *n, uint32_t *ret)
{
        uint32_t *slot;

        if (!grow_nodes(w))
                return false;
        slot = node_slot(w, w->node_slots, w->node_slot_count, n);
        if (!*slot) {
                *slot = (uint32_t)w->node_count;
                w->nodes[w->node_count++] = *n;
        }
        *ret = *slot;
        return true;
}

/* From the outermost frame inwards. */
static bool add_chain(struct writer *w, uint32_t number)
{
        const struct symbol_chain *c = &w->t->chains[number];
        uint32_t node = 0;

        for (uint32_t i = c->frame_count; i > 0; i--) {
                const struct symbol_table_frame *f = &w->t->frames[c->first_frame + i - 1];
                struct book_node n = { .function = function_text(w, f->function), .line = f->line, .caller = node };

                if (w->node_count >= UINT32_MAX || !file_text(w, f->file, &n.file) || !add_node(w, &n, &node))
                        return false;
        }
        w->chain_nodes[number] = node;
        return true;
}

static enum status add_chains(struct writer *w, struct error *err)
{
        const struct symbol_table *t = w->t;
        const struct book_node nobody = { 0 };

        w->function_texts = calloc(t->function_count + 1ul, sizeof *w->function_texts);
        w->chain_nodes = calloc(t->chain_count + 1ul, sizeof *w->chain_nodes);
        if (!w->function_texts || !w->chain_nodes || !huge_array_reserve(&w->nodes, &w->node_capacity, 0))
                return error_no_memory(err);
        w->nodes[w->node_count++] = nobody;
        add_text(w, "", 0, "", false); /* number 0: unknown */
        for (uint32_t i = 0; i < t->range_count; i++)
                if (!w->chain_nodes[t->ranges[i].chain] && !add_chain(w, t->ranges[i].chain))
                        return error_no_memory(err);
        return buf_status(&w->texts, err, "symbol book");
}

/* ---- ranges ---- */

/* Call back for each range and each gap between two; the table's gaps are ranges of nobody. */
static uint64_t each_range(const struct writer *w, uint64_t *starts, uint32_t *nodes_of)
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
static void choose_buckets(struct writer *w)
{
        const struct symbol_table *t = w->t;
        struct book_header *h = &w->header;
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
static void fill_buckets(const struct book_header *h, const uint64_t *starts, uint32_t *buckets)
{
        uint64_t range = 0;

        for (uint64_t k = 0; k <= h->bucket_count && h->range_count; k++) {
                while (k < h->bucket_count && range + 1 < h->range_count && starts[range + 1] - h->base <= k << h->shift)
                        range++;
                buckets[k] = (uint32_t)(k < h->bucket_count ? range : h->range_count - 1);
        }
}

/* ---- the file ---- */

static void fill_body(struct writer *w, const struct symbol_book_layout *l, uint8_t *body)
{
        each_range(w, (uint64_t *)(void *)(body + l->starts), (uint32_t *)(void *)(body + l->nodes_of));
        fill_buckets(&w->header, (const uint64_t *)(const void *)(body + l->starts), (uint32_t *)(void *)(body + l->buckets));
        memcpy(body + l->nodes, w->nodes, w->node_count * sizeof *w->nodes);
        memcpy(body + l->texts, w->texts.data, w->texts.size);
}

static void fill_front(struct writer *w, const struct symbol_book_layout *l, uint8_t *file)
{
        struct book_header *h = &w->header;
        uint8_t *checksums = file + book_front_bytes(h), *segments = file + sizeof *h + h->partial_size;
        uint64_t chunks = book_chunk_count(l);

        memcpy(file + sizeof *h, symbol_table_partial(w->t), h->partial_size);
        for (uint32_t i = 0; i < h->segment_count; i++) {
                const struct book_segment s = { w->t->segments[i].address, w->t->segments[i].file_size };

                memcpy(segments + i * sizeof s, &s, sizeof s);
        }
        for (uint64_t i = 0; i < chunks; i++) {
                uint64_t at = i << BOOK_CHUNK_SHIFT, left = l->body_size - at;
                uint64_t checksum = hash64(file + l->body + at, left < BOOK_CHUNK_BYTES ? left : BOOK_CHUNK_BYTES);

                memcpy(checksums + i * sizeof checksum, &checksum, sizeof checksum);
        }
        h->checksum = 0;
        h->checksum = hash64(h, sizeof *h) ^ hash64(file + sizeof *h, book_front_bytes(h) - sizeof *h + chunks * sizeof(uint64_t));
        memcpy(file, h, sizeof *h);
}

static enum status write_file(struct writer *w, int fd, struct error *err)
{
        struct symbol_book_layout l;
        uint8_t *file;
        size_t size;

        if (!book_lay_out(&w->header, &l) || l.body + l.body_size > LIMIT_SYMBOL_TABLE_BYTES)
                return error_set(err, ST_TOO_BIG, "the symbols are more than a symbol book holds");
        size = (size_t)(l.body + l.body_size);
        if (ftruncate(fd, (off_t)size))
                return error_os(err, errno, "cannot make room for a symbol book");
        file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (file == MAP_FAILED)
                return error_os(err, errno, "cannot map a symbol book");
        fill_body(w, &l, file + l.body);
        fill_front(w, &l, file);
        munmap(file, size);
        return ST_OK;
}

static enum status write_book(struct writer *w, int fd, struct error *err)
{
        struct book_header *h = &w->header;
        const struct build_id *id = &w->t->build_id;
        enum status st = add_chains(w, err);

        if (st)
                return st;
        memcpy(h->magic, BOOK_MAGIC, sizeof h->magic);
        h->version = BOOK_VERSION;
        h->byte_order = BOOK_BYTE_ORDER;
        h->quality = (uint32_t)w->t->quality;
        h->is_complete = w->t->is_complete;
        h->range_count = each_range(w, NULL, NULL);
        h->node_count = w->node_count;
        h->text_bytes = w->texts.size;
        h->partial_size = (uint32_t)strlen(symbol_table_partial(w->t)) + 1;
        h->build_id_size = id->size;
        h->segment_count = w->t->segment_count;
        memcpy(h->build_id, id->bytes, id->size);
        choose_buckets(w);
        return write_file(w, fd, err);
}

enum status symbol_book_write(const struct symbol_table *t, int fd, struct error *err)
{
        struct writer w = { .t = t };
        enum status st;

        buf_init(&w.texts, LIMIT_SYMBOL_TABLE_BYTES);
        buf_init(&w.scratch, LIMIT_DEMANGLED_BYTES + 1);
        st = write_book(&w, fd, err);
        writer_deinit(&w);
        return st;
}
