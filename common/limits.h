/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_LIMITS_H
#define CAIRN_COMMON_LIMITS_H

/*
 * Every growth that an outsider can cause is bounded by a name of this page.
 * Sizes are bytes unless the name says otherwise.
 */
#define KiB(n) ((size_t)(n) << 10)
#define MiB(n) ((size_t)(n) << 20)
#define GiB(n) ((size_t)(n) << 30)

/* The service's memory (common/memory_budget.h) */
#define LIMIT_MEMORY_LEAST_BYTES MiB(256) /* of --memory: with less, a request of usual size would be refused */

/* HTTP */
#define LIMIT_HTTP_BODY_BYTES MiB(64)       /* a request body, as sent and after unpacking (OTLP 1.11.0) */
#define LIMIT_HTTP_JSON_BYTES MiB(8)        /* a JSON request body */
#define LIMIT_JSON_DEPTH 64                 /* values inside of each other, where JSON is scanned */
#define LIMIT_HTTP_STEP_BYTES KiB(64)       /* of a streamed body, handed to a pool thread at one time */
#define LIMIT_HTTP_HELD_BYTES MiB(1)        /* a request that holds more memory must move at least so many bytes */
#define LIMIT_HTTP_HELD_BYTES_PER_S KiB(64) /* a second, */
#define LIMIT_HTTP_HELD_S 10                /* in each such interval; */
#define LIMIT_HTTP_HELD_SHORT_S 2           /* in each of these while memory is refused to others */
#define LIMIT_HTTP_DISCARD_BYTES MiB(128)   /* of a refused body, read so that the client gets its answer */
#define LIMIT_HTTP_QUERY_PARAMETERS 64
/*
 * Memory that libmicrohttpd has for a connection: the head of the request, and of the answer. For more than 32 KiB it
 * calls mmap() and munmap() for each connection, which wait for the lock of the address space while another thread,
 * even one of low priority, unmaps memory: /healthz then took up to 200 ms.
 */
#define LIMIT_HTTP_CONNECTION_BYTES KiB(32)
#define LIMIT_HTTP_HEADER_BYTES KiB(30)     /* with few headers; each takes some 50 bytes more */
#define LIMIT_HTTP_CONNECTIONS 4096         /* by default; an address has at most half of them */
#define LIMIT_HTTP_HEADERS_S 10             /* from the first byte of a request to the end of its headers */
#define LIMIT_HTTP_SLOW_S 30                /* a body or an answer may be slower than the next for so long */
#define LIMIT_HTTP_LEAST_BYTES_PER_S KiB(1) /* on average, of a sender or a reader */
#define LIMIT_HTTP_IDLE_S 30                /* a connection that moves no byte */
/* requests that wait for an upstream, each in a thread; further ones get 503 */
#define LIMIT_HTTP_WAITING 256
#define LIMIT_HTTP_STREAM_S 900 /* an answer that is made while it is sent, from start to end */
#define LIMIT_POOL_QUEUE 1024   /* requests that wait for a thread of one pool; past it 503 */
#define LIMIT_QUERY_S 60        /* a query, unless --query-timeout says otherwise */
#define LIMIT_STATUS_S 10       /* /metrics */
#define LIMIT_INGEST_S 120      /* a batch, from its last byte to its answer */
/* an upload, from its last byte to its answer: it is verified and compressed */
#define LIMIT_UPLOAD_S 900
#define LIMIT_SYMBOLIZE_S 300   /* a symbolize, symbolicate or why request */
#define LIMIT_DEBUGINFOD_S 1800 /* an object or source, fetched from upstreams one after another */
#define LIMIT_ADMIN_S 86400     /* a collection or re-symbolization */
#define LIMIT_UPLOAD_THREADS 8  /* uploads that are verified at one time */
#define LIMIT_DEBUGINFOD_THREADS 16
#define LIMIT_ADMIN_THREADS 2
#define LIMIT_DISK_LOW_BYTES MiB(64)  /* free space below which /readyz says disk_full */
#define LIMIT_CLOCK_JUMP_SHOWN_S 3600 /* for which /readyz reports a step of the wall clock */
#define LIMIT_STALLED_S 30            /* for which the store may not answer before it is reported */
#define LIMIT_LOG_BURST 100           /* log messages of one kind at once, */
#define LIMIT_LOG_LINES_PER_S 1       /* and a second after these; the others are counted */
#define LIMIT_LOG_KINDS 1024          /* of level, subsystem and format; the program has fewer */
#define LIMIT_CONFIG_BYTES MiB(1)     /* a configuration file */
#define LIMIT_CONFIG_ENTRIES 256      /* names in one of its sections */
#define LIMIT_METRIC_SAMPLES 100000   /* lines of /metrics that 'cairn status' reads */
#define LIMIT_TENANTS 32              /* besides the default one; each has threads and open files of its own */
#define LIMIT_PEM_BYTES MiB(1)        /* a file of certificates or a key */
#define LIMIT_RESPONSE_BYTES MiB(256) /* a response that is built in memory */

/* Sign-in of browsers */
#define LIMIT_SESSIONS 4096           /* at one time; the one unused longest ends for a new one */
#define LIMIT_SESSIONS_PER_TOKEN 1024 /* of these, so that one token cannot end those of others */
#define LIMIT_SESSION_S (12 * 3600)   /* unless --session-max-age says otherwise */
#define LIMIT_SIGN_IN_INTERVAL_S 6    /* failed attempts of an address: one in so long, RATE_LIMIT_BURST_S at once */
#define LIMIT_SIGN_IN_BYTES KiB(4)    /* body of a sign-in */

/* Who sends samples */
#define LIMIT_SENDERS 10000         /* of a tenant that are remembered; the one heard from longest ago makes room */
#define LIMIT_SENDERS_PER_BATCH 256 /* hosts of one batch that are told apart; its further ones are not remembered */

/* gRPC; where no name is here, those of HTTP hold */
#define LIMIT_GRPC_STREAMS 64               /* calls of one connection at one time */
#define LIMIT_GRPC_HEADER_BYTES KiB(8)      /* header list of a call: the default of gRPC */
#define LIMIT_GRPC_WINDOW_BYTES MiB(1)      /* flow control: data of a connection and of a call in flight */
#define LIMIT_GRPC_SMALL_MESSAGES 1000      /* of one stream that have less than */
#define LIMIT_GRPC_SMALL_MESSAGE_BYTES 1024 /* on average of all; an upload has pieces of 4 KiB to 8 MiB */
#define LIMIT_GRPC_OUTPUT_BYTES KiB(16)     /* output collected for one write */
#define LIMIT_GRPC_CONNECTION_BYTES KiB(96) /* reserved for a connection: nghttp2, TLS, output */
#define LIMIT_GRPC_CALL_BYTES KiB(4)        /* and for each of its calls, without headers and message */
#define LIMIT_GRPC_IDLE_S 300               /* a connection without a call */
#define LIMIT_GRPC_ACKS 100                 /* acknowledgements of SETTINGS and PING that wait to be sent */
#define LIMIT_GRPC_SETTINGS 32              /* entries of one SETTINGS frame */
#define LIMIT_GRPC_FRAME_BURST 1000         /* frames of a connection that move no data, at once, */
#define LIMIT_GRPC_FRAMES_PER_S 100         /* and a second after these */

#define LIMIT_ZSTD_WINDOW_LOG 23                     /* 8 MiB: of zstd streams from outside */
#define LIMIT_ZSTD_CONTEXT_BYTES (MiB(8) + KiB(512)) /* memory of a decoder with this window */

/* Debuginfo */
#define LIMIT_UPLOAD_MESSAGE_BYTES MiB(16) /* of an upload over gRPC; parca-agent's have 8 MiB */
/* objects that are received at one time, unless --max-uploads says otherwise, of them a quarter of one token and
   address; others get 429 */
#define LIMIT_UPLOADS 256
#define LIMIT_UPLOADS_MOST 4096 /* that --max-uploads takes */
/* unpacked, hashed and written before other requests have their turn */
#define LIMIT_UPLOAD_STEP_BYTES MiB(4)
#define LIMIT_OBJECT_BYTES GiB(4) /* one unpacked ELF file */
/* one compressed section, unpacked; the debug sections of a file together */
#define LIMIT_SECTION_UNPACKED_BYTES GiB(4)
#define LIMIT_METADATA_BYTES MiB(16)       /* a response of /metadata, from this server or an upstream */
#define LIMIT_SECTION_TABLES_BYTES MiB(16) /* cache of the section tables of files */
/* section list of one file, stored by a scan or with an object; longer ones are read by a worker */
#define LIMIT_SECTION_LIST_BYTES KiB(16)
/* cache of decompressed parts of stored objects, for requests of several sections */
#define LIMIT_FRAMES_BYTES MiB(32)
#define LIMIT_SECTION_UNPACKED_RATIO 256          /* times its compressed size; compiler output reaches 3 */
#define LIMIT_SECTION_UNPACKED_FREE_BYTES MiB(32) /* which may have any ratio */
#define LIMIT_ELF_SECTIONS 65536
#define LIMIT_ELF_SEGMENTS 1024
#define LIMIT_SYMBOLS 16000000          /* entries of one symbol table */
#define LIMIT_UPSTREAM_S 900            /* one file from an upstream debuginfod server, from start to end */
#define LIMIT_UPSTREAM_PAUSE_S 3600     /* longest Retry-After of an upstream that is followed */
#define LIMIT_PIECE_BYTES MiB(256)      /* a section or source file from an upstream; */
#define LIMIT_PIECES_BYTES GiB(1)       /* all that are kept */
#define LIMIT_PARTIAL_BYTES GiB(16)     /* of uploads that are not complete, all together */
#define LIMIT_PARTIAL_IDLE_S 2          /* a connection that adds nothing for so long gives way to a new one */
#define LIMIT_PARTIAL_S 86400           /* age at which one without progress is deleted */
#define LIMIT_ARCHIVE_RATIO 256         /* times its size that an archive may unpack to */
#define LIMIT_ARCHIVE_FREE_BYTES GiB(1) /* which any archive may */
#define LIMIT_ARCHIVE_MEMBERS 4000000   /* regular files of one archive */
/* of a member that a scan looks at in memory; a longer one takes a file */
#define LIMIT_SCAN_MEMBER_BYTES MiB(32)
#define LIMIT_SCAN_FOUND_BYTES MiB(128) /* contents recorded of one scanned file */
#define LIMIT_SCAN_DATA_BYTES MiB(768)  /* RLIMIT_DATA of a worker that reads archives */
#define LIMIT_SCAN_CPU_S 300            /* its time, for the files of half a minute and one more */
/* files with one build-id, and archives with one source, that are looked at */
#define LIMIT_SCAN_PLACES 64
#define LIMIT_UNPACKED_BYTES GiB(256)    /* ELF files out of archives, in one run of the uploader */
#define LIMIT_SOURCE_TABLE_BYTES MiB(16) /* paths and places of a source bundle */
#define LIMIT_SOURCE_FILE_BYTES MiB(64)  /* one source file in it */
#define LIMIT_COMPANIONS 100000          /* split units that an object is known to need */
#define LIMIT_WANT_FILES 10000           /* files in one request for missing files */
#define LIMIT_PATH_BYTES 4096
#define LIMIT_DISASSEMBLY_ADDRESSES 65536      /* whose functions one request may ask for */
#define LIMIT_DISASSEMBLY_RANGES 64            /* functions of one object in an answer */
#define LIMIT_DISASSEMBLY_BYTES MiB(1)         /* of their code */
#define LIMIT_DISASSEMBLY_INSTRUCTIONS 100000  /* of them */
#define LIMIT_DISASSEMBLY_ANSWER_BYTES MiB(32) /* of the worker */
#define LIMIT_DISASSEMBLY_SYMBOLS_BYTES GiB(1) /* debuginfo that names the functions of a stripped executable */
#define LIMIT_UPSTREAM_URL_BYTES 4096
#define LIMIT_UPSTREAM_HEADER_BYTES 4096 /* authorization header of an upstream */
#define LIMIT_UPSTREAM_FILE_BYTES MiB(1) /* list of upstreams with their headers */
#define LIMIT_NAME_BYTES KiB(64)         /* one linkage name or file path in an index */
#define LIMIT_MANGLED_BYTES KiB(4)       /* a longer linkage name is shown as it is */
#define LIMIT_DEMANGLED_BYTES KiB(16)
#define LIMIT_MINIDEBUGINFO_BYTES MiB(256) /* .gnu_debugdata, unpacked */
#define LIMIT_SYMBOL_TABLE_BYTES GiB(3)    /* a symbol table file, or a symcache */
#define LIMIT_SYMBOL_FILE_BYTES MiB(512)   /* one as it is uploaded, unpacked */
#define LIMIT_SYMBOL_CACHE_BYTES GiB(2)    /* all symcaches in a user's cache */

#define LIMIT_GO_FRAMES (1u << 28)         /* frames made from one pclntab */
#define LIMIT_DYNAMIC_RELOCATIONS 16000000 /* of one file */

/* DWARF */
#define LIMIT_DIE_DEPTH 512
#define LIMIT_INLINE_DEPTH 256
#define LIMIT_RANGES_PER_OBJECT 64000000
#define LIMIT_EXTRACT_THREADS 64
/* RLIMIT_DATA of a worker, without mapped files; plus, for each */
#define LIMIT_EXTRACT_DATA_BYTES MiB(400)
#define LIMIT_EXTRACT_DATA_THREAD_BYTES MiB(32) /* of its threads, */
#define LIMIT_EXTRACT_DATA_RATIO 16             /* and times the size of its files, since sections are packed */
#define LIMIT_DWARF_UNITS 4000000               /* of one file */
#define LIMIT_DWARF_ABBREVS 1000000             /* of one table */
#define LIMIT_DWARF_ATTRIBUTES 1024             /* of one abbreviation */
#define LIMIT_DWARF_ORIGINS 16                  /* abstract origins and specifications one after another */
#define LIMIT_DWARF_KNOWN_NAMES (1 << 18)       /* of functions in other units, that one thread remembers: 20 MB */
/* of .debug_abbrev, for units that names lead to, at one time for one thread */
#define LIMIT_DWARF_OTHER_ABBREV_BYTES MiB(1)
#define LIMIT_DWARF_NAME_SCOPES 64           /* in front of one name; more of them are left out */
#define LIMIT_DWARF_LINE_ROWS (1 << 24)      /* of one line table */
#define LIMIT_DWARF_LINE_FILES (1 << 22)     /* and its files */
#define LIMIT_DWARF_LINE_FORMATS 32          /* values that describe one file */
#define LIMIT_DWARF_RANGE_ENTRIES (1 << 27)  /* range list entries read for one file */
#define LIMIT_DWARF_COMPANION_BYTES GiB(64)  /* units of split DWARF read for one file */
#define LIMIT_DWARF_PACKAGE_UNITS (1 << 24)  /* rows or slots of a package's index */
#define LIMIT_DWARF_UNIT_TEXT_BYTES MiB(256) /* names with their scopes, of one unit */
#define LIMIT_DWARF_ABBREV_REREAD 256        /* times .debug_abbrev's size that may be read in all */
#define LIMIT_DWARF_REREAD 32                /* the same for other sections, where units share data */

/* Worker process */
#define LIMIT_WORKER_MEMORY_BYTES GiB(8)
#define LIMIT_WORKER_CPU_S 600

/* Profiles */
#define LIMIT_PROFILE_MEMORY_BYTES MiB(512) /* one decoded request */
#define LIMIT_STRINGS 4000000
#define LIMIT_LOCATIONS 4000000
#define LIMIT_STACK_FRAMES 2048 /* locations of one stack; longer ones are cut at the root end */
#define LIMIT_LINES_PER_LOCATION 256
#define LIMIT_SAMPLES 4000000
#define LIMIT_TRIE_TEXT_BYTES MiB(256)     /* all stacks of a trie or tree of /ingest, as text */
#define LIMIT_TRIE_STACK_BYTES MiB(1)      /* one of them */
#define LIMIT_TRIE_DEPTH 65536             /* nodes inside one another */
#define LIMIT_SPEEDSCOPE_FRAMES (64 << 20) /* frames of all stacks of a speedscope file */
#define LIMIT_SHARE_BYTES MiB(16)          /* a profile that is shared by a link, as sent and as stored */
#define LIMIT_SHARES 10000                 /* of them that are kept */
#define LIMIT_JFR_BYTES MiB(256)           /* a JFR recording, unpacked */
#define LIMIT_JFR_CHUNKS 1024              /* of one recording */
#define LIMIT_JFR_CLASSES 16384            /* described by one chunk of a recording */
#define LIMIT_JFR_FIELDS 262144            /* of all classes of a chunk */
#define LIMIT_JFR_DEPTH 16                 /* of nested values and elements of a recording */
#define LIMIT_JFR_INLINED 64               /* frames that were inlined into one */
#define LIMIT_JFR_ENTRIES (4 << 20)        /* of the constant pools of a chunk: stacks, methods, classes, symbols */
#define LIMIT_JFR_LABEL_BYTES MiB(16)      /* labels sent with a recording, unpacked */
#define LIMIT_JFR_CONTEXTS (1 << 20)       /* sets of labels sent with a recording */
#define LIMIT_JFR_WORKER_BYTES GiB(1)      /* memory of the worker that reads a recording */
#define LIMIT_JFR_WORKER_CPU_S 60
#define LIMIT_JFR_WAITING 64 /* recordings that are read or wait for that; others get 503 */
#define LIMIT_LABELS_PER_SAMPLE 128
#define LIMIT_PROFILE_TYPES 256             /* sample types in one request */
#define LIMIT_TYPE_CONFIG_BYTES KiB(64)     /* sample_type_config of /ingest; read once for each sample type */
#define LIMIT_LABEL_BYTES KiB(4)            /* one label key or value */
#define LIMIT_LABEL_COLUMNS 256             /* label keys with their own column */
#define LIMIT_LABEL_KEY_BYTES 256           /* one label key, when a batch is accepted */
#define LIMIT_LABEL_COLUMN_BYTES KiB(16)    /* names of all label columns; further keys go to labels_rest */
#define LIMIT_BATCH_LABEL_KEYS 1024         /* distinct label keys of one batch */
#define LIMIT_BATCH_LABEL_KEY_BYTES KiB(64) /* their names together */
#define LIMIT_QUEUE_SEGMENT_BYTES MiB(16)   /* a raw queue segment is ended once it is this long */
#define LIMIT_QUEUE_RECORD_BYTES MiB(256)   /* one packed batch in the raw queue */
/* a segment */
#define LIMIT_QUEUE_SEGMENT_FILE_BYTES (LIMIT_QUEUE_SEGMENT_BYTES + LIMIT_QUEUE_RECORD_BYTES + KiB(64))
/* quarantined batches have no limit but the disk (docs/formats/raw-queue.md, 6) */
#define LIMIT_STACK_CACHE_BYTES MiB(64)                /* location ids of stacks that queries have read */
#define LIMIT_STACK_CACHE_FILL_BYTES MiB(256)          /* of files that are read for it at the start */
#define LIMIT_BATCH_IDS 8000000                        /* batch ids that are remembered */
#define LIMIT_BATCH_ID_AGE_S 172800                    /* and for how long: longer than any agent's spool */
#define LIMIT_FLUSH_FRAMES (1u << 23)                  /* of the locations of one flush; deeper locations stay raw */
#define LIMIT_LOCATION_FRAMES (LIMIT_INLINE_DEPTH + 1) /* of one address: the function and its inlined calls */
#define LIMIT_FLUSH_MEMORY_BYTES GiB(2)                /* texts of the locations of one flush */
#define LIMIT_QUERY_FRAMES (1u << 26)                  /* distinct ones of the locations of one query: 800 MB */
#define LIMIT_SCAN_MEMORY_BYTES GiB(2)                 /* stacks and locations of one query */
#define LIMIT_REGEX_BYTES 512                          /* text of one regular expression of a query */
#define LIMIT_REGEX_REPEAT 1000                        /* {n,m} of it */
#define LIMIT_REGEX_PROGRAM 2000             /* its instructions; time per text is at most its length times this */
#define LIMIT_REGEX_STEPS 1000000000ull      /* of all regular expressions of one query: some 5 s */
#define LIMIT_REGEX_REMEMBERED_BYTES MiB(64) /* texts of which one expression remembers whether they match */
#define LIMIT_BATCH_DATES 64                 /* distinct days of the samples of one batch */
/* distinct days of one commit: each has a file in each of two tables */
#define LIMIT_FLUSH_DATES 64
#define LIMIT_FLUSH_BATCH_BYTES MiB(128)     /* memory of the batches of one commit; one batch may be larger */
#define LIMIT_SYMBOLIZE_KEYS 4000000         /* keys of one symbolize request */
#define LIMIT_SYMBOLIZE_OBJECTS 100000       /* and its objects */
#define LIMIT_SYMBOLIZE_PIECE_BYTES MiB(256) /* the response to one key, with its inlined calls */
#define LIMIT_SYMBOLIZE_TEXT_BYTES MiB(64)   /* rendered names that are kept between requests; as much for paths */
#define LIMIT_SYMBOLIZE_SENT (1u << 18)      /* names that one answer remembers to have sent */
#define LIMIT_VIEW_TEXT_BYTES GiB(1)         /* names and paths that one view of the index hands out */

/* Parquet files (docs/formats/parquet.md) and table logs */
#define LIMIT_PARQUET_FILE_BYTES GiB(64)
#define LIMIT_PARQUET_FOOTER_BYTES MiB(64)
#define LIMIT_PARQUET_METADATA_BYTES MiB(512) /* a footer, decoded */
#define LIMIT_PARQUET_DEPTH 12                /* nested groups of a schema, the root counted */
#define LIMIT_PARQUET_NODES 16384             /* groups and columns of a schema */
#define LIMIT_PARQUET_ROW_GROUPS 1000000
#define LIMIT_PARQUET_PAGE_BYTES MiB(256) /* one page, unpacked */
#define LIMIT_PARQUET_PAGE_HEADER_BYTES KiB(64)
#define LIMIT_PARQUET_CHUNK_BYTES GiB(1)     /* the pages of one column of one row group, unpacked */
#define LIMIT_PARQUET_CHUNK_VALUES (1 << 24) /* values, nulls and empty lists of one column of one row group */
#define LIMIT_PARQUET_VALUE_BYTES MiB(16)    /* one string that is written */
#define LIMIT_DELTA_COMMIT_BYTES MiB(256)    /* one JSON commit of a table's log */
#define LIMIT_DELTA_LINE_BYTES MiB(16)       /* one action of it */
#define LIMIT_DELTA_FILES 4000000            /* live files of a table */

/* Agent */
#define LIMIT_AGENT_KEYS 131072                         /* distinct samples of one interval */
#define LIMIT_AGENT_STACKS 131072                       /* distinct stacks of one interval */
#define LIMIT_AGENT_FRAMES 4194304                      /* of all of these: 32 MB */
#define LIMIT_AGENT_SAMPLES_BYTES MiB(16)               /* of samples in BPF that wait for the agent */
#define LIMIT_AGENT_UNWIND_WORKER_BYTES (4 * MiB(1024)) /* address space of the worker that makes unwind tables */
#define LIMIT_AGENT_UNWIND_WORKER_CPU_S 30
#define LIMIT_AGENT_DEFERRED 8192           /* samples of one interval whose user stack the agent walks */
#define LIMIT_AGENT_DEFERRED_BYTES MiB(16)  /* their stack copies */
#define LIMIT_AGENT_UNWIND_BYTES MiB(96)    /* rows of all unwind tables in the kernel */
#define LIMIT_AGENT_UNWIND_OWNERS 4096      /* users and containers with separate quotas */
#define LIMIT_AGENT_PROCESSES 8192          /* processes whose mappings are remembered */
#define LIMIT_SIGNAL_THREADS 4096           /* threads that a process samples of its own */
#define LIMIT_RECORD_FILES 4096             /* ELF files that cairn record holds open */
#define LIMIT_RECORD_PROFILE_BYTES MiB(256) /* recorded by cairn record, which then stops */
#define LIMIT_AGENT_SAMPLED_PROCESSES 65536 /* processes that are sampled because a parent is */
#define LIMIT_AGENT_MAPS_BYTES MiB(16)      /* one /proc/PID/maps */
#define LIMIT_AGENT_MAPPINGS 65536          /* executable mappings of one process */
#define LIMIT_AGENT_OBJECTS 16384           /* ELF files whose build-id is remembered */
#define LIMIT_AGENT_KALLSYMS_BYTES MiB(128)
#define LIMIT_AGENT_MODULES_BYTES MiB(8)      /* /lib/modules/RELEASE/modules.dep */
#define LIMIT_AGENT_FILE_WAIT_MS 3000         /* for the first access to a mount */
#define LIMIT_AGENT_MOUNT_RETRY_S 30          /* before a mount that did not answer is touched again */
#define LIMIT_AGENT_PROBES_STUCK 8            /* processes left behind on mounts that do not answer */
#define LIMIT_AGENT_JIT_READ_BYTES MiB(64)    /* of all perf maps and jitdumps in one interval */
#define LIMIT_AGENT_JIT_PROCESS_BYTES MiB(64) /* names of one process's code made at run time */
#define LIMIT_AGENT_JIT_BYTES MiB(256)        /* of all processes' */
#define LIMIT_AGENT_JIT_SYMBOLS 500000        /* pieces of code of one process that live at one time */
#define LIMIT_AGENT_PERF_EVENTS 65536         /* open at one time: threads times CPUs */
#define LIMIT_AGENT_PERF_RING_BYTES KiB(512)  /* per CPU: the default of kernel.perf_event_mlock_kb */
#define LIMIT_AGENT_THREADS 65536             /* threads whose names are remembered */
#define LIMIT_AGENT_QUEUE_BYTES MiB(64)       /* batches that wait in memory for a server that is away */
#define LIMIT_AGENT_SPOOL_FILES 65536         /* batches in a spool */
#define LIMIT_AGENT_SPOOL_AGE_S 165600        /* after which a spooled one is not sent any more: 46 hours */
#define LIMIT_AGENT_UPLOAD_WORKER_CPU_S 60    /* of the worker that looks at a file before it is uploaded */
#define LIMIT_AGENT_UPLOAD_OFFERS 64          /* open files that wait for the thread that uploads */
#define LIMIT_AGENT_UPLOAD_IDS 65536          /* build-ids with a known upload result */
#define LIMIT_AGENT_RETRY_AFTER_MS 600000     /* longest Retry-After of a server that is followed */

/* cairn scrape */
#define LIMIT_SCRAPE_JOBS 1024
#define LIMIT_SCRAPE_TARGETS 4096        /* of a job, a file, and of all jobs together */
#define LIMIT_SCRAPE_PROFILES 32         /* of each target */
#define LIMIT_SCRAPE_FILES 1024          /* files of targets of a job */
#define LIMIT_SCRAPE_FILE_BYTES MiB(16)  /* one of them */
#define LIMIT_SCRAPE_ERROR_BYTES KiB(16) /* the answer of a target that is an error */
#define LIMIT_SCRAPE_THREADS 1024        /* requests at one time, the most that --concurrency takes */

/* Unwind tables */
#define LIMIT_UNWIND_CIES (1u << 20)  /* of one section */
#define LIMIT_UNWIND_FDES (1u << 24)  /* of one file */
#define LIMIT_UNWIND_ROWS (1u << 27)  /* of one file: 512 MiB */
#define LIMIT_UNWIND_PAGES (1u << 20) /* of 64 KiB of code of one file */
#define LIMIT_UNWIND_REMEMBERED 16    /* nested DW_CFA_remember_state; compilers use 2 */
#define LIMIT_UNWIND_UNCOVERED 64     /* trampolines of one file */

/* Kubernetes (agent/kubernetes/) */
#define LIMIT_KUBERNETES_LIST_BYTES MiB(64) /* a list of the pods of one node, as JSON */
#define LIMIT_KUBERNETES_PODS 8192          /* of one node */
#define LIMIT_KUBERNETES_POD_BYTES KiB(64)  /* texts of one pod that are kept */
#define LIMIT_KUBERNETES_POD_LABELS 64      /* labels of one pod, for relabel rules */
#define LIMIT_KUBERNETES_CONTAINERS 512     /* container ids of one pod, with those of earlier starts */
#define LIMIT_KUBERNETES_MISSES 8192        /* containers and pods that a list did not have, remembered */

/* Relabelling (relabel/), of targets of `cairn scrape` and of the agent's samples */
#define LIMIT_RELABEL_LABELS 128           /* of a target or sample, with those that only relabelling sees */
#define LIMIT_RELABEL_LABELS_BYTES KiB(16) /* their names and values together: an alias in a file is a copy here */
#define LIMIT_RELABEL_RULES 128            /* of a job, or of the agent */

#endif
