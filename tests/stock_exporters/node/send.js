// Sends one request of spans with the stock OTLP/gRPC exporter for Node, set up by its environment variables.
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";

const count = Number(process.argv[2]);
const processor = new BatchSpanProcessor(new OTLPTraceExporter(), { maxExportBatchSize: count });
const provider = new BasicTracerProvider({ spanProcessors: [processor] });
for (let number = 0; number < count; number++) {
  provider.getTracer("test").startSpan("span", { attributes: { text: "x".repeat(1000) } }).end();
}
await provider.shutdown();
