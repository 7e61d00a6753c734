import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;

/** Sends one request of spans with the stock OTLP/gRPC exporter for Java, set up by its environment variables. */
public final class Send {
  public static void main(String[] arguments) {
    OpenTelemetrySdk sdk = AutoConfiguredOpenTelemetrySdk.initialize().getOpenTelemetrySdk();
    for (int number = 0; number < Integer.parseInt(arguments[0]); number++) {
      sdk.getTracer("test").spanBuilder("span").setAttribute("text", "x".repeat(1000)).startSpan().end();
    }
    sdk.close();
  }
}
