/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_PROFILE_H
#define CAIRN_PROFILE_FORMATS_PROFILE_H

/**
 * @file
 * In-memory form of a batch of samples, common to all formats.
 *
 * Tables refer to each other by index. Index 0 of `strings` is the empty string; every other table starts with a real
 * entry, and PROFILE_NONE means "no entry". A decoder guarantees that every index is inside its table, that strings are
 * valid UTF-8 without NUL, that stacks are leaf first, that lines of a location are innermost first, and that return
 * addresses have been adjusted to the call.
 *
 * Work: the functions below count what they do, in units: one byte of text, one frame of a stack, one label of a set,
 * one entry, or 64 bytes copied. A decoder limits the units to a multiple of its input's size, so that a small input
 * that repeats long stacks or texts by reference is refused instead of occupying a thread.
 *
 * Memory: everything lives in the profile's arena until profile_deinit(). Adding to a table may move its items, but not
 * the texts of strings. Threads: one writer, or any number of readers.
 */
#include <stdbool.h>
#include <stdint.h>

#include "common/memory/arena.h"
#include "common/build_id.h"
#include "common/error.h"

#define PROFILE_NONE UINT32_MAX

/** Base of a location's address. */
enum profile_address_kind {
        ADDRESS_OBJECT = 0,      /* the object's own virtual address (ELF p_vaddr space) */
        ADDRESS_FILE_OFFSET = 1, /* an offset into the ELF file, where the sender does not know segment addresses */
        ADDRESS_NONE = 2,        /* no address: the frame is known by name only (interpreters, folded stacks) */
};

/** Kind of code of a frame: `profile.frame.type` of OTLP, in the order of profile-formats/frame_type.h. */
enum profile_frame_type {
        PROFILE_FRAME_UNKNOWN, /* not stated */
        PROFILE_FRAME_NATIVE,  /* user code with addresses */
        PROFILE_FRAME_KERNEL,
        PROFILE_FRAME_CPYTHON,
        PROFILE_FRAME_V8,
        PROFILE_FRAME_HOTSPOT,
        PROFILE_FRAME_TYPES,
};

struct profile_mapping {
        struct build_id build_id; /* size 0: unknown */
        uint32_t file;            /* string: path or base name */
        /* Range of the file; size 0: unknown. */
        uint64_t file_offset, size;
};

struct profile_line {
        uint32_t function;     /* string: readable name */
        uint32_t linkage_name; /* string, 0 when the same or unknown */
        uint32_t file;         /* string, 0 when unknown */
        int64_t line;          /* 0 when unknown */
        int64_t start_line;    /* of the function, 0 when unknown */
};

struct profile_location {
        uint32_t mapping;    /* PROFILE_NONE when unknown */
        uint32_t first_line; /* lines from the sender; line_count 0: not symbolized */
        uint32_t line_count;
        enum profile_address_kind kind;
        enum profile_frame_type frame_type;
        uint64_t address;
};

struct profile_stack {
        uint32_t first_location; /* into stack_locations */
        uint32_t location_count; /* leaf first; root end cut at LIMIT_STACK_FRAMES */
        bool truncated;
};

struct profile_label {
        uint32_t key;   /* string */
        uint32_t value; /* string; numbers are written in decimal, those of pprof as in hidden_label.h */
};

struct profile_type {
        /* "name:sample_type:sample_unit:period_type:period_unit" as in
         * "process_cpu:cpu:nanoseconds:cpu:nanoseconds" */
        uint32_t id;    /* string */
        uint32_t unit;  /* string: unit of values */
        int64_t period; /* in period_unit, 0 when unknown */
};

struct profile_sample {
        uint32_t stack;
        uint32_t type;
        uint32_t first_label; /* into labels; resource, scope and sample labels merged, keys unique */
        uint32_t label_count;
        int64_t time_unix_ns; /* 0 when unknown: profile_set_missing_times() */
        int64_t duration_ns;  /* 0 when unknown */
        int64_t value;
        uint8_t trace_id[16]; /* all zero: none */
        uint8_t span_id[8];
};

/* A table that grows inside the profile's arena. */
#define PROFILE_TABLE(type)                                                                                            \
        struct {                                                                                                       \
                type *items;                                                                                           \
                uint32_t count, capacity;                                                                              \
        }

struct profile_string {
        const char *text; /* NUL-terminated */
        uint32_t size;
};

struct profile {
        struct arena arena;
        PROFILE_TABLE(struct profile_string) strings;
        PROFILE_TABLE(struct profile_mapping) mappings;
        PROFILE_TABLE(struct profile_line) lines;
        PROFILE_TABLE(struct profile_location) locations;
        PROFILE_TABLE(uint32_t) stack_locations;
        PROFILE_TABLE(struct profile_stack) stacks;
        PROFILE_TABLE(struct profile_type) types;
        uint32_t first_shown_type; /* type that readers should show first, plus one; 0: theirs to choose */
        PROFILE_TABLE(struct profile_label) labels;
        PROFILE_TABLE(struct profile_sample) samples;
        bool states_types;             /* names of types are those that the file states, rather than derived ones */
        struct profile_intern *intern; /* string table in use while building; private */
        uint64_t work, max_work;       /* units; max_work 0: unlimited */
        uint64_t rejected_samples;     /* count of rejected samples; the first reason is below */
        char rejected_reason[240];
        char note[240]; /* of the decoder for the sender, such as why the profile has no samples; "": none */
};

/** Start an empty profile whose memory stays under max_bytes (LIMIT_PROFILE_MEMORY_BYTES). */
enum status profile_init(struct profile *p, size_t max_bytes, struct error *err) MUST_CHECK;
/** As profile_init(), which draws on MEMORY_INGEST, from another share of the memory budget. */
enum status profile_init_budget(struct profile *p, size_t max_bytes, enum memory_use use, struct error *err) MUST_CHECK;
void profile_deinit(struct profile *p);
#define _cleanup_profile_ _cleanup_(profile_deinit)

/** Allow LIMIT_DECODE_WORK_PER_BYTE units for each byte of the input, plus LIMIT_DECODE_WORK_FREE. */
void profile_limit_work(struct profile *p, uint64_t input_bytes);
/** Count work that the functions below do not. ST_TOO_BIG: the limit is exceeded. */
enum status profile_count_work(struct profile *p, uint64_t units, struct error *err) MUST_CHECK;

/*
 * Building. Each returns the index of the entry; equal strings, stacks and types share one. ST_TOO_BIG names the limit;
 * the profile stays valid. NUL and bytes of a string that are not UTF-8 become U+FFFD.
 */
enum status profile_add_string(struct profile *p, const char *text, size_t n, uint32_t *ret,
                               struct error *err) MUST_CHECK;
enum status profile_add_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *ret,
                                struct error *err) MUST_CHECK;
enum status profile_add_line(struct profile *p, const struct profile_line *l, uint32_t *ret,
                             struct error *err) MUST_CHECK;
enum status profile_add_location(struct profile *p, const struct profile_location *l, uint32_t *ret,
                                 struct error *err) MUST_CHECK;
enum status profile_add_stack(struct profile *p, const uint32_t *locations, uint32_t count, uint32_t *ret,
                              struct error *err) MUST_CHECK;
enum status profile_add_type(struct profile *p, const struct profile_type *t, uint32_t *ret,
                             struct error *err) MUST_CHECK;

/**
 * Intern a label set (keys unique, at most LIMIT_LABELS_PER_SAMPLE). The labels are sorted in place by key number;
 * equal sets share one range, so that equal first_label and label_count mean equal labels.
 */
enum status profile_add_label_set(struct profile *p, struct profile_label *labels, uint32_t count, uint32_t *first_ret,
                                  struct error *err) MUST_CHECK;
enum status profile_add_sample(struct profile *p, const struct profile_sample *s, uint32_t *ret,
                               struct error *err) MUST_CHECK;

/** Find the number of a string; false when the profile does not have it. */
bool profile_find_string(const struct profile *p, const char *text, size_t n, uint32_t *ret) MUST_CHECK;

/** Count a rejected sample; the first reason is kept. */
void profile_reject_sample(struct profile *p, const char *reason);

/** Why a profile has no samples, by its rejected samples and its note. */
void profile_explain_absence(const struct profile *p, char *text, size_t size);
/** ST_BAD_DATA with that reason if a profile has no samples. */
enum status profile_check_samples(const struct profile *p, struct error *err) MUST_CHECK;

struct sample_labels;
/** Add each of the labels to every sample that has none with its key. */
enum status profile_add_labels_to_all(struct profile *p, const struct sample_labels *labels,
                                      struct error *err) MUST_CHECK;

/** As profile_add_labels_to_all() for one label. */
enum status profile_add_label_to_all(struct profile *p, const char *key, const char *value,
                                     struct error *err) MUST_CHECK;

/** Set the time of samples without one (time_unix_ns 0, or before 1970). */
void profile_set_missing_times(struct profile *p, int64_t now_unix_ns);

/** Longest probe sequence of the string, stack and label set tables; for tests. */
uint32_t profile_longest_probe(const struct profile *p);

/** Borrowed text of string i. */
static inline const char *profile_text(const struct profile *p, uint32_t i)
{
        return p->strings.items[i].text;
}

#endif
