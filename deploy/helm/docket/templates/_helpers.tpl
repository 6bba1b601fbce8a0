{{/* Names, labels and settings. "component" templates take a dict: root (the chart's context), name, values. */}}

{{- define "docket.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* 40 characters, as the component and a pod's number come behind it and a label holds 63. */}}
{{- define "docket.fullname" -}}
{{- $name := include "docket.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{- define "docket.componentName" -}}
{{- printf "%s-%s" (include "docket.fullname" .root) .name -}}
{{- end }}

{{/* Selectors of workloads cannot be changed later: nothing here may depend on a version or a value. */}}
{{- define "docket.releaseSelector" -}}
app.kubernetes.io/name: {{ include "docket.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "docket.selector" -}}
{{ include "docket.releaseSelector" .root }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "docket.commonLabels" -}}
{{ include "docket.releaseSelector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | trunc 63 | trimAll "._-" | quote }}
app.kubernetes.io/part-of: docket
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimAll "._-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels of one place, without those that commonLabels has: a key may come once. Dict: root, own. */}}
{{- define "docket.moreLabels" -}}
{{- $more := dict }}
{{- range $name, $value := .own }}{{ if not (hasKey $.root.Values.commonLabels $name) }}{{ $_ := set $more $name $value }}{{ end }}{{ end }}
{{- with $more }}{{ toYaml . }}{{ end }}
{{- end }}

{{/* The annotations of an object: those of all, then its own. Dict: root, own. */}}
{{- define "docket.annotations" -}}
{{- $all := dict }}
{{- range $name, $value := .root.Values.commonAnnotations }}{{ $_ := set $all $name $value }}{{ end }}
{{- range $name, $value := .own }}{{ $_ := set $all $name $value }}{{ end }}
{{- with $all }}
  annotations: {{- toYaml . | nindent 4 }}
{{- end }}
{{- end }}

{{- define "docket.labels" -}}
{{ include "docket.commonLabels" .root }}
app.kubernetes.io/component: {{ .name }}
{{- end }}

{{- define "docket.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end }}

{{- define "docket.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "docket.fullname" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end }}

{{/* A value of settings as a string. Helm reads numbers as floats, and 10000000 must not become 1e+07. */}}
{{- define "docket.setting" -}}
{{- if kindIs "float64" . -}}{{ . | int64 | toString }}{{- else -}}{{ . | toString }}{{- end -}}
{{- end }}

{{/* The name of the Secret with the database's URL. */}}
{{- define "docket.databaseSecret" -}}
{{- .values.databaseSecretName | default .root.Values.database.secretName -}}
{{- end }}

{{/* The kind of a worker's workload. */}}
{{- define "docket.workerKind" -}}
{{- if .values.spool.enabled -}}StatefulSet{{- else -}}Deployment{{- end -}}
{{- end }}

{{/* The lanes with the names of their topics and groups, as DOCKET_KAFKA_URGENT_TOPIC and the like say, as YAML. */}}
{{- define "docket.sources" -}}
{{- $settings := merge (dict) .Values.consumer.settings .Values.settings -}}
{{- $topic := $settings.DOCKET_KAFKA_TOPIC | default "decision-logs" -}}
{{- $group := $settings.DOCKET_KAFKA_GROUP | default "docket" -}}
{{- $topics := dict "urgent" $settings.DOCKET_KAFKA_URGENT_TOPIC "bulk" $settings.DOCKET_KAFKA_BULK_TOPIC -}}
{{- $groups := dict "urgent" $settings.DOCKET_URGENT_GROUP "bulk" $settings.DOCKET_BULK_GROUP -}}
{{- /* A shard has groups of its own. */}}
{{- $shard := ternary (printf "-%s" .Values.shards.name) "" (ne .Values.shards.name "") }}
- {lane: default, topic: {{ $topic | quote }}, group: {{ printf "%s%s" $group $shard | quote }}}
{{- range .Values.lanes.names }}
- lane: {{ . }}
  topic: {{ get $topics . | default (printf "%s-%s" $topic .) | quote }}
  group: {{ ternary (printf "%s%s" (get $groups .) $shard) (printf "%s%s-%s" $group $shard .) (ne (get $groups . | default "") "") | quote }}
{{- end }}
{{- end }}

{{/* The partitions of the release's shard, as 0-3,8-11; empty without shards. */}}
{{- define "docket.partitions" -}}
{{- $own := list -}}
{{- range .Values.shards.ranges -}}
{{- $parts := splitList "=" . -}}
{{- if eq (first $parts) $.Values.shards.name }}{{ $own = append $own (last $parts) }}{{ end -}}
{{- end -}}
{{- join "," $own -}}
{{- end }}

{{/* "true" for components that write rows, and for the test of their settings, where rows are limited. */}}
{{- define "docket.limited" -}}
{{- if and .root.Values.limits.rows (has .name (list "consumer" "replayer" "desk" "test")) -}}true{{- end -}}
{{- end }}

{{/* "true" for components that ask Redis. The desk claims archived days there, also without a limit. */}}
{{- define "docket.asksRedis" -}}
{{- if and .root.Values.limits.redis.secretName (or (include "docket.limited" .) (eq .name "desk")) -}}true{{- end -}}
{{- end }}
