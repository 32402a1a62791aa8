/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges are [begin, end) of both sides. A range is reduced by its equal first and last lines, then divided at the
 * lines that occur once on both sides, as far as these keep their order; small ranges without any are compared
 * completely, and great ones left as they are: replaced.
 */
#include "query/engine/line_alignment.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash/hash_table.h"
#include "common/limits.h"

#define LIMIT_COMPARED_PAIRS (1u << 20) /* of lines, by the longest common subsequence */
#define LIMIT_ALIGNMENT_DEPTH 64
#define LIMIT_SIMILAR_LINES 64      /* that one line is compared with */
#define LIMIT_SIMILAR_BYTES MiB(64) /* of all lines that are compared so; then removed lines stay removed */
#define SORT_UNITS 16               /* of work for each line of a range */
#define BYTES_PER_UNIT 16           /* of lines that are compared */

struct line_key {
        uint64_t hash;
        uint32_t line; /* from 0 */
};

struct aligner {
        struct line_alignment *a;
        const struct source_lines *sources[2];
        uint64_t *hashes[2];  /* of lines from 0; owned */
        size_t similar_bytes; /* compared so far */
        struct work_meter *meter;
        struct error *err;
};

struct line_range {
        uint32_t begin[2], end[2];
};

void line_alignment_deinit(struct line_alignment *a)
{
        memory_release(&a->memory);
        free(a->after_of);
        free(a->before_of);
        free(a->after_until);
        *a = (struct line_alignment){ 0 };
}

static bool are_lines_equal(const struct aligner *g, uint32_t before, uint32_t after)
{
        return g->hashes[0][before] == g->hashes[1][after];
}

static void pair_lines(struct aligner *g, uint32_t before, uint32_t after)
{
        g->a->after_of[before + 1] = after + 1;
        g->a->before_of[after + 1] = before + 1;
}

static void pair_equal_ends(struct aligner *g, struct line_range *r)
{
        while (r->begin[0] < r->end[0] && r->begin[1] < r->end[1] && are_lines_equal(g, r->begin[0], r->begin[1]))
                pair_lines(g, r->begin[0]++, r->begin[1]++);
        while (r->begin[0] < r->end[0] && r->begin[1] < r->end[1] && are_lines_equal(g, r->end[0] - 1, r->end[1] - 1))
                pair_lines(g, --r->end[0], --r->end[1]);
}

static int compare_line_keys(const void *x, const void *y)
{
        const struct line_key *a = x, *b = y;

        if (a->hash != b->hash)
                return a->hash < b->hash ? -1 : 1;
        return a->line < b->line ? -1 : a->line > b->line;
}

/* The lines of one side that occur once in the range, by hash. @return their number. */
static size_t list_unique_lines(const struct aligner *g, const struct line_range *r, unsigned side,
                                struct line_key *keys)
{
        size_t count = 0, kept = 0;

        for (uint32_t i = r->begin[side]; i < r->end[side]; i++)
                keys[count++] = (struct line_key){ g->hashes[side][i], i };
        qsort(keys, count, sizeof *keys, compare_line_keys);
        for (size_t i = 0, next; i < count; i = next) {
                for (next = i + 1; next < count && keys[next].hash == keys[i].hash;)
                        next++;
                if (next == i + 1)
                        keys[kept++] = keys[i];
        }
        return kept;
}

struct line_anchor {
        uint32_t line[2];
        size_t previous; /* in the longest chain that ends here, plus one */
};

static int compare_anchors(const void *x, const void *y)
{
        const struct line_anchor *a = x, *b = y;

        return a->line[0] < b->line[0] ? -1 : a->line[0] > b->line[0];
}

/* Lines that occur once on both sides, in the order before. @return their number. */
static size_t list_anchors(const struct aligner *g, const struct line_range *r, struct line_key *keys[2],
                           struct line_anchor *ret)
{
        const size_t before = list_unique_lines(g, r, 0, keys[0]), after = list_unique_lines(g, r, 1, keys[1]);
        size_t count = 0;

        for (size_t i = 0, k = 0; i < before && k < after;) {
                if (keys[0][i].hash < keys[1][k].hash)
                        i++;
                else if (keys[0][i].hash > keys[1][k].hash)
                        k++;
                else
                        ret[count++] = (struct line_anchor){ .line = { keys[0][i++].line, keys[1][k++].line } };
        }
        qsort(ret, count, sizeof *ret, compare_anchors);
        return count;
}

/* Pair the longest rising chain of anchors. Source: patience sorting. @return whether there is one. */
static bool pair_anchors(struct aligner *g, struct line_anchor *anchors, size_t count, size_t *piles)
{
        size_t pile_count = 0;

        for (size_t i = 0; i < count; i++) {
                size_t low = 0, high = pile_count;

                while (low < high) {
                        const size_t middle = (low + high) / 2;

                        if (anchors[piles[middle]].line[1] < anchors[i].line[1])
                                low = middle + 1;
                        else
                                high = middle;
                }
                anchors[i].previous = low ? piles[low - 1] + 1 : 0;
                piles[low] = i;
                if (low == pile_count)
                        pile_count++;
        }
        for (size_t at = pile_count ? piles[pile_count - 1] + 1 : 0; at; at = anchors[at - 1].previous)
                pair_lines(g, anchors[at - 1].line[0], anchors[at - 1].line[1]);
        return pile_count > 0;
}

/* The longest common subsequence of a small range. */
static enum status pair_common_lines(struct aligner *g, const struct line_range *r)
{
        const uint32_t n = r->end[0] - r->begin[0], m = r->end[1] - r->begin[1], width = m + 1;
        uint32_t *best, i = 0, k = 0; /* best[i * width + k]: of the lines from i and k on */
        enum status st;

        if (!n || !m || (uint64_t)n * m > LIMIT_COMPARED_PAIRS)
                return ST_OK;
        st = work_meter_add(g->meter, (uint64_t)n * m, g->err);
        if (st)
                return st;
        best = calloc((size_t)(n + 1) * width, sizeof *best);
        if (!best)
                return error_no_memory(g->err);
        for (i = n; i-- > 0;)
                for (k = m; k-- > 0;) {
                        const uint32_t down = best[(size_t)(i + 1) * width + k],
                                       right = best[(size_t)i * width + k + 1];

                        best[(size_t)i * width + k] = are_lines_equal(g, r->begin[0] + i, r->begin[1] + k)
                                                              ? best[(size_t)(i + 1) * width + k + 1] + 1
                                                      : down > right ? down
                                                                     : right;
                }
        for (i = k = 0; i < n && k < m;) {
                if (are_lines_equal(g, r->begin[0] + i, r->begin[1] + k))
                        pair_lines(g, r->begin[0] + i++, r->begin[1] + k++);
                else if (best[(size_t)(i + 1) * width + k] >= best[(size_t)i * width + k + 1])
                        i++;
                else
                        k++;
        }
        free(best);
        return ST_OK;
}

static enum status align_range(struct aligner *g, struct line_range r, unsigned depth);

/* Align what is between the pairs within a range. */
static enum status align_gaps(struct aligner *g, const struct line_range *r, unsigned depth)
{
        struct line_range gap = { { r->begin[0], r->begin[1] }, { 0 } };
        enum status st = ST_OK;

        for (uint32_t i = r->begin[0]; !st && i <= r->end[0]; i++) {
                if (i < r->end[0] && !g->a->after_of[i + 1])
                        continue;
                gap.end[0] = i;
                gap.end[1] = i < r->end[0] ? g->a->after_of[i + 1] - 1 : r->end[1];
                st = align_range(g, gap, depth + 1);
                gap.begin[0] = i + 1;
                gap.begin[1] = gap.end[1] + 1;
        }
        return st;
}

static enum status align_range(struct aligner *g, struct line_range r, unsigned depth)
{
        struct line_key *keys[2];
        struct line_anchor *anchors;
        size_t *piles;
        bool has_anchor = false;
        enum status st;

        pair_equal_ends(g, &r);
        if (r.begin[0] == r.end[0] || r.begin[1] == r.end[1])
                return ST_OK;
        st = work_meter_add(g->meter, SORT_UNITS * (uint64_t)(r.end[0] - r.begin[0] + r.end[1] - r.begin[1]), g->err);
        if (st)
                return st;
        keys[0] = calloc(r.end[0] - r.begin[0], sizeof *keys[0]);
        keys[1] = calloc(r.end[1] - r.begin[1], sizeof *keys[1]);
        anchors = calloc(r.end[0] - r.begin[0], sizeof *anchors);
        piles = calloc(r.end[0] - r.begin[0], sizeof *piles);
        if (keys[0] && keys[1] && anchors && piles)
                has_anchor = depth < LIMIT_ALIGNMENT_DEPTH &&
                             pair_anchors(g, anchors, list_anchors(g, &r, keys, anchors), piles);
        else
                st = error_no_memory(g->err);
        free(keys[0]);
        free(keys[1]);
        free(anchors);
        free(piles);
        if (st)
                return st;
        return has_anchor ? align_gaps(g, &r, depth) : pair_common_lines(g, &r);
}

/* Whether a line could be another one that was edited: the same begin and end are half of the longer one. */
static bool are_lines_similar(struct aligner *g, uint32_t before, uint32_t after)
{
        size_t n[2] = { 0 }, same = 0, most, least;
        const char *text[2] = { source_lines_get(g->sources[0], (int64_t)before + 1, &n[0]),
                                source_lines_get(g->sources[1], (int64_t)after + 1, &n[1]) };

        g->similar_bytes += 1 + n[0] + n[1];
        for (unsigned side = 0; side < 2; side++)
                for (; n[side] && (*text[side] == ' ' || *text[side] == '\t'); n[side]--)
                        text[side]++;
        most = n[0] > n[1] ? n[0] : n[1];
        least = n[0] < n[1] ? n[0] : n[1];
        while (same < least && text[0][same] == text[1][same])
                same++;
        for (size_t i = 0; same < least && text[0][n[0] - 1 - i] == text[1][n[1] - 1 - i]; i++)
                same++;
        return most && same * 2 >= most;
}

/* Pair a removed line with a similar added one of [*next, end), and move *next behind it. */
static enum status pair_similar_line(struct aligner *g, uint32_t before, uint32_t *next, uint32_t end)
{
        const size_t compared = g->similar_bytes;

        for (uint32_t k = *next; k < end && k < *next + LIMIT_SIMILAR_LINES && g->similar_bytes < LIMIT_SIMILAR_BYTES;
             k++)
                if (are_lines_similar(g, before, k)) {
                        pair_lines(g, before, k);
                        *next = k + 1;
                        break;
                }
        return work_meter_add(g->meter, 1 + (g->similar_bytes - compared) / BYTES_PER_UNIT, g->err);
}

/* Pair removed lines with similar added ones in the same order. */
static enum status pair_similar_lines(struct aligner *g, const struct line_range *r)
{
        uint32_t next = r->begin[1];
        enum status st = ST_OK;

        for (uint32_t i = r->begin[0]; !st && i < r->end[0]; i++)
                st = pair_similar_line(g, i, &next, r->end[1]);
        return st;
}

/* Lines in place of as many others are these, changed; of other numbers those that are similar. */
static enum status pair_replaced_lines(struct aligner *g)
{
        const struct line_alignment *a = g->a;
        enum status st = ST_OK;

        for (uint32_t i = 1, k = 1; !st && i <= a->before_count && k <= a->after_count;) {
                uint32_t removed = 0, added = 0;

                while (i + removed <= a->before_count && !a->after_of[i + removed])
                        removed++;
                while (k + added <= a->after_count && !a->before_of[k + added])
                        added++;
                if (removed != added)
                        st = pair_similar_lines(
                                g, &(struct line_range){ { i - 1, k - 1 }, { i - 1 + removed, k - 1 + added } });
                for (uint32_t n = 0; removed == added && n < removed; n++)
                        pair_lines(g, i + n - 1, k + n - 1);
                i += removed + 1; /* these two are a pair */
                k += added + 1;
        }
        return st;
}

static uint64_t *hash_source_lines(const struct source_lines *s)
{
        uint64_t *ret = calloc(s->count + 1, sizeof *ret);

        for (size_t i = 0; ret && i < s->count; i++) {
                size_t n = 0;
                const char *text = source_lines_get(s, (int64_t)i + 1, &n);

                ret[i] = keyed_hash(text ? text : "", n);
        }
        return ret;
}

/* What each line needs while an alignment is made, besides the alignment: its hash, and the arrays of one range. */
#define LINE_WORK_BYTES                                                                                                \
        (sizeof(uint64_t) + sizeof(struct line_key) + sizeof(struct line_anchor) + sizeof(size_t) +                    \
         2 * sizeof(uint32_t))

static enum status allocate_alignment(struct aligner *g, struct memory_reservation *work)
{
        const size_t before = g->sources[0]->count, after = g->sources[1]->count;
        struct line_alignment *a = g->a;
        enum status st = memory_reserve(&a->memory, sizeof(uint32_t) * (2 * before + after), g->err);

        if (!st)
                st = memory_reserve(work, LINE_WORK_BYTES * (before + after) + sizeof(uint32_t) * LIMIT_COMPARED_PAIRS,
                                    g->err);
        if (st)
                return st;
        a->after_of = calloc(before + 2, sizeof *a->after_of);
        a->before_of = calloc(after + 2, sizeof *a->before_of);
        a->after_until = calloc(before + 2, sizeof *a->after_until);
        g->hashes[0] = hash_source_lines(g->sources[0]);
        g->hashes[1] = hash_source_lines(g->sources[1]);
        return a->after_of && a->before_of && a->after_until && g->hashes[0] && g->hashes[1] ? ST_OK
                                                                                             : error_no_memory(g->err);
}

enum status line_alignment_make(const struct source_lines *before, const struct source_lines *after,
                                struct work_meter *meter, struct line_alignment *ret, struct error *err)
{
        struct line_alignment a = { .before_count = (uint32_t)before->count,
                                    .after_count = (uint32_t)after->count,
                                    .memory.use = MEMORY_QUERIES };
        _cleanup_memory_ struct memory_reservation work = { .use = MEMORY_QUERIES };
        struct aligner g = { .a = &a, .sources = { before, after }, .meter = meter, .err = err };
        enum status st = work_meter_add(meter, SORT_UNITS * (before->count + after->count), err);

        if (before->count > LIMIT_ALIGNED_LINES || after->count > LIMIT_ALIGNED_LINES)
                return error_set(err, ST_TOO_BIG, "a text of more than %u lines is not compared", LIMIT_ALIGNED_LINES);
        if (!st)
                st = allocate_alignment(&g, &work);
        if (!st)
                st = align_range(&g, (struct line_range){ .end = { a.before_count, a.after_count } }, 0);
        if (!st)
                st = pair_replaced_lines(&g);
        for (uint32_t i = 1; !st && i <= a.before_count; i++)
                a.after_until[i] = a.after_of[i] ? a.after_of[i] : a.after_until[i - 1];
        free(g.hashes[0]);
        free(g.hashes[1]);
        if (st)
                line_alignment_deinit(&a);
        else
                *ret = a;
        return st;
}
