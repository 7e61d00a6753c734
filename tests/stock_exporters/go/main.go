// Sends one request of spans with the stock OTLP/gRPC exporter for Go, set up by its environment variables.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/trace"
)

func main() {
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		log.Fatal(err)
	}
	provider := trace.NewTracerProvider(trace.WithBatcher(exporter, trace.WithMaxExportBatchSize(count)))
	for range count {
		_, span := provider.Tracer("test").Start(ctx, "span")
		span.SetAttributes(attribute.String("text", strings.Repeat("x", 1000)))
		span.End()
	}
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}
