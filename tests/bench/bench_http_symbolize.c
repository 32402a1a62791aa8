/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /api/v1/symbolize end to end on loopback, with names as text:
 *
 *      bench_http_symbolize [FILE]...
 *
 * OBJECTS files with symbols (the FILEs, then programs and the largest libraries of this machine) are indexed.
 * ADDRESSES addresses, each inside a function, are sent to a service with that index, and the response is read to its
 * end. "first" is the first request to a fresh service, "best" the best of RUNS. The service's CPU time and
 * instructions are those of all its threads per address; instructions are 0 if the machine cannot count them.
 */
#include <arpa/inet.h>
#include <glob.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/file.h"
#include "common/limits.h"
#include "elf-image/elf_image.h"
#include "profile-formats/wire.h"
#include "symbol-index/lookup.h"
#include "tests/support/random_table.h"

#define OBJECTS 50
#define ADDRESSES 100000
#define RUNS 15

struct object {
        char *path;
        struct build_id id;
        uint64_t text, text_size;
};

static struct object objects[OBJECTS];
static unsigned object_count;
static uint64_t addresses[OBJECTS][ADDRESSES / OBJECTS];
static char dir[] = "/tmp/cairn-bench-XXXXXX", program[4096];
static pid_t service;
static uint16_t port;
static int instructions_fd = -1;

static void die(const char *what, const char *why)
{
        fprintf(stderr, "bench_http_symbolize: %s: %s\n", what, why);
        if (service > 0)
                kill(service, SIGKILL);
        exit(1);
}

/* ---- objects */

static void add_object(const char *path)
{
        struct object o = { 0 };
        struct elf_image img;

        if (object_count == OBJECTS || elf_image_open(path, &img, NULL))
                return;
        for (size_t i = 0; i < img.section_count; i++)
                if (strcmp(img.sections[i].name, ".text") == 0) {
                        o.text = img.sections[i].address;
                        o.text_size = img.sections[i].size;
                }
        o.id = img.build_id;
        elf_image_close(&img);
        for (unsigned i = 0; i < object_count; i++)
                if (build_id_equal(&objects[i].id, &o.id))
                        return;
        if (!o.id.size || o.text_size < KiB(64))
                return;
        o.path = strdup(path);
        objects[object_count++] = o;
}

static off_t size_of(const char *path)
{
        struct stat st;

        return stat(path, &st) ? 0 : st.st_size;
}

static int larger_first(const void *a, const void *b)
{
        off_t x = size_of(*(char *const *)a), y = size_of(*(char *const *)b);

        return (x < y) - (x > y);
}

static void find_objects(int count, char **paths)
{
        static const char *const usual[] = { "/usr/bin/python3.11", "/lib/x86_64-linux-gnu/libc.so.6",
                                             "/lib/x86_64-linux-gnu/libm.so.6", "/lib64/ld-linux-x86-64.so.2" };
        glob_t g;

        for (int i = 0; i < count; i++)
                add_object(paths[i]);
        add_object(program);
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
                add_object(usual[i]);
        if (glob("/usr/lib/*-linux-gnu/*.so.*", 0, NULL, &g))
                return;
        qsort(g.gl_pathv, g.gl_pathc, sizeof *g.gl_pathv, larger_first);
        for (size_t i = 0; i < g.gl_pathc; i++)
                add_object(g.gl_pathv[i]);
        globfree(&g);
}

static void run_index(void)
{
        char *argv[OBJECTS + 5] = { program, (char *)"index", (char *)"--data", dir };
        int status;
        pid_t pid;

        for (unsigned i = 0; i < object_count; i++)
                argv[4 + i] = objects[i].path;
        pid = fork();
        if (pid == 0) {
                if (!freopen("/dev/null", "w", stdout))
                        _exit(127);
                execv(program, argv);
                _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                die(program, strerror(errno));
}

/* Random addresses of code covered by a function. */
static void choose_addresses(void)
{
        struct symbol_batch batch = { 0 };
        struct symbol_index *index;
        struct symbol_view *view;
        char *path = path_join(dir, "index");
        uint64_t state = 1;
        struct error err;

        if (symbol_index_open(path, true, &index, &err) || symbol_view_begin(index, &view, &err))
                die(path, err.text);
        for (unsigned i = 0; i < object_count; i++)
                for (size_t k = 0, tries = 0; k < ADDRESSES / OBJECTS && tries < 100 * ADDRESSES; tries++) {
                        struct symbol_key key = { .build_id = &objects[i].id,
                                                  .address = objects[i].text +
                                                             random_next(&state) % objects[i].text_size };

                        if (symbol_view_lookup(view, &key, 1, &batch, &err))
                                die("lookup", err.text);
                        if (batch.results[0].state == SYMBOL_RESOLVED)
                                addresses[i][k++] = key.address;
                }
        symbol_batch_deinit(&batch);
        symbol_view_end(view);
        symbol_index_close(index);
        free(path);
}

/* ---- service */

static void count_instructions(pid_t pid)
{
        struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
                                        .size = sizeof attr,
                                        .config = PERF_COUNT_HW_INSTRUCTIONS,
                                        .inherit = 1,
                                        .exclude_kernel = 1,
                                        .exclude_hv = 1 };

        instructions_fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void start_service(void)
{
        char *port_file = path_join(dir, "port"), text[16] = "";
        int gate[2];
        char byte = 0;

        unlink(port_file);
        if (pipe(gate))
                die("pipe", strerror(errno));
        service = fork();
        if (service == 0) {
                (void)!read(gate[0], &byte, 1);
                execl(program, program, "serve", "--data", dir, "--listen", "127.0.0.1:0", "--port-file", port_file,
                      "--log-level", "error", (char *)NULL);
                _exit(127);
        }
        count_instructions(service);
        (void)!write(gate[1], &byte, 1);
        close(gate[0]);
        close(gate[1]);
        for (unsigned i = 0; i < 6000 && !port; i++) {
                FILE *f = fopen(port_file, "r");

                if (f && fgets(text, sizeof text, f) && strchr(text, '\n'))
                        port = (uint16_t)strtoul(text, NULL, 10);
                if (f)
                        fclose(f);
                usleep(10000);
        }
        if (!port)
                die("the service", "does not start");
        free(port_file);
}

static void stop_service(void)
{
        kill(service, SIGTERM);
        waitpid(service, NULL, 0);
        service = 0;
        port = 0;
        if (instructions_fd >= 0)
                close(instructions_fd);
}

static double service_cpu_s(void)
{
        char path[64], text[512];
        unsigned long user = 0, kernel = 0;
        FILE *f;

        snprintf(path, sizeof path, "/proc/%d/stat", (int)service);
        f = fopen(path, "r");
        if (f && fgets(text, sizeof text, f) && strrchr(text, ')'))
                sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &kernel);
        if (f)
                fclose(f);
        return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static uint64_t service_instructions(void)
{
        uint64_t n = 0;

        if (instructions_fd < 0 || read(instructions_fd, &n, sizeof n) != sizeof n)
                return 0;
        return n;
}

/* ---- requests */

static void make_json(struct buf *b)
{
        char hex[BUILD_ID_HEX_MAX];

        buf_append_str(b, "{\"objects\":[");
        for (unsigned i = 0; i < object_count; i++) {
                buf_printf(b, "%s{\"build_id\":\"%s\",\"addresses\":[", i ? "," : "",
                           build_id_hex(&objects[i].id, hex));
                for (size_t k = 0; k < ADDRESSES / OBJECTS; k++)
                        buf_printf(b, "%s\"0x%llx\"", k ? "," : "", (unsigned long long)addresses[i][k]);
                buf_append_str(b, "]}");
        }
        buf_append_str(b, "]}");
}

static void make_proto(struct buf *b)
{
        for (unsigned i = 0; i < object_count; i++) {
                size_t object = wire_begin(b, 1), column;

                wire_put_bytes(b, 1, objects[i].id.bytes, objects[i].id.size);
                column = wire_begin(b, 2);
                for (size_t k = 0; k < ADDRESSES / OBJECTS; k++)
                        buf_append_uleb128(b, addresses[i][k]);
                wire_end(b, column);
                wire_end(b, object);
        }
}

static void make_request(const char *type, const char *accept, void (*make)(struct buf *b), struct buf *ret)
{
        _cleanup_buf_ struct buf body;

        buf_init(&body, MiB(64));
        buf_init(ret, MiB(64));
        make(&body);
        buf_printf(ret,
                   "POST /api/v1/symbolize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\n%s"
                   "Content-Length: %zu\r\n\r\n",
                   type, accept, body.size);
        buf_append(ret, body.data, body.size);
}

/* Send a request and read until the service closes the connection; returns the number of bytes received. */
static size_t send_request(const struct buf *request)
{
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        static char answer[MiB(1)];
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        size_t got = 0;
        struct error err;
        ssize_t n;

        if (connect(fd, (struct sockaddr *)&to, sizeof to) ||
            file_write_all(fd, request->data, request->size, "socket", &err))
                die("request", strerror(errno));
        while ((n = read(fd, answer, sizeof answer)) > 0) {
                if (got == 0 && strncmp(answer, "HTTP/1.1 200", 12) != 0)
                        die("answer", answer);
                got += (size_t)n;
        }
        if (n < 0)
                die("answer", strerror(errno));
        close(fd);
        return got;
}

static int compare_times(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return (x > y) - (x < y);
}

static void measure_request(const char *name, const struct buf *request)
{
        int64_t times[RUNS], first, begin;
        double count = object_count * (ADDRESSES / OBJECTS), cpu;
        uint64_t instructions;
        size_t bytes;

        start_service();
        begin = monotonic_ns();
        bytes = send_request(request);
        first = monotonic_ns() - begin;
        cpu = service_cpu_s();
        instructions = service_instructions();
        for (unsigned i = 0; i < RUNS; i++) {
                begin = monotonic_ns();
                send_request(request);
                times[i] = monotonic_ns() - begin;
        }
        cpu = service_cpu_s() - cpu;
        instructions = service_instructions() - instructions;
        stop_service();
        qsort(times, RUNS, sizeof *times, compare_times);
        printf("%-22s %8.1f %8.1f %9.2f %9.2f %9.2f %8.0f %9.0f\n", name, (double)request->size / count,
               (double)bytes / count, 1e3 * count / (double)first, 1e3 * count / (double)times[RUNS / 2],
               1e3 * count / (double)times[0], 1e9 * cpu / RUNS / count, (double)instructions / RUNS / count);
}

int main(int argc, char **argv)
{
        const char *build = getenv("CAIRN_BUILD");
        struct buf request;
        struct error err;

        snprintf(program, sizeof program, "%s/cairn", build ? build : "build");
        if (!mkdtemp(dir))
                die(dir, strerror(errno));
        find_objects(argc - 1, argv + 1);
        run_index();
        choose_addresses();
        printf("%u objects, %u addresses; million addresses a second, target 2.0; a service's ns and instructions are "
               "of "
               "all its threads\n%-22s %8s %8s %9s %9s %9s %8s %9s\n",
               object_count, object_count * (ADDRESSES / OBJECTS), "request and answer", "B sent", "B got", "first",
               "median", "best", "CPU ns", "instr.");
        make_request("application/x-protobuf", "", make_proto, &request);
        measure_request("protobuf", &request);
        buf_deinit(&request);
        make_request("application/json", "Accept: application/x-protobuf\r\n", make_json, &request);
        measure_request("JSON, protobuf", &request);
        buf_deinit(&request);
        make_request("application/json", "", make_json, &request);
        measure_request("JSON", &request);
        buf_deinit(&request);
        make_request("application/json", "Accept-Encoding: zstd\r\n", make_json, &request);
        measure_request("JSON, JSON with zstd", &request);
        buf_deinit(&request);
        if (file_remove_tree(dir, &err))
                die(dir, err.text);
        return 0;
}
