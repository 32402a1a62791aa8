# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2034,SC2154  # variables of the script that sources this
#
# Workloads of Debian programs for tests/real/run: work_NAME runs until it is killed, in a directory of its own;
# names_NAME are the executables whose stacks are counted; tools_NAME are its requirements, as COMMAND:PACKAGE. Servers
# listen on sockets in that directory.

names_python=python3.11 tools_python=/usr/bin/python3.11:python3.11
work_python() {
        while :; do /usr/bin/python3.11 "$tests/tools/busy.py" 10; done
}

names_perl=perl tools_perl=perl:perl
work_perl() {
        # shellcheck disable=SC2016  # Perl's variables
        exec perl -e 'sub fib { my $n = shift; $n < 2 ? $n : fib($n - 1) + fib($n - 2) }
                my $text = join " ", map { "word$_ " . $_ * 7 . " user$_\@example.org" } 1 .. 3000;
                while (1) {
                        fib(18);
                        my %count;
                        $count{$1}++ while $text =~ /(\w+)@\w+/g;
                        my @sorted = sort { $count{$a} <=> $count{$b} || $a cmp $b } keys %count;
                        (my $copy = $text) =~ s/(\d+)/sprintf "%x", $1/ge;
                }'
}

names_postgres=postgres tools_postgres=pgbench:postgresql
work_postgres() {
        bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
        chown postgres .
        as="setpriv --reuid=postgres --regid=postgres --clear-groups"
        # shellcheck disable=SC2086  # word splitting is intended
        {
                $as "$bin/initdb" -D "$PWD/db" -A trust > log 2>&1
                $as "$bin/pg_ctl" -D "$PWD/db" -w -l "$PWD/server.log" -o "-k $PWD -c listen_addresses= -c fsync=off" \
                        start >> log 2>&1
                $as "$bin/pgbench" -h "$PWD" -i -s 5 postgres >> log 2>&1
                while :; do $as "$bin/pgbench" -h "$PWD" -c 4 -T 60 postgres >> log 2>&1 || sleep 1; done
        }
}

names_redis=redis-server tools_redis=redis-benchmark:redis-tools
work_redis() {
        redis-server --port 0 --unixsocket "$PWD/socket" --save '' --daemonize no > log 2>&1 &
        until [ -S socket ]; do sleep 0.1; done
        while :; do redis-benchmark -s "$PWD/socket" -n 200000 -P 16 -q -t set,get,lpush,lrange_100,sadd,hset,zadd \
                >> log 2>&1; done
}

names_openssl=openssl tools_openssl=openssl:openssl
work_openssl() {
        while :; do
                for cipher in aes-256-cbc aes-128-gcm chacha20-poly1305; do
                        openssl speed -seconds 1 -bytes 4096 -evp $cipher
                done
                openssl speed -seconds 1 sha256 sha512 rsa2048 ecdsap256 ed25519
        done > log 2>&1
}

names_gcc="cc1 as collect2 ld" tools_gcc=gcc:gcc
work_gcc() {
        while :; do
                for c in "$tests"/../*/*.c; do
                        gcc -D_GNU_SOURCE -DCAIRN_VERSION='""' -I"$tests/.." -I"$build/gen" -O2 -g -c "$c" -o out.o \
                                2>> log || true
                done
        done
}

names_git=git tools_git=git:git
work_git() {
        git clone -q --no-hardlinks "$tests/.." repository > log 2>&1
        cd repository || exit
        while :; do
                git log -p --stat -M > /dev/null
                git -c gc.auto=0 repack -q -a -d -f --depth=50 --window=50 2>> ../log
                git grep -q -E 'struct [a-z]+_[a-z]+ \{$' "$(git rev-parse HEAD)" || true
        done
}

names_node=node tools_node=node:nodejs
work_node() {
        exec node -e '
                const text = Array.from({ length: 3000 }, (_, i) => `word${i} ${i * 7} user${i}@example.org`).join(" ");
                const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
                for (;;) {
                        fib(22);
                        const count = new Map();
                        for (const m of text.matchAll(/(\w+)@(\w+)\.org/g)) count.set(m[1], (count.get(m[1]) || 0) + 1);
                        JSON.parse(JSON.stringify([...count]));
                        [...count.keys()].sort((a, b) => a.localeCompare(b));
                        require("zlib").deflateSync(text);
                        require("crypto").createHash("sha256").update(text).digest();
                }'
}

names_nginx=nginx tools_nginx="nginx:nginx wrk:wrk"
work_nginx() {
        port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
        mkdir -p www
        chmod 755 . www
        head -c 20000 /dev/urandom | base64 > www/page.html
        cat > nginx.conf << END
error_log $PWD/log; pid $PWD/nginx.pid; daemon off; worker_processes 2;
events { }
http {
        access_log $PWD/access; client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3;
        uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5; gzip on; gzip_types *;
        server { listen 127.0.0.1:$port; root $PWD/www; }
}
END
        nginx -p "$PWD" -c "$PWD/nginx.conf" -e "$PWD/log" &
        sleep 1
        while :; do wrk -t 1 -c 16 -d 60 -H 'Accept-Encoding: gzip' "http://127.0.0.1:$port/page.html" > /dev/null \
                2>&1; done
}

WORKLOADS="python perl postgres redis openssl gcc git node nginx"
