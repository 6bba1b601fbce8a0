{{/* What the collector has beyond the others: where OPA uploads to, and who may. It has no database. */}}
{{- define "docket.collectorEnv" -}}
{{- with .Values.lanes.urgent }}
- name: DOCKET_COLLECTOR_URGENT
  value: {{ . | quote }}
{{- end }}
{{- with .Values.lanes.share }}
- name: DOCKET_COLLECTOR_SHARE
  value: {{ . | quote }}
{{- end }}
{{- with .Values.collector }}
- name: DOCKET_COLLECTOR_ADDR
  value: ":8085"
{{- if .plaintext }}
- name: DOCKET_COLLECTOR_PLAINTEXT
  value: "true"
{{- else }}
- name: DOCKET_COLLECTOR_TLS_CERT
  value: /etc/docket/collector-tls/tls.crt
- name: DOCKET_COLLECTOR_TLS_KEY
  value: /etc/docket/collector-tls/tls.key
{{- with .clientCAKey }}
- name: DOCKET_COLLECTOR_CLIENT_CA
  value: {{ printf "/etc/docket/collector-tls/%s" . | quote }}
{{- end }}
{{- end }}
{{- if .anonymous }}
- name: DOCKET_COLLECTOR_ANONYMOUS
  value: "true"
{{- end }}
{{- if .tokensSecretName }}
- name: DOCKET_COLLECTOR_TOKENS_FILE
  value: {{ printf "/etc/docket/collector-tokens/%s" .tokensKey | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "docket.collectorSecrets" -}}
{{- $secrets := dict -}}
{{- with .Values.collector -}}
{{- if not .plaintext -}}{{- $_ := set $secrets "collector-tls" .tlsSecretName -}}{{- end -}}
{{- if .tokensSecretName -}}{{- $_ := set $secrets "collector-tokens" .tokensSecretName -}}{{- end -}}
{{- end -}}
{{- toYaml $secrets -}}
{{- end }}

{{- define "docket.collectorMounts" -}}
{{- range $name, $secret := include "docket.collectorSecrets" . | fromYaml }}
- {name: {{ $name }}, mountPath: /etc/docket/{{ $name }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "docket.collectorVolumes" -}}
{{- range $name, $secret := include "docket.collectorSecrets" . | fromYaml }}
- {name: {{ $name }}, secret: {secretName: {{ $secret }}, defaultMode: 0440}}
{{- end }}
{{- end }}
