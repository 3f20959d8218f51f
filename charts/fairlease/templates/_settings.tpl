{{/*
One number of the values, as dict value. Empty: absent (null, or the empty string that
--set-string x= gives). "!": no whole number. Else its digits, as the worker would read them.
*/}}
{{- define "fairlease.integer" -}}
{{- $v := .value -}}
{{- if kindIs "invalid" $v -}}
{{- else if kindIs "string" $v -}}
{{- if eq $v "" -}}
{{- else if regexMatch "^\\s*[+-]?0*[0-9]{1,15}\\s*$" $v -}}
{{- /* A leading zero would be read as octal. */ -}}
{{- printf "%d" (regexReplaceAll "^([+-]?)0+([0-9])" (trim $v) "${1}${2}" | int64) -}}
{{- else -}}
!
{{- end -}}
{{- else if kindIs "float64" $v -}}
{{- /* A values file has only floats; %d and %v would print a million as 1e+06. */ -}}
{{- if and (eq (floor $v) $v) (lt $v 1e15) (gt $v -1e15) -}}
{{- printf "%.0f" $v -}}
{{- else -}}
!
{{- end -}}
{{- else if or (kindIs "int64" $v) (kindIs "int" $v) -}}
{{- if and (lt ($v | int64) 1000000000000000) (gt ($v | int64) -1000000000000000) -}}
{{- printf "%d" ($v | int64) -}}
{{- else -}}
!
{{- end -}}
{{- else -}}
!
{{- end -}}
{{- end -}}

{{/* The same for a message: `"off"` with quotes, 180.5 and 251 without. */}}
{{- define "fairlease.shown" -}}
{{- $digits := include "fairlease.integer" . -}}
{{- if and $digits (ne $digits "!") -}}
{{- $digits -}}
{{- else -}}
{{- .value | toJson | trunc 60 -}}
{{- end -}}
{{- end -}}

{{- define "fairlease.knobFacts" -}}
{{- .Files.Get "files/knobs.json" -}}
{{- end -}}

{{/* dict root, camel: the number in values if it is in range, else what the worker falls back to */}}
{{- define "fairlease.knob" -}}
{{- $facts := include "fairlease.knobFacts" .root | fromJson -}}
{{- $camel := .camel -}}
{{- range $facts.knobs -}}
{{- if eq .camel $camel -}}
{{- $fallback := .fallback | int64 -}}
{{- $maximum := ternary $fallback (.maximum | int64) (kindIs "invalid" .maximum) -}}
{{- if .derived -}}
{{- $fallback = include "fairlease.longestBudget" $.root | int64 -}}
{{- $maximum = $fallback -}}
{{- end -}}
{{- $digits := include "fairlease.integer" (dict "value" (get ($.root.Values.knobs | default dict) $camel)) -}}
{{- if and $digits (ne $digits "!") -}}
{{- $taken := and (ge ($digits | int64) (.minimum | int64)) (le ($digits | int64) $maximum) -}}
{{- ternary ($digits | int64) $fallback $taken -}}
{{- else -}}
{{- $fallback -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Milliseconds. knobs.isolateLifetimeMs is the same thing by the knob's own name. */}}
{{- define "fairlease.lifetimeMs" -}}
{{- $facts := include "fairlease.knobFacts" . | fromJson -}}
{{- $own := include "fairlease.integer" (dict "value" (.Values.worker | default dict).timeoutMs) -}}
{{- $knob := include "fairlease.integer" (dict "value" (.Values.knobs | default dict).isolateLifetimeMs) -}}
{{- $digits := ternary $knob $own (and (ne $knob "") (ne $knob "!")) -}}
{{- if or (eq $digits "") (eq $digits "!") -}}
{{- $facts.default_lifetime_ms | int64 -}}
{{- else if lt ($digits | int64) ($facts.shortest_lifetime_ms | int64) -}}
{{- $facts.default_lifetime_ms | int64 -}}
{{- else -}}
{{- $digits -}}
{{- end -}}
{{- end -}}

{{- define "fairlease.lifetimeSeconds" -}}
{{- div (include "fairlease.lifetimeMs" . | int64) 1000 -}}
{{- end -}}

{{/* Seconds, as longest_run_budget_seconds() in functions/fairlease/settings/knobs.py */}}
{{- define "fairlease.longestBudget" -}}
{{- $facts := include "fairlease.knobFacts" . | fromJson -}}
{{- $left := sub (include "fairlease.lifetimeSeconds" . | int64) ($facts.reserve_seconds | int64) -}}
{{- max ($facts.shortest_budget_seconds | int64) $left -}}
{{- end -}}

{{- define "fairlease.budgetSeconds" -}}
{{- min (include "fairlease.knob" (dict "root" . "camel" "orgSlotRunBudgetSeconds") | int64) (include "fairlease.lifetimeSeconds" . | int64) -}}
{{- end -}}

{{/* Seconds between the order to stop and the kill; as lifetime_of() in
functions/fairlease/host/lifetime.py: an isolate serves for at least 60 s. */}}
{{- define "fairlease.naturalGrace" -}}
{{- $lifetime := include "fairlease.lifetimeSeconds" . | int64 -}}
{{- $budget := include "fairlease.budgetSeconds" . | int64 -}}
{{- min (sub $lifetime $budget) (sub $lifetime 60) -}}
{{- end -}}

{{- define "fairlease.graceSeconds" -}}
{{- $digits := include "fairlease.integer" (dict "value" (.Values.worker | default dict).gracefulExitTimeoutSeconds) -}}
{{- if and $digits (ne $digits "!") -}}
{{- $digits -}}
{{- else -}}
{{- include "fairlease.naturalGrace" . -}}
{{- end -}}
{{- end -}}

{{- define "fairlease.terminationSeconds" -}}
{{- $digits := include "fairlease.integer" (dict "value" .Values.terminationGracePeriodSeconds) -}}
{{- if and $digits (ne $digits "!") -}}
{{- $digits -}}
{{- else -}}
{{- add (include "fairlease.graceSeconds" . | int64) 10 -}}
{{- end -}}
{{- end -}}

{{/*
The variables of the host that are no secret. A knob stands here only where it is set: an empty
variable is an operator's mistake to the worker, an absent one is not.
*/}}
{{- define "fairlease.environment" -}}
{{- $facts := include "fairlease.knobFacts" . | fromJson -}}
{{- $knobs := .Values.knobs | default dict -}}
FAIRLEASE_ISOLATE_LIFETIME_MS: {{ include "fairlease.lifetimeMs" . | quote }}
FAIRLEASE_LOG_FORMAT: {{ .Values.logFormat | quote }}
{{- with .Values.transport }}
FAIRLEASE_TRANSPORT: {{ . | quote }}
{{- end }}
{{- with .Values.supabaseUrl }}
SUPABASE_URL: {{ . | quote }}
{{- end }}
{{- with include "fairlease.integer" (dict "value" (.Values.worker | default dict).gracefulExitTimeoutSeconds) }}
FAIRLEASE_GRACE_SECONDS: {{ . | quote }}
{{- end }}
{{- range $knob := $facts.knobs }}
{{- if ne $knob.camel "isolateLifetimeMs" }}
{{- with include "fairlease.integer" (dict "value" (get $knobs $knob.camel)) }}
{{ $knob.env }}: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}
