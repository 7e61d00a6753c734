"""The connection to Kafka brokers, for reading and for writing."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, StringConstraints, model_validator

from collector.config_fields import EMPTY_IS_DEFAULTS, ClientCertificateConfig
from collector.errors import StartupError
from processors.documents import StrictModel

Broker: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s,:/\[\]]+):[0-9]{1,5}$")
]
KafkaName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=249)]
"""A topic, a group or a client."""


class KafkaTlsConfig(ClientCertificateConfig):
    """TLS to the brokers; their certificates and names are checked. Files are PEM."""


class KafkaSaslConfig(StrictModel):
    """The credentials of the service."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """PLAIN sends the password itself: only with TLS."""
    username: str = Field(min_length=1)
    """The name of the user."""
    password: SecretStr
    """The password; never printed."""


class KafkaConnectionConfig(StrictModel):
    """The keys of everything that connects to brokers."""

    brokers: tuple[Broker, ...] = Field(min_length=1, examples=[["kafka-0.kafka:9092", "kafka-1.kafka:9092"]])
    """Brokers to connect to first, as host:port; they name the others."""
    topic: KafkaName
    client_id: KafkaName = "tracegrade"
    """The name in the brokers' logs and quotas."""
    tls: Annotated[KafkaTlsConfig | None, EMPTY_IS_DEFAULTS] = None
    """TLS to the brokers; without it everything is readable on its way."""
    sasl: KafkaSaslConfig | None = None
    """Credentials, where brokers require them."""

    @model_validator(mode="after")
    def _check_plain(self) -> Self:
        if self.sasl is not None and self.sasl.mechanism == "PLAIN" and self.tls is None:
            raise ValueError("sasl.mechanism PLAIN needs tls: the password would be readable on its way")
        return self

    @property
    def topics(self) -> Mapping[str, str]:
        """Each topic that is read or written, by its key in the configuration."""
        return {"topic": self.topic}

    def client_settings(self) -> dict[str, str | int | float | bool]:
        """The settings of librdkafka for the connection; with the password."""
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": ",".join(self.brokers),
            "client.id": self.client_id,
        }
        protocol = "plaintext"
        if self.tls is not None:
            protocol = "ssl"
            settings["ssl.endpoint.identification.algorithm"] = "https"
            files = {
                "ssl.ca.location": self.tls.ca_file,
                "ssl.certificate.location": self.tls.cert_file,
                "ssl.key.location": self.tls.key_file,
            }
            settings |= {name: str(file) for name, file in files.items() if file is not None}
        if self.sasl is not None:
            protocol = "sasl_ssl" if self.tls is not None else "sasl_plaintext"
            settings["sasl.mechanism"] = self.sasl.mechanism
            settings["sasl.username"] = self.sasl.username
            settings["sasl.password"] = self.sasl.password.get_secret_value()
        settings["security.protocol"] = protocol
        return settings


@contextmanager
def startup_errors(where: str) -> Iterator[None]:
    """Raises `StartupError`, naming `where`, if the client is not installed or rejects its settings."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise StartupError(f"{where}: needs the extra kafka: install tracegrade[kafka]") from error
    try:
        yield
    except confluent_kafka.KafkaException as error:
        raise StartupError(f"{where}: {error.args[0].str()}") from error
