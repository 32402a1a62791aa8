/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_GRPC_GRPC_SERVER_H
#define CAIRN_GRPC_GRPC_SERVER_H

/**
 * @file
 * gRPC server: a table of unary and client-streaming methods over nghttp2, with limits, tokens, compression and status
 * details.
 *
 * A call is checked when its headers are complete (content type, method, rate, token, compression), before its message
 * is received. The message is then decompressed and handled in a thread pool of an HTTP server, whose bounds apply. A
 * method with client streaming handles its messages sequentially; flow control stops the client meanwhile.
 *
 * Threads: one thread transfers the bytes of all connections and runs methods with at_once; other handlers run in their
 * pool. A call belongs to one thread at a time.
 * Source: RFC 9113; gRPC over HTTP/2 (PROTOCOL-HTTP2.md).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/memory/buf.h"
#include "common/threads/deadline.h"
#include "grpc/grpc_status.h"
#include "http/http_server.h"

struct grpc_call;
struct grpc_server;
struct tls;

typedef void grpc_handler(struct grpc_call *call, void *context);

struct grpc_method {
        const char *path; /* "/package.Service/Method" */
        enum http_scope scope;
        enum http_tenancy tenancy;
        size_t max_message; /* bytes of a request, as sent and after decompression */
        enum memory_use memory;
        grpc_handler *handle;  /* the message is complete: respond with grpc_call_reply() or grpc_call_fail() */
        grpc_handler *stream;  /* client streaming: a message is complete; may fail the call, which ends it. handle is
                                  called without a message when the client has sent everything. NULL: one message */
        grpc_handler *abandon; /* streams only: handle will not be called; free grpc_call_state(), which is not NULL */
        grpc_handler *refuse;  /* fail the call before its message is received. NULL: receive it */
        bool writes;           /* modifies shared data: logged in the audit log */
        unsigned pool;         /* of the HTTP server; its threads run handle */
        bool at_once;          /* handle runs on the connection thread and must not block */
};

struct grpc_options {
        size_t size;
        const char *host;
        uint16_t port;   /* 0: any free port */
        struct tls *tls; /* http/tls.h; NULL: HTTP/2 without TLS ("prior knowledge"). Borrowed until the server stops */
        struct http_server *http; /* has the pools; NULL: all methods are at_once. Must outlive the gRPC server */
        const struct grpc_method *methods;
        size_t method_count;
        unsigned max_connections; /* 0: LIMIT_HTTP_CONNECTIONS; at most a quarter of the process's descriptors, and what
                                     half of the memory for connections permits */
        unsigned max_per_address; /* 0: half of them; an IPv6 /64 counts as one address */
        /* Like http_options.authorize, admit and finished. */
        enum http_access (*authorize)(void *context, const char *token, enum http_scope scope,
                                      char name_ret[static HTTP_TOKEN_NAME_SIZE]);
        uint64_t (*admit)(void *context, const struct grpc_call *call, struct error *err);
        void (*finished)(void *context, const struct grpc_call *call);
        /* Like http_options.choose_tenant: grpc_call_set_tenant() or grpc_call_fail(). */
        void (*choose_tenant)(void *context, struct grpc_call *call);
        void *context; /* of these callbacks, and of handlers */
};

enum status grpc_server_start(const struct grpc_options *options, struct grpc_server **ret,
                              struct error *err) MUST_CHECK;
uint16_t grpc_server_port(const struct grpc_server *s);
/** Refuse new calls with GOAWAY, and finish running ones; does not wait for slow senders. NULL is allowed. */
void grpc_server_stop(struct grpc_server *s);

/* ---- the call ---- */
const char *grpc_call_path(const struct grpc_call *call);
/** NULL until the method is known. */
const struct grpc_method *grpc_call_method(const struct grpc_call *call);
/** The decompressed message; valid until the handler returns. */
const uint8_t *grpc_call_message(const struct grpc_call *call, size_t *size_ret);
/** Pass state from a stream's first message to the next ones, handle and abandon. */
void grpc_call_set_state(struct grpc_call *call, void *state);
void *grpc_call_state(const struct grpc_call *call);
/** Value of a header (lower-case name), or NULL; the first if there are several. Borrowed. */
const char *grpc_call_metadata(const struct grpc_call *call, const char *name);
/** Number of headers with this name. */
unsigned grpc_call_count_metadata(const struct grpc_call *call, const char *name);
/** The bearer token as sent, or NULL; and the name that authorize returned for it, "" for none. */
const char *grpc_call_token(const struct grpc_call *call);
const char *grpc_call_token_name(const struct grpc_call *call);
/** Set the tenant, called by choose_tenant; NULL: none. @param lane of the pool, http/handler_pool.h */
void grpc_call_set_tenant(struct grpc_call *call, void *tenant, unsigned lane);
/** Called by choose_tenant: account the memory of the message to a group, which outlives the server. */
void grpc_call_set_message_group(struct grpc_call *call, struct memory_group *group);
void *grpc_call_tenant(const struct grpc_call *call);
/** Numeric address of the client; and the same as a number, equal for all addresses of an IPv6 /64. */
const char *grpc_call_peer(const struct grpc_call *call);
uint64_t grpc_call_peer_number(const struct grpc_call *call);
/** Bytes of the messages, as sent or decompressed, whichever is more. */
uint64_t grpc_call_received_bytes(const struct grpc_call *call);
/** When the current message was complete, by monotonic_ns(). */
int64_t grpc_call_arrived_ns(const struct grpc_call *call);
/** Whether admit admitted the call. */
bool grpc_call_is_admitted(const struct grpc_call *call);
/** The code of the response; GRPC_CANCELLED without one. */
enum grpc_code grpc_call_code(const struct grpc_call *call);
/**
 * The earlier of the client's deadline (grpc-timeout) and the time limit of the pool, which applies to each message of
 * a stream.
 */
const struct deadline *grpc_call_deadline(const struct grpc_call *call);

/* ---- the response: exactly one of these per call ---- */
/** Success. Takes the message's bytes. */
void grpc_call_reply(struct grpc_call *call, struct buf *message);
/** @param retry_after_s delay after which the client should retry (google.rpc.RetryInfo); 0: none. */
void grpc_call_fail(struct grpc_call *call, enum grpc_code code, uint64_t retry_after_s, const char *fmt, ...)
        PRINTF(4, 5);
/** grpc_code_from_status(); with RetryInfo if the client should retry. err may be NULL. */
void grpc_call_fail_status(struct grpc_call *call, enum status st, const struct error *err);

#endif
