#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An option set in three places: the command line, the environment, and a section of the configuration file.
. tests/e2e/lib.sh

cat >"$tmp/cairn.yaml" <<END
serve:
  data: $data
  listen: 127.0.0.1:0
  port-file: $tmp/port
  max-age: any
  retain-samples:
    - '{env="dev"},age=3d'
    - age=30d
agent:
  server: http://127.0.0.1:9
  label: [env=dev, team=a]
upload:
  tag: nightly
END
export CAIRN_CONFIG="$tmp/cairn.yaml"

# ---- values and their sources ----

out=$("$cairn" config show serve)
like "$out" "data: \"$data\"  # $tmp/cairn.yaml:2" "show names the line of the file"
like "$out" 'query-timeout: 60  # default' "show names what is the default"
like "$(CAIRN_QUERY_TIMEOUT=5 "$cairn" config show serve)" 'query-timeout: 5  # CAIRN_QUERY_TIMEOUT' \
        "show names the environment variable of a value"
like "$("$cairn" serve --query-timeout 6 --print-config)" 'query-timeout: 6  # command line' \
        "show names the command line as the source of a value"
out=$(CAIRN_UPSTREAM='https://x:s3cret@host.example:1/a@b' "$cairn" config show serve)
like "$out" 'upstream: \["https://HIDDEN@host.example:1/a@b"\]' "show does not print a secret in a URL"
unlike "$out" s3cret "no line of show has the secret"
"$cairn" config show >"$tmp/shown.yaml"
like "$(cat "$tmp/shown.yaml")" 'label: \["env=dev", "team=a"\]  # ' "the agent reads its section"
like "$(cat "$tmp/shown.yaml")" 'tag: "nightly"  # ' "the uploader reads its section"
out=$("$cairn" config check --config "$tmp/shown.yaml")
is $? 0 "what show prints is a configuration file"
like "$out" "section 'agent'" "check reads the agent's section of what show prints"

out=$("$cairn" config check --config deploy/cairn.yaml 2>&1)
is $? 0 "the file to start from is valid"
sed 's/^  # \( *[a-z-]*:\)/  \1/; s/^  #   - /    - /; /^  [A-Z]/d; s|/etc/cairn/relabel.yaml|'"$tmp"'/relabel.yaml|' \
        deploy/cairn.yaml |
        awk '!($1 == "listen:" && seen++)' >"$tmp/all.yaml"
printf 'relabel_configs:\n- {action: drop, source_labels: [env], regex: dev}\n' >"$tmp/relabel.yaml"
out=$("$cairn" config check --config "$tmp/all.yaml" 2>&1)
is $? 0 "  a configuration with everything that it leaves out is accepted" "$out"

# ---- errors ----

sed 's/max-age/max-aeg/' "$tmp/cairn.yaml" >"$tmp/wrong.yaml"
out=$("$cairn" config check --config "$tmp/wrong.yaml" serve 2>&1)
is $? 64 "a misspelt option is an error"
like "$out" "wrong.yaml:5: 'serve' has no option 'max-aeg'" "the message of a misspelt option names the line"
sed 's/age=30d/age=30x/' "$tmp/cairn.yaml" >"$tmp/wrong.yaml"
out=$("$cairn" config check --config "$tmp/wrong.yaml" 2>&1)
is $? 64 "check finds a wrong rule too"
like "$out" 'age=30x' "the message of a wrong rule names it"
printf 'serve:\n  retain-samples: size=2' >"$tmp/wrong.yaml" # cut off from size=200G
out=$("$cairn" serve --config "$tmp/wrong.yaml" --data "$data" 2>&1)
is $? 64 "a file that is cut off is an error"
like "$out" "wrong.yaml' does not end with a line end: it may be cut off" "  the message names the file that is cut off"
out=$("$cairn" serve --config "$tmp/absent.yaml" 2>&1)
is $? 1 "a file that is named must exist"
like "$out" 'absent.yaml' "the message names the absent file"

# ---- conflicting options: the check refuses whatever the service would refuse at its start ----

# refused PATTERN NAME LINE...: a section with these lines is refused by the check, the service and doctor.
refused() {
        refused_pattern=$1; refused_name=$2; shift 2
        printf 'serve:\n' >"$tmp/unfit.yaml"
        for line; do printf '  %s\n' "$line" >>"$tmp/unfit.yaml"; done
        out=$("$cairn" config check --config "$tmp/unfit.yaml" serve 2>&1)
        like "$? $out" "^64 .*$refused_pattern" "$refused_name"
        out=$("$cairn" serve --config "$tmp/unfit.yaml" --check-config 2>&1)
        like "$? $out" "^64 .*$refused_pattern" "--check-config refuses a file with $refused_name"
        out=$("$cairn" serve --config "$tmp/unfit.yaml" --data "$tmp/none" 2>&1)
        like "$? $out" "^64 .*$refused_pattern" "the service refuses a file with $refused_name"
        out=$("$cairn" doctor --config "$tmp/unfit.yaml" configuration)
        like "$? $(printf '%s\n' "$out" | grep '^error')" "^2 error +configuration: serve .*$refused_pattern" \
                "doctor reports a file with $refused_name"
}
printf 'secret-of-all admin\n' >"$tmp/tokens"
refused 'refusing to listen on 0.0.0.0 without tokens' "an address beyond loopback without tokens is an error" \
        'listen: 0.0.0.0:0'
refused 'refusing to listen on :: without tokens' "  as is one for gRPC" 'listen: 127.0.0.1:0' \
        'listen-otlp-grpc: "[::]:0"'
refused 'go together' "  and a certificate without its key" "tls-cert: $tmp/cert.pem"
refused 'go together' "  and a key without its certificate" "tls-key: $tmp/key.pem"
refused 'needs --trusted-proxy' "  and users of a proxy that is not named" 'proxy-auth: X-User' \
        "token-file: $tmp/tokens"
refused 'and --token-file' "  and such without tokens" 'proxy-auth: X-User' 'trusted-proxy: 127.0.0.1'
refused 'cannot name a user|is not a header' "  and a header that is none" 'proxy-auth: X User' \
        'trusted-proxy: 127.0.0.1' \
        "token-file: $tmp/tokens"
refused 'has no valid port' "  and a port that is none" 'listen: 127.0.0.1:70000'
printf 'serve:\n  listen: 0.0.0.0:0\n  listen-otlp-grpc: "[::]:0"\n  token-file: %s\n' "$tmp/tokens" >"$tmp/fit.yaml"
ok "the same addresses are permitted with tokens" "$cairn" config check --config "$tmp/fit.yaml" serve

# ---- a service configured only by the file ----

"$cairn" serve 2>"$server_log" &
server_pid=$!
wait_for "the service to start" test -s "$tmp/port"
url=http://127.0.0.1:$(cat "$tmp/port")
like "$(curl -s "$url/healthz")" ok "the service runs with the options of the file"
ok "  on the directory of the file" test -d "$data/profiles"
stop_server

# ---- the machine's configuration file, unreadable for this user ----

cat >"$tmp/forbid.c" <<'CODE'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#undef open
#undef open64
static int open_unless_forbidden(const char *name, const char *path, int flags, mode_t mode)
{
        int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
        if (strcmp(path, "/etc/cairn/cairn.yaml") == 0 && access(getenv("FORBIDDEN"), F_OK) == 0) {
                errno = EACCES;
                return -1;
        }
        return next(path, flags, mode);
}
#define REPLACE(name) \
        int name(const char *path, int flags, ...) \
        { \
                va_list args; \
                va_start(args, flags); \
                mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0; \
                va_end(args); \
                return open_unless_forbidden(#name, path, flags, mode); \
        }
REPLACE(open)
REPLACE(open64)
CODE
gcc -shared -fPIC -o "$tmp/forbid.so" "$tmp/forbid.c" -ldl || bail_out "the preload library does not build"
unset CAIRN_CONFIG
: >"$tmp/forbidden"
cairn=$CAIRN_BUILD/cairn # a sanitizer's runtime would have to be preloaded first
# as_another COMMAND...: as a user who cannot read the machine's file.
as_another() { env FORBIDDEN="$tmp/forbidden" LD_PRELOAD="$tmp/forbid.so" "$@"; }
out=$(as_another "$CAIRN_BUILD/cairn-upload" --dry-run "$tmp/absent.elf" 2>&1)
like "$out" 'absent.elf' "cairn-upload continues without a file that it cannot read"
unlike "$out" 'cairn.yaml' "cairn-upload does not mention a file that it cannot read"
out=$(as_another "$cairn" config check serve 2>&1)
is $? 0 "the check goes on too"
like "$out" 'is valid without /etc/cairn/cairn.yaml, which this user may not read$' \
        "the check says which file it cannot read"
out=$(as_another env CAIRN_CONFIG=/etc/cairn/cairn.yaml "$cairn" config check serve 2>&1)
is $? 1 "a file that is named is not left out"
like "$out" "cannot open '/etc/cairn/cairn.yaml': Permission denied" \
        "the message has the reason why a named file cannot be read"
out=$(as_another "$cairn" doctor configuration certificates)
is $? 0 "doctor finds nothing to fix"
like "$out" '^skipped +configuration: serve +.*/etc/cairn/cairn.yaml, which this user may not read' \
        "doctor reports what it could not check"
unlike "$out" 'speaks http' "doctor does not judge a certificate that it could not check"
out=$(as_another "$cairn" doctor certificates)
like "$out" "^skipped +configuration: serve +'/etc/cairn/cairn.yaml' is not readable as this user: run this as root" \
        "doctor certificates reports the file that it could not read"

rm -f "$tmp/port"
env FORBIDDEN="$tmp/forbidden" LD_PRELOAD="$tmp/forbid.so" "$cairn" serve --data "$data" --listen 127.0.0.1:0 \
        --port-file "$tmp/port" 2>"$server_log" &
server_pid=$!
wait_for "the service to start" test -s "$tmp/port"
like "$(cat "$server_log")" 'warn serve: /etc/cairn/cairn.yaml: this user may not read it, ignoring' \
        "the service warns and continues"
stop_server
rm -f "$tmp/port" "$tmp/forbidden"
env FORBIDDEN="$tmp/forbidden" LD_PRELOAD="$tmp/forbid.so" "$cairn" serve --data "$data" --listen 127.0.0.1:0 \
        --port-file "$tmp/port" 2>"$server_log" &
server_pid=$!
wait_for "the service to start" test -s "$tmp/port"
: >"$tmp/forbidden"
kill -HUP "$server_pid"
is_refused() { grep \
        -q "reload: cannot open '/etc/cairn/cairn.yaml': Permission denied; the previous settings stay in use" \
        "$server_log"; }
wait_for "the reload to fail" is_refused
pass "a reload that may not read it any more changes nothing"
stop_server
done_testing
