{{- define "umpire.labels" -}}
app.kubernetes.io/name: umpire
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "umpire.selector" -}}
app.kubernetes.io/name: umpire
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "umpire.image" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
{{- end }}

{{- define "umpire.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "umpire.metrics" -}}
- name: UMPIRE_METRICS_HOST
  value: "0.0.0.0"
- name: UMPIRE_METRICS_PORT
  value: {{ .Values.metrics.port | quote }}
{{- if .Values.metrics.secret }}
- name: UMPIRE_METRICS_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .Values.metrics.secret }}
      key: {{ .Values.metrics.key }}
{{- end }}
{{- end }}

{{- define "umpire.monitor" -}}
- port: metrics
  path: /metrics
  interval: {{ .Values.serviceMonitor.interval }}
  {{- if .Values.metrics.secret }}
  authorization:
    credentials: { name: {{ .Values.metrics.secret }}, key: {{ .Values.metrics.key }} }
  {{- end }}
{{- end }}

{{- define "umpire.config" -}}
{{- if .Values.config }}
{{- toYaml .Values.config }}
{{- end }}
{{- if .Values.worker.enabled }}
{{- if not .Values.config.models }}
# Gateways use the chart's workers, as the configuration names no models.
models:
  - sku: umpire-decide
    workers:
      - url: http://{{ .Release.Name }}-worker:{{ .Values.worker.port }}
        dialect: umpire
        key: { env: UMPIRE_WORKER_KEY }
{{- end }}
{{- end }}
{{- end }}
