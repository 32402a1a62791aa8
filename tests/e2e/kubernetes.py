#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads deploy/kubernetes/base: kubernetes.py DIRECTORY

Prints "ok NAME" or "not ok NAME: WHY" for consistency checks between the files, and writes to DIRECTORY how the
containers are started: PROGRAM.args and PROGRAM.command, the service's uid and the paths of its probes, and the
agent's capabilities.
"""
import os
import re
import sys

import yaml

directory = sys.argv[1]
base = "deploy/kubernetes/base"


def check(name, problems):
    problems = sorted(problems)
    print(f"not ok - {name}: {', '.join(problems)}" if problems else f"ok - {name}")


def read(path):
    with open(path) as f:
        return f.read()


def write(name, lines):
    with open(f"{directory}/{name}", "w") as f:
        f.writelines(f"{line}\n" for line in lines)


kustomization = yaml.safe_load(read(f"{base}/kustomization.yaml"))
files = set(os.listdir(base)) - {"kustomization.yaml"}
check("the kustomization names each file", files ^ set(kustomization["resources"]))
things = [thing for file in sorted(files) for thing in yaml.safe_load_all(read(f"{base}/{file}"))]
by_kind = {}
for thing in things:
    by_kind.setdefault(thing["kind"], {})[thing["metadata"]["name"]] = thing

workloads = {"cairn": by_kind["StatefulSet"]["cairn"], "cairn-agent": by_kind["DaemonSet"]["cairn-agent"]}
pods = {name: workload["spec"]["template"] for name, workload in workloads.items()}
containers = {name: pod["spec"]["containers"][0] for name, pod in pods.items()}

problems = []
for name, workload in workloads.items():
    labels = pods[name]["metadata"]["labels"].items()
    if not workload["spec"]["selector"]["matchLabels"].items() <= labels:
        problems.append(f"{name} does not select its pods")
    if pods[name]["spec"]["serviceAccountName"] not in by_kind["ServiceAccount"]:
        problems.append(f"{name} has an account that is not there")
    if not by_kind["NetworkPolicy"][name]["spec"]["podSelector"]["matchLabels"].items() <= labels:
        problems.append(f"the network policy {name} selects other pods")
    volumes = {v["name"] for v in pods[name]["spec"]["volumes"]}
    volumes |= {v["metadata"]["name"] for v in workload["spec"].get("volumeClaimTemplates", [])}
    mounts = containers[name]["volumeMounts"]
    problems += [f"{name}: volume {m['name']}" for m in mounts if m["name"] not in volumes]
    paths = [m["mountPath"] for m in mounts]
    for argument in containers[name]["args"]:
        path = re.search(r"=(/.*)", argument)
        if path and not any(path[1] == p or path[1].startswith(p + "/") for p in paths):
            problems.append(f"{name}: {argument} is on no volume")
    ports = {p["name"]: p["containerPort"] for p in containers[name]["ports"]}
    listening = {int(p) for a in containers[name]["args"] for p in re.findall(r"listen[a-z-]*=0\.0\.0\.0:(\d+)", a)}
    scraped = int(pods[name]["metadata"]["annotations"]["prometheus.io/port"])
    if scraped not in ports.values():
        problems.append(f"{name} is scraped at {scraped}")
    if set(ports.values()) != listening:
        problems.append(f"{name} listens at {listening}, not at {set(ports.values())}")
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe in containers[name] and containers[name][probe]["httpGet"]["port"] not in ports:
            problems.append(f"{name}: the port of {probe}")
    used = {v["secret"]["secretName"] for v in pods[name]["spec"]["volumes"] if "secret" in v}
    if used != {"cairn-tokens"}:
        problems.append(f"{name}: secrets {used}")
ports = {p["name"]: p["containerPort"] for p in containers["cairn"]["ports"]}
for port in by_kind["Service"]["cairn"]["spec"]["ports"]:
    if ports.get(port["targetPort"]) != port["port"]:
        problems.append(f"the service's port {port['name']}")
server = [a for a in containers["cairn-agent"]["args"] if a.startswith("--server=")]
if server != [f"--server=http://cairn:{ports['http']}"]:
    problems.append(f"the agent sends to {server}")
for policy, rules in (("cairn", "ingress"), ("cairn-agent", "ingress"), ("cairn-agent", "egress")):
    # The agent's first egress rule is for the service.
    target = "cairn" if rules == "egress" else policy
    named = {p["port"] for p in by_kind["NetworkPolicy"][policy]["spec"][rules][0]["ports"]}
    there = {p["name"] for p in containers[target]["ports"]}
    if rules == "ingress" and named != there or not named <= there:
        problems.append(f"the network policy {policy}: {rules} has the ports {named}")
check("names, ports and volumes agree", problems)

binding = by_kind["ClusterRoleBinding"]["cairn-agent"]
check("the agent may list pods and nothing else",
      {str(by_kind["ClusterRole"][binding["roleRef"]["name"]]["rules"])}
      ^ {str([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])}
      | {str(s) for s in binding["subjects"]} ^ {str({"kind": "ServiceAccount", "name": "cairn-agent", "namespace": kustomization["namespace"]})})

unit = re.search(r"^CapabilityBoundingSet=(.*)", read("deploy/systemd/cairn-agent.service"), re.M)[1].split()
capabilities = containers["cairn-agent"]["securityContext"]["capabilities"]["add"]
# CAP_SYS_RAWIO is needed for /proc/kcore, which container runtimes mask.
check("the agent has the capabilities of its systemd unit that serve in a container",
      {f"CAP_{c}" for c in capabilities} ^ (set(unit) - {"CAP_SYS_RAWIO"}))

problems = []
security = pods["cairn"]["spec"]["securityContext"] | containers["cairn"]["securityContext"]
uid = security["runAsUser"]
if not security["runAsNonRoot"] or security["allowPrivilegeEscalation"] or security["capabilities"] != {"drop": ["ALL"]}:
    problems.append("it has rights")
for name in containers:
    context = containers[name]["securityContext"]
    if not context["readOnlyRootFilesystem"] or context["capabilities"]["drop"] != ["ALL"] or context.get("privileged"):
        problems.append(f"{name} may change its image or has all rights")
containerfile = read("Containerfile")
if f"USER {uid}:{uid}" not in containerfile or f":{uid}:{uid}:" not in read("scripts/image-root.sh"):
    problems.append(f"the image has another user than {uid}")
check("the service has no rights, and the user of the image", problems)

spec = pods["cairn-agent"]["spec"]
check("the agent is root and sees the node's processes, and shares nothing else of the node but its spool",
      {f"{key}: {spec.get(key, False)}" for key, want in {"hostPID": True, "hostNetwork": False, "hostIPC": False}.items()
       if spec.get(key, False) != want}
      | {f"runAsUser: {u}" for u in [containers["cairn-agent"]["securityContext"]["runAsUser"]] if u != 0}
      | {v["hostPath"]["path"] for v in spec["volumes"] if "hostPath" in v} ^ {"/var/lib/cairn-agent"})

page = read("docs/quick-starts/kubernetes.md")
keys = {item["key"] for pod in pods.values() for v in pod["spec"]["volumes"] if "secret" in v for item in v["secret"]["items"]}
check("the quick start makes each key of the secret", {key for key in keys if f"--from-file={key}" not in page})

for name, container in containers.items():
    write(f"{name}.args", container["args"])
    write(f"{name}.command", container["command"][1:])
write("uid", [uid])
write("capabilities", [" ".join(capabilities)])
write("probes", sorted({containers["cairn"][p]["httpGet"]["path"] for p in ("startupProbe", "livenessProbe", "readinessProbe")}))
