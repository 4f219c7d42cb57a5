{{/* Names, labels and what every pod has in common. */}}

{{- define "mycelium.name" -}}
{{- if contains "mycelium" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-mycelium{{ end }}
{{- end }}

{{- /* Takes (dict "root" $ "part" name). */ -}}
{{- define "mycelium.selector" -}}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/name: mycelium
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "mycelium.labels" -}}
{{ include "mycelium.selector" . }}
app.kubernetes.io/part-of: mycelium
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "mycelium.image" -}}
{{- $own := get (get .root.Values.services .part | default (get .root.Values .part)) "image" -}}
{{- $own | default (printf "%s/mycelium-%s:%s" .root.Values.image.registry .part (.root.Values.image.tag | default .root.Chart.AppVersion)) }}
{{- end }}

{{- /* The hub's own names, under which the gateway may be called. */ -}}
{{- define "mycelium.hosts" -}}
{{- $name := printf "%s-gateway" (include "mycelium.name" .) -}}
{{- $inside := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace)
    (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) -}}
{{- concat $inside .Values.allowedHosts | join "," -}}
{{- end }}

{{- /* The services that the gateway's /health asks, with how many of each have to answer. */ -}}
{{- define "mycelium.asked" -}}
{{- $asked := list -}}
{{- range $name, $service := .Values.services -}}
{{- if and $service.enabled (has "nats" $service.calls) (ne $name "gateway") -}}
{{- $asked = append $asked (printf "%s=%d" $name (int $service.replicas)) -}}
{{- end -}}
{{- end -}}
{{- join "," $asked -}}
{{- end }}

{{- define "mycelium.nats.secret" -}}
{{- if .Values.nats.enabled }}{{ include "mycelium.name" . }}-nats{{ else }}{{ .Values.nats.existing.secret }}{{ end }}
{{- end }}

{{- define "mycelium.nats.servers" -}}
{{- if .Values.nats.enabled -}}
{{- $name := printf "%s-nats" (include "mycelium.name" .) -}}
{{- $servers := list -}}
{{- range $number := until (int .Values.nats.replicas) -}}
{{- $servers = append $servers (printf "nats://%s-%d.%s:4222" $name $number $name) -}}
{{- end -}}
{{- join "," $servers -}}
{{- else -}}
{{- join "," .Values.nats.existing.servers -}}
{{- end -}}
{{- end }}

{{- define "mycelium.temporal.address" -}}
{{- if .Values.temporal.enabled }}{{ include "mycelium.name" . }}-temporal:7233{{ else }}{{ .Values.temporal.existing.address }}{{ end }}
{{- end }}

{{- define "mycelium.temporal.key" -}}
{{- .Values.temporal.existing.key | default (printf "%s-temporal" (include "mycelium.name" .)) }}
{{- end }}

{{- /* The restricted Pod Security Standard. */ -}}
{{- define "mycelium.podSecurity" -}}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "mycelium.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* Takes root, part and size: the volume of one pod of a StatefulSet. */ -}}
{{- define "mycelium.claim" -}}
- metadata:
    name: {{ .volume }}
    labels: {{- include "mycelium.selector" . | nindent 6 }}
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .storageClass }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ .size }}}}
{{- end }}
