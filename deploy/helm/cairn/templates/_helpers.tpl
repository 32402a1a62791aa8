{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* Names begin with the release's, which is enough if it contains the chart's. */}}
{{- define "cairn.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "cairn.image" -}}
{{- printf "%s:%s" .Values.image.repository .Values.image.tag -}}
{{- end -}}

{{/* What a selector matches: the program, given as "cairn" or "cairn-agent", of this release. */}}
{{- define "cairn.selector" -}}
app.kubernetes.io/name: {{ .program }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{- define "cairn.labels" -}}
app.kubernetes.io/part-of: cairn
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* TCP ports that each policy permits in addition. */}}
{{- define "cairn.egressPorts" -}}
{{- range .Values.networkPolicy.egressPorts }}
- {protocol: TCP, port: {{ . }}}
{{- end }}
{{- end -}}
