/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef CAIRN_BPF_CONTEXT_WALK_H
#define CAIRN_BPF_CONTEXT_WALK_H

/**
 * @file
 * The context of a thread: which request it is working on, as an OpenTelemetry SDK publishes it in a thread-local
 * variable, a pointer to a record. Only the thread itself changes its record, and it is interrupted when a sample is
 * taken, so the record does not change while it is read.
 *
 * A context becomes words like a stack, so that it is copied, compared and hashed as one: the record, whose unused
 * last bytes are 0. The agent decodes it (sampling/runtimes/thread_context.h).
 *
 * The labels of a goroutine (pprof.Do) take the place of a record. The variable is the one in which Go keeps the
 * current g, which leads to the goroutine also while the thread runs on another stack: the scheduler's, a signal's or
 * that of C. A set of labels does not change once a goroutine has it. It becomes a record without trace and span, whose
 * attributes have keys as texts.
 *
 * Source: OTEP 4947 of the OpenTelemetry specification. ELF Handling For Thread-Local Storage, 3: the DTV. Go,
 * src/runtime/HACKING.md: "g, m, p"; src/runtime/pprof/label.go; src/runtime/map.go of 1.23.
 */
#include <linux/types.h>

#define CONTEXT_HEAD_BYTES 28      /* of a record, before its attributes */
#define CONTEXT_ATTRIBUTES_MAX 612 /* bytes; longer records are cut */
#define CONTEXT_WORDS_MAX ((CONTEXT_HEAD_BYTES + CONTEXT_ATTRIBUTES_MAX) / 8)
#define CONTEXT_KEY_MAX 64    /* bytes of a key of Go; labels with longer ones are left out */
#define CONTEXT_VALUE_MAX 128 /* of a value; longer ones are cut */
#define CONTEXT_GO_LABELS_MAX 16
#define CONTEXT_GO_BUCKETS_MAX 4 /* of a map of labels; others are left out */

/* The byte behind the span that tells how attributes are written. */
enum context_record_kind {
        CONTEXT_RECORD_NUMBERED = 1, /* number of the key and size of the value, a byte each; the value */
        CONTEXT_RECORD_TEXTS = 2,    /* sizes of key and value, a byte each; both */
};

#define CONTEXT_PROCESSES_MAX 4096u /* entry 0 is unused */

enum context_access {
        CONTEXT_NONE,
        CONTEXT_AT_THREAD_POINTER, /* of the program, or of a library loaded with it */
        CONTEXT_IN_MODULE,         /* in the block of a library, which the DTV of the thread leads to */
};

/** To what the variable points. */
enum context_form {
        CONTEXT_OF_RECORD,
        CONTEXT_OF_GO_LIST, /* the g of Go, whose labels are a sorted list: since 1.24 */
        CONTEXT_OF_GO_MAP,  /* likewise, a map */
};

/** Where the threads of a process keep the pointer to their record. */
struct context_process {
        __u64 offset; /* from the thread pointer, or in the block */
        __u32 access; /* enum context_access */
        __u32 module;
        __u32 dtv_entry_bytes; /* 16: glibc, 8: musl */
        __u32 form;            /* enum context_form */
        /* Of Go, offsets of fields: g.m, m.curg, g.labels. */
        __u16 m, curg, labels, reserved;
};

/** @param words  the record, as far as word_count says; more may be overwritten. */
struct context_walk {
        struct context_process process;
        __u32 word_count;  /* 0: no context */
        __u32 label_count; /* of Go, read so far */
        __u64 text_bytes;  /* of these */
        __u64 words[CONTEXT_WORDS_MAX + 1 + (CONTEXT_KEY_MAX + CONTEXT_VALUE_MAX) / 8];
};

#endif
