#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Samples of containers get the labels of their pods, from an API server that fails and whose pods change, and from a
# kubelet; relabel rules see these labels.
. tests/e2e/lib.sh
agent=$CAIRN_BUILD/cairn-agent
for tool in python3 cc openssl curl; do command -v $tool >/dev/null || skip_all "$tool is not installed"; done
"$agent" --doctor --sampler bpf >"$tmp/doctor" ||
        skip_all "the agent cannot profile here: $(grep '^error' "$tmp/doctor" | head -1 | tr -s ' ')"

# ---- usage ----
env -u KUBERNETES_SERVICE_HOST "$agent" --kubernetes api --duration 1 --no-upload 2>"$tmp/err"
is $? 64 "outside of a pod the API server's URL is needed"
like "$(cat "$tmp/err")" 'needs .--kubernetes-url. outside of a pod' "the missing option is named"
"$agent" --kubernetes both 2>"$tmp/err"
is $? 64 "there are two sources"
"$agent" --kubernetes-node n1 2>"$tmp/err"
is $? 64 "an option of Kubernetes alone does nothing"
printf 'relabel_configs:\n- {action: keep, regex: "("}\n' >"$tmp/wrong.yaml"
"$agent" --relabel-config "$tmp/wrong.yaml" 2>"$tmp/err"
is $? 64 "a wrong rule"
like "$(cat "$tmp/err")" 'wrong.yaml:2: ' "is named by its line"

# ---- two containers of one pod, in cgroups of their own ----
pod=0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9
first=3f1c2e8a9b7d6054c3f1e2d8a9b7c60543f1c2e8a9b7d6054c3f1e2d8a9b7c60
second=aaaabbbbccccddddeeeeffff0000111122223333444455556666777788889999
slice=cairn$$-burstable-pod$(echo $pod | tr - _).slice
for root in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
        [ -w "$root/cgroup.procs" ] && mkdir "$root/$slice" 2>/dev/null && break
        root=
done
# remove_cgroups: also those of a failed attempt.
remove_cgroups() {
        for id in $first $second; do
                [ ! -d "$root/$slice/cri-containerd-$id.scope" ] || wait_for "the end of a container" rmdir \
                        "$root/$slice/cri-containerd-$id.scope"
        done
        rmdir "$root/$slice"
}
if [ -z "$root" ] || ! mkdir "$root/$slice/cri-containerd-$first.scope" "$root/$slice/cri-containerd-$second.scope" ||
        ! sh -c 'echo $$ >"$1/cgroup.procs" && exec sleep 0' sh "$root/$slice/cri-containerd-$first.scope" \
        2>/dev/null; then
        [ -z "$root" ] || remove_cgroups
        pass "cgroups # SKIP none can be made here"
        done_testing
fi
cat >"$tmp/burn.c" <<'END'
#include <unistd.h>
volatile unsigned long sink;
int main(void) { alarm(300); for (;;) { for (int i = 0; i < 1000000; i++) sink++; usleep(1000); } }
END
cc -O1 -o "$tmp/shopd" "$tmp/burn.c" && cp "$tmp/shopd" "$tmp/helperd" || bail_out "cannot build"
# start_container ID PROGRAM
start_container() {
        # shellcheck disable=SC2016
        sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2"' sh "$root/$slice/cri-containerd-$1.scope" "$tmp/$2" &
        container_pid=$!
        background_pids="${background_pids:-} $container_pid"
        wait_for "$2" grep -q "$2" "/proc/$container_pid/comm"
}
start_container $first shopd; shopd=$container_pid

# ---- the API server and the service ----
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=cluster \
        -addext subjectAltName=IP:127.0.0.1 -keyout "$tmp/key.pem" -out "$tmp/ca.pem" 2>/dev/null
mkdir "$tmp/api" "$tmp/kubelet" "$tmp/service"
# write_pods DIRECTORY CONTAINER...: each "NAME=ID"; none: no pods.
write_pods() {
        python3 - "$pod" "$@" >"$tmp/pods" <<'END'
import json, sys
uid, containers = sys.argv[1], [c.split("=") for c in sys.argv[3:]]
pod = {"metadata": {"uid": uid, "name": "shop-7d4b9c8f6d-x2v4z", "namespace": "market",
                    "labels": {"app.kubernetes.io/name": "shop", "team": "blue", "pod-template-hash": "7d4b9c8f6d"},
                    "ownerReferences": [{"kind": "ReplicaSet", "name": "shop-7d4b9c8f6d", "controller": True}]},
       "spec": {"nodeName": "node-7"},
       "status": {"containerStatuses": [{"name": n, "containerID": "containerd://" + i} for n, i in containers]}}
print(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [pod] if containers else []}))
END
        mv "$tmp/pods" "$tmp/$1/pods.json"
}
write_pods api web=$first
echo node-7 >"$tmp/api/node"
echo secret-1 >"$tmp/api/token"
echo 503 >"$tmp/api/code"
python3 tests/e2e/agent/kubernetes-api.py "$tmp/api" "$tmp/ca.pem" "$tmp/key.pem" & api=$!
python3 tests/e2e/agent/kubernetes-api.py "$tmp/kubelet" & kubelet=$!
python3 tests/e2e/agent/agent-server.py "$tmp/service" & service=$!
background_pids="$background_pids $api $kubelet $service"
wait_for "the servers" test -s "$tmp/api/port" -a -s "$tmp/kubelet/port" -a -e "$tmp/service/ready"

# run_agent LOG OPTION...
run_agent() {
        run_log=$1; shift
        rm -f "$tmp/service"/body.* "$tmp/metrics"
        KUBERNETES_SERVICE_HOST=127.0.0.1 KUBERNETES_SERVICE_PORT=$(cat "$tmp/api/port") "$agent" --sampler bpf \
                --frequency 499 \
                --interval 1 --no-upload --server "http://127.0.0.1:$(cat "$tmp/service/port")" \
                --metrics-file "$tmp/metrics" \
                --only-process shopd --only-process helperd --only-process burn "$@" 2>"$tmp/$run_log" &
        agent_pid=$!
        background_pids="$background_pids $agent_pid"
}
end_agent() { kill "$agent_pid"; wait "$agent_pid"; is $? 0 "the agent exits with 0"; }
# labels_of PROGRAM: the labels of the newest batch with samples of it, one per line.
labels_of() {
        : >"$tmp/dump"
        # shellcheck disable=SC2012  # names created here
        ls -t "$tmp/service"/body.* 2>/dev/null >"$tmp/bodies"
        while read -r body; do
                python3 tests/support/otlp_dump.py "$body" | grep "process.executable.path=$tmp/$1" >"$tmp/dump" &&
                        break
        done <"$tmp/bodies"
        cut -f2 "$tmp/dump" | tr ';' '\n' | sort -u
}
has_label() { labels_of "$1" | grep -qx "$2"; }
counter_reached() { [ "$(awk -v m="$1" '$1 == m { print $2 }' "$tmp/metrics")" -ge "$2" ]; }

run_agent log --kubernetes api --kubernetes-node node-7 --kubernetes-token-file "$tmp/api/token" \
        --kubernetes-ca "$tmp/ca.pem"
wait_for "a failure" counter_reached 'cairn_agent_kubernetes_requests_total{result="failed"}' 1
wait_for "samples before the first list" has_label shopd "k8s.pod.uid=$pod"
unlike "$(labels_of shopd)" k8s.pod.name "they have no labels of the pod"
like "$(labels_of shopd)" '^k8s.node.name=node-7$' "except the label of the node"
like "$(cat "$tmp/log")" 'cannot list pods: .*503.*samples have no pod labels until it succeeds' "the log says why"
rm "$tmp/api/code"
wait_for "the labels of the pod" has_label shopd k8s.pod.name=shop-7d4b9c8f6d-x2v4z
is "$(labels_of shopd | grep -E '^(k8s|app|service|container)' | tr '\n' ' ')" \
        "app=shop container.id=$first k8s.container.name=web k8s.deployment.name=shop k8s.namespace.name=market k8s.node.name=node-7 k8s.pod.name=shop-7d4b9c8f6d-x2v4z k8s.pod.uid=$pod service.name=shop " \
        "all labels of the pod"
ok "labels for relabelling only are not sent" test -z "$(labels_of shopd | grep ^__)"

# ---- a container started later, and a replaced token ----
lists=$(grep -c '^200' "$tmp/api/requests")
echo secret-2 >"$tmp/api/token"
write_pods api web=$first helper=$second
start_container $second helperd; helperd=$container_pid
wait_for "the new container" has_label helperd k8s.container.name=helper
ok "it was looked up when it was missing, with the new token" test "$(grep -c '^200' "$tmp/api/requests")" -gt "$lists"
unlike "$(cat "$tmp/api/requests")" '^(401|403|404)' "each request had the token and the node"

# ---- an API server that hangs, and then no longer has the pod ----
touch "$tmp/api/hang"
rm -f "$tmp/service"/body.*
wait_for "samples meanwhile" has_label shopd k8s.pod.name=shop-7d4b9c8f6d-x2v4z
write_pods api
rm "$tmp/api/hang"
end_agent
unlike "$(cat "$tmp/log")" 'Sanitizer|runtime error' "no sanitizer report"

# ---- rules ----
cat >"$tmp/relabel.yaml" <<'END'
relabel_configs:
  - source_labels: [k8s.container.name]
    regex: helper
    action: drop
  - source_labels: [k8s.namespace.name, app]
    separator: /
    target_label: service.name
  - regex: __meta_kubernetes_pod_label_(team)
    action: labelmap
  - regex: host\..*|thread\.name
    action: labeldrop
END
write_pods api web=$first helper=$second
run_agent log2 --relabel-config "$tmp/relabel.yaml" --kubernetes api --kubernetes-node node-7 \
        --kubernetes-token-file "$tmp/api/token" --kubernetes-ca "$tmp/ca.pem"
wait_for "relabelled samples" has_label shopd team=blue
like "$(labels_of shopd)" '^service.name=market/shop$' "the action replace sets a label"
unlike "$(labels_of shopd)" '^(host\.|thread\.name|__)' "the action labeldrop removes labels"
wait_for "dropped samples" counter_reached cairn_agent_samples_relabel_dropped_total 1
rm -f "$tmp/service"/body.*
wait_for "another batch" has_label shopd team=blue
is "$(labels_of helperd)" "" "the action drop removes the samples"
end_agent

# ---- the kubelet, and an untrusted one ----
cp "$tmp/api/pods.json" "$tmp/kubelet/"
run_agent log3 --kubernetes kubelet --kubernetes-node node-7 \
        --kubernetes-url "http://127.0.0.1:$(cat "$tmp/kubelet/port")"
wait_for "the labels of the pod from the kubelet" has_label shopd k8s.container.name=web
is "$(sort -u "$tmp/kubelet/requests")" "200 /pods" "the kubelet's path"
end_agent
requests=$(wc -l <"$tmp/api/requests")
run_agent log4 --kubernetes api --kubernetes-ca /etc/ssl/certs/ca-certificates.crt \
        --kubernetes-token-file "$tmp/api/token"
wait_for "a failure" counter_reached 'cairn_agent_kubernetes_requests_total{result="failed"}' 1
like "$(cat "$tmp/log4")" 'cannot list pods: .*certificate' "an API server with an untrusted certificate is rejected"
is "$(wc -l <"$tmp/api/requests")" "$requests" "an API server with an untrusted certificate receives no token"
end_agent

kill "$shopd" "$helperd" "$api" "$kubelet" "$service"
wait "$shopd" "$helperd" 2>/dev/null
remove_cgroups
done_testing
