/* SPDX-License-Identifier: Apache-2.0 */
#include "scan/inspector_protocol.h"

#include "common/file.h"
#include "sandbox/fd_pass.h"

enum status inspector_ask(int socket, const struct inspector_answer *answer, int *fd_ret, struct error *err)
{
        enum status st = file_write_all(socket, answer, sizeof *answer, "socket", err);

        return st ? st : fd_take(socket, fd_ret, err);
}
