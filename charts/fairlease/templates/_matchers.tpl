{{/* Label matchers of this release's series, without braces; as the ServiceMonitor labels them. */}}
{{- define "fairlease.matchers" -}}
{{- if .Values.prometheusRule.matchers -}}
{{- .Values.prometheusRule.matchers -}}
{{- else -}}
namespace="{{ .Release.Namespace }}",job="{{ include "fairlease.fullname" . }}"
{{- end -}}
{{- end -}}
