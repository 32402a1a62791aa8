/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_CONTEXT_READ_H
#define CAIRN_BPF_CONTEXT_READ_H

/*
 * Reads the context of a thread (bpf/context_walk.h): in the kernel, and in user space for tests. The includer defines
 * CONTEXT_READ(to, size, addr), nonzero on failure, and CONTEXT_FUNCTION, the qualifiers of this function.
 */
#include "bpf/context_walk.h"

#define CONTEXT_DTV 8 /* from the thread pointer, on x86-64 */

static inline __attribute__((always_inline)) __u64 context_find_variable(const struct context_process *p,
                                                                         __u64 thread_pointer)
{
        __u64 dtv, count, block;

        if (p->access == CONTEXT_AT_THREAD_POINTER)
                return thread_pointer + p->offset;
        if (p->access != CONTEXT_IN_MODULE || CONTEXT_READ(&dtv, sizeof dtv, thread_pointer + CONTEXT_DTV))
                return 0;
        /* The number of entries: in glibc before entry 0, in musl in it. */
        if (CONTEXT_READ(&count, sizeof count, p->dtv_entry_bytes == 16 ? dtv - 16 : dtv) || p->module > count)
                return 0;
        if (CONTEXT_READ(&block, sizeof block, dtv + (__u64)p->module * p->dtv_entry_bytes))
                return 0;
        return block + p->offset; /* unreadable when the thread has no block yet */
}

/* ---- Go ---- */

struct context_go_text {
        __u64 addr, bytes;
};

/* Append a label, whose key and value are at these addresses. A function of its own, so that it is verified once. */
CONTEXT_FUNCTION int context_add_go_label(struct context_walk *w, __u64 key_addr, __u64 value_addr)
{
        struct context_go_text key, value;
        __u64 at, key_bytes, value_bytes;
        char *to;

        if (!w)
                return 0;
        w->label_count++;
        if (CONTEXT_READ(&key, sizeof key, key_addr) || CONTEXT_READ(&value, sizeof value, value_addr))
                return 0;
        at = w->text_bytes;
        key_bytes = key.bytes;
        value_bytes = value.bytes < CONTEXT_VALUE_MAX ? value.bytes : CONTEXT_VALUE_MAX;
        if (!key_bytes || key_bytes > CONTEXT_KEY_MAX || at > CONTEXT_ATTRIBUTES_MAX ||
            at + 2 + key_bytes + value_bytes > CONTEXT_ATTRIBUTES_MAX)
                return 0;
        to = (char *)w->words + CONTEXT_HEAD_BYTES + at;
        to[0] = (char)key_bytes;
        to[1] = (char)value_bytes;
        if (CONTEXT_READ(to + 2, (__u32)key_bytes, key.addr))
                return 0;
        if (value_bytes && CONTEXT_READ(to + 2 + key_bytes, (__u32)value_bytes, value.addr))
                return 0;
        w->text_bytes = at + 2 + key_bytes + value_bytes;
        return 0;
}

#define CONTEXT_GO_TEXT_BYTES 16

static inline __attribute__((always_inline)) void context_read_go_list(struct context_walk *w, __u64 labels)
{
        struct context_go_text list; /* of pairs of texts */

        if (CONTEXT_READ(&list, sizeof list, labels))
                return;
        for (__u32 i = 0; i < CONTEXT_GO_LABELS_MAX; i++) {
                __u64 key_addr = list.addr + (__u64)i * 2 * CONTEXT_GO_TEXT_BYTES;

                if (i >= list.bytes)
                        break;
                context_add_go_label(w, key_addr, key_addr + CONTEXT_GO_TEXT_BYTES);
        }
}

#define CONTEXT_GO_SLOTS 8
#define CONTEXT_GO_KEYS 8 /* in a bucket, after a byte of the hash for each slot */
#define CONTEXT_GO_VALUES (CONTEXT_GO_KEYS + CONTEXT_GO_SLOTS * CONTEXT_GO_TEXT_BYTES)
#define CONTEXT_GO_OVERFLOW (CONTEXT_GO_VALUES + CONTEXT_GO_SLOTS * CONTEXT_GO_TEXT_BYTES)
#define CONTEXT_GO_BUCKET_BYTES (CONTEXT_GO_OVERFLOW + 8)
#define CONTEXT_GO_HASH_MIN 5 /* below: an empty or moved slot */

struct context_go_map {
        __u64 count;
        __u8 flags, bucket_bits;
        __u16 overflow_count;
        __u32 seed;
        __u64 buckets;
};

static inline __attribute__((always_inline)) void context_read_go_map(struct context_walk *w, __u64 labels)
{
        struct context_go_map map;
        __u64 addr, bucket, hashes;
        __u32 next = 1;

        if (CONTEXT_READ(&addr, sizeof addr, labels) || CONTEXT_READ(&map, sizeof map, addr))
                return;
        bucket = map.buckets;
        for (__u32 i = 0; i < CONTEXT_GO_BUCKETS_MAX; i++) {
                if (CONTEXT_READ(&hashes, sizeof hashes, bucket))
                        return;
                for (__u32 slot = 0; slot < CONTEXT_GO_SLOTS; slot++) {
                        __u64 at = bucket + (__u64)slot * CONTEXT_GO_TEXT_BYTES;

                        if ((hashes >> (8 * slot) & 0xff) >= CONTEXT_GO_HASH_MIN)
                                context_add_go_label(w, at + CONTEXT_GO_KEYS, at + CONTEXT_GO_VALUES);
                }
                if (w->label_count >= map.count)
                        return;
                if (!CONTEXT_READ(&addr, sizeof addr, bucket + CONTEXT_GO_OVERFLOW) && addr) {
                        bucket = addr;
                        continue;
                }
                if (map.bucket_bits > 5 || next >> map.bucket_bits)
                        return;
                bucket = map.buckets + (__u64)next++ * CONTEXT_GO_BUCKET_BYTES;
        }
}

/* Read the labels of the goroutine on whose behalf the thread runs, which has this g. */
static inline __attribute__((always_inline)) void context_read_go(struct context_walk *w, __u64 g)
{
        __u64 m, labels, bytes;
        char *to;

        if (CONTEXT_READ(&m, sizeof m, g + w->process.m) || CONTEXT_READ(&g, sizeof g, m + w->process.curg) || !g ||
            CONTEXT_READ(&labels, sizeof labels, g + w->process.labels) || !labels)
                return;
        w->label_count = 0;
        w->text_bytes = 0;
        if (w->process.form == CONTEXT_OF_GO_LIST)
                context_read_go_list(w, labels);
        else
                context_read_go_map(w, labels);
        bytes = w->text_bytes;
        if (!bytes || bytes > CONTEXT_ATTRIBUTES_MAX)
                return;
        to = (char *)w->words + CONTEXT_HEAD_BYTES + bytes;
        __builtin_memset(to, 0, 8); /* the rest of the last word */
        w->words[0] = w->words[1] = w->words[2] = 0;
        ((__u32 *)w->words)[6] = CONTEXT_RECORD_TEXTS | (__u32)bytes << 16;
        w->word_count = (__u32)(CONTEXT_HEAD_BYTES + bytes + 7) / 8;
}

/* ---- all ---- */

/* Read the context of the thread with this thread pointer in w->process. */
CONTEXT_FUNCTION int context_read_thread(struct context_walk *w, __u64 thread_pointer)
{
        __u64 variable, record;
        __u32 bytes, last;

        if (!w)
                return 0;
        w->word_count = 0;
        variable = context_find_variable(&w->process, thread_pointer);
        if (!variable || CONTEXT_READ(&record, sizeof record, variable) || !record)
                return 0;
        if (w->process.form != CONTEXT_OF_RECORD) {
                context_read_go(w, record);
                return 0;
        }
        if (CONTEXT_READ(w->words, CONTEXT_HEAD_BYTES, record))
                return 0;
        if ((w->words[3] & 0xff) != CONTEXT_RECORD_NUMBERED) /* it is not valid, or being changed */
                return 0;
        bytes = (w->words[3] >> 16) & 0xffff;
        if (bytes > CONTEXT_ATTRIBUTES_MAX)
                bytes = CONTEXT_ATTRIBUTES_MAX;
        w->words[3] &= 0xffff;
        last = (CONTEXT_HEAD_BYTES + bytes - 1) / 8;
        if (last > 3 && last < CONTEXT_WORDS_MAX)
                w->words[last] = 0;
        if (bytes && bytes <= CONTEXT_ATTRIBUTES_MAX &&
            CONTEXT_READ((char *)w->words + CONTEXT_HEAD_BYTES, bytes, record + CONTEXT_HEAD_BYTES))
                bytes = 0;
        if (!bytes) {
                w->words[3] &= 0xffff;
                last = 3;
        }
        w->words[3] |= (__u64)bytes << 16;
        if (bytes || w->words[0] || w->words[1])
                w->word_count = last + 1;
        return 0;
}

#endif
