/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_SERVER_SERVER_OPTIONS_H
#define CAIRN_SERVER_SERVER_OPTIONS_H

/**
 * @file
 * The options of the service, as its command line and configuration file set them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/config/configuration.h"
#include "debuginfo-store/object_retention.h"
#include "profile-store/profile_store.h"
#include "sandbox/fork_server.h"

#define SERVER_DEFAULT_PORT 7700

/** The current configuration. */
struct server_reread {
        const struct server_options *options; /* borrowed until the next successful read */
        const struct option_change *changed;  /* likewise; includes earlier changes that wait for a restart */
        size_t changed_count;
};

struct server_options {
        const char *dir;
        const char *store;            /* s3://BUCKET/PREFIX for the tables; NULL: where the directory says, or in it */
        const char *const *peers;     /* URLs of other nodes on the same store */
        size_t peer_count;            /* at most LIMIT_PEERS */
        const char *const *forwards;  /* URLs of nodes to which a gateway forwards its batches */
        size_t forward_count;         /* at most LIMIT_PEERS; not 0 with ROLE_GATEWAY */
        const char *peer_token_file;  /* for both; NULL: no token */
        const char *peer_ca;          /* PEM; NULL: the system's */
        uint64_t peer_timeout_ms;     /* of a request to a peer; scans wait no longer */
        const char *listen;           /* parse_listen_address() */
        const char *listen_otlp_grpc; /* the same for OTLP over gRPC; NULL: none */
        const char *token_file;       /* NULL: none */
        const char *tenant_file;      /* server/access/tenant_config.h; NULL: only the default tenant */
        uint64_t session_max_age_s;   /* of browsers that signed in with a token */
        const char *proxy_auth;       /* header in which trusted proxies name the user; NULL: none */
        const char *tls_cert;         /* with tls_key: speak https; NULL: http */
        const char *tls_key;
        const char *port_file;               /* NULL: none; receives "PORT\n" when the service is ready */
        const char *const *upstreams;        /* URLs of debuginfod servers */
        const char *const *upstream_headers; /* to send to each, or NULL */
        size_t upstream_count;
        const char *upstream_ca;          /* PEM; NULL: the system's */
        const char *const *allowed_hosts; /* host names allowed in Host besides addresses and localhost */
        size_t allowed_host_count;
        const char *const *cors_origins; /* origins whose pages may read responses of /symbolicate/v5; "*": all */
        size_t cors_origin_count;
        const struct address_range *trusted_proxies; /* http/trusted_proxy.h */
        size_t trusted_proxy_count;
        const struct retention_rule *retention;
        size_t retention_count;
        const char *const *scan_dirs; /* trees of packages and ELF files to serve */
        size_t scan_dir_count;
        uint64_t scan_interval_s;           /* 0: scan only at startup and on request */
        uint64_t table_cache_bytes;         /* of tables in an object store, for each tenant */
        uint64_t scan_cache_bytes;          /* of files extracted from archives */
        struct fork_server *fork_server;    /* forks the workers that extract them; NULL: execute them. Borrowed */
        uint64_t flush_interval_ms;         /* 0: default */
        uint64_t commit_interval_ms;        /* of acks_in_store; 0: default */
        bool acks_in_store;                 /* a batch is acknowledged when its commit is in the object store */
        struct sample_limits sample_limits; /* retention of samples, of the default tenant */
        const char *const *sample_rules;    /* the same as text, for tenants without rules of their own */
        size_t sample_rule_count;
        uint64_t keep_symbols_s;   /* of objects without a stored file and without samples; 0: forever */
        uint64_t removed_grace_ms; /* of files removed from the tables; 0: default */
        uint64_t shutdown_delay_s; /* after SIGTERM, while /readyz is 503 and requests are served */
        uint64_t drain_timeout_s;  /* of the last flush; 0: no limit */
        uint64_t lease_ms;         /* of the maintenance of tables by one of several nodes; 0: default */
        uint64_t max_age_s;        /* older samples are rejected; 0: none */
        uint64_t max_ahead_s;      /* samples further in the future are rejected; 0: none */
        uint64_t query_timeout_s;  /* of one query */
        uint64_t slow_query_ns;    /* queries that take at least this time are logged; 0: none */
        uint64_t max_connections;  /* 0: default, as is the next; http_options */
        uint64_t max_per_address;
        uint64_t memory_bytes; /* limit of the memory budget; 0: memory_budget_default() */
        uint64_t query_memory_bytes, all_query_memory_bytes; /* memory_set_query_limits() */
        uint64_t address_rate;        /* requests per second of an address without a known token; 0: no limit */
        uint64_t share_bytes;         /* of all shared profiles; 0: sharing is off */
        uint64_t share_age_s;         /* 0: kept until a limit on their size or number is reached */
        uint64_t max_upload_bytes;    /* set_upload_limits(), as is the next */
        uint64_t max_uploads;         /* at one time */
        uint64_t upload_threads;      /* 0: LIMIT_UPLOAD_THREADS */
        uint64_t debuginfod_threads;  /* 0: LIMIT_DEBUGINFOD_THREADS */
        uint64_t symbolize_timeout_s; /* 0: LIMIT_SYMBOLIZE_S */
        uint64_t upstream_timeout_s;  /* fetch_set_time_limit() */
        uint64_t upstream_rate;       /* background requests per second to each upstream */
        uint64_t worker_cpu_s;        /* worker_set_cpu_limit() */
        const char *recording_rules;  /* file of rules of the default tenant; NULL: none */
        unsigned roles;               /* enum node_role */
        bool read_only;
        bool self_profile; /* sample the service itself, into its own tables */
        /* Read the configuration again on SIGHUP; ret is unchanged on failure. NULL: only the files that options name
           are read again. */
        enum status (*reread)(void *context, struct server_reread *ret, struct error *err);
        void *reread_context;
};

#endif
