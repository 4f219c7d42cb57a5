{{/* One service of values.services: workload, Service, ServiceAccount, Role, NetworkPolicy. Takes root, part, service. */}}

{{- define "mycelium.service" -}}
{{- $name := printf "%s-%s" (include "mycelium.name" .root) .part -}}
{{- $stateful := eq .service.kind "StatefulSet" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  labels: {{- include "mycelium.labels" . | nindent 4 }}
automountServiceAccountToken: false
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels: {{- include "mycelium.labels" . | nindent 4 }}
spec:
  {{- if not .service.ports }}
  clusterIP: None
  {{- end }}
  selector: {{- include "mycelium.selector" . | nindent 4 }}
  ports:
    {{- range $port, $number := .service.ports }}
    - {name: {{ $port }}, port: {{ $number }}, targetPort: {{ $port }}}
    {{- end }}
    - {name: probes, port: 9100, targetPort: probes}
---
apiVersion: apps/v1
kind: {{ .service.kind }}
metadata:
  name: {{ $name }}
  labels: {{- include "mycelium.labels" . | nindent 4 }}
spec:
  replicas: {{ .service.replicas }}
  selector:
    matchLabels: {{- include "mycelium.selector" . | nindent 6 }}
  {{- if $stateful }}
  serviceName: {{ $name }}
  podManagementPolicy: Parallel
  persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete, whenScaled: Delete}
  volumeClaimTemplates:
    {{- include "mycelium.claim" (dict "root" .root "part" .part "volume" "tables" "size" .service.tables "storageClass" .service.storageClass) | nindent 4 }}
  {{- else if eq (int .service.replicas) 1 }}
  strategy: {type: Recreate}
  {{- else }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  {{- end }}
  template:
    metadata:
      labels:
        {{- include "mycelium.labels" . | nindent 8 }}
        {{- range .service.calls }}
        mycelium.dev/calls-{{ . }}: "yes"
        {{- end }}
    spec: {{- include "mycelium.pod" . | nindent 6 }}
{{- if gt (int .service.replicas) 1 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $name }}
  labels: {{- include "mycelium.labels" . | nindent 4 }}
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {{- include "mycelium.selector" . | nindent 6 }}
{{- end }}
{{- if .service.rules }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {{ $name }}
  labels: {{- include "mycelium.labels" . | nindent 4 }}
rules: {{- toYaml .service.rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {{ $name }}
  labels: {{- include "mycelium.labels" . | nindent 4 }}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: {{ $name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $name }}, namespace: {{ .root.Release.Namespace }}}
{{- end }}
{{- if .root.Values.network.policies }}
---
{{ include "mycelium.policy" . }}
{{- end }}
{{- end }}

{{- define "mycelium.pod" -}}
{{- $root := .root -}}
serviceAccountName: {{ include "mycelium.name" .root }}-{{ .part }}
automountServiceAccountToken: {{ gt (len (.service.rules | default list)) 0 }}
enableServiceLinks: false # their variables look like settings: MYCELIUM_GATEWAY_PORT
terminationGracePeriodSeconds: {{ add 30 (.service.pauseS | default 0) }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets: {{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{ include "mycelium.podSecurity" . }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "mycelium.selector" . | nindent 8 }}
{{- if has "nats" .service.calls }}
initContainers:
  - name: wait
    image: {{ include "mycelium.image" . }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    {{- include "mycelium.containerSecurity" . | nindent 4 }}
    command:
      - python
      - -c
      - |
        {{- .root.Files.Get "files/wait.py" | nindent 8 }}
    env:
      - {name: MYCELIUM_NATS_SERVERS, value: {{ include "mycelium.nats.servers" .root | quote }}}
    resources: {{- toYaml .service.resources | nindent 6 }}
{{- end }}
containers:
  - name: {{ .part }}
    image: {{ include "mycelium.image" . }}
    imagePullPolicy: {{ .root.Values.image.pullPolicy }}
    {{- include "mycelium.containerSecurity" . | nindent 4 }}
    env: {{- include "mycelium.environment" . | nindent 6 }}
    ports:
      {{- range $port, $number := .service.ports }}
      - {name: {{ $port }}, containerPort: {{ $number }}}
      {{- end }}
      - {name: probes, containerPort: 9100}
    # Alive while its event loop turns; ready once connected and caught up with the log.
    startupProbe: {httpGet: {path: /readyz, port: probes}, periodSeconds: 1, timeoutSeconds: 3, failureThreshold: 600}
    readinessProbe: {httpGet: {path: /readyz, port: probes}, periodSeconds: 2, timeoutSeconds: 3, failureThreshold: 2}
    livenessProbe: {httpGet: {path: /healthz, port: probes}, periodSeconds: 5, timeoutSeconds: 3, failureThreshold: 6}
    {{- with .service.pauseS }}
    lifecycle: {preStop: {sleep: {seconds: {{ . }}}}} # until nobody sends it new connections any more
    {{- end }}
    resources: {{- toYaml .service.resources | nindent 6 }}
    volumeMounts:
      - {name: tmp, mountPath: /tmp}
      {{- if .service.tables }}
      - {name: tables, mountPath: /tables}
      {{- end }}
      {{- range $path, $secret := .service.files }}
      {{- if tpl $secret $root }}
      - {name: {{ base $path }}, mountPath: {{ $path }}, readOnly: true}
      {{- end }}
      {{- end }}
volumes:
  - name: tmp
    emptyDir: {}
  {{- range $path, $secret := .service.files }}
  {{- with tpl $secret $root }}
  - name: {{ base $path }}
    secret: {secretName: {{ . }}, defaultMode: 0440}
  {{- end }}
  {{- end }}
{{- end }}

{{- define "mycelium.environment" -}}
{{- $root := .root -}}
{{- if has "nats" .service.calls -}}
- {name: MYCELIUM_NATS_SERVERS, value: {{ include "mycelium.nats.servers" .root | quote }}}
- {name: MYCELIUM_NATS_REPLICAS, value: {{ .root.Values.nats.replicas | quote }}}
- name: MYCELIUM_NATS_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "mycelium.nats.secret" .root }}, key: {{ .part }}}}
- name: MYCELIUM_NATS_MONITOR_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ include "mycelium.nats.secret" .root }}, key: monitor}}
{{ end -}}
- {name: MYCELIUM_SERVICE_PROBE_HOST, value: 0.0.0.0}
- {name: MYCELIUM_SERVICE_PROBE_PORT, value: "9100"}
- {name: MYCELIUM_LOG_LEVEL, value: {{ .root.Values.log.level }}}
{{- with .root.Values.telemetry.tracesEndpoint }}
- {name: MYCELIUM_TELEMETRY_TRACES_ENDPOINT, value: {{ . | quote }}}
{{- end }}
{{- range $key, $value := .service.settings }}
{{- with tpl (toString $value) $root }}
- {name: MYCELIUM_{{ $key | replace "." "_" | upper }}, value: {{ . | quote }}}
{{- end }}
{{- end }}
{{- range $key, $place := .service.secrets }}
{{- with tpl $place $root }}
- name: MYCELIUM_{{ $key | replace "." "_" | upper }}
  valueFrom: {secretKeyRef: {name: {{ dir . }}, key: {{ base . | trimSuffix "?" }}, optional: {{ hasSuffix "?" . }}}}
{{- end }}
{{- end }}
{{- end }}

{{- /* Default deny; then in: the callers of its ports, and nobody to the port of probes but the node; out: what it calls. */ -}}
{{- define "mycelium.policy" -}}
{{- $root := .root -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "mycelium.name" .root }}-{{ .part }}
  labels: {{- include "mycelium.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- include "mycelium.selector" . | nindent 6 }}
  policyTypes: [Ingress, Egress]
  {{- if .service.ports }}
  ingress:
    - from:
        - podSelector:
            matchLabels:
              app.kubernetes.io/instance: {{ .root.Release.Name }}
              mycelium.dev/calls-{{ .part }}: "yes"
        {{- with .service.callers }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        {{- range $port, $number := .service.ports }}
        - {protocol: TCP, port: {{ $number }}}
        {{- end }}
  {{- else }}
  ingress: []
  {{- end }}
  egress:
    - to: {{- toYaml .root.Values.network.dns | nindent 8 }}
      ports:
        - {protocol: UDP, port: 53}
        - {protocol: TCP, port: 53}
    {{- range .service.calls }}
    {{- include "mycelium.arrow" (dict "root" $root "to" .) | nindent 4 }}
    {{- end }}
{{- end }}

{{- /* One rule of egress. Takes root and to: a service or a server of this release, kubernetes, internet. */ -}}
{{- define "mycelium.arrow" -}}
{{- $values := .root.Values -}}
{{- if eq .to "kubernetes" -}}
- ports:
    {{- range $values.network.kubernetes.ports }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- else if eq .to "issuers" -}}
{{- if $values.auth.enabled -}}
- to: {{- toYaml $values.network.issuers.to | nindent 4 }}
  ports:
    {{- range include "mycelium.issuers.ports" .root | fromJsonArray }}
    - {protocol: TCP, port: {{ . }}}
    {{- end }}
{{- end -}}
{{- else if eq .to "internet" -}}
- to: {{- toYaml $values.network.internet | nindent 4 }}
{{- else if and (has .to (list "nats" "temporal")) (not (get $values .to).enabled) -}}
- ports: # {{ .to }} is somewhere else
    {{- range eq .to "nats" | ternary $values.nats.existing.servers (list $values.temporal.existing.address) }}
    - {protocol: TCP, port: {{ regexFind "[0-9]+$" . | default "4222" }}}
    {{- end }}
{{- else -}}
- to:
    - podSelector:
        matchLabels: {{- include "mycelium.selector" (dict "root" .root "part" .to) | nindent 10 }}
{{- end }}
{{- end }}
