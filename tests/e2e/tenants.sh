# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
#
# Shared by the tests of tenants; sourced after lib.sh, whose start_server sets url.

# as TOKEN [CURL-ARGUMENT]...
as() { as_token=$1; shift; request -H "Authorization: Bearer $as_token" "$@"; }
# folded TOKEN [CURL-ARGUMENT]...: the tenant's stacks.
folded() { folded_token=$1; shift; \
        curl -sS -H "Authorization: Bearer $folded_token" "$@" "$url/api/v1/query/folded?from=0&to=now"; }
