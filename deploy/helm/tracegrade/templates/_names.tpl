{{- define "tracegrade.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- define "tracegrade.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains (include "tracegrade.name" .) .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name (include "tracegrade.name" .) | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "tracegrade.selectorLabels" -}}
app.kubernetes.io/name: {{ include "tracegrade.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "tracegrade.labels" -}}
{{ include "tracegrade.selectorLabels" . }}
app.kubernetes.io/component: processor
app.kubernetes.io/part-of: tracegrade
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "tracegrade.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "tracegrade.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "tracegrade.image" -}}
{{- if .Values.image.digest }}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else }}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) }}
{{- end }}
{{- end }}

{{- /*
The service's configuration; replicas watch the name that they share, unless it says what to watch, or Kafka shares
the traces out. With a volume there is a journal; replicas drain theirs, since nobody would come back to the volume of one that was removed.
*/ -}}
{{- define "tracegrade.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if and (include "tracegrade.replicated" .) (not (hasKey $config "cluster")) (not (dig "receivers" "kafka" nil $config)) }}
{{- $_ := set $config "cluster" (dict "peers_dns" (printf "%s-replicas" (include "tracegrade.fullname" .)) "resolver_interval" "10s") }}
{{- end }}
{{- if .Values.persistence.enabled }}
{{- $journal := dict "directory" "/var/lib/tracegrade/journal" }}
{{- if include "tracegrade.replicated" . }}
{{- $_ := set $journal "on_shutdown" "drain" }}
{{- end }}
{{- $_ := set $config "journal" (mergeOverwrite $journal (default dict $config.journal)) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- /* Whether there is, or may come to be, more than one pod. */ -}}
{{- define "tracegrade.replicated" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}true{{ end }}
{{- end }}

{{- define "tracegrade.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .Values.persistence.storageClassName }}
storageClassName: {{ . }}
{{- end }}
resources: {requests: {storage: {{ .Values.persistence.size }}}}
{{- end }}
