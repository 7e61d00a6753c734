{{- /* What a schema cannot say: settings that must fit each other. Fails with what to change. */ -}}
{{- define "tracegrade.checks" -}}
{{- $limit := include "tracegrade.mebibytes" (dig "limits" "memory" "0" .Values.resources) | int }}
{{- $held := dig "processors" "memory_limiter" "limit_mib" 2048 .Values.config | int }}
{{- $flight := div (dig "receivers" "otlp" "max_bytes_in_flight" 268435456 .Values.config | int64) 1048576 | int }}
{{- if and $limit (gt (mul (add $held $flight) 10) (mul $limit 8)) }}
{{- fail (printf "config.processors.memory_limiter.limit_mib (%d) and config.receivers.otlp.max_bytes_in_flight (%d MiB) are together more than 80 %% of resources.limits.memory (%d MiB): the service would refuse to start; lower limit_mib or raise the memory" $held $flight $limit) }}
{{- end }}
{{- $shutdown := include "tracegrade.seconds" (dig "service" "shutdown_timeout" "30s" .Values.config) | int }}
{{- if ge $shutdown (int .Values.terminationGracePeriodSeconds) }}
{{- fail (printf "terminationGracePeriodSeconds is %d, not more than config.service.shutdown_timeout (%d s): the pod would be killed while it delivers what it holds" (int .Values.terminationGracePeriodSeconds) $shutdown) }}
{{- end }}
{{- $directory := dig "journal" "directory" "/var/lib/tracegrade/journal" .Values.config }}
{{- if .Values.persistence.enabled }}
{{- if not (hasPrefix "/var/lib/tracegrade/" $directory) }}
{{- fail (printf "config.journal.directory (%s) is not on the volume of persistence: expected a folder in /var/lib/tracegrade, or none" $directory) }}
{{- end }}
{{- $journal := div (dig "journal" "max_bytes" 4294967296 .Values.config | int64) 1048576 | int }}
{{- $needed := add (div (mul $journal 3) 2) 64 | int }}
{{- if lt (include "tracegrade.mebibytes" .Values.persistence.size | int) $needed }}
{{- fail (printf "persistence.size (%s) is less than the journal's file may take (%d MiB, one and a half times config.journal.max_bytes and 64 MiB): raise it or lower max_bytes" .Values.persistence.size $needed) }}
{{- end }}
{{- end }}
{{- range $name, $address := dict "receivers.otlp.protocols.grpc.endpoint" (dig "receivers" "otlp" "protocols" "grpc" "endpoint" "" .Values.config) "receivers.otlp.protocols.http.endpoint" (dig "receivers" "otlp" "protocols" "http" "endpoint" "" .Values.config) "service.telemetry.endpoint" (dig "service" "telemetry" "endpoint" "127.0.0.1:" .Values.config) }}
{{- if hasPrefix "127.0.0.1:" $address }}
{{- fail (printf "config.%s listens inside the pod only: nobody could reach it; expected an address such as 0.0.0.0:4317" $name) }}
{{- end }}
{{- end }}
{{- end }}
