"""`receivers.kafka`: which topic is read, as which group, and how the brokers are reached."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, StringConstraints, model_validator

from collector.config_fields import EMPTY_IS_DEFAULTS, Duration, FilePath, PositiveDuration

Broker = Annotated[str, StringConstraints(pattern=r"^(\[[0-9A-Fa-f:.]+\]|[^\s,:/\[\]]+):[0-9]{1,5}$")]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=249)]


class KafkaTlsConfig(BaseModel):
    """TLS to the brokers; their certificates and names are checked. Files are PEM."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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


class KafkaSaslConfig(BaseModel):
    """Who the service is to the brokers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        description="PLAIN sends the password itself: only with TLS."
    )
    username: str = Field(min_length=1, description="The name of the user.")
    password: SecretStr = Field(description="The password; never printed.")


class KafkaReceiverConfig(BaseModel):
    """Reads spans from a topic, as one of a group: each partition is read by one member."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    brokers: tuple[Broker, ...] = Field(
        min_length=1,
        description="Brokers to begin with, as host:port; they tell of the others.",
        examples=[["kafka-0.kafka:9092", "kafka-1.kafka:9092"]],
    )
    topic: _Name = Field(
        default="otlp_spans",
        description="The topic: one ExportTraceServiceRequest a record, with the trace id in hex as its key.",
    )
    group_id: _Name = Field(
        default="tracegrade", description="The group; all processes that share the traffic have the same."
    )
    group_instance_id: _Name | None = Field(
        default=None,
        description="A name that is this process's own and stays over restarts, such as the pod's: back "
        "within session_timeout it goes on with its partitions.",
    )
    client_id: _Name = Field(default="tracegrade", description="The name in the brokers' logs and quotas.")
    partitioner: Literal["fnv1a", "murmur2", "crc32", "any"] = Field(
        default="fnv1a",
        description="How whoever writes finds the partition of a key: fnv1a is the OpenTelemetry "
        "Collector's, murmur2 that of Java clients, crc32 that of librdkafka. A trace found elsewhere is "
        "interrupted. With any, nothing is checked.",
    )
    initial_offset: Literal["earliest", "latest"] = Field(
        default="earliest",
        description="Where the group begins to read if it never did: all that is there, or what comes.",
    )
    lookback: Duration = Field(
        default=120.0,
        description="How much of what was delivered before is read again when a partition is taken over, to "
        "know which spans come late. A trace that began earlier is interrupted. Longer than most traces take "
        "until their first span ends.",
    )
    session_timeout: PositiveDuration = Field(
        default=15.0,
        ge=6.0,
        le=1800.0,
        description="How long a member may be silent before its partitions are given to others.",
    )
    commit_interval: PositiveDuration = Field(
        default=1.0, description="How often offsets of what was delivered are committed."
    )
    max_record_bytes: int = Field(
        default=16 * 1024 * 1024,
        ge=1,
        le=512 * 1024 * 1024,
        description="Larger records are left out for good, and counted.",
    )
    tls: Annotated[KafkaTlsConfig | None, EMPTY_IS_DEFAULTS] = Field(
        default=None, description="TLS to the brokers; without it everything is readable on its way."
    )
    sasl: KafkaSaslConfig | None = Field(default=None, description="Credentials, where brokers ask for any.")

    @model_validator(mode="after")
    def _check_plain(self) -> Self:
        if self.sasl is not None and self.sasl.mechanism == "PLAIN" and self.tls is None:
            raise ValueError("sasl.mechanism PLAIN needs tls: the password would be readable on its way")
        return self

    def client_settings(self) -> dict[str, str | int | float | bool]:
        """What librdkafka is told of the connection; holds the password."""
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
