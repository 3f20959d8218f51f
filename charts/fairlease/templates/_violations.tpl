{{/*
What cannot work, one line each: the value, the limit with its arithmetic, the remedies. The worker
would correct the knobs by itself and say so; here somebody is looking.
*/}}
{{- define "fairlease.violations" -}}
{{- include "fairlease.violations.lifetime" . -}}
{{- include "fairlease.violations.ranges" . -}}
{{- include "fairlease.violations.budget" . -}}
{{- include "fairlease.violations.inFlight" . -}}
{{- include "fairlease.violations.visibility" . -}}
{{- include "fairlease.violations.withinLifetime" . -}}
{{- include "fairlease.violations.grace" . -}}
{{- include "fairlease.violations.termination" . -}}
{{- include "fairlease.violations.memory" . -}}
{{- include "fairlease.violations.extraEnv" . -}}
{{- include "fairlease.violations.scaling" . -}}
{{- include "fairlease.violations.cron" . -}}
{{- end -}}

{{/* dict path, value, minimum, maximum (-1: none), unit, absent; `maximum` is not looked at here */}}
{{- define "fairlease.violations.number" -}}
{{- $digits := include "fairlease.integer" . -}}
{{- $minimum := .minimum | int64 -}}
{{- $maximum := .maximum | int64 -}}
{{- $range := ternary (printf "%d or more" $minimum) (printf "%d to %d" $minimum $maximum) (lt $maximum 0) -}}
{{- $remedy := printf "give %s, or remove it (then %s)" $range .absent -}}
{{- if eq $digits "!" }}
- {{ .path }}={{ include "fairlease.shown" . }} is no whole number ({{ .unit }}): {{ $remedy }}
{{- else if $digits }}
{{- if lt ($digits | int64) $minimum }}
- {{ .path }}={{ $digits }} is below {{ $minimum }} ({{ .unit }}): {{ $remedy }}
{{- else if and (ge $maximum 0) (gt ($digits | int64) $maximum) }}
- {{ .path }}={{ $digits }} is above {{ $maximum }} ({{ .unit }}): {{ $remedy }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "fairlease.violations.lifetime" -}}
{{- $facts := include "fairlease.knobFacts" . | fromJson -}}
{{- $default := $facts.default_lifetime_ms | int64 -}}
{{- $given := (.Values.worker | default dict).timeoutMs -}}
{{- include "fairlease.violations.number" (dict "path" "worker.timeoutMs" "value" $given "minimum" $facts.shortest_lifetime_ms "maximum" -1 "unit" "milliseconds" "absent" (toString $default)) -}}
{{- $own := include "fairlease.integer" (dict "value" $given) -}}
{{- $knob := include "fairlease.integer" (dict "value" (.Values.knobs | default dict).isolateLifetimeMs) -}}
{{- if and $own $knob (ne $own "!") (ne $knob "!") (ne $own (toString $default)) (ne $own $knob) }}
- knobs.isolateLifetimeMs={{ $knob }} and worker.timeoutMs={{ $own }} say two things of one: remove one of them
{{- end }}
{{- end -}}

{{- define "fairlease.violations.ranges" -}}
{{- $knobs := .Values.knobs | default dict -}}
{{- $known := list -}}
{{- range (include "fairlease.knobFacts" . | fromJson).knobs -}}
{{- $known = append $known .camel -}}
{{- $maximum := .maximum -}}
{{- $absent := printf "%d" (.fallback | int64) -}}
{{- if .derived -}}
{{- $absent = include "fairlease.longestBudget" $ -}}
{{- $maximum = $absent | int64 -}}
{{- end -}}
{{- if kindIs "invalid" $maximum -}}{{- $maximum = -1 -}}{{- end -}}
{{- $said := include "fairlease.violations.number" (dict "path" (printf "knobs.%s" .camel) "value" (get $knobs .camel) "minimum" .minimum "maximum" $maximum "unit" .unit "absent" $absent) -}}
{{- /* Above a derived maximum there is more to say than the range. */ -}}
{{- if not (and .derived (contains " is above " $said)) -}}{{- $said -}}{{- end -}}
{{- end -}}
{{- range $name, $_ := $knobs -}}
{{- if not (has $name $known) }}
- knobs.{{ $name }} is no knob, and would be read by nobody: remove it, or correct its name to one of {{ join ", " $known }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "fairlease.violations.budget" -}}
{{- $facts := include "fairlease.knobFacts" . | fromJson -}}
{{- $reserve := $facts.reserve_seconds | int64 -}}
{{- $shortest := $facts.shortest_budget_seconds | int64 -}}
{{- $digits := include "fairlease.integer" (dict "value" (.Values.knobs | default dict).orgSlotRunBudgetSeconds) -}}
{{- $longest := include "fairlease.longestBudget" . | int64 -}}
{{- if and $digits (ne $digits "!") (gt ($digits | int64) $longest) }}
{{- $lifetimeMs := include "fairlease.lifetimeMs" . }}
- knobs.orgSlotRunBudgetSeconds={{ $digits }} is above {{ $longest }} = max({{ $shortest }}, floor({{ $lifetimeMs }} / 1000) - {{ $reserve }}), what worker.timeoutMs={{ $lifetimeMs }} leaves when one worst message ({{ $facts.worst_message_seconds }} s) and the exit ({{ $facts.exit_margin_seconds }} s) must still fit: give {{ $shortest }}{{ if gt $longest $shortest }} to {{ $longest }}{{ end }}, raise worker.timeoutMs to {{ mul (add ($digits | int64) $reserve) 1000 }} or more, or remove the knob (then {{ $longest }})
{{- end }}
{{- end -}}

{{- define "fairlease.violations.inFlight" -}}
{{- $concurrency := include "fairlease.knob" (dict "root" . "camel" "drainConcurrency") | int64 -}}
{{- $slots := include "fairlease.knob" (dict "root" . "camel" "orgSlotMaxPerOrg") | int64 -}}
{{- $ceiling := include "fairlease.knob" (dict "root" . "camel" "orgInFlightCeiling") | int64 -}}
{{- $product := mul $concurrency $slots -}}
{{- if gt $product $ceiling }}
- knobs.drainConcurrency={{ $concurrency }} times knobs.orgSlotMaxPerOrg={{ $slots }} is {{ $product }} messages of one org in flight, above knobs.orgInFlightCeiling={{ $ceiling }}: raise the ceiling to {{ $product }}, or lower the product
{{- if ge (div $ceiling $slots) 1 }}, drainConcurrency to {{ div $ceiling $slots }}{{ end }}
{{- if ge (div $ceiling $concurrency) 1 }}, or orgSlotMaxPerOrg to {{ div $ceiling $concurrency }}{{ end }}
{{- end }}
{{- end -}}

{{- define "fairlease.violations.visibility" -}}
{{- $visibility := include "fairlease.knob" (dict "root" . "camel" "visibilityTimeoutSeconds") | int64 -}}
{{- $ttl := include "fairlease.knob" (dict "root" . "camel" "orgSlotLeaseTtlSeconds") | int64 -}}
{{- $longest := div (mul $visibility 3) 2 -}}
{{- if gt $ttl $longest }}
- knobs.orgSlotLeaseTtlSeconds={{ $ttl }} is above {{ $longest }} = {{ $visibility }} * 3 / 2: a heartbeat comes every third of the lease, which must be at most half of knobs.visibilityTimeoutSeconds={{ $visibility }}: lower the lease to {{ $longest }}, or raise the visibility timeout to {{ div (add (mul $ttl 2) 2) 3 }}
{{- end }}
{{- end -}}

{{- define "fairlease.violations.withinLifetime" -}}
{{- $lifetime := include "fairlease.lifetimeSeconds" . | int64 -}}
{{- $lifetimeMs := include "fairlease.lifetimeMs" . -}}
{{- $ttl := include "fairlease.knob" (dict "root" . "camel" "orgSlotLeaseTtlSeconds") | int64 -}}
{{- if ge $ttl $lifetime }}
- knobs.orgSlotLeaseTtlSeconds={{ $ttl }} is not below {{ $lifetime }} = floor({{ $lifetimeMs }} / 1000), the life of an isolate: lower the lease to {{ sub $lifetime 1 }}, or raise worker.timeoutMs to {{ mul (add $ttl 1) 1000 }}
{{- end }}
{{- /* Its fallback narrows with the lifetime, and is nobody's mistake. */ -}}
{{- $stall := include "fairlease.integer" (dict "value" (.Values.knobs | default dict).maxStallSeconds) -}}
{{- $longest := div (mul $lifetime 3) 4 -}}
{{- if and (eq $stall (include "fairlease.knob" (dict "root" . "camel" "maxStallSeconds"))) (gt ($stall | int64) $longest) }}
- knobs.maxStallSeconds={{ $stall }} is above {{ $longest }} = floor({{ $lifetimeMs }} / 1000) * 3 / 4, since a stall must be seen within an isolate's life: give at most {{ $longest }}, raise worker.timeoutMs to {{ mul (div (add (mul ($stall | int64) 4) 2) 3) 1000 }}, or remove the knob
{{- end }}
{{- end -}}

{{- define "fairlease.violations.grace" -}}
{{- $reserve := (include "fairlease.knobFacts" . | fromJson).reserve_seconds | int64 -}}
{{- $given := (.Values.worker | default dict).gracefulExitTimeoutSeconds -}}
{{- $lifetime := include "fairlease.lifetimeSeconds" . | int64 -}}
{{- $budget := include "fairlease.budgetSeconds" . | int64 -}}
{{- $natural := include "fairlease.naturalGrace" . | int64 -}}
{{- $least := min $reserve $natural -}}
{{- $most := sub $lifetime 60 -}}
{{- $remedy := printf "give %d to %d, or remove it (then %d = %d - %d, lifetime less budget)" $least $most $natural $lifetime $budget -}}
{{- $digits := include "fairlease.integer" (dict "value" $given) -}}
{{- if eq $digits "!" }}
- worker.gracefulExitTimeoutSeconds={{ include "fairlease.shown" (dict "value" $given) }} is no whole number (seconds): {{ $remedy }}
{{- else if $digits }}
{{- if lt ($digits | int64) $least }}
- worker.gracefulExitTimeoutSeconds={{ $digits }} is below {{ $least }} = min({{ $reserve }}, {{ $natural }}), the reserve in which one worst message ends and is settled: {{ $remedy }}
{{- else if gt ($digits | int64) $most }}
- worker.gracefulExitTimeoutSeconds={{ $digits }} is above {{ $most }} = floor({{ include "fairlease.lifetimeMs" . }} / 1000) - 60, since an isolate serves for at least 60 s of worker.timeoutMs={{ include "fairlease.lifetimeMs" . }}: {{ $remedy }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "fairlease.violations.termination" -}}
{{- $grace := include "fairlease.graceSeconds" . | int64 -}}
{{- $least := add $grace 10 -}}
{{- $digits := include "fairlease.integer" (dict "value" .Values.terminationGracePeriodSeconds) -}}
{{- if eq $digits "!" }}
- terminationGracePeriodSeconds={{ include "fairlease.shown" (dict "value" .Values.terminationGracePeriodSeconds) }} is no whole number (seconds): give {{ $least }} or more, or remove it (then {{ $least }})
{{- else if and $digits (lt ($digits | int64) $least) }}
- terminationGracePeriodSeconds={{ $digits }} is below {{ $least }} = {{ $grace }} + 10: Kubernetes would kill the host before the grace of {{ $grace }} s in which work in flight ends: give {{ $least }} or more, or remove it (then {{ $least }})
{{- if not (include "fairlease.integer" (dict "value" (.Values.worker | default dict).gracefulExitTimeoutSeconds)) }}; the grace is {{ include "fairlease.lifetimeSeconds" . }} - {{ include "fairlease.budgetSeconds" . }}, lifetime less budget, where worker.gracefulExitTimeoutSeconds is not set{{ end }}
{{- end }}
{{- end -}}

{{/* Mebibytes of a Kubernetes quantity; empty for a notation that is not looked at. */}}
{{- define "fairlease.mebibytes" -}}
{{- $text := toString . -}}
{{- if regexMatch "^[0-9]+Gi$" $text -}}
{{- mul (trimSuffix "Gi" $text | int64) 1024 -}}
{{- else if regexMatch "^[0-9]+Mi$" $text -}}
{{- trimSuffix "Mi" $text | int64 -}}
{{- else if regexMatch "^[0-9]+G$" $text -}}
{{- div (mul (trimSuffix "G" $text | int64) 1000000000) 1048576 -}}
{{- else if regexMatch "^[0-9]+M$" $text -}}
{{- div (mul (trimSuffix "M" $text | int64) 1000000) 1048576 -}}
{{- end -}}
{{- end -}}

{{- define "fairlease.violations.memory" -}}
{{- $given := (.Values.worker | default dict).maxRssMb -}}
{{- include "fairlease.violations.number" (dict "path" "worker.maxRssMb" "value" $given "minimum" 64 "maximum" -1 "unit" "MiB" "absent" "no limit of its own") -}}
{{- $digits := include "fairlease.integer" (dict "value" $given) -}}
{{- $limit := include "fairlease.mebibytes" (((.Values.resources | default dict).limits | default dict).memory | default "") -}}
{{- if and $digits $limit (ne $digits "!") -}}
{{- $needed := add (mul ($digits | int64) 2) 96 -}}
{{- if gt $needed ($limit | int64) }}
- resources.limits.memory={{ .Values.resources.limits.memory }} is below {{ $needed }}Mi = 2 * {{ $digits }} + 96: an isolate and its successor run side by side, each up to worker.maxRssMb={{ $digits }}, beside their parent (up to 96): raise the limit to {{ $needed }}Mi, or lower worker.maxRssMb to {{ div (sub ($limit | int64) 96) 2 }}
{{- end }}
{{- end -}}
{{- end -}}

{{- define "fairlease.violations.extraEnv" -}}
{{- $owners := dict "FAIRLEASE_GRACE_SECONDS" "worker.gracefulExitTimeoutSeconds" "EDGE_WORKER_TIMEOUT_MS" "worker.timeoutMs" "FAIRLEASE_LOG_FORMAT" "logFormat" "FAIRLEASE_TRANSPORT" "transport" -}}
{{- range (include "fairlease.knobFacts" . | fromJson).knobs -}}
{{- $_ := set $owners .env (ternary "worker.timeoutMs" (printf "knobs.%s" .camel) (eq .camel "isolateLifetimeMs")) -}}
{{- end -}}
{{- range .Values.extraEnv -}}
{{- if hasKey $owners .name }}
- extraEnv sets {{ .name }}, which would win unchecked over {{ get $owners .name }}: set {{ get $owners .name }} instead
{{- end }}
{{- end -}}
{{- end -}}

{{- define "fairlease.violations.scaling" -}}
{{- $hpa := .Values.autoscaling.hpa -}}
{{- $keda := .Values.autoscaling.keda -}}
{{- if and $hpa.enabled $keda.enabled }}
- autoscaling.hpa.enabled=true and autoscaling.keda.enabled=true would both set the replicas of one Deployment: enable one
{{- end }}
{{- if and $hpa.enabled (gt ($hpa.minReplicas | int64) ($hpa.maxReplicas | int64)) }}
- autoscaling.hpa.minReplicas={{ $hpa.minReplicas }} is above autoscaling.hpa.maxReplicas={{ $hpa.maxReplicas }}: lower the one or raise the other
{{- end }}
{{- if and $keda.enabled (gt ($keda.minReplicas | int64) ($keda.maxReplicas | int64)) }}
- autoscaling.keda.minReplicas={{ $keda.minReplicas }} is above autoscaling.keda.maxReplicas={{ $keda.maxReplicas }}: lower the one or raise the other
{{- end }}
{{- if and $keda.enabled (not $keda.triggers) (not $keda.prometheusAddress) }}
- autoscaling.keda.enabled=true has nothing to scale on: set autoscaling.keda.prometheusAddress, or autoscaling.keda.triggers
{{- end }}
{{- $budget := .Values.podDisruptionBudget -}}
{{- if and $budget.enabled (not (kindIs "invalid" $budget.minAvailable)) (not (kindIs "invalid" $budget.maxUnavailable)) }}
- podDisruptionBudget.minAvailable={{ $budget.minAvailable }} and podDisruptionBudget.maxUnavailable={{ $budget.maxUnavailable }} exclude each other: set one of them to null
{{- end }}
{{- end -}}

{{- define "fairlease.violations.cron" -}}
{{- if .Values.cron.enabled -}}
{{- $cluster := trimPrefix "v" .Capabilities.KubeVersion.Version -}}
{{- if and .Values.cron.timeZone (semverCompare "<1.27.0-0" $cluster) }}
- cron.timeZone={{ .Values.cron.timeZone | quote }} needs Kubernetes 1.27, and this is {{ $cluster }}, which would ignore it: remove it, and write the schedules in the cluster's own time
{{- end }}
{{- $seen := list -}}
{{- range .Values.cron.functions -}}
{{- if has .name $seen }}
- cron.functions names {{ .name }} twice: remove one
{{- end }}
{{- $seen = append $seen .name -}}
{{- $field := "([0-9*/,-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)+" -}}
{{- $form := printf "(?i)^(@(hourly|daily|midnight|weekly|monthly|yearly)|%s(\\s+%s){4})$" $field $field -}}
{{- if not (regexMatch $form (toString .schedule)) }}
- cron.functions {{ .name }}: schedule={{ .schedule | quote }} is no cron expression: give five fields such as "* * * * *", or @hourly, @daily, ...
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
