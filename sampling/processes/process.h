/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SAMPLING_PROCESSES_PROCESS_H
#define CAIRN_SAMPLING_PROCESSES_PROCESS_H

/**
 * @file
 * Table of sampled processes: name, container, mappings, and the
 * translation of their addresses into object addresses.
 *
 * Mappings are read when a process is first noticed, because many exit within
 * the interval. They are reread when its executable mappings grew or shrank
 * (the first few times at once, later at most twice a second), and at most
 * once per drain when an address lies in no mapping or the mappings are older
 * than half a minute. A process is one life: a reused pid or an exec is
 * another process. A process without samples for some intervals is forgotten,
 * and so are the least recently used ones past LIMIT_AGENT_PROCESSES.
 *
 * The sampler is notified of a process excluded by the filter when the process
 * is first seen; the mappings of such a process are not read.
 *
 * Threads: one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/sample.h"
#include "sampling/containers/cgroup.h"
#include "sampling/containers/pod_list.h"
#include "sampling/objects/object_cache.h"
#include "sampling/objects/proc_maps.h"
#include "sampling/processes/container_cache.h"
#include "sampling/processes/jitdump.h"
#include "sampling/processes/perf_map.h"
#include "sampling/processes/process_filter.h"
#include "sampling/runtimes/hotspot_name_cache.h"
#include "sampling/runtimes/process_context.h"
#include "sampling/runtimes/python_name_cache.h"
#include "sampling/runtimes/v8_name_cache.h"
#include "sampling/unwinding/unwinder.h"

/** Names of code that a process generated at run time. The jitdump takes precedence, since it has lines too. */
struct jit_names {
        struct perf_map map;
        struct jitdump dump;
};

enum python_state { PYTHON_UNKNOWN, PYTHON_IS_STARTING, PYTHON_IS_READ, PYTHON_IS_REFUSED };

/** The CPython interpreter of a process. */
struct process_python {
        enum python_state state;
        struct runtime_refusal refusal; /* why it is refused */
        unsigned attempts;
        struct python_objects objects;
        struct python_name_cache names;
        int memory_fd;      /* of /proc/PID/mem, open during an interval; valid if memory_in is the current one */
        uint64_t memory_in; /* name_interval of the table */
};

enum v8_state { V8_UNKNOWN, V8_IS_READ, V8_IS_REFUSED };

/** V8 of a process. */
struct process_v8 {
        enum v8_state state;
        struct runtime_refusal refusal; /* of V8_IS_REFUSED */
        struct v8_name_cache names;
        int memory_fd;      /* of /proc/PID/mem, open during an interval; valid if memory_in is the current one */
        uint64_t memory_in; /* name_interval of the table */
        uint64_t left;      /* bytes that may be read in that drain */
};

enum hotspot_state { HOTSPOT_UNKNOWN, HOTSPOT_IS_STARTING, HOTSPOT_IS_READ, HOTSPOT_IS_REFUSED };

/** HotSpot of a process. */
struct process_hotspot {
        enum hotspot_state state;
        struct runtime_refusal refusal; /* of HOTSPOT_IS_REFUSED */
        unsigned attempts;
        struct hotspot_objects objects;
        struct hotspot_name_cache names;
        int memory_fd;      /* of /proc/PID/mem, open during an interval; valid if memory_in is the current one */
        uint64_t memory_in; /* name_interval of the table */
};

enum request_state { REQUEST_UNKNOWN, REQUEST_WAITS, REQUEST_IS_READ, REQUEST_IS_REFUSED };

/** Labels of the goroutines of a process, which take the place of the contexts of its threads. */
struct process_go {
        enum request_state state;
        struct runtime_refusal refusal;
        unsigned attempts;
};

/** The contexts that an OpenTelemetry SDK publishes for a process and its threads. */
struct process_request {
        enum request_state state; /* of the contexts of threads; if refused, of both */
        struct runtime_refusal refusal;
        unsigned attempts;
        uint64_t read_in;               /* drain number plus one; 0: never */
        struct context_symbols symbols; /* by which the contexts of threads were found */
        struct process_context context;
};

struct process {
        struct sample_process id;
        char name[SAMPLE_COMM_SIZE]; /* of the thread group's leader */
        struct cgroup_names cgroup;
        struct pod_match pod;              /* owned reference; set when its labels are collected */
        struct container_names *container; /* owned; NULL: unknown */
        char *executable;                  /* its path in the root of the process; NULL: unknown; owned */
        bool is_excluded;
        struct proc_maps maps;
        const struct object **objects; /* one per mapping, NULL when unknown; owned array */
        bool has_maps;                 /* maps were read at least once */
        struct jit_names jit;
        int64_t read_at_ns;   /* monotonic */
        int64_t read_cost_ns; /* CPU time of the last read */
        unsigned notice_count;
        unsigned vain_reads;                    /* consecutive rereads that did not find the missing mapping */
        bool is_stale;                          /* its mappings changed, and are reread after the pause */
        uint64_t read_in, jit_read_in, used_in; /* drain numbers */
        struct unwinder_process unwind;
        struct process_python python;
        struct process_v8 v8;
        struct process_hotspot hotspot;
        struct process_request request;
        struct process_go go;
};

struct process_table {
        struct id_table by_id;
        struct process **items; /* owned */
        size_t count, capacity;
        uint64_t drain;         /* number of the current drain */
        uint64_t name_interval; /* counts intervals in which names of runtimes are checked once; each ends with a drain
                                 */
        bool has_named;         /* the interval of the next drain has begun */
        struct object_cache objects;
        uint64_t unreadable;                 /* processes that exited before their mappings were read */
        size_t mapping_count;                /* of all processes */
        uint64_t too_many_mappings;          /* reads of processes with more mappings than there is room for */
        struct unwinder *unwinder;           /* borrowed; NULL: none */
        const struct process_filter *filter; /* borrowed; NULL: no process is excluded */
        const struct sample_process *lives;  /* borrowed; other processes with the pid of one of these are excluded */
        size_t life_count;
        struct container_cache *containers; /* borrowed; NULL: names of containers are not read */
        void (*on_excluded)(void *ctx, const struct sample_process *id); /* NULL: none */
        void *ctx;
        struct code_budget jit_budget; /* for names of generated code of all processes */
        struct code_names vdso;        /* by link-time address */
        bool vdso_tried;
        uint64_t jit_left;                      /* read budget in bytes for their files in this drain */
        uint64_t jit_dropped;                   /* names of generated code past a limit */
        uint64_t excluded;                      /* excluded processes */
        bool reads_python;                      /* find Python interpreters */
        bool is_only_listing;                   /* find runtimes to list them: processes are not sampled */
        uint64_t python_read;                   /* processes whose interpreter is read, in total */
        uint64_t python_refused[REFUSAL_COUNT]; /* others by reason */
        size_t python_bytes;                    /* of cached names and line tables */
        bool reads_v8;                          /* name the frames of Node.js */
        uint64_t v8_read;                       /* as for Python */
        uint64_t v8_refused[REFUSAL_COUNT];
        size_t v8_bytes;
        bool reads_hotspot;    /* find virtual machines of Java */
        uint64_t hotspot_read; /* as for Python */
        uint64_t hotspot_refused[REFUSAL_COUNT];
        size_t hotspot_bytes;
        bool reads_context;             /* of OpenTelemetry: of processes and threads; labels of Go */
        uint64_t process_contexts_read; /* processes, in total; likewise: */
        uint64_t thread_contexts_read;
        uint64_t go_labels_read;
        uint64_t contexts_refused[REFUSAL_COUNT];
        size_t context_bytes;
        uint64_t hotspot_left; /* bytes that may be read for names of Java code in this drain */
        uint64_t v8_left;      /* bytes of sources, code and tables that may be read in this drain */
        uint64_t python_left;  /* bytes that may be read and decoded for names of Python code in this drain */
};

void process_table_init(struct process_table *t);
void process_table_deinit(struct process_table *t);

/** Notify the sampler again of an excluded process: it was sampled, so the sampler has forgotten the exclusion. */
void process_table_exclude(struct process_table *t, const struct process *p);

/** Read the mappings of a process that is new or has new mappings, before it exits. */
void process_table_handle_notice(struct process_table *t, const struct sample_notice *notice);

/**
 * Whether pc, at which the process ran, lies in an executable mapping. If not, its mappings are
 * reread, unless that was done just before or failed repeatedly: generated code does not change
 * the number of executable pages.
 */
bool process_table_has_mapping(struct process_table *t, struct process *p, uint64_t pc);

/**
 * The process of a sample; created and read now if it was never noticed.
 * @param comm  name to use when the process has exited.
 * @return borrowed until process_table_end_drain(); NULL without memory.
 */
struct process *process_table_get(struct process_table *t, const struct sample_process *id, const char *comm);

/** Request the unwind tables of a running process before it is sampled. It is not added to the table. */
void process_table_prepare(struct process_table *t, const struct sample_process *id);

/** Update the unwinder for processes that wait for unwind tables. Call when tables were completed. */
void process_table_update_waiting(struct process_table *t);

/**
 * Begin to name the frames of runtimes, also before the drain: what is named then stays so until the drain has ended.
 */
void process_table_begin_names(struct process_table *t);

/** Whether the runtime of any process has names that may be gone when the interval ends. */
bool process_table_has_fleeting_names(const struct process_table *t);

/** Call before the samples of an interval are resolved. */
void process_table_begin_drain(struct process_table *t);

/** Forget processes that were not sampled recently, and objects past the limit. */
void process_table_end_drain(struct process_table *t);

enum user_location_kind {
        USER_LOCATION_OBJECT,       /* address is a virtual address of mapping's object */
        USER_LOCATION_FILE_OFFSET,  /* address is an offset in mapping's file, whose segments are unknown */
        USER_LOCATION_NAMED,        /* generated code; jit has its name */
        USER_LOCATION_ANONYMOUS,    /* code without a file or name */
        USER_LOCATION_UNMAPPED,     /* not in an executable mapping: not a frame */
        USER_LOCATION_PROCESS_GONE, /* the process exited before its mappings were read */
};

struct user_location {
        enum user_location_kind kind;
        uint64_t address;
        const struct proc_mapping *mapping; /* borrowed until the process is used again */
        const struct object *object;        /* NULL unless USER_LOCATION_OBJECT */
        struct jit_location jit; /* of generated code, or a vDSO function; else empty; borrowed like mapping */
};

/** Resolve an address of the process. */
struct user_location process_table_locate(struct process_table *t, struct process *p, uint64_t addr);

#endif
