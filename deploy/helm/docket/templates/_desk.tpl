{{/* The other programs of this release, each by the Service that names all its pods. Empty where the console is not, and where
somebody says it: in the settings of all or of the desk. */}}
{{- define "docket.deskPeers" -}}
{{- $name := "DOCKET_DESK_PEERS" -}}
{{- $said := or (hasKey .Values.settings $name) (hasKey .Values.desk.settings $name) (not .Values.desk.api.enabled) -}}
{{- $all := list -}}
{{- range $component := list "consumer" "replayer" "collector" -}}
{{- if (index $.Values $component).enabled -}}
{{- $all = append $all (printf "dns:%s.%s.svc:8080" (include "docket.componentName" (dict "root" $ "name" $component)) $.Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- if not $said -}}{{ join "," $all }}{{- end -}}
{{- end }}

{{/* Whether the desk looks at others. Those that somebody names may be of this release, too. */}}
{{- define "docket.deskLooks" -}}
{{- $name := "DOCKET_DESK_PEERS" -}}
{{- if and .Values.desk.enabled .Values.desk.api.enabled -}}
{{- if hasKey .Values.desk.settings $name -}}
{{- with get .Values.desk.settings $name -}}true{{- end -}}
{{- else if hasKey .Values.settings $name -}}
{{- with get .Values.settings $name -}}true{{- end -}}
{{- else -}}
{{- with include "docket.deskPeers" . -}}true{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* What the desk has beyond the others: its API, whom it looks at, and where its alerts go. */}}
{{- define "docket.deskEnv" -}}
{{- with .Values.desk.api }}
- name: DOCKET_DESK_API_ADDR
  value: {{ ternary ":8083" "" .enabled | quote }}
{{- if .enabled }}
- name: DOCKET_DESK_API_TLS_CERT
  value: /etc/docket/api-tls/tls.crt
- name: DOCKET_DESK_API_TLS_KEY
  value: /etc/docket/api-tls/tls.key
{{- with .clientCAKey }}
- name: DOCKET_DESK_API_CLIENT_CA
  value: {{ printf "/etc/docket/api-tls/%s" . | quote }}
{{- end }}
{{- if .tokensSecretName }}
- name: DOCKET_DESK_API_TOKENS_FILE
  value: {{ printf "/etc/docket/api-tokens/%s" .tokensKey | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- with include "docket.deskPeers" . }}
- name: DOCKET_DESK_PEERS
  value: {{ . | quote }}
{{- end }}
{{- with .Values.desk.oidc }}
{{- if .issuer }}
- name: DOCKET_DESK_OIDC_ISSUER
  value: {{ .issuer | quote }}
- name: DOCKET_DESK_OIDC_CLIENT_ID
  value: {{ .clientID | quote }}
- name: DOCKET_DESK_OIDC_REDIRECT_URL
  value: {{ .redirectURL | quote }}
- name: DOCKET_DESK_OIDC_GROUPS
  value: {{ $all := list }}{{ range $group, $role := .groups }}{{ $all = append $all (printf "%s:%s" $group $role) }}{{ end }}{{ $all | sortAlpha | join "," | quote }}
{{- if .secretName }}
- name: DOCKET_DESK_OIDC_CLIENT_SECRET_FILE
  value: {{ printf "/etc/docket/oidc/%s" .secretKey | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.desk.alerts }}
{{- if .secretName }}
- name: DOCKET_DESK_ALERT_URLS_FILE
  value: {{ printf "/etc/docket/alerts/%s" .urlsKey | quote }}
{{- end }}
{{- end }}
{{- end }}

{{- define "docket.deskSecrets" -}}
{{- $api := .Values.desk.api -}}
{{- $secrets := dict -}}
{{- if $api.enabled -}}
{{- $_ := set $secrets "api-tls" $api.tlsSecretName -}}
{{- with $api.tokensSecretName -}}{{- $_ := set $secrets "api-tokens" . -}}{{- end -}}
{{- end -}}
{{- if .Values.desk.oidc.issuer -}}{{- with .Values.desk.oidc.secretName -}}{{- $_ := set $secrets "oidc" . -}}{{- end -}}{{- end -}}
{{- with .Values.desk.alerts.secretName -}}{{- $_ := set $secrets "alerts" . -}}{{- end -}}
{{- toYaml $secrets -}}
{{- end }}

{{- define "docket.deskMounts" -}}
{{- range $name, $secret := include "docket.deskSecrets" . | fromYaml }}
- {name: {{ $name }}, mountPath: /etc/docket/{{ $name }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "docket.deskVolumes" -}}
{{- range $name, $secret := include "docket.deskSecrets" . | fromYaml }}
- {name: {{ $name }}, secret: {secretName: {{ $secret }}, defaultMode: 0440}}
{{- end }}
{{- end }}
