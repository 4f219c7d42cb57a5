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

{{- /* The secret that the operator signs in by; empty when nobody has to, or there is no operator. */ -}}
{{- define "mycelium.operator.secret" -}}
{{- if and .Values.auth.enabled .Values.services.operator.enabled -}}
{{- .Values.auth.operatorSecret | default (printf "%s-operator" (include "mycelium.name" .)) }}
{{- end -}}
{{- end }}

{{- /* The secret that the web app's cookies are sealed with; empty when people don't sign in there. */ -}}
{{- define "mycelium.web.secret" -}}
{{- with .Values.auth.web -}}
{{- if .issuer }}{{ .existingSecret | default (printf "%s-web" (include "mycelium.name" $)) }}{{ end -}}
{{- end -}}
{{- end }}

{{- /* Why sign-in is not set up as it has to be; empty when it is. */ -}}
{{- define "mycelium.auth.fault" -}}
{{- $auth := .Values.auth -}}
{{- $known := list -}}
{{- range $auth.issuers }}{{ $known = append $known .issuer }}{{ end -}}
{{- if not (or $auth.enabled $auth.insecure) -}}
say who has to sign in: set auth.enabled=true and auth.issuers, or auth.insecure=true if whoever reaches the gateway may be who they say
{{- else if and $auth.enabled (not $auth.issuers) -}}
auth.enabled is true and auth.issuers is empty, so nobody could sign in: list whose tokens are believed, [{issuer: https://...}]
{{- else if and $auth.web.issuer (not $auth.enabled) -}}
auth.web.issuer is set and nobody has to sign in: set auth.enabled=true and auth.issuers
{{- else if and $auth.web.issuer (not (has $auth.web.issuer $known)) -}}
auth.web.issuer is {{ $auth.web.issuer }}, whose tokens are not believed: add it to auth.issuers
{{- end -}}
{{- end }}

{{- /* The ports of the addresses at which the gateway reaches issuers, as a list in JSON. */ -}}
{{- define "mycelium.issuers.ports" -}}
{{- $addresses := list -}}
{{- range .Values.auth.issuers }}{{ $addresses = append $addresses (.jwks_url | default .issuer) }}{{ end -}}
{{- with .Values.auth.web.issuer }}{{ $addresses = append $addresses ($.Values.auth.web.internalIssuer | default .) }}{{ end -}}
{{- $ports := list -}}
{{- range $addresses -}}
{{- $host := (urlParse .).host -}}
{{- $ports = append $ports (regexFind ":[0-9]+$" $host | trimPrefix ":" | default (hasPrefix "https:" . | ternary "443" "80") | int) -}}
{{- end -}}
{{- .Values.network.issuers.ports | default (uniq $ports) | toJson -}}
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
