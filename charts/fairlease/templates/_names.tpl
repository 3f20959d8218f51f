{{/* At most 40 characters, for what is appended; no dot, which a release may have and a Service not. */}}
{{- define "fairlease.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $joined := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $joined .Values.fullnameOverride | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* dict root, component */}}
{{- define "fairlease.selectorLabels" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "fairlease.labels" -}}
{{ include "fairlease.selectorLabels" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* dict root, function: a name of the function's own, since `a_b_` and `a-b` read alike here */}}
{{- define "fairlease.pokeName" -}}
{{- $readable := .function | replace "_" "-" -}}
{{- $name := printf "%s-%s" (include "fairlease.fullname" .root | trunc 20 | trimSuffix "-") $readable -}}
{{- if or (gt (len $name) 52) (hasSuffix "-" $name) (gt (len (include "fairlease.fullname" .root)) 20) -}}
{{- $hash := printf "%s/%s" (include "fairlease.fullname" .root) .function | sha256sum | trunc 8 -}}
{{- printf "%s-%s" ($name | trunc 43 | trimSuffix "-") $hash -}}
{{- else -}}
{{- $name -}}
{{- end -}}
{{- end -}}

{{- define "fairlease.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "fairlease.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "fairlease.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- /* A values file has only floats, and a date would be printed as 2.0261207e+07. */ -}}
{{- $tag := ternary (printf "%.0f" (float64 $image.tag)) (toString $image.tag) (kindIs "float64" $image.tag) -}}
{{- printf "%s:%s" $image.repository (default .Chart.AppVersion (ternary "" $tag (kindIs "invalid" $image.tag))) -}}
{{- end -}}
{{- end -}}

{{/* dict root, enabled: true, false, or "auto" for "where the cluster knows the API" */}}
{{- define "fairlease.monitored" -}}
{{- if kindIs "bool" .enabled -}}
{{- ternary "yes" "" .enabled -}}
{{- else if .root.Capabilities.APIVersions.Has "monitoring.coreos.com/v1" -}}
yes
{{- end -}}
{{- end -}}
