#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Variables with a cleanup attribute are always initialized, and the check for that finds a violation.
. tests/e2e/lib.sh
ok "every variable has a value before it can be cleaned up" scripts/cleanup-order.py
cat >"$tmp/bad.c" <<'C'
void f(struct s *s)
{
        _cleanup_buf_ struct buf path;

        if (!s)
                return;
        buf_init(&path, 1);
}
C
scripts/cleanup-order.py "$tmp/bad.c" >"$tmp/said" && status=0 || status=$?
is "$status" 1 "a return in front of buf_init() is found"
is "$(cut -d: -f2 "$tmp/said")" 6 "the message has the line of the return"
done_testing
