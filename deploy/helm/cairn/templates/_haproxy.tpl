{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* deploy/haproxy/haproxy-roles.cfg with the nodes of this release; tests/kubernetes/run compares them. */}}
{{- define "cairn.haproxy" -}}
{{- $root := . -}}
{{- $gateways := not (empty (include "cairn.nodesOf" (dict "root" . "role" "gateway"))) -}}
global
    log stdout format raw local0
    maxconn 8000

# Pods get another address when they are replaced.
resolvers cluster
    parse-resolv-conf
    accepted_payload_size 8192
    hold valid 5s

defaults
    mode http
    log global
    option httplog
    option dontlognull
    option forwardfor
    option redispatch
    retries 2
    timeout connect 5s
    timeout client 70s
    timeout server 130s
    timeout queue 10s
    default-server check inter 2s fall 2 rise 2 maxconn 2000
    default-server resolvers cluster init-addr none
    {{- if .Values.nodes.tlsSecret }}
    default-server ssl verify required ca-file /etc/cairn/tls/ca.crt
    {{- end }}
    option httpchk

frontend cairn
    bind :7700
    # Which service answered.
    http-response set-header X-Cairn-Node %s
    acl is_ingest path /v1development/profiles /v1/profiles /ingest /push.v1.PusherService/Push /api/v1/scrape/lease
    acl is_symbolize path /api/v1/symbolize /symbolicate/v5 /api/v1/why /api/v1/offsets /api/v1/resymbolize /api/v1/debuginfo/gc
    acl is_maintain path_beg /api/v1/store/
    acl is_object path_beg /buildid/
    acl is_upload path_beg /api/v1/debuginfo/
    acl is_debuginfod path_beg /buildid /metadata /api/v1/debuginfo /debuginfo.v1alpha1.DebuginfoService/
    acl has_sender req.hdr(X-Cairn-Sender) -m found
    {{- if eq (include "cairn.servesBrowsers" .) "true" }}
    acl has_session req.cook(cairn) -m found
    acl has_session req.cook(__Host-cairn) -m found
    {{- end }}
    http-request set-header X-Cairn-Route "%[req.hdr(X-Scope-OrgID)]/%[src]"
    http-request set-header X-Cairn-Route "%[req.hdr(X-Scope-OrgID)]/%[req.hdr(X-Cairn-Sender)]" if has_sender
    http-request set-header X-Cairn-Route "%[path,field(3,/)]" if is_object
    http-request set-header X-Cairn-Route "%[path,field(5,/)]" if is_upload

    use_backend {{ ternary "gateway" "ingest" $gateways }} if is_ingest METH_POST
    use_backend maintain if is_maintain
    {{- if eq (include "cairn.servesBrowsers" .) "true" }}
    # A browser that signed in stays at its service, which therefore has the roles of all pages.
    use_backend query if has_session
    {{- end }}
    use_backend symbolize if is_symbolize
    use_backend debuginfod if is_debuginfod
    default_backend query
{{- range $role := list (ternary "gateway" "ingest" $gateways) "query" "symbolize" "debuginfod" "maintain" }}

backend {{ $role }}
    {{- if has $role (list "ingest" "gateway" "debuginfod") }}
    balance hdr(X-Cairn-Route)
    hash-type consistent
    {{- else }}
    balance leastconn
    {{- end }}
    {{- if eq $role "query" }}
    # Sessions of browsers and shared profiles are of one service.
    cookie CAIRN_NODE insert indirect nocache httponly
    {{- end }}
    http-check send meth GET uri /readyz hdr Host cairn.example
    http-check expect status 200
    http-check expect hdr name "X-Cairn-Roles" value -m sub {{ $role }}
    {{- range $node := splitList " " (include "cairn.nodesOf" (dict "root" $root "role" $role)) }}
    {{- $address := include "cairn.nodeAddress" (dict "root" $root "node" $node) }}
    server {{ $node }} {{ $address }}:7700
    {{- if eq $role "query" }} cookie {{ $node }}{{ end }}
    {{- if $root.Values.nodes.tlsSecret }} verifyhost {{ $address }}{{ end }}
    {{- end }}
{{- end }}
{{ end -}}

{{/* Whether each node for queries also has the roles of the pages about debuginfo. */}}
{{- define "cairn.servesBrowsers" -}}
{{- $serves := true }}
{{- range .Values.nodes.groups }}
{{- if and (has "query" .roles) (not (and (has "symbolize" .roles) (has "debuginfod" .roles))) }}
{{- $serves = false }}
{{- end }}
{{- end }}
{{- $serves }}
{{- end -}}
