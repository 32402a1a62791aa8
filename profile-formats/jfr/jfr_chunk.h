/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_PROFILE_FORMATS_JFR_JFR_CHUNK_H
#define CAIRN_PROFILE_FORMATS_JFR_JFR_CHUNK_H

/**
 * @file
 * One chunk of a JDK Flight Recorder file: header, classes, and values by their class.
 *
 * A chunk is self-contained. Its metadata event describes every class as a list of fields; events and the entries of
 * constant pools are values of these classes, without tags or lengths of fields, so each is read field by field. A
 * field of a class with a constant pool is the key of an entry. Reading is bounded: by the bytes of the chunk, by the
 * depth of nested values, and by a number of steps in proportion to the chunk, because values of classes without fields
 * take no bytes.
 *
 * Threads: one chunk belongs to one thread.
 * Source: JDK src/hotspot/share/jfr/recorder (jfrChunkWriter.cpp, jfrCheckpointWriter.cpp) and
 * jdk.jfr.internal.consumer; async-profiler src/flightRecorder.cpp.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/reader.h"

/* Fields that the decoder reads; equal names of several classes share a number. */
enum jfr_name {
        JFR_START_TIME,
        JFR_DURATION,
        JFR_STACK_TRACE,
        JFR_STATE,
        JFR_CONTEXT_ID,
        JFR_SPAN_ID,
        JFR_SPAN_NAME,
        JFR_TLAB_SIZE,
        JFR_ALLOCATION_SIZE,
        JFR_WEIGHT,
        JFR_SAMPLES,
        JFR_SAMPLING_PERIOD,
        JFR_SIZE,
        JFR_ID,
        JFR_NAME,
        JFR_VALUE,
        JFR_TYPE,
        JFR_METHOD,
        JFR_LINE_NUMBER,
        JFR_FRAMES,
        JFR_TRUNCATED,
        JFR_STRING,
        JFR_DESCRIPTION,
        JFR_NAMES, /* count; also a name that is not read */
};

/* Classes that the decoder knows. */
enum jfr_kind {
        JFR_OTHER, /* a structure that is only skipped */
        JFR_BOOLEAN,
        JFR_BYTE,
        JFR_CHAR,
        JFR_SHORT,
        JFR_INT,
        JFR_LONG,
        JFR_FLOAT,
        JFR_DOUBLE,
        JFR_TEXT, /* java.lang.String */
        /* of constant pools */
        JFR_STACK_TRACES,
        JFR_METHODS,
        JFR_CLASSES,
        JFR_SYMBOLS,
        JFR_THREAD_STATES,
        JFR_FRAME_TYPES,
        /* inside of stack traces */
        JFR_STACK_FRAMES,
        /* events */
        JFR_EXECUTION_SAMPLE,
        JFR_CPU_TIME_SAMPLE,
        JFR_NATIVE_METHOD_SAMPLE,
        JFR_WALL_CLOCK_SAMPLE,
        JFR_ALLOCATION_IN_NEW_TLAB,
        JFR_ALLOCATION_OUTSIDE_TLAB,
        JFR_ALLOCATION_SAMPLE,
        JFR_LIVE_OBJECT,
        JFR_MALLOC,
        JFR_MONITOR_ENTER,
        JFR_PARK,
        JFR_ACTIVE_SETTING,
        JFR_KINDS, /* count */
};

struct jfr_field {
        uint64_t type_id;
        uint32_t class; /* in jfr_chunk.classes; UINT32_MAX: no such class */
        uint8_t name;   /* enum jfr_name */
        bool is_pool, is_array;
};

struct jfr_text {
        const uint8_t *data; /* borrowed from the chunk */
        size_t size;
};

struct jfr_class {
        uint64_t id;
        struct jfr_text name;
        enum jfr_kind kind;
        uint32_t first_field, field_count;
        bool has_stack;
};

struct jfr_chunk {
        const uint8_t *data; /* borrowed */
        size_t size;
        uint64_t metadata_offset;
        int64_t start_unix_ns, duration_ns;
        uint64_t ticks_per_s;
        struct jfr_text *texts; /* of the metadata; owned, as are the next two */
        size_t text_count;
        struct jfr_class *classes; /* sorted by id */
        size_t class_count, class_capacity;
        struct jfr_field *fields;
        size_t field_count, field_capacity;
        uint64_t steps_left;
};

/** Whether data begins with the magic of a JFR file. */
bool jfr_detect(const void *data, size_t n);

/** Whether data begins with a chunk that is finished and not cut off, by its header. */
bool jfr_chunk_is_complete(const void *data, size_t n);

/**
 * Open the chunk at the start of data and read its metadata. Files have one chunk after another.
 * @param ret  owns tables; jfr_chunk_close() it on success only. ret->size is the size of the chunk.
 * @return ST_BAD_DATA; ST_UNSUPPORTED: another version, or integers that are not compressed; ST_TOO_BIG: a limit.
 */
enum status jfr_chunk_open(const void *data, size_t n, struct jfr_chunk *ret, struct error *err) MUST_CHECK;
void jfr_chunk_close(struct jfr_chunk *c);

/** The class with this id, or NULL. */
const struct jfr_class *jfr_chunk_find_class(const struct jfr_chunk *c, uint64_t id);

/** One event: a reader of its fields, after the type. */
struct jfr_event {
        uint64_t type_id;
        struct reader payload;
};

/** Read the next event; start with *pos 0. ST_NOT_FOUND after the last one; ST_BAD_DATA. */
enum status jfr_chunk_next_event(const struct jfr_chunk *c, size_t *pos, struct jfr_event *ret,
                                 struct error *err) MUST_CHECK;

/** Variable-length number of at most nine bytes, the ninth with eight bits. */
bool jfr_read_number(struct reader *r, uint64_t *ret) MUST_CHECK;

/** A text of a field; in UTF-8 or Latin-1 as it stands in the file. */
struct jfr_string {
        enum { JFR_STRING_NONE, JFR_STRING_UTF8, JFR_STRING_LATIN1, JFR_STRING_CHARS } encoding;
        struct jfr_text text; /* of JFR_STRING_CHARS: numbers, one for each UTF-16 unit */
};

/** The known fields of one value. */
struct jfr_value {
        uint64_t numbers[JFR_NAMES]; /* a pool's key for fields of a constant pool; 0 for absent fields */
        struct jfr_string strings[JFR_NAMES];
        struct reader frames; /* the elements of an array "frames" */
        uint64_t frame_count;
        uint32_t frame_class;
        bool has[JFR_NAMES];
};

/** Read a value of a class, or skip it (ret NULL). False: malformed, too deep or too many steps. */
bool jfr_read_value(struct jfr_chunk *c, struct reader *r, const struct jfr_class *class,
                    struct jfr_value *ret) MUST_CHECK;

#endif
