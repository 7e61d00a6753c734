{{- /* The ports of the configuration as JSON by port name; a listener that is not written is off. */ -}}
{{- define "tracegrade.ports" -}}
{{- $ports := dict }}
{{- $protocols := dig "receivers" "otlp" "protocols" (dict "grpc" dict "http" dict) .Values.config }}
{{- if hasKey $protocols "grpc" }}
{{- $_ := set $ports "otlp-grpc" (dig "endpoint" "127.0.0.1:4317" (default dict $protocols.grpc) | splitList ":" | last | int) }}
{{- end }}
{{- if hasKey $protocols "http" }}
{{- $_ := set $ports "otlp-http" (dig "endpoint" "127.0.0.1:4318" (default dict $protocols.http) | splitList ":" | last | int) }}
{{- end }}
{{- $telemetry := dig "service" "telemetry" "endpoint" "127.0.0.1:9464" .Values.config }}
{{- $_ := set $ports "metrics" (dig "exporters" "prometheus" "endpoint" $telemetry .Values.config | splitList ":" | last | int) }}
{{- toJson $ports }}
{{- end }}

{{- /* A probe: gRPC health under the name `service`, or HTTP at `path` where gRPC is off or speaks TLS. */ -}}
{{- define "tracegrade.probe" -}}
{{- $ports := include "tracegrade.ports" .root | fromJson }}
{{- $tls := dig "receivers" "otlp" "protocols" "grpc" "tls" dict .root.Values.config }}
{{- if and (hasKey $ports "otlp-grpc") (not $tls) -}}
grpc: {port: {{ index $ports "otlp-grpc" }}, service: {{ .service }}}
{{- else -}}
httpGet: {path: {{ .path }}, port: metrics}
{{- end }}
{{- end }}

{{- /* A duration of the configuration (`30s`, `1m30s`, `500ms`) in whole seconds, rounded up. */ -}}
{{- define "tracegrade.seconds" -}}
{{- $units := dict "h" 3600.0 "m" 60.0 "s" 1.0 "ms" 0.001 "us" 0.000001 "ns" 0.000000001 }}
{{- $total := 0.0 }}
{{- range regexFindAll "[0-9.]+(ms|us|ns|h|m|s)" (toString .) -1 }}
{{- $total = addf $total (mulf (regexFind "[0-9.]+" . | float64) (get $units (regexFind "[a-z]+" .))) }}
{{- end }}
{{- ceil $total | int }}
{{- end }}

{{- /* A quantity of memory (`2Gi`, `512Mi`, `1G`) in MiB; 0 where it is none that this knows. */ -}}
{{- define "tracegrade.mebibytes" -}}
{{- $units := dict "Ki" 0.0009765625 "Mi" 1.0 "Gi" 1024.0 "Ti" 1048576.0 "k" 0.00095367431640625 "M" 0.95367431640625 "G" 953.67431640625 }}
{{- $unit := regexFind "[A-Za-z]+$" (toString .) }}
{{- if hasKey $units $unit }}
{{- mulf (regexFind "^[0-9.]+" (toString .) | float64) (get $units $unit) | floor | int }}
{{- else }}0{{ end }}
{{- end }}
