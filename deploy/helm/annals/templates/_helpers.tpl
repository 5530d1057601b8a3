{{- define "annals.labels" -}}
app.kubernetes.io/name: annals
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "annals.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "annals.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "annals.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "annals.secrets" -}}
- secretRef:
    name: {{ .Values.secrets.database }}
- secretRef:
    name: {{ .Values.secrets.keys }}
{{- if .Values.secrets.storage }}
- secretRef:
    name: {{ .Values.secrets.storage }}
{{- end }}
{{- end }}

{{/* Ports are set here, because Kubernetes injects variables of the same names for a service "annals". */}}
{{- define "annals.env" -}}
- name: ANNALS_HOST
  value: 0.0.0.0
- name: ANNALS_PORT
  value: '8080'
- name: ANNALS_METRICS_PORT
  value: '9090'
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}
