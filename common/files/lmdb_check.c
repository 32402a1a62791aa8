/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_open_file() has the sequence: choose a meta page, compare the size of the file, walk the main tree and then
 * the tree of free pages. walk_tree() reads each page once into memory of its own, tests it, and descends; a value may
 * be a tree itself (a named database, or duplicates of a key), so the walk is recursive, at most DEPTH_MAX pages deep
 * for each of NESTING_MAX + 1 trees.
 *
 * Termination: `seen` has a bit per page. mark_pages() refuses a page that was seen before, so loops, shared pages and
 * pages both free and used are found by the same test.
 *
 * A snapshot is checked while LMDB has a read transaction open, which keeps its pages from being reused. For this LMDB
 * opens the file before the check of the trees; it reads only the meta pages then, and these are checked first.
 *
 * Order: reading and marking pages, nodes, trees, the file, the two entry points.
 */
#include "common/files/lmdb_check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/files/file.h"

/* Sizes and offsets of LMDB's structures on 64-bit machines. */
#define PAGE_HEADER 16
#define NODE_HEADER 8
#define DB_BYTES 48
#define META_DBS 24
#define META_LAST_PAGE (META_DBS + 2 * DB_BYTES)
#define META_TXN (META_LAST_PAGE + 8)
#define META_BYTES (META_TXN + 8)
#define META_MAGIC 0xbeefc0deu
#define META_VERSION 1
#define NO_PAGE UINT64_MAX
#define PAGE_SIZE_LEAST 512
#define PAGE_SIZE_MOST 32768

enum { PAGE_BRANCH = 1, PAGE_LEAF = 2, PAGE_OVERFLOW = 4, PAGE_LEAF2 = 0x20, PAGE_SUB = 0x40 };
enum { NODE_BIG = 1, NODE_TREE = 2, NODE_DUPLICATES = 4 };
#define DEPTH_MAX 32  /* of a tree: CURSOR_STACK of LMDB */
#define NESTING_MAX 2 /* trees in the main tree, and trees of duplicates in these */

struct lmdb_tree {
        uint16_t flags, depth;
        uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

/* A tree that is being walked, and what was found so far. */
struct tree_walk {
        struct lmdb_tree tree;
        uint64_t branch_pages, leaf_pages, overflow_pages, entries;
        unsigned nesting;
        bool is_free_list;
};

struct lmdb_file {
        int fd;
        const char *path;
        size_t page_size;
        uint64_t last_page, txn;
        struct lmdb_tree free_list, main;
        uint8_t *seen; /* a bit per page: in a tree or free */
        struct error *err;
};

static enum status fail_page(const struct lmdb_file *f, uint64_t page, const char *what)
{
        return error_set(f->err, ST_BAD_DATA, "'%s' is damaged: page %" PRIu64 " %s", f->path, page, what);
}

static enum status read_file_bytes(const struct lmdb_file *f, void *to, size_t n, uint64_t offset)
{
        size_t got = 0;

        while (got < n) {
                ssize_t more = pread(f->fd, (uint8_t *)to + got, n - got, (off_t)(offset + got));

                if (more < 0 && errno == EINTR)
                        continue;
                if (more < 0)
                        return error_os(f->err, errno, "cannot read '%s'", f->path);
                if (more == 0)
                        return error_set(f->err, ST_BAD_DATA, "'%s' is damaged: it is cut off at %" PRIu64 " bytes",
                                         f->path, offset + got);
                got += (size_t)more;
        }
        return ST_OK;
}

static uint16_t load_page_le16(const uint8_t *page, size_t at)
{
        return (uint16_t)load_le16(page + at);
}

static struct lmdb_tree decode_tree(const uint8_t *p)
{
        return (struct lmdb_tree){ .flags = load_page_le16(p, 4),
                                   .depth = load_page_le16(p, 6),
                                   .branch_pages = load_le64(p + 8),
                                   .leaf_pages = load_le64(p + 16),
                                   .overflow_pages = load_le64(p + 24),
                                   .entries = load_le64(p + 32),
                                   .root = load_le64(p + 40) };
}

/* Mark pages as used. ST_BAD_DATA if one is outside of the file or was marked before. */
static enum status mark_pages(struct lmdb_file *f, uint64_t first, uint64_t count)
{
        if (first < 2 || first > f->last_page || count > f->last_page - first + 1)
                return fail_page(f, first, "is outside of the database");
        for (uint64_t i = first; i < first + count; i++) {
                if (f->seen[i / 8] & 1u << i % 8)
                        return fail_page(f, i, "is used twice");
                f->seen[i / 8] |= (uint8_t)(1u << i % 8);
        }
        return ST_OK;
}

/* ---- nodes ---- */

struct node {
        const uint8_t *key, *data;
        size_t key_size, data_size; /* of a branch: 0 bytes of data */
        uint64_t child;
        uint16_t flags;
};

/* Decode a node of a page or of a page inside of a value, which is n bytes. */
static bool decode_node(const uint8_t *page, size_t n, size_t index, bool is_branch, struct node *ret)
{
        const size_t lower = load_page_le16(page, 12), upper = load_page_le16(page, 14),
                     at = load_page_le16(page, PAGE_HEADER + 2 * index);
        uint32_t size;

        if (at < upper || at < lower || at % 2 || at > n - NODE_HEADER)
                return false;
        *ret = (struct node){ .flags = load_page_le16(page, at + 4), .key_size = load_page_le16(page, at + 6) };
        size = (uint32_t)load_page_le16(page, at) | (uint32_t)load_page_le16(page, at + 2) << 16;
        if (ret->key_size > n - at - NODE_HEADER)
                return false;
        ret->key = page + at + NODE_HEADER;
        ret->data = ret->key + ret->key_size;
        if (is_branch) {
                ret->child = size | (uint64_t)ret->flags << 32;
                return true;
        }
        ret->data_size = size;
        return (ret->flags & NODE_BIG ? 8 : size) <= n - at - NODE_HEADER - ret->key_size;
}

static bool is_in_order(const struct tree_walk *w, const struct node *before, const struct node *node)
{
        size_t n = before->key_size < node->key_size ? before->key_size : node->key_size;
        int c;

        if (w->is_free_list) /* transaction numbers */
                return before->key_size == 8 && node->key_size == 8 && load_le64(before->key) < load_le64(node->key);
        c = memcmp(before->key, node->key, n);
        return c < 0 || (c == 0 && before->key_size < node->key_size);
}

/* The bounds of a page with nodes, or of one inside of a value; its number of keys in *ret. */
static bool check_page_bounds(const uint8_t *page, size_t n, size_t *ret)
{
        const size_t lower = load_page_le16(page, 12), upper = load_page_le16(page, 14);
        const uint16_t flags = load_page_le16(page, 10);
        const size_t key_size = load_page_le16(page, 8); /* of PAGE_LEAF2 */

        if (lower < PAGE_HEADER || lower % 2 || upper < lower || upper > n)
                return false;
        *ret = (lower - PAGE_HEADER) / 2;
        return !(flags & PAGE_LEAF2) || *ret * key_size <= n - PAGE_HEADER;
}

/* ---- trees ---- */

static enum status walk_tree(struct lmdb_file *f, const struct lmdb_tree *tree, unsigned nesting, bool is_free_list);

/* Duplicates of a key are a small page inside of the value, without trees and overflow pages. */
static enum status check_duplicates(struct lmdb_file *f, struct tree_walk *w, uint64_t number, const struct node *node)
{
        size_t count;

        if (node->data_size < PAGE_HEADER || !(load_page_le16(node->data, 10) & PAGE_SUB) ||
            !check_page_bounds(node->data, node->data_size, &count) || !count)
                return fail_page(f, number, "has malformed duplicates");
        for (size_t i = 0; i < count && !(load_page_le16(node->data, 10) & PAGE_LEAF2); i++) {
                struct node item;

                if (!decode_node(node->data, node->data_size, i, false, &item) || item.flags)
                        return fail_page(f, number, "has malformed duplicates");
        }
        w->entries += count;
        return ST_OK;
}

/* A value that became smaller keeps its pages. */
static enum status check_overflow(struct lmdb_file *f, struct tree_walk *w, uint64_t number, const struct node *node)
{
        const uint64_t first = load_le64(node->data), least = (PAGE_HEADER + node->data_size - 1) / f->page_size + 1;
        uint8_t header[PAGE_HEADER];
        uint32_t count;
        enum status st;

        if (first > f->last_page)
                return fail_page(f, number, "refers to a value outside of the database");
        st = read_file_bytes(f, header, sizeof header, first * f->page_size);
        if (st)
                return st;
        count = load_le32(header + 12);
        if (load_le64(header) != first || load_page_le16(header, 10) != PAGE_OVERFLOW || count < least)
                return fail_page(f, number, "refers to a value whose pages are malformed");
        w->overflow_pages += count;
        return mark_pages(f, first, count);
}

/* The pages in an entry of the list of free pages: their number, and the pages. */
static enum status mark_free_pages(struct lmdb_file *f, uint64_t number, const struct node *node)
{
        const uint64_t first = node->flags & NODE_BIG ? load_le64(node->data) * f->page_size + PAGE_HEADER : 0;
        _cleanup_free_ uint8_t *list = malloc(node->data_size + 1);
        enum status st = ST_OK;

        if (!list)
                return error_no_memory(f->err);
        if (first)
                st = read_file_bytes(f, list, node->data_size, first);
        else
                memcpy(list, node->data, node->data_size);
        if (!st && (node->data_size < 8 || node->data_size % 8 || load_le64(list) > node->data_size / 8 - 1))
                st = fail_page(f, number, "has a malformed list of free pages");
        for (uint64_t i = 1; !st && i <= load_le64(list); i++)
                st = mark_pages(f, load_le64(list + 8 * i), 1);
        return st;
}

static enum status check_leaf_node(struct lmdb_file *f, struct tree_walk *w, uint64_t number, const struct node *node)
{
        struct lmdb_tree inner;
        enum status st;

        if (node->flags & NODE_BIG) {
                st = node->flags == NODE_BIG ? check_overflow(f, w, number, node)
                                             : fail_page(f, number, "has a node with unknown flags");
                w->entries++;
                return st || !w->is_free_list ? st : mark_free_pages(f, number, node);
        }
        if (node->flags & NODE_TREE) {
                if (node->data_size != DB_BYTES || w->nesting == NESTING_MAX || w->is_free_list)
                        return fail_page(f, number, "has a malformed tree");
                inner = decode_tree(node->data);
                w->entries += node->flags & NODE_DUPLICATES ? inner.entries : 1;
                return walk_tree(f, &inner, w->nesting + 1, false);
        }
        if (node->flags & NODE_DUPLICATES)
                return check_duplicates(f, w, number, node);
        w->entries++;
        if (node->flags)
                return fail_page(f, number, "has a node with unknown flags");
        return w->is_free_list ? mark_free_pages(f, number, node) : ST_OK;
}

static enum status walk_page(struct lmdb_file *f, struct tree_walk *w, uint64_t number, unsigned depth);

static enum status check_page_nodes(struct lmdb_file *f, struct tree_walk *w, const uint8_t *page, uint64_t number,
                                    size_t count, unsigned depth)
{
        const bool is_branch = depth < w->tree.depth;
        struct node node, before;
        enum status st = ST_OK;

        for (size_t i = 0; !st && i < count; i++) {
                if (!decode_node(page, f->page_size, i, is_branch, &node))
                        return fail_page(f, number, "has a node outside of its bounds");
                if (i > (is_branch ? 1 : 0) && !is_in_order(w, &before, &node)) /* a branch's first key is unused */
                        return fail_page(f, number, "has keys out of order");
                before = node;
                st = is_branch ? walk_page(f, w, node.child, depth + 1) : check_leaf_node(f, w, number, &node);
        }
        return st;
}

/* depth: 1 for the root. */
static enum status walk_page(struct lmdb_file *f, struct tree_walk *w, uint64_t number, unsigned depth)
{
        const bool is_branch = depth < w->tree.depth;
        _cleanup_free_ uint8_t *page = malloc(f->page_size);
        size_t count;
        uint16_t flags;
        enum status st = page ? mark_pages(f, number, 1) : error_no_memory(f->err);

        if (!st)
                st = read_file_bytes(f, page, f->page_size, number * f->page_size);
        if (st)
                return st;
        flags = load_page_le16(page, 10);
        if (load_le64(page) != number || !check_page_bounds(page, f->page_size, &count))
                return fail_page(f, number, "has a malformed header");
        if (is_branch ? flags != PAGE_BRANCH || !count
                      : (flags & ~PAGE_LEAF2) != PAGE_LEAF || (!count && w->tree.entries))
                return fail_page(f, number, "is not of the expected kind");
        if (is_branch)
                w->branch_pages++;
        else
                w->leaf_pages++;
        if (flags & PAGE_LEAF2) {
                w->entries += count;
                return ST_OK;
        }
        return check_page_nodes(f, w, page, number, count, depth);
}

static enum status walk_tree(struct lmdb_file *f, const struct lmdb_tree *tree, unsigned nesting, bool is_free_list)
{
        struct tree_walk w = { .tree = *tree, .nesting = nesting, .is_free_list = is_free_list };
        enum status st;

        if (tree->root == NO_PAGE)
                return tree->entries ? fail_page(f, 0, "names a tree with entries and without pages") : ST_OK;
        if (!tree->depth || tree->depth > DEPTH_MAX)
                return fail_page(f, tree->root, "is the root of a tree of impossible depth");
        st = walk_page(f, &w, tree->root, 1);
        if (!st && (w.branch_pages != tree->branch_pages || w.leaf_pages != tree->leaf_pages ||
                    w.overflow_pages != tree->overflow_pages || w.entries != tree->entries))
                st = fail_page(f, tree->root, "is the root of a tree with other counts");
        return st;
}

/* ---- the file ---- */

static bool decode_meta(const uint8_t *page, size_t *page_size, struct lmdb_file *f)
{
        const uint8_t *meta = page + PAGE_HEADER;
        const uint32_t size = load_le32(meta + META_DBS);

        if (load_le32(meta) != META_MAGIC || load_le32(meta + 4) != META_VERSION || size < PAGE_SIZE_LEAST ||
            size > PAGE_SIZE_MOST || (size & (size - 1)))
                return false;
        *page_size = size;
        f->free_list = decode_tree(meta + META_DBS);
        f->main = decode_tree(meta + META_DBS + DB_BYTES);
        f->last_page = load_le64(meta + META_LAST_PAGE);
        f->txn = load_le64(meta + META_TXN);
        return true;
}

/* Choose the meta page of a transaction, or the newest one as LMDB does. @param txn 0: the newest */
static enum status read_meta_pages(struct lmdb_file *f, uint64_t txn)
{
        uint8_t page[PAGE_HEADER + META_BYTES];
        struct lmdb_file first = *f, second = *f;
        enum status st = read_file_bytes(f, page, sizeof page, 0);

        if (st)
                return st;
        if (!decode_meta(page, &first.page_size, &first))
                return fail_page(f, 0, "is not a meta page of this version of LMDB");
        st = read_file_bytes(f, page, sizeof page, first.page_size);
        if (st)
                return st;
        if (!decode_meta(page, &second.page_size, &second) || second.page_size != first.page_size)
                return fail_page(f, 1, "is not a meta page of this version of LMDB");
        *f = second.txn > first.txn ? second : first;
        if (txn && f->txn != txn)
                *f = second.txn == txn ? second : first;
        return txn && f->txn != txn ? error_set(f->err, ST_BUSY, "'%s' changes too fast to be checked", f->path)
                                    : ST_OK;
}

static enum status check_open_file(struct lmdb_file *f, uint64_t txn)
{
        struct stat info;
        enum status st;

        if (fstat(f->fd, &info))
                return error_os(f->err, errno, "cannot open '%s'", f->path);
        st = read_meta_pages(f, txn);
        if (st)
                return st;
        if (f->last_page < 1 || f->last_page >= (uint64_t)info.st_size / f->page_size)
                return error_set(f->err, ST_BAD_DATA,
                                 "'%s' is damaged: it has %" PRIu64 " bytes instead of %" PRIu64 " pages", f->path,
                                 (uint64_t)info.st_size, f->last_page + 1);
        f->seen = calloc(f->last_page / 8 + 1, 1);
        if (!f->seen)
                return error_no_memory(f->err);
        st = walk_tree(f, &f->main, 0, false);
        if (!st)
                st = walk_tree(f, &f->free_list, 0, true);
        free(f->seen);
        return st;
}

static enum status check_database(const char *dir, uint64_t txn, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "data.mdb");
        _cleanup_close_ int fd = -1;
        struct lmdb_file f = { .path = path, .err = err };

        if (!path)
                return error_no_memory(err);
        f.fd = fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
                return ST_OK;
        return fd < 0 ? error_os(err, errno, "cannot open '%s'", path) : check_open_file(&f, txn);
}

enum status lmdb_check_env(const char *dir, struct error *err)
{
        return check_database(dir, 0, err);
}

/* The meta pages have been checked: mdb_env_open() reads nothing else. */
static int begin_snapshot(MDB_env *env, const char *dir, MDB_txn **ret)
{
        int rc = mdb_env_open(env, dir, MDB_RDONLY | MDB_NOTLS, 0644);

        return rc ? rc : mdb_txn_begin(env, NULL, MDB_RDONLY, ret);
}

enum status lmdb_check_snapshot(const char *dir, struct error *err)
{
        _cleanup_free_ char *path = path_join(dir, "data.mdb");
        struct lmdb_file f = { .path = path, .err = err };
        _cleanup_close_ int fd = -1;
        MDB_env *env = NULL;
        MDB_txn *txn = NULL;
        enum status st;

        if (!path)
                return error_no_memory(err);
        f.fd = fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return errno == ENOENT ? ST_OK : error_os(err, errno, "cannot open '%s'", path);
        st = read_meta_pages(&f, 0);
        if (st)
                return st;
        if (mdb_env_create(&env))
                return error_no_memory(err);
        if (begin_snapshot(env, dir, &txn)) /* no lock file, or a file system without writing: nobody writes */
                st = check_database(dir, 0, err);
        else
                st = check_database(dir, mdb_txn_id(txn), err);
        if (txn)
                mdb_txn_abort(txn);
        mdb_env_close(env);
        return st;
}
