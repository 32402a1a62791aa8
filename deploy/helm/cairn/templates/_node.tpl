{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/*
The StatefulSet of the one node, or of a group of nodes with the same roles: root, name, settings, which are .Values.service or
those of the group, and the name of the group.
*/}}
{{- define "cairn.node" -}}
{{- $root := .root }}
{{- $gateway := and .group (has "gateway" .settings.roles) }}
{{- $takes := or (not .group) (has "ingest" .settings.roles) $gateway }}
{{- $tls := and .group .root.Values.nodes.tlsSecret }}
{{- $scheme := ternary ", scheme: HTTPS" "" (not (empty $tls)) }}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    app.kubernetes.io/name: cairn
    {{- include "cairn.labels" .root | nindent 4 }}
spec:
  serviceName: {{ .name }}
  {{- if .group }}
  replicas: {{ .settings.replicas }}
  podManagementPolicy: Parallel
  {{- else }}
  replicas: 1 # the data directory belongs to one process
  {{- end }}
  selector:
    matchLabels:
      {{- include "cairn.nodeSelector" . | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "cairn.nodeSelector" . | nindent 8 }}
        {{- if and .group $takes }}
        cairn/takes: {{ ternary "forward" "ingest" (has "gateway" .settings.roles) }}
        {{- end }}
      annotations:
        prometheus.io/scrape: "true" # with a token of the scope read
        prometheus.io/port: "7700"
    spec:
      serviceAccountName: {{ include "cairn.name" .root }}
      automountServiceAccountToken: false
      enableServiceLinks: false # they would set variables that begin with CAIRN_
      {{- if .group }}
      terminationGracePeriodSeconds: 90 # --shutdown-delay and --drain-timeout
      {{- else }}
      terminationGracePeriodSeconds: 60 # the service flushes the queue when it stops
      {{- end }}
      {{- with .root.Values.image.pullSecrets }}
      imagePullSecrets:
        {{- range . }}
        - name: {{ . }}
        {{- end }}
      {{- end }}
      {{- with .root.Values.service.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .root.Values.service.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if .group }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "cairn.nodeSelector" . | nindent 14 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {type: RuntimeDefault}
      containers:
        - name: cairn
          image: {{ include "cairn.image" .root }}
          {{- with .root.Values.image.pullPolicy }}
          imagePullPolicy: {{ . }}
          {{- end }}
          command: [/usr/bin/cairn, serve]
          args:
            - --data=/var/lib/cairn
            - --listen=0.0.0.0:7700
            {{- if $takes }}
            - --listen-otlp-grpc=0.0.0.0:4317
            {{- end }}
            - --token-file=/etc/cairn/tokens/tokens
            {{- with .root.Values.service.retainSamples }}
            - --retain-samples={{ . }}
            {{- end }}
            - --memory={{ .settings.memory }}
            {{- if and .root.Values.service.store.url (not $gateway) }}
            - --store={{ .root.Values.service.store.url }}
            {{- end }}
            {{- if .group }}
            {{- include "cairn.nodeOptions" . | nindent 12 }}
            {{- end }}
            {{- range concat .root.Values.service.extraArgs (.settings.extraArgs | default list) }}
            - {{ . | quote }}
            {{- end }}
          {{- with .root.Values.service.store }}
          {{- if or .endpoint .region .keysSecret }}
          env:
            {{- with .endpoint }}
            - {name: AWS_ENDPOINT_URL_S3, value: {{ . | quote }}}
            {{- end }}
            {{- with .region }}
            - {name: AWS_REGION, value: {{ . | quote }}}
            {{- end }}
            {{- if .keysSecret }}
            {{- range list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
            - name: {{ . }}
              valueFrom:
                secretKeyRef: {name: {{ $root.Values.service.store.keysSecret }}, key: {{ . }}}
            {{- end }}
            {{- end }}
          {{- end }}
          {{- end }}
          ports:
            - {name: http, containerPort: 7700}
            {{- if $takes }}
            - {name: otlp-grpc, containerPort: 4317}
            {{- end }}
          # The service reads the queue at its start; a large queue on a slow disk takes a while.
          startupProbe:
            httpGet: {path: /healthz, port: http{{ $scheme }}}
            periodSeconds: 5
            failureThreshold: 180
          livenessProbe:
            httpGet: {path: /healthz, port: http{{ $scheme }}}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: http{{ $scheme }}}
            periodSeconds: 5
            timeoutSeconds: 5
          resources:
            {{- toYaml .settings.resources | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: data, mountPath: /var/lib/cairn}
            - {name: tmp, mountPath: /tmp}
            - {name: tokens, mountPath: /etc/cairn/tokens, readOnly: true}
            {{- if $tls }}
            - {name: tls, mountPath: /etc/cairn/tls, readOnly: true}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {sizeLimit: 4Gi}
        - name: tokens
          secret:
            secretName: {{ .root.Values.tokensSecret }}
            defaultMode: 0440
            items:
              - {key: tokens, path: tokens}
              {{- if .group }}
              - {key: node-token, path: node-token}
              {{- end }}
        {{- with $tls }}
        - name: tls
          secret:
            secretName: {{ . }}
            defaultMode: 0440
        {{- end }}
  volumeClaimTemplates:
    - metadata:
        name: data
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .settings.volume.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests: {storage: {{ .settings.volume.size }}}
{{- end -}}

{{- define "cairn.nodeSelector" -}}
{{- include "cairn.selector" (dict "root" .root "program" "cairn") }}
{{- with .group }}
cairn/group: {{ . }}
{{- end }}
{{- end -}}

{{/* Options of one of several nodes. */}}
{{- define "cairn.nodeOptions" -}}
{{- $root := .root -}}
- --role={{ join "," .settings.roles }}
- --shutdown-delay=6 # the proxy notices after 4
- --max-per-address=4096 # of the proxy
{{- range .root.Values.nodes.trustedProxies }}
- --trusted-proxy={{ . }}
{{- end }}
{{- if .root.Values.nodes.tlsSecret }}
- --tls-cert=/etc/cairn/tls/tls.crt
- --tls-key=/etc/cairn/tls/tls.key
{{- end }}
{{- $option := ternary "peer" "forward" (has "query" .settings.roles) }}
{{- if or (has "query" .settings.roles) (has "gateway" .settings.roles) }}
- --peer-token-file=/etc/cairn/tokens/node-token
{{- if .root.Values.nodes.tlsSecret }}
- --peer-ca=/etc/cairn/tls/ca.crt
{{- end }}
{{- $scheme := ternary "https" "http" (not (empty .root.Values.nodes.tlsSecret)) }}
{{- range splitList " " (include "cairn.nodesOf" (dict "root" .root "role" "ingest")) }}
- --{{ $option }}={{ $scheme }}://{{ include "cairn.nodeAddress" (dict "root" $root "node" .) }}:7700
{{- end }}
{{- end }}
{{- end -}}

{{/* The nodes that have a role, given as root and role, such as "ingest-0 ingest-1"; empty without one. */}}
{{- define "cairn.nodesOf" -}}
{{- $nodes := list }}
{{- $role := .role }}
{{- range $group, $settings := .root.Values.nodes.groups }}
{{- if has $role $settings.roles }}
{{- range until (int $settings.replicas) }}
{{- $nodes = append $nodes (printf "%s-%d" $group .) }}
{{- end }}
{{- end }}
{{- end }}
{{- join " " $nodes }}
{{- end -}}

{{/* The DNS name of a node, given as root and node, such as ingest-0. */}}
{{- define "cairn.nodeAddress" -}}
{{- $name := include "cairn.name" .root }}
{{- $group := regexReplaceAll "-[0-9]+$" .node "" }}
{{- printf "%s-%s.%s-%s.%s.svc.%s" $name .node $name $group .root.Release.Namespace .root.Values.nodes.clusterDomain }}
{{- end -}}
