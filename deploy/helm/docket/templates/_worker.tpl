{{/* Consumer and replayer: they differ in name, program and values alone. Dict: root, name, values, command, scaled. */}}
{{- define "docket.worker" -}}
{{- $spool := .values.spool -}}
apiVersion: apps/v1
kind: {{ include "docket.workerKind" . }}
metadata:
  name: {{ include "docket.componentName" . }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "docket.labels" . | nindent 4 }}
  {{- include "docket.annotations" (dict "root" .root) }}
spec:
  {{- if not .scaled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  minReadySeconds: {{ .values.minReadySeconds }}
  selector:
    matchLabels: {{- include "docket.selector" . | nindent 6 }}
  {{- if $spool.enabled }}
  serviceName: {{ include "docket.componentName" . }}
  # All at once: the group deals out partitions, not the pod's number. It also lets a rollout that went wrong be mended
  # by the next one; in order, that would wait for the broken pod to be ready.
  podManagementPolicy: Parallel
  updateStrategy: {type: RollingUpdate}
  # What is in a spool is at home there: claims stay until a person removes them.
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Retain, whenScaled: Retain}
  volumeClaimTemplates:
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata:
        name: spool
        labels:
          {{- include "docket.selector" . | nindent 10 }}
          {{- with $spool.labels }}
          {{- toYaml . | nindent 10 }}
          {{- end }}
        {{- with $spool.annotations }}
        annotations: {{- toYaml . | nindent 10 }}
        {{- end }}
      spec:
        accessModes: {{ $spool.accessModes | toJson }}
        {{- with $spool.storageClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources: {requests: {storage: {{ $spool.size }}}}
  {{- else }}
  # One goes, then one comes: no more rebalances than needed. Pods that hold are replaced first.
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  {{- end }}
  template:
    {{- $env := ternary "/var/lib/docket/spool" "" $spool.enabled | quote | printf "- name: DOCKET_SPOOL_DIR\n  value: %s" }}
    {{- $mounts := ternary "- {name: spool, mountPath: /var/lib/docket}" "" $spool.enabled }}
    {{- include "docket.podTemplate" (merge (dict "env" $env "mounts" $mounts) .) | nindent 4 }}
{{- end }}
