"""How Kafka brokers are reached, for reading and for writing."""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, SecretStr, StringConstraints, model_validator

from collector.config_fields import EMPTY_IS_DEFAULTS, FilePath
from processors.documents import StrictModel

Broker: TypeAlias = Annotated[
    str, StringConstraints(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s,:/\[\]]+):[0-9]{1,5}$")
]
KafkaName: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=249)]
"""A topic, a group or a client."""


class KafkaTlsConfig(StrictModel):
    """TLS to the brokers; their certificates and names are checked. Files are PEM."""

    ca_file: FilePath | None = Field(
        default=None, description="Authorities that brokers' certificates come from; by default the system's."
    )
    cert_file: FilePath | None = Field(default=None, description="The certificate shown to brokers.")
    key_file: FilePath | None = Field(default=None, description="Its private key, without a passphrase.")

    @model_validator(mode="after")
    def _check_pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file: expected both or neither")
        return self


class KafkaSaslConfig(StrictModel):
    """Who the service is to the brokers."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        description="PLAIN sends the password itself: only with TLS."
    )
    username: str = Field(min_length=1, description="The name of the user.")
    password: SecretStr = Field(description="The password; never printed.")


class KafkaConnectionConfig(StrictModel):
    """The keys that everything shares that speaks to brokers."""

    brokers: tuple[Broker, ...] = Field(
        min_length=1,
        description="Brokers to begin with, as host:port; they name the others.",
        examples=[["kafka-0.kafka:9092", "kafka-1.kafka:9092"]],
    )
    topic: KafkaName
    client_id: KafkaName = Field(
        default="tracegrade", description="The name in the brokers' logs and quotas."
    )
    tls: Annotated[KafkaTlsConfig | None, EMPTY_IS_DEFAULTS] = Field(
        default=None, description="TLS to the brokers; without it everything is readable on its way."
    )
    sasl: KafkaSaslConfig | None = Field(default=None, description="Credentials, where brokers require them.")

    @model_validator(mode="after")
    def _check_plain(self) -> Self:
        if self.sasl is not None and self.sasl.mechanism == "PLAIN" and self.tls is None:
            raise ValueError("sasl.mechanism PLAIN needs tls: the password would be readable on its way")
        return self

    def client_settings(self) -> dict[str, str | int | float | bool]:
        """The settings of librdkafka for the connection; contains the password."""
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
