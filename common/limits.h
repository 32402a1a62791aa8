/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_COMMON_LIMITS_H
#define CAIRN_COMMON_LIMITS_H

/*
 * Named limits: every growth that an outsider can cause is bounded by one of them. Sizes are in bytes unless the name
 * says otherwise.
 */
#define KiB(n) ((size_t)(n) << 10)
#define MiB(n) ((size_t)(n) << 20)
#define GiB(n) ((size_t)(n) << 30)

/* The service's memory (common/memory/memory_budget.h) */
#define LIMIT_MEMORY_LEAST_BYTES MiB(256) /* minimum of --memory; below, requests of usual size would be refused */

/* HTTP */
#define LIMIT_HTTP_BODY_BYTES MiB(64)       /* a request body, as sent and after decompression (OTLP 1.11.0) */
#define LIMIT_HTTP_JSON_BYTES MiB(8)        /* a JSON request body */
#define LIMIT_JSON_DEPTH 64                 /* nesting of values where JSON is scanned */
#define LIMIT_HTTP_STEP_BYTES KiB(64)       /* of a streamed body, passed to a pool thread at once */
#define LIMIT_HTTP_HELD_BYTES MiB(1)        /* a request holding more memory must have a minimum rate: */
#define LIMIT_HTTP_HELD_BYTES_PER_S KiB(64) /* bytes per second, */
#define LIMIT_HTTP_HELD_S 10                /* averaged over intervals of this length, */
#define LIMIT_HTTP_HELD_SHORT_S 2           /* or of this one while memory is refused to others */
#define LIMIT_HTTP_DISCARD_BYTES MiB(128)   /* of a refused body, discarded so that the client receives the response */
#define LIMIT_HTTP_QUERY_PARAMETERS 64
/*
 * Memory of libmicrohttpd per connection, for the headers of request and response. For more than 32 KiB it calls mmap()
 * and munmap() for each connection, which wait for the address space lock while another thread, even one of low
 * priority, unmaps memory: /healthz then took up to 200 ms.
 */
#define LIMIT_HTTP_CONNECTION_BYTES KiB(32)
#define LIMIT_HTTP_HEADER_BYTES KiB(30)     /* with few headers; each uses about 50 bytes more */
#define LIMIT_HTTP_CONNECTIONS 4096         /* default; at most half of them from one address */
#define LIMIT_TLS_HANDSHAKES 64             /* of an address, that wait for the server; each takes it milliseconds */
#define LIMIT_HTTP_HEADERS_S 10             /* from the first byte of a request to the end of its headers */
#define LIMIT_HTTP_SLOW_S 30                /* time for which a body or response may be slower than the next value */
#define LIMIT_HTTP_LEAST_BYTES_PER_S KiB(1) /* average rate of a sender or reader */
#define LIMIT_HTTP_IDLE_S 30                /* a connection without traffic */
/* requests that wait for an upstream, each in a thread; further ones get 503 */
#define LIMIT_HTTP_WAITING 256
#define LIMIT_HTTP_STREAM_S 900 /* a response generated while it is sent, in total */
#define LIMIT_POOL_QUEUE 1024   /* requests that wait for a thread of one pool; further ones get 503 */
/* Threads of the ingest pool that run only requests of senders without another. */
#define LIMIT_POOL_SPARE_THREADS 1
#define LIMIT_QUERY_S 60   /* a query, unless set by --query-timeout */
#define LIMIT_STATUS_S 10  /* /metrics */
#define LIMIT_INGEST_S 120 /* a batch, from its last byte to the response */
/* an upload, from its last byte to the response: verified and compressed */
#define LIMIT_UPLOAD_S 900
#define LIMIT_SYMBOLIZE_S 300     /* a symbolize, symbolicate or why request */
#define LIMIT_DEBUGINFOD_S 1800   /* an object or source, requested from all upstreams in turn */
#define LIMIT_ADMIN_S 86400       /* a collection or re-symbolization */
#define LIMIT_UPLOAD_THREADS 8    /* concurrently verified uploads */
#define LIMIT_WAITING_UPLOADS 128 /* that wait for a commit to the table of objects in an object store */
#define LIMIT_DEBUGINFOD_THREADS 16
#define LIMIT_ADMIN_THREADS 2
#define LIMIT_DISK_LOW_BYTES MiB(64)  /* free space below which /readyz says disk_full */
#define LIMIT_CLOCK_JUMP_SHOWN_S 3600 /* how long /readyz reports a step of the wall clock */
#define LIMIT_STALLED_S 30            /* how long the store may be unresponsive before it is reported */
#define LIMIT_LOG_BURST 100           /* burst of log messages of one kind, */
#define LIMIT_LOG_LINES_PER_S 1       /* and sustained rate; the others are counted */
#define LIMIT_LOG_KINDS 1024          /* kinds: level, subsystem and format; the program has fewer */
#define LIMIT_CONFIG_BYTES MiB(1)     /* a configuration file */
#define LIMIT_CONFIG_ENTRIES 256      /* names in one section */
#define LIMIT_METRIC_SAMPLES 100000   /* lines of /metrics that 'cairn status' reads */
#define LIMIT_TENANTS 32              /* in addition to the default one; each has its own threads and open files */
#define LIMIT_PEM_BYTES MiB(1)        /* a file of certificates or a key */
#define LIMIT_RESPONSE_BYTES MiB(256) /* a response built in memory */

/* Sign-in of browsers */
#define LIMIT_SESSIONS 4096           /* concurrent; LRU eviction */
#define LIMIT_SESSIONS_PER_TOKEN 1024 /* of these, so that one token cannot evict the sessions of others */
#define LIMIT_SESSION_S (12 * 3600)   /* unless set by --session-max-age */
#define LIMIT_SIGN_IN_INTERVAL_S 6    /* failed sign-ins per address: one per interval, a burst of RATE_LIMIT_BURST_S */
#define LIMIT_SIGN_IN_BYTES KiB(4)    /* body of a sign-in */

/* Senders of samples */
#define LIMIT_SENDERS 10000         /* remembered per tenant; LRU eviction */
#define LIMIT_SENDERS_PER_BATCH 256 /* distinguished hosts of one batch; others are not remembered */

/* gRPC; otherwise the limits of HTTP apply */
#define LIMIT_GRPC_STREAMS 64               /* concurrent calls of a connection */
#define LIMIT_GRPC_HEADER_BYTES KiB(8)      /* header list of a call: the default of gRPC */
#define LIMIT_GRPC_WINDOW_BYTES MiB(1)      /* flow control window of a connection and of a call */
#define LIMIT_GRPC_SMALL_MESSAGES 1000      /* messages of one stream whose average size is below */
#define LIMIT_GRPC_SMALL_MESSAGE_BYTES 1024 /* this; messages of uploads have 4 KiB to 8 MiB */
#define LIMIT_GRPC_OUTPUT_BYTES KiB(16)     /* output buffered for one write */
#define LIMIT_GRPC_CONNECTION_BYTES KiB(96) /* reserved per connection: nghttp2, TLS, output */
#define LIMIT_GRPC_CALL_BYTES KiB(4)        /* and per call, without headers and message */
#define LIMIT_GRPC_IDLE_S 300               /* a connection without a call */
#define LIMIT_GRPC_ACKS 100                 /* queued acknowledgements of SETTINGS and PING */
#define LIMIT_GRPC_SETTINGS 32              /* entries in one SETTINGS frame */
#define LIMIT_GRPC_FRAME_BURST 1000         /* burst of frames without data, per connection, */
#define LIMIT_GRPC_FRAMES_PER_S 100         /* and sustained rate */

#define LIMIT_ZSTD_WINDOW_LOG 23                     /* 8 MiB: zstd streams from outside */
#define LIMIT_ZSTD_CONTEXT_BYTES (MiB(8) + KiB(512)) /* memory of a decoder with this window */

/* Debuginfo */
#define LIMIT_UPLOAD_MESSAGE_BYTES MiB(16) /* of an upload over gRPC; parca-agent sends 8 MiB */
/* concurrently received objects, unless set by --max-uploads; at most a quarter of them per token and address. Others
 * get 429 */
#define LIMIT_UPLOADS 256
#define LIMIT_UPLOADS_MOST 4096 /* maximum of --max-uploads */
/* decompressed, hashed and written before other requests are served */
#define LIMIT_UPLOAD_STEP_BYTES MiB(4)
#define LIMIT_OBJECT_BYTES GiB(4) /* one decompressed ELF file */
/* one compressed section, decompressed; all debug sections of a file together */
#define LIMIT_SECTION_UNPACKED_BYTES GiB(4)
#define LIMIT_FILTER_IDS 1000000           /* build-ids of a published filter; making it takes 50 bytes for each */
#define LIMIT_FILTER_BYTES MiB(2)          /* a filter of so many */
#define LIMIT_METADATA_BYTES MiB(16)       /* a response of /metadata, from this server or an upstream */
#define LIMIT_SECTION_TABLES_BYTES MiB(16) /* cache of the section tables of files */
/* section list of one file, stored by a scan or with an object; longer ones are read by a worker */
#define LIMIT_SECTION_LIST_BYTES KiB(16)
/* cache of decompressed parts of stored objects, for requests of several sections */
#define LIMIT_FRAMES_BYTES MiB(32)
#define LIMIT_SECTION_UNPACKED_RATIO 256          /* times the compressed size; compiler output reaches 3 */
#define LIMIT_SECTION_UNPACKED_FREE_BYTES MiB(32) /* allowed at any ratio */
#define LIMIT_ELF_SECTIONS 1048576                /* one per function of a large object file, with its relocations */
#define LIMIT_ELF_SEGMENTS 1024
#define LIMIT_SYMBOLS 16000000        /* entries of one symbol table */
#define LIMIT_UPSTREAM_S 900          /* one file from an upstream debuginfod server, in total */
#define LIMIT_HEAP_FREE_BYTES MiB(64) /* freed memory that may stay resident, */
#define LIMIT_HEAP_TRIM_INTERVAL_S 10 /* looked at this often */
#define LIMIT_UPSTREAM_RATE 10        /* background requests per second to each upstream (--upstream-rate) */
#define LIMIT_UPSTREAM_RATE_MOST 10000
#define LIMIT_FETCH_SENDER_IDS 10000    /* queued build-ids of the samples of one sender; further ones come later */
#define LIMIT_FETCH_SENDERS 1024        /* senders that are told apart */
#define LIMIT_UPSTREAM_PAUSE_S 3600     /* maximum Retry-After of an upstream that is followed */
#define LIMIT_PIECE_BYTES MiB(256)      /* a section or source file from an upstream */
#define LIMIT_PIECES_BYTES GiB(1)       /* all cached ones */
#define LIMIT_PARTIAL_BYTES GiB(16)     /* all incomplete uploads together */
#define LIMIT_PARTIAL_IDLE_S 2          /* a connection without progress for this long is replaced by a new one */
#define LIMIT_PARTIAL_S 86400           /* age after which an upload without progress is deleted */
#define LIMIT_ARCHIVE_RATIO 256         /* decompressed size of an archive, times its size */
#define LIMIT_ARCHIVE_FREE_BYTES GiB(1) /* allowed at any ratio */
#define LIMIT_ARCHIVE_MEMBERS 4000000   /* regular files in one archive */
/* a member that a scan reads in memory; a longer one is written to a file */
#define LIMIT_SCAN_MEMBER_BYTES MiB(32)
#define LIMIT_SCAN_FOUND_BYTES MiB(128) /* recorded contents of one scanned file */
#define LIMIT_SCAN_DATA_BYTES MiB(768)  /* RLIMIT_DATA of a worker that reads archives */
#define LIMIT_SCAN_CPU_S 300            /* CPU time of that worker: half a minute of files plus one file */
/* files per build-id, and archives per source, that are examined */
#define LIMIT_SCAN_PLACES 64
#define LIMIT_UNPACKED_BYTES GiB(256)         /* ELF files from archives, in one run of the uploader */
#define LIMIT_EMBEDDED_SOURCES_BYTES MiB(512) /* of one debug file, in memory while they are bundled */
#define LIMIT_SOURCE_TABLE_BYTES MiB(16)      /* paths and positions in a source bundle */
#define LIMIT_SOURCE_FILE_BYTES MiB(64)       /* one source file in a bundle, in a line table, or around a line */
#define LIMIT_COMPANIONS 100000               /* split units that an object is known to require */
#define LIMIT_WANT_FILES 10000                /* files in one request for missing files */
#define LIMIT_PATH_BYTES 4096
#define LIMIT_DISASSEMBLY_ADDRESSES 65536      /* addresses of one request whose functions are disassembled */
#define LIMIT_DISASSEMBLY_RANGES 64            /* functions of one object in a response */
#define LIMIT_DISASSEMBLY_BYTES MiB(1)         /* code of these functions */
#define LIMIT_DISASSEMBLY_INSTRUCTIONS 100000  /* instructions of these functions */
#define LIMIT_DISASSEMBLY_ANSWER_BYTES MiB(32) /* result of the worker */
#define LIMIT_DISASSEMBLY_SYMBOLS_BYTES GiB(1) /* debuginfo that names the functions of a stripped executable */
#define LIMIT_UPSTREAM_URL_BYTES 4096
#define LIMIT_UPSTREAM_HEADER_BYTES 4096 /* authorization header of an upstream */
#define LIMIT_UPSTREAM_FILE_BYTES MiB(1) /* list of upstreams with their headers */
#define LIMIT_NAME_BYTES KiB(64)         /* one linkage name or file path in an index */
#define LIMIT_MANGLED_BYTES KiB(64)      /* a longer linkage name is not demangled */
#define LIMIT_DEMANGLED_BYTES KiB(64)
#define LIMIT_SENT_NAMES_BYTES MiB(64)     /* demangled names of senders in a batch; beyond, names stay as sent */
#define LIMIT_MINIDEBUGINFO_BYTES MiB(256) /* .gnu_debugdata, decompressed */
#define LIMIT_SYMBOL_TABLE_BYTES GiB(3)    /* a symbol table file, or a symcache */
#define LIMIT_SYMBOL_FILE_BYTES MiB(512)   /* a symbol table file as uploaded, decompressed */
#define LIMIT_SYMBOL_CACHE_BYTES GiB(2)    /* all symcaches in a user's cache */

#define LIMIT_GO_FRAMES (1u << 28)         /* frames generated from one pclntab */
#define LIMIT_DYNAMIC_RELOCATIONS 16000000 /* in one file */

/* DWARF */
#define LIMIT_DIE_DEPTH 512
#define LIMIT_INLINE_DEPTH 256
#define LIMIT_RANGES_PER_OBJECT 64000000
#define LIMIT_EXTRACT_THREADS 64
/* RLIMIT_DATA of a worker, without mapped files; plus, for each */
#define LIMIT_EXTRACT_DATA_BYTES MiB(400)
#define LIMIT_EXTRACT_DATA_THREAD_BYTES MiB(32) /* of its threads, this, */
#define LIMIT_EXTRACT_DATA_RATIO 16             /* plus its files' size times this, since sections are compressed */
#define LIMIT_STACK_VARIABLES 65536             /* of one function, with those of its inlined calls */
#define LIMIT_STACK_VARIABLES_BYTES MiB(64)     /* of their names and paths */
#define LIMIT_MAPPED_FILES 262144               /* mappings of a process whose addresses are resolved by eu-addr2line */
#define LIMIT_MARKUP_MODULES 4096               /* of a log in symbolizer markup, */
#define LIMIT_MARKUP_MMAPS 65536                /* and their mappings */
#define LIMIT_DWARF_UNITS 4000000               /* in one file */
#define LIMIT_DWARF_ABBREVS 1000000             /* in one table */
#define LIMIT_DWARF_ATTRIBUTES 1024             /* in one abbreviation */
#define LIMIT_DWARF_ORIGINS 16                  /* length of a chain of abstract origins and specifications */
#define LIMIT_DWARF_KNOWN_NAMES (1 << 18)       /* cached by a thread for functions in other units: 20 MB */
/* .debug_abbrev for units referenced by names, cached by a thread */
#define LIMIT_DWARF_OTHER_ABBREV_BYTES MiB(1)
#define LIMIT_DWARF_NAME_SCOPES 64           /* prefixes of one name; further ones are left out */
#define LIMIT_DWARF_LINE_ROWS (1 << 24)      /* in one line table */
#define LIMIT_DWARF_LINE_FILES (1 << 22)     /* files in one line table */
#define LIMIT_DWARF_LINE_FORMATS 32          /* values that describe one file */
#define LIMIT_DWARF_RANGE_ENTRIES (1 << 27)  /* range list entries read for one file */
#define LIMIT_DWARF_COMPANION_BYTES GiB(64)  /* units of split DWARF read for one file */
#define LIMIT_DWARF_PACKAGE_UNITS (1 << 24)  /* rows or slots of a package's index */
#define LIMIT_DWARF_UNIT_TEXT_BYTES MiB(256) /* names with their scopes, in one unit */
#define LIMIT_DWARF_ABBREV_REREAD 256        /* total bytes read from .debug_abbrev, times its size */
#define LIMIT_DWARF_MEMBER_WORK MiB(64)      /* bytes of abbreviations passed to find members of structures */
#define LIMIT_DWARF_NAMES_RETEST 4           /* the same for linkage names, to know whether they can be demangled */
#define LIMIT_DWARF_REREAD 32                /* the same for other sections whose data units share */

/* Worker process */
#define LIMIT_WORKER_MEMORY_BYTES GiB(8)
#define LIMIT_WORKER_CPU_S 600

/* Profiles */
#define LIMIT_PROFILE_MEMORY_BYTES MiB(512) /* one decoded request */
#define LIMIT_STRINGS 4000000
#define LIMIT_LOCATIONS 4000000
#define LIMIT_STACK_FRAMES 2048 /* locations of one stack; longer ones are truncated at the root */
#define LIMIT_LINES_PER_LOCATION 256
/* Work of a decoder (profile-formats/profile.h), per byte of its input, */
#define LIMIT_DECODE_WORK_PER_BYTE 64
#define LIMIT_DECODE_WORK_FREE 10000 /* plus this */
#define LIMIT_DECODE_FILE_WORK 500   /* counted for each of several files in a request */
/* drop_frames and keep_frames of a pprof file: the text of each, and the steps of matching all names that are free;
 * LIMIT_DECODE_WORK_PER_BYTE more for each byte of the file, up to LIMIT_REGEX_STEPS */
#define LIMIT_FRAMES_PATTERN_BYTES KiB(4)
#define LIMIT_FRAMES_STEPS_FREE 1000000
#define LIMIT_SAMPLES 4000000
#define LIMIT_TRIE_STACK_BYTES MiB(1)   /* one stack of it */
#define LIMIT_TRIE_DEPTH 65536          /* nesting of nodes */
#define LIMIT_SHARE_BYTES MiB(16)       /* a profile shared by a link, as sent and as stored */
#define LIMIT_RECORDING_RULES 32        /* of a tenant, of each origin */
#define LIMIT_RECORDING_LABELS 8        /* by which a rule groups, and as many of its own */
#define LIMIT_RECORDING_SERIES 100      /* of a rule, the greatest; the rest is one more */
#define LIMIT_RECORDING_TEXT_BYTES 1024 /* names and values in a rule */
#define LIMIT_RECORDING_MATCHERS 64     /* of a rule */
#define LIMIT_RECORDING_FILE_BYTES KiB(256)
#define LIMIT_RECORDING_MEMORY_BYTES MiB(2) /* of the rules of a file */
#define LIMIT_SHARES 10000                  /* stored shared profiles */
#define LIMIT_JFR_BYTES MiB(256)            /* a JFR recording, decompressed */
#define LIMIT_JFR_UNUSED 64                 /* kinds of unused events that are counted for a message */
#define LIMIT_JFR_UNUSED_NAMES 5            /* of them in the message */
#define LIMIT_JFR_CHUNKS 1024               /* in one recording */
#define LIMIT_JFR_CLASSES 16384             /* described by one chunk of a recording */
#define LIMIT_JFR_FIELDS 262144             /* in all classes of a chunk */
#define LIMIT_JFR_DEPTH 16                  /* nesting of values and arrays of a recording */
#define LIMIT_JFR_INLINED 64                /* frames inlined into one frame */
#define LIMIT_JFR_ENTRIES (4 << 20)         /* constant pools of a chunk: stacks, methods, classes, symbols */
#define LIMIT_JFR_LABEL_BYTES MiB(16)       /* labels sent with a recording, decompressed */
#define LIMIT_JFR_LABEL_MEMORY MiB(256)     /* these labels as decoded messages */
#define LIMIT_JFR_CONTEXTS (1 << 20)        /* label sets sent with a recording */
#define LIMIT_JFR_WORKER_BYTES GiB(1)       /* memory of the worker that reads a recording */
#define LIMIT_JFR_WORKER_CPU_S 60
#define LIMIT_JFR_WAITING 64 /* recordings being read or queued; others get 503 */
#define LIMIT_LABELS_PER_SAMPLE 128
#define LIMIT_PROFILE_TYPES 256             /* sample types in one request */
#define LIMIT_TYPE_CONFIG_BYTES KiB(64)     /* sample_type_config of /ingest; parsed once per sample type */
#define LIMIT_LABEL_BYTES KiB(4)            /* one label key or value */
#define LIMIT_LABEL_COLUMNS 256             /* label keys with their own column */
#define LIMIT_LABEL_KEY_BYTES 256           /* one label key of an accepted batch */
#define LIMIT_LABEL_COLUMN_BYTES KiB(16)    /* names of all label columns; further keys are stored in labels_rest */
#define LIMIT_BATCH_LABEL_KEYS 1024         /* distinct label keys of one batch */
#define LIMIT_BATCH_LABEL_KEY_BYTES KiB(64) /* their names together */
#define LIMIT_QUEUE_SEGMENT_BYTES MiB(16)   /* size at which a raw queue segment is closed */
#define LIMIT_QUEUE_RECORD_BYTES MiB(256)   /* one compressed batch in the raw queue */
/* a segment */
#define LIMIT_QUEUE_SEGMENT_FILE_BYTES (LIMIT_QUEUE_SEGMENT_BYTES + LIMIT_QUEUE_RECORD_BYTES + KiB(64))
/* quarantined batches are limited only by the disk (docs/formats/raw-queue.md, 6) */
#define LIMIT_PEERS 31               /* other nodes that a node asks for their heads */
#define LIMIT_HEAD_PAGE_BYTES MiB(1) /* size at which a page of a head ends: it is sent within --peer-timeout */
/* a page and one more record */
#define LIMIT_HEAD_ANSWER_BYTES (LIMIT_HEAD_PAGE_BYTES + LIMIT_QUEUE_RECORD_BYTES + KiB(64))
/* batches that a gateway sends in one request: a page ends after the first, so a body has at most the second */
#define LIMIT_FORWARD_PAGE_BYTES MiB(4)
#define LIMIT_FORWARD_BODY_BYTES (LIMIT_FORWARD_PAGE_BYTES + LIMIT_HTTP_BODY_BYTES + MiB(1))
#define LIMIT_HANDED_COMMIT_BYTES MiB(1) /* a commit that a node hands to another one; a longer one it makes alone */
#define LIMIT_HANDED_FILES 128           /* of such a commit; each is looked up in the store */
#define LIMIT_HANDED_COMMITS LIMIT_PEERS /* that wait for one commit */
#define LIMIT_PEER_HEAD_BYTES MiB(512)   /* memory of the batches of one other node */
#define LIMIT_STACK_CACHE_BYTES MiB(64)  /* cached location ids of stacks read by queries */
#define LIMIT_STACK_CACHE_FILL_BYTES MiB(256) /* files read to fill that cache at start */
#define LIMIT_LOCATION_CACHE_BYTES MiB(128)   /* decoded rows of locations, for queries */
#define LIMIT_BATCH_IDS 8000000               /* remembered batch ids */
#define LIMIT_BATCH_ID_AGE_S 172800           /* for this long: longer than any agent's spool */
#define LIMIT_FLUSH_FRAMES (1u << 23)         /* of the locations of one flush; deeper locations stay unresolved */
#define LIMIT_LOCATION_FRAMES (LIMIT_INLINE_DEPTH + 1) /* of one address: the function and its inlined calls */
#define LIMIT_FLUSH_MEMORY_BYTES GiB(2)                /* texts of the locations of one flush */
#define LIMIT_QUERY_FRAMES (1u << 26)                  /* distinct frames of the locations of one query: 800 MB */
#define LIMIT_SCAN_MEMORY_BYTES GiB(2)                 /* stacks and locations of one query */
#define LIMIT_REGEX_BYTES 512                          /* text of one regular expression of a query */
#define LIMIT_REGEX_REPEAT 1000                        /* maximum of {n,m} */
#define LIMIT_REGEX_PROGRAM 2000        /* instructions; matching takes at most this times the length of the text */
#define LIMIT_REGEX_STEPS 1000000000ull /* all regular expressions of one query: about 5 s */
#define LIMIT_REGEX_REMEMBERED_BYTES MiB(64) /* cached texts with match results, per expression */
#define LIMIT_LABEL_VALUES_COUNTED 1000      /* values of one label, where a query counts them */
#define LIMIT_BATCH_DATES 64                 /* distinct days in the samples of one batch */
/* distinct days in one commit: each has a file in each of two tables */
#define LIMIT_FLUSH_DATES 64
#define LIMIT_FLUSH_BATCHES 100000           /* of one commit, which has their ids */
#define LIMIT_FLUSH_BATCH_BYTES MiB(128)     /* memory of the batches of one commit; one batch may be larger */
#define LIMIT_SYMBOLIZE_KEYS 4000000         /* keys of one symbolize request */
#define LIMIT_SYMBOLIZE_OBJECTS 100000       /* objects of one symbolize request */
#define LIMIT_SYMBOLIZE_PIECE_BYTES MiB(256) /* the response to one key, with its inlined calls */
#define LIMIT_SYMBOLIZE_TEXT_BYTES MiB(64)   /* rendered names cached between requests; the same for paths */
#define LIMIT_SYMBOLIZE_SENT (1u << 18)      /* names that one response records as sent */
#define LIMIT_VIEW_TEXT_BYTES GiB(1)         /* names and paths returned by one view of the index */

/* Parquet files (docs/formats/parquet.md) and table logs */
#define LIMIT_PARQUET_FILE_BYTES GiB(64)
#define LIMIT_PARQUET_FOOTER_BYTES MiB(64)
#define LIMIT_PARQUET_METADATA_BYTES MiB(512) /* a footer, decoded */
#define LIMIT_PARQUET_DEPTH 12                /* nested groups of a schema, including the root */
#define LIMIT_PARQUET_NODES 16384             /* groups and columns of a schema */
#define LIMIT_PARQUET_ROW_GROUPS 1000000
#define LIMIT_PARQUET_PAGE_BYTES MiB(256) /* one page, decompressed */
#define LIMIT_PARQUET_PAGE_HEADER_BYTES KiB(64)
#define LIMIT_PARQUET_CHUNK_BYTES GiB(1)     /* the pages of one column of one row group, decompressed */
#define LIMIT_PARQUET_CHUNK_VALUES (1 << 24) /* values, nulls and empty lists of one column of one row group */
#define LIMIT_PARQUET_VALUE_BYTES MiB(16)    /* one written string */
#define LIMIT_DELTA_COMMIT_BYTES MiB(256)    /* one JSON commit of a table's log */
#define LIMIT_DELTA_LINE_BYTES MiB(16)       /* one action in a commit */
#define LIMIT_DELTA_FILES 4000000            /* live files of a table */

/* Agent */
#define LIMIT_AGENT_KEYS 131072                         /* distinct samples of one interval */
#define LIMIT_AGENT_STACKS 131072                       /* distinct stacks of one interval */
#define LIMIT_AGENT_FRAMES 4194304                      /* of all these stacks: 32 MB */
#define LIMIT_AGENT_SAMPLES_BYTES MiB(16)               /* of samples in BPF maps, not yet read by the agent */
#define LIMIT_AGENT_UNWIND_WORKER_BYTES (4 * MiB(1024)) /* address space of the worker that builds unwind tables */
#define LIMIT_AGENT_UNWIND_WORKER_CPU_S 30
#define LIMIT_AGENT_DEFERRED 8192           /* samples of one interval whose user stack the agent walks */
#define LIMIT_AGENT_DEFERRED_BYTES MiB(16)  /* their stack copies */
#define LIMIT_AGENT_UNWIND_BYTES MiB(96)    /* rows of all unwind tables in the kernel */
#define LIMIT_AGENT_UNWIND_OWNERS 4096      /* users and containers with separate quotas */
#define LIMIT_AGENT_PROCESSES 8192          /* processes whose mappings are cached */
#define LIMIT_SIGNAL_THREADS 4096           /* threads of a process that samples itself */
#define LIMIT_RECORD_FILES 4096             /* ELF files held open by cairn record */
#define LIMIT_RECORD_PROFILE_BYTES MiB(256) /* recorded by cairn record, which then stops */
#define LIMIT_AGENT_SAMPLED_PROCESSES 65536 /* processes that are sampled because a parent is */
#define LIMIT_AGENT_MAPS_BYTES MiB(16)      /* one /proc/PID/maps */
#define LIMIT_AGENT_MAPPINGS 65536          /* executable mappings of one process */
#define LIMIT_AGENT_OBJECTS 16384           /* ELF files whose build-id is cached */
#define LIMIT_AGENT_KALLSYMS_BYTES MiB(128)
#define LIMIT_AGENT_BPF_LOOKUPS 512             /* of addresses in BPF programs, in one interval */
#define LIMIT_AGENT_MODULES_BYTES MiB(8)        /* /lib/modules/RELEASE/modules.dep */
#define LIMIT_AGENT_FILE_WAIT_MS 3000           /* for the first access to a mount */
#define LIMIT_AGENT_THREAD_WAIT_S 15            /* for a thread that was told to stop */
#define LIMIT_AGENT_MOUNT_RETRY_S 30            /* before an unresponsive mount is accessed again */
#define LIMIT_AGENT_PROBES_STUCK 8              /* processes stuck on unresponsive mounts */
#define LIMIT_AGENT_JIT_READ_BYTES MiB(64)      /* of all perf maps and jitdumps in one interval */
#define LIMIT_AGENT_JIT_PROCESS_BYTES MiB(64)   /* names of the JIT-compiled code of one process */
#define LIMIT_AGENT_JIT_BYTES MiB(256)          /* of all processes */
#define LIMIT_AGENT_JIT_SYMBOLS 500000          /* live pieces of JIT-compiled code of one process */
#define LIMIT_CONTEXT_PAYLOAD KiB(64)           /* bytes of the context that a process publishes */
#define LIMIT_CONTEXT_LABELS 32                 /* attributes of its resource */
#define LIMIT_CONTEXT_VALUE 256                 /* bytes of a value; longer ones are cut */
#define LIMIT_CONTEXT_BYTES KiB(32)             /* memory for the context of one process */
#define LIMIT_AGENT_CONTEXT_BYTES MiB(32)       /* of all processes */
#define LIMIT_AGENT_CONTEXT_ATTEMPTS 30         /* intervals in which the context of threads is looked for */
#define LIMIT_AGENT_GO_DEBUGINFO MiB(128)       /* .debug_info of a Go program that is read, as stored in the file */
#define LIMIT_AGENT_CONTEXT_KEYS 128            /* distinct keys of contexts in one profile */
#define LIMIT_PYTHON_NAME 1024                  /* characters of a qualified name */
#define LIMIT_PYTHON_LINE_TABLE KiB(64)         /* bytes of the line table of a code object */
#define LIMIT_AGENT_PYTHON_CODE 65536           /* code objects of one process whose names are cached */
#define LIMIT_AGENT_PYTHON_BYTES MiB(64)        /* of names and line tables of all processes */
#define LIMIT_AGENT_PYTHON_WORK MiB(128)        /* bytes of all processes read and decoded for names in one interval */
#define LIMIT_AGENT_PYTHON_PROCESS_WORK MiB(32) /* of one process */
#define LIMIT_AGENT_PYTHON_ATTEMPTS 30          /* intervals that an interpreter may take to start */
#define LIMIT_V8_NAME 1024                      /* characters of the name of a JavaScript function */
#define LIMIT_V8_TEXT_DEPTH 32                  /* strings of which a string is made */
#define LIMIT_V8_LINE_TABLE KiB(256)            /* bytes of a source position table */
#define LIMIT_V8_BYTECODE KiB(512)              /* bytes of the bytecode of a function */
#define LIMIT_V8_SOURCE MiB(16)                 /* characters of a script whose lines are counted */
#define LIMIT_V8_LINES (1u << 20)               /* of a script whose lines are counted */
#define LIMIT_V8_CODE_BYTES KiB(512)            /* between the start of generated code and an address in it */
#define LIMIT_V8_INLINED 32                     /* functions inlined into one another at an address */
#define LIMIT_AGENT_V8_ITEMS 65536              /* functions, scripts and places in code cached of one process */
#define LIMIT_AGENT_V8_READ_BYTES MiB(128)      /* of sources, code and tables of all processes in one interval */
#define LIMIT_AGENT_V8_PROCESS_READ MiB(32)     /* of one process */
#define LIMIT_AGENT_V8_BYTES MiB(64)            /* of names and lines of all processes */
#define LIMIT_HOTSPOT_ROWS 4096                 /* of each of HotSpot's tables for debuggers */
#define LIMIT_HOTSPOT_BLOB 512                  /* bytes of the header of compiled code */
#define LIMIT_HOTSPOT_CONST_METHOD 128          /* bytes of the header of a method */
#define LIMIT_HOTSPOT_NAME 1024                 /* bytes of the name of a class, method or file */
#define LIMIT_HOTSPOT_STUB_NAME 64              /* bytes of the name of a stub */
#define LIMIT_HOTSPOT_LINE_TABLE KiB(256)       /* bytes of the line table of a method, and what follows it */
#define LIMIT_HOTSPOT_PC_DESCS (1u << 22)       /* addresses of a compiled method that have debug information */
#define LIMIT_HOTSPOT_INLINED 32                /* methods inlined into one another at an address */
#define LIMIT_AGENT_HOTSPOT_ITEMS 131072        /* methods and places in code cached of one process */
#define LIMIT_AGENT_HOTSPOT_BYTES MiB(64)       /* of names and lines of all processes */
#define LIMIT_AGENT_HOTSPOT_WORK MiB(128)       /* bytes of all processes read for names in one interval */
#define LIMIT_HOTSPOT_PROCESS_WORK MiB(32)      /* of one process */
#define LIMIT_AGENT_HOTSPOT_ATTEMPTS 30         /* intervals that a virtual machine may take to start */
#define LIMIT_AGENT_PERF_EVENTS 65536           /* open concurrently: threads times CPUs */
#define LIMIT_AGENT_PERF_RING_BYTES KiB(512)    /* per CPU: the default of kernel.perf_event_mlock_kb */
#define LIMIT_AGENT_THREADS 65536               /* threads whose names are cached */
#define LIMIT_AGENT_QUEUE_BYTES MiB(64)         /* batches queued in memory while the server is unreachable */
#define LIMIT_AGENT_SPOOL_FILES 65536           /* batches in a spool */
#define LIMIT_AGENT_SPOOL_AGE_S 165600          /* age after which a spooled batch is dropped: 46 hours */
#define LIMIT_AGENT_UPLOAD_WORKER_CPU_S 60      /* of the worker that inspects a file before its upload */
#define LIMIT_AGENT_UPLOAD_OFFERS 64            /* open files queued for the upload thread */
#define LIMIT_AGENT_UPLOAD_IDS 65536            /* build-ids with a known upload result */
#define LIMIT_AGENT_RETRY_AFTER_MS 600000       /* maximum Retry-After of a server that is followed */

/* cairn scrape */
#define LIMIT_SCRAPE_JOBS 1024
#define LIMIT_SCRAPE_TARGETS 4096        /* of a job, of a file, and of all jobs together */
#define LIMIT_SCRAPE_PROFILES 32         /* per target */
#define LIMIT_SCRAPE_FILES 1024          /* target files of a job */
#define LIMIT_SCRAPE_FILE_BYTES MiB(16)  /* one target file */
#define LIMIT_SCRAPE_ERROR_BYTES KiB(16) /* an error response of a target */
#define LIMIT_SCRAPE_LEASES 256          /* names of leases that a service keeps for scrapers, of one tenant */
#define LIMIT_SCRAPE_THREADS 1024        /* concurrent requests: maximum of --concurrency */

/* Unwind tables */
#define LIMIT_UNWIND_CIES (1u << 20)  /* in one section */
#define LIMIT_UNWIND_FDES (1u << 24)  /* in one file */
#define LIMIT_UNWIND_ROWS (1u << 27)  /* in one file: 512 MiB */
#define LIMIT_UNWIND_PAGES (1u << 20) /* of 64 KiB of code in one file */
#define LIMIT_UNWIND_REMEMBERED 16    /* nested DW_CFA_remember_state; compilers use 2 */
#define LIMIT_UNWIND_UNCOVERED 64     /* trampolines in one file */

/* Kubernetes (sampling/containers/) */
#define LIMIT_KUBERNETES_LIST_BYTES MiB(64) /* a list of the pods of one node, as JSON */
#define LIMIT_KUBERNETES_PODS 8192          /* on one node */
#define LIMIT_KUBERNETES_POD_BYTES KiB(64)  /* texts kept for one pod */
#define LIMIT_KUBERNETES_POD_LABELS 64      /* labels of one pod, for relabel rules */
#define LIMIT_KUBERNETES_CONTAINERS 512     /* container ids of one pod, including those of earlier starts */
#define LIMIT_CONTAINERS 1024               /* whose names the agent remembers */
#define LIMIT_CONTAINER_READS 64            /* containers whose state is read in one drain of the sampler */
#define LIMIT_CONTAINER_STATE_BYTES MiB(4)  /* a file of a container engine's state: 5,000 containers of Podman */
#define LIMIT_KUBERNETES_MISSES 8192        /* cached containers and pods that were not in a list */

/* Object storage (storage/s3/) */
#define LIMIT_S3_REQUEST_TEXT_BYTES KiB(16)     /* path, query, headers: a session token has up to 8 KiB */
#define LIMIT_S3_XML_TEXT_BYTES KiB(64)         /* texts of the open elements of an XML answer */
#define LIMIT_S3_XML_DEPTH 16                   /* nesting of elements; answers use 4 */
#define LIMIT_S3_CREDENTIALS_FILE_BYTES KiB(64) /* ~/.aws/credentials, or a token file */

/* Comparisons with statistics (query/operations/gate.c) */
#define LIMIT_GATE_RULES 32       /* of a request */
#define LIMIT_GATE_CLUSTERS 65536 /* hosts, or parts of hosts, of a side */
#define LIMIT_GATE_THRESHOLD 1000 /* of a rule, relative: 100,000% */

/* Relabelling (relabel/), for targets of `cairn scrape` and the agent's samples */
#define LIMIT_RELABEL_LABELS 128           /* of a target or sample, including those visible only to relabelling */
#define LIMIT_RELABEL_LABELS_BYTES KiB(16) /* their names and values together; aliases in a file count as copies */
#define LIMIT_RELABEL_RULES 128            /* of a job, or of the agent */

#endif
