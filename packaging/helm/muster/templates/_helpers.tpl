{{- define "muster.labels" -}}
app.kubernetes.io/name: muster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "muster.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "muster.joinSecret" -}}
{{ .Values.join.secretName | default (printf "%s-join" .Release.Name) }}
{{- end }}

{{/* The DNS names of all servers, as options of muster. */}}
{{- define "muster.joins" -}}
{{- range $i := until (int .Values.servers.replicas) }} --join {{ $.Release.Name }}-server-{{ $i }}.{{ $.Release.Name }}-servers.{{ $.Release.Namespace }}.svc
{{- end }}
{{- end }}
