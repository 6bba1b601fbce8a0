{{/* The parts of a pod that all components share. Dict: root, name, values, and what is said at each. */}}

{{/* Settings: what this file says elsewhere first, then .settings of all and of the component. No secret: those are files. */}}
{{- define "docket.env" -}}
{{- $v := .root.Values -}}
- name: DOCKET_KAFKA_BROKERS
  value: {{ join "," $v.kafka.brokers | quote }}
{{- with $v.kafka.tls }}
{{- if .enabled }}
- name: DOCKET_KAFKA_TLS
  value: "true"
{{- if and .secretName .caKey }}
- name: DOCKET_KAFKA_TLS_CA
  value: {{ printf "/etc/docket/kafka-tls/%s" .caKey | quote }}
{{- end }}
{{- if .certKey }}
- name: DOCKET_KAFKA_TLS_CERT
  value: {{ printf "/etc/docket/kafka-tls/%s" .certKey | quote }}
- name: DOCKET_KAFKA_TLS_KEY
  value: {{ printf "/etc/docket/kafka-tls/%s" .keyKey | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- with $v.kafka.sasl }}
{{- if .mechanism }}
- name: DOCKET_KAFKA_SASL_MECHANISM
  value: {{ .mechanism }}
- name: DOCKET_KAFKA_SASL_USERNAME
  value: {{ .username | quote }}
- name: DOCKET_KAFKA_SASL_PASSWORD_FILE
  value: {{ printf "/etc/docket/kafka-login/%s" .passwordKey | quote }}
{{- end }}
{{- end }}
{{- if $v.headerKey.secretName }}
- name: DOCKET_HEADER_KEY_FILE
  value: {{ printf "/etc/docket/header-key/%s" $v.headerKey.key | quote }}
{{- end }}
{{- if not .noDatabase }}
- name: DOCKET_DATABASE_URL_FILE
  value: {{ printf "/etc/docket/database/%s" $v.database.urlKey | quote }}
{{- end }}
{{- with $v.lanes.names }}
- name: DOCKET_LANES
  value: {{ join "," . | quote }}
{{- end }}
{{- with $v.shards.ranges }}
- name: DOCKET_SHARDS
  value: {{ join "," . | quote }}
- name: DOCKET_SHARD
  value: {{ $v.shards.name | quote }}
{{- end }}
{{- if include "docket.limited" . }}
{{- include "docket.limits" . }}
{{- end }}
{{- if include "docket.asksRedis" . }}
- name: DOCKET_REDIS_URL_FILE
  value: {{ printf "/etc/docket/redis/%s" $v.limits.redis.urlKey | quote }}
{{- end }}
- name: DOCKET_HTTP_ADDR
  value: ":8080"
- name: DOCKET_SHUTDOWN_TIMEOUT
  value: {{ printf "%ds" (int64 $v.shutdownTimeoutSeconds) }}
{{- with $v.tracing.endpoint }}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ . | quote }}
{{- end }}
{{- /* not merge: for it false and "" are no values */}}
{{- $settings := dict }}
{{- range $name, $value := $v.settings }}{{ $_ := set $settings $name $value }}{{ end }}
{{- range $name, $value := .values.settings }}{{ $_ := set $settings $name $value }}{{ end }}
{{- range $name, $value := $settings }}
- name: {{ $name }}
  value: {{ include "docket.setting" $value | quote }}
{{- end }}
{{- end }}

{{/* The program refuses this contradiction, too. Here it is told before anything is sent. */}}
{{- define "docket.limits" -}}
{{- with .root.Values.limits }}
{{- if ge (int64 .lowRows) (int64 .rows) }}{{ fail (printf "limits.lowRows (%d) is not lower than limits.rows (%d)" (int64 .lowRows) (int64 .rows)) }}{{ end }}
{{- if gt (int64 .burst) (int64 .rows) }}{{ fail (printf "limits.burst (%d) is more than limits.rows (%d)" (int64 .burst) (int64 .rows)) }}{{ end }}
- name: DOCKET_LIMIT_ROWS
  value: {{ include "docket.setting" .rows | quote }}
{{- if .lowRows }}
- name: DOCKET_LIMIT_LOW_ROWS
  value: {{ include "docket.setting" .lowRows | quote }}
{{- end }}
{{- if .burst }}
- name: DOCKET_LIMIT_BURST
  value: {{ include "docket.setting" .burst | quote }}
{{- end }}
{{- with .calendar }}
- name: DOCKET_LIMIT_CALENDAR
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}

{{/* Secrets are mounted as whole folders: with subPath they would not be brought up to date. */}}
{{- define "docket.mounts" -}}
{{- $v := .root.Values -}}
{{- if not .noDatabase }}
- name: database
  mountPath: /etc/docket/database
  readOnly: true
{{- if $v.database.tlsSecretName }}
- name: postgres-tls
  mountPath: /etc/docket/postgres-tls
  readOnly: true
{{- end }}
{{- end }}
{{- if and $v.kafka.tls.enabled $v.kafka.tls.secretName }}
- name: kafka-tls
  mountPath: /etc/docket/kafka-tls
  readOnly: true
{{- end }}
{{- if $v.headerKey.secretName }}
- name: header-key
  mountPath: /etc/docket/header-key
  readOnly: true
{{- end }}
{{- if include "docket.asksRedis" . }}
- name: redis
  mountPath: /etc/docket/redis
  readOnly: true
{{- end }}
{{- if $v.kafka.sasl.mechanism }}
- name: kafka-login
  mountPath: /etc/docket/kafka-login
  readOnly: true
{{- end }}
{{- end }}

{{- define "docket.volumes" -}}
{{- $v := .root.Values -}}
{{- if not .noDatabase }}
- name: database
  secret:
    secretName: {{ include "docket.databaseSecret" . }}
    defaultMode: 0440
    items: [{key: {{ $v.database.urlKey | quote }}, path: {{ $v.database.urlKey | quote }}}]
{{- with $v.database.tlsSecretName }}
- name: postgres-tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}
{{- if and $v.kafka.tls.enabled $v.kafka.tls.secretName }}
- name: kafka-tls
  secret: {secretName: {{ $v.kafka.tls.secretName }}, defaultMode: 0440}
{{- end }}
{{- if $v.headerKey.secretName }}
- name: header-key
  secret:
    secretName: {{ $v.headerKey.secretName }}
    defaultMode: 0440
    items: [{key: {{ $v.headerKey.key | quote }}, path: {{ $v.headerKey.key | quote }}}]
{{- end }}
{{- if include "docket.asksRedis" . }}
- name: redis
  secret:
    secretName: {{ $v.limits.redis.secretName }}
    defaultMode: 0440
    items: [{key: {{ $v.limits.redis.urlKey | quote }}, path: {{ $v.limits.redis.urlKey | quote }}}]
{{- end }}
{{- if $v.kafka.sasl.mechanism }}
- name: kafka-login
  secret:
    secretName: {{ $v.kafka.sasl.secretName }}
    defaultMode: 0440
    items: [{key: {{ $v.kafka.sasl.passwordKey | quote }}, path: {{ $v.kafka.sasl.passwordKey | quote }}}]
{{- end }}
{{- end }}

{{- define "docket.probes" -}}
{{- with .root.Values.probes }}
startupProbe:
  httpGet: {path: /healthz, port: http}
  {{- toYaml .startup | nindent 2 }}
livenessProbe:
  httpGet: {path: /healthz, port: http}
  {{- toYaml .liveness | nindent 2 }}
readinessProbe:
  httpGet: {path: /readyz, port: http}
  {{- toYaml .readiness | nindent 2 }}
{{- end }}
{{- end }}

{{- define "docket.spread" -}}
{{- range .values.topologySpreadConstraints }}
- {{ toYaml . | nindent 2 | trim }}
  {{- if not .labelSelector }}
  labelSelector:
    matchLabels: {{- include "docket.selector" $ | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* The pod template of a component. Dict besides: command; noDatabase; ports, env, mounts, volumes (more of them, as text). */}}
{{- define "docket.podTemplate" -}}
metadata:
  labels:
    {{- include "docket.moreLabels" (dict "root" .root "own" .values.podLabels) | nindent 4 }}
    {{- include "docket.labels" . | nindent 4 }}
  {{- with .values.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "docket.serviceAccountName" .root }}
  automountServiceAccountToken: false
  # A Service called docket would put variables that begin with DOCKET_ into each pod.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ add (int64 .root.Values.shutdownTimeoutSeconds) (int64 .root.Values.terminationMarginSeconds) }}
  securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 4 }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "docket.spread" . | trim }}
  topologySpreadConstraints:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with .values.initContainers }}
  initContainers: {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: {{ .name }}
      image: {{ include "docket.image" .root | quote }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      command: {{ .command | toJson }}
      securityContext: {{- toYaml .root.Values.securityContext | nindent 8 }}
      ports:
        - {name: http, containerPort: 8080}
        {{- with .ports }}
        {{- . | nindent 8 }}
        {{- end }}
      env:
        {{- include "docket.env" . | nindent 8 }}
        {{- with .env }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .values.envFrom }}
      envFrom: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- include "docket.probes" . | trim | nindent 6 }}
      resources: {{- toYaml .values.resources | nindent 8 }}
      volumeMounts:
        {{- with include "docket.mounts" . | trim }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .mounts }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    {{- with include "docket.volumes" . | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .volumes }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with .values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
