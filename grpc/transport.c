/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/transport.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/tls.h"

static const char protocol[] = "h2";

static enum status start_tls(struct transport *t, struct tls *tls, struct error *err)
{
        const gnutls_datum_t offered = { (unsigned char *)(uintptr_t)protocol, sizeof protocol - 1 };
        int r = gnutls_init(&t->tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);

        if (r < 0)
                return error_set(err, ST_NO_MEMORY, "TLS: %s", gnutls_strerror(r));
        t->pair = tls_pair_acquire(tls);
        tls_pair_apply(t->pair, t->tls);
        r = gnutls_priority_set_direct(t->tls, TLS_PRIORITIES, NULL);
        if (r >= 0)
                r = gnutls_alpn_set_protocols(t->tls, &offered, 1, GNUTLS_ALPN_MANDATORY);
        if (r < 0)
                return error_set(err, ST_NO_MEMORY, "TLS: %s", gnutls_strerror(r));
        gnutls_transport_set_int(t->tls, t->fd);
        return ST_OK;
}

enum status transport_open(struct transport *t, int fd, struct tls *tls, struct error *err)
{
        enum status st;

        *t = (struct transport){ .fd = fd, .is_open = !tls };
        st = tls ? start_tls(t, tls, err) : ST_OK;
        if (st)
                transport_close(t);
        return st;
}

void transport_close(struct transport *t)
{
        if (t->tls) {
                if (t->is_open)
                        (void)gnutls_bye(t->tls, GNUTLS_SHUT_WR);
                gnutls_deinit(t->tls);
        }
        tls_pair_release(t->pair);
        if (t->fd >= 0)
                close(t->fd);
        *t = (struct transport){ .fd = -1 };
}

static enum transport_result wait_or_end(struct transport *t, ssize_t r)
{
        if (r != GNUTLS_E_AGAIN && r != GNUTLS_E_INTERRUPTED)
                return TRANSPORT_ENDED;
        t->wants_write = gnutls_record_get_direction(t->tls) == 1;
        return TRANSPORT_WAIT;
}

static bool is_http2_chosen(const struct transport *t)
{
        gnutls_datum_t chosen;

        return gnutls_alpn_get_selected_protocol(t->tls, &chosen) == 0 && chosen.size == sizeof protocol - 1 &&
               memcmp(chosen.data, protocol, chosen.size) == 0;
}

enum transport_result transport_handshake(struct transport *t)
{
        int r;

        if (t->is_open)
                return TRANSPORT_DONE;
        do
                r = gnutls_handshake(t->tls);
        while (r == GNUTLS_E_WARNING_ALERT_RECEIVED);
        if (r < 0 && gnutls_error_is_fatal(r))
                (void)gnutls_alert_send_appropriate(t->tls, r);
        if (r < 0)
                return wait_or_end(t, r);
        if (!is_http2_chosen(t))
                return TRANSPORT_ENDED;
        t->is_open = true;
        return TRANSPORT_DONE;
}

enum transport_result transport_read(struct transport *t, void *to, size_t n, size_t *n_ret)
{
        ssize_t r = t->tls ? gnutls_record_recv(t->tls, to, n) : recv(t->fd, to, n, 0);

        t->wants_write = false;
        if (r > 0) {
                *n_ret = (size_t)r;
                return TRANSPORT_DONE;
        }
        if (r == 0)
                return TRANSPORT_ENDED;
        if (t->tls)
                return wait_or_end(t, r);
        return errno == EAGAIN || errno == EINTR ? TRANSPORT_WAIT : TRANSPORT_ENDED;
}

enum transport_result transport_write(struct transport *t, const void *data, size_t n, size_t *n_ret)
{
        ssize_t r = t->tls ? gnutls_record_send(t->tls, data, n) : send(t->fd, data, n, MSG_NOSIGNAL);

        if (r >= 0) {
                *n_ret = (size_t)r;
                return TRANSPORT_DONE;
        }
        if (t->tls)
                return wait_or_end(t, r);
        t->wants_write = true;
        return errno == EAGAIN || errno == EINTR ? TRANSPORT_WAIT : TRANSPORT_ENDED;
}

bool transport_has_input(const struct transport *t)
{
        return t->tls && t->is_open && gnutls_record_check_pending(t->tls) > 0;
}
