/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAIRN_GRPC_GRPC_INTERNAL_H
#define CAIRN_GRPC_GRPC_INTERNAL_H

/*
 * Four independent layers:
 *
 *   grpc_server.c   listener, epoll, time limits of connections, graceful stop
 *   transport.c     bytes of a socket, with or without TLS
 *   session.c       HTTP/2 of one connection (nghttp2), without a socket: bytes in, bytes out; flood limit
 *   call.c          gRPC of one stream: checks, messages, handler
 *   call_answer.c   its response
 *
 * States of a call, and the thread that owns it:
 *
 *   HEADERS   connection thread   headers arrive
 *   READING   connection thread   a message arrives
 *   HANDLING  pool thread         queued, or being handled; then in the dispatcher's list of handled calls, from which
 *                                 an unanswered stream returns to READING
 *   ANSWERED  connection thread   the response is sent; further request data is discarded
 *
 * A stream that ends while its call is HANDLING leaves the call without a session: it is freed after it was handled. A
 * call with client streaming that ends while it has a state is submitted to the pool once more, to abandon the state.
 *
 * Data of such a call that arrives while one of its messages is handled is kept in `pending`, at most one flow-control
 * window: it is consumed from the connection's window at once, and from the stream's when the handler has returned.
 */
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "common/limits.h"
#include "common/request_id.h"
#include "grpc/grpc_server.h"
#include "grpc/message_reader.h"
#include "http/handler_pool.h"

struct grpc_session;

enum call_state { CALL_HEADERS, CALL_READING, CALL_HANDLING, CALL_ANSWERED };

struct grpc_call {
        struct pool_task task; /* first */
        struct grpc_dispatcher *dispatcher;
        struct grpc_session *session; /* NULL: the stream has ended */
        TAILQ_ENTRY(grpc_call) of_session;
        STAILQ_ENTRY(grpc_call) handled;
        int32_t stream_id;
        enum call_state state;
        const struct grpc_method *method; /* NULL until the method is known */
        int64_t began_ns, answered_ns;
        int64_t arrived_ns; /* grpc_call_arrived_ns() */

        bool is_post, has_ended; /* has_ended: the client has sent everything */
        char path[256];          /* truncated */
        struct buf headers;      /* name, NUL, value, NUL, ... */
        bool headers_too_big;
        size_t header_bytes;
        const char *token; /* in headers; NULL: none */
        char token_name[HTTP_TOKEN_NAME_SIZE];
        void *tenant;                       /* grpc_call_set_tenant() */
        struct memory_group *message_group; /* NULL: none */
        char id[REQUEST_ID_SIZE]; /* x-request-id of the call if valid, else random; the response has it, too */
        char peer[46];
        uint64_t peer_number;
        bool admitted;

        struct message_reader reader;
        struct buf message, pending;
        size_t pending_used;
        uint64_t messages; /* received messages of a stream */
        void *state_of_stream;
        bool has_all_messages; /* the call is, or was, with handle */
        uint64_t received_bytes, unpacked_bytes;
        int64_t message_began_ns;     /* when waiting for the next message of a stream began, */
        uint64_t message_began_bytes; /* and received_bytes at that time */
        atomic_bool cancelled;
        struct deadline deadline;
        int64_t client_expires_ns; /* from grpc-timeout; INT64_MAX: none */
        bool has_client_deadline;  /* deadline is the client's */

        bool answered;
        unsigned http_code; /* of a plain HTTP response: 405, 415; 0: none */
        enum grpc_code code;
        uint64_t retry_after_s;
        char text[512];
        struct buf reply;
        size_t reply_sent;
};

/* State shared by the calls of all connections. */
struct grpc_dispatcher {
        struct grpc_options options;
        int event_fd; /* wakes the connection thread; -1: no calls are handled by pools */
        pthread_mutex_t lock;
        STAILQ_HEAD(, grpc_call) handled; /* protected by lock */
        size_t handling;                  /* calls in pools; connection thread only */
        bool stopping;                    /* connection thread only */
};

/* ---- call.c; all on the connection thread ---- */

/** A call of the stream; NULL when out of memory. */
struct grpc_call *grpc_call_create(struct grpc_session *session, int32_t stream_id);
void grpc_call_destroy(struct grpc_call *call);
/** Add a header, in the order of arrival. False when out of memory. */
bool grpc_call_add_header(struct grpc_call *call, const char *name, const char *value);
/** The headers are complete: check them, and respond if a check fails. */
void grpc_call_start(struct grpc_call *call);
/** Bytes of the stream. @return the number to consume from its window; the call consumes the rest later. */
size_t grpc_call_receive(struct grpc_call *call, const uint8_t *data, size_t n);
/** The client has sent everything: pass the call to its handler. */
void grpc_call_end_request(struct grpc_call *call);
/** After the handler returned: answer the call or continue its stream; free it if the stream has ended. */
void grpc_call_take_back(struct grpc_call *call);
/** Answer a call whose message is late, and end one whose client does not read the response. */
void grpc_call_check_time(struct grpc_call *call, int64_t now_ns);

/* ---- call_answer.c; on the connection thread, except grpc_call_reply() and grpc_call_fail() ---- */

#define GRPC_RETRY_LATER_S 5 /* RetryInfo when busy */

/** Submit the response to nghttp2. */
void grpc_call_submit_answer(struct grpc_call *call);
void count_grpc_call(enum grpc_code code);
void register_grpc_call_metrics(void);

/* ---- session.c; all on the connection thread ---- */

/** @param owner for grpc_session_owner(). */
enum status grpc_session_create(struct grpc_dispatcher *dispatcher, const struct sockaddr *peer, void *owner,
                                struct grpc_session **ret, struct error *err) MUST_CHECK;
void grpc_session_destroy(struct grpc_session *s); /* takes NULL */
void *grpc_session_owner(const struct grpc_session *s);
/** @return ST_BAD_DATA: not HTTP/2, end the connection. */
enum status grpc_session_receive(struct grpc_session *s, const uint8_t *data, size_t n, struct error *err) MUST_CHECK;
/** Append queued frames, until there are none or `to` has LIMIT_GRPC_OUTPUT_BYTES. */
enum status grpc_session_put_output(struct grpc_session *s, struct buf *to, struct error *err) MUST_CHECK;
/** Whether both sides are finished: close the connection. */
bool grpc_session_has_ended(const struct grpc_session *s);
/** Whether the client's SETTINGS have arrived, so that it speaks HTTP/2. */
bool grpc_session_is_established(const struct grpc_session *s);
/** What the calls of a connection are waiting for, and the memory of incoming messages. */
struct grpc_activity {
        bool is_reading, is_handling, is_sending; /* is_sending: or the client grants no window for a response */
        size_t held_bytes;
};

struct grpc_activity grpc_session_get_activity(const struct grpc_session *s);
/** Accept no new calls. */
void grpc_session_shutdown(struct grpc_session *s);
void grpc_session_check_times(struct grpc_session *s, int64_t now_ns);

struct nghttp2_session *grpc_session_http2(struct grpc_session *s);
struct grpc_dispatcher *grpc_session_dispatcher(struct grpc_session *s);
void grpc_session_copy_peer(const struct grpc_session *s, struct grpc_call *call);

#endif
