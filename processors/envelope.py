"""The resource and the instrumentation scope that a span came in."""

from processors.attributes import NO_ATTRIBUTES, Attributes, decode_key_values
from processors.protobuf_wire import fields


class Envelope:
    """One (resource, scope) pair as received, decoded on first use.

    `resource` holds the bytes of a ResourceSpans message without its scope_spans, `scope` those of a
    ScopeSpans message without its spans: schema URLs and unknown fields included. Envelopes are
    interned by the codec, so equal bytes are one object and identity is equality.
    """

    __slots__ = ("__weakref__", "_attributes", "_scope", "resource", "scope")

    def __init__(self, resource: bytes, scope: bytes) -> None:
        self.resource = resource
        self.scope = scope
        self._attributes: Attributes | None = None
        self._scope: tuple[str, str] | None = None

    @property
    def resource_attributes(self) -> Attributes:
        """The attributes of the resource."""
        if self._attributes is None:
            self._attributes = NO_ATTRIBUTES
            for tag, _, start, end in fields(self.resource, 0, len(self.resource)):
                if tag == 0x0A:  # ResourceSpans.resource; Resource.attributes is field 1
                    self._attributes = decode_key_values(self.resource, 0x0A, start, end)
        return self._attributes

    @property
    def service_name(self) -> str:
        """`service.name` of the resource, or the empty text."""
        return self.resource_attributes.text("service.name") or ""

    @property
    def scope_name(self) -> str:
        """Name of the instrumentation scope, or the empty text."""
        return self._read_scope()[0]

    @property
    def scope_version(self) -> str:
        """Version of the instrumentation scope, or the empty text."""
        return self._read_scope()[1]

    def _read_scope(self) -> tuple[str, str]:
        if self._scope is None:
            name = version = ""
            for tag, _, start, end in fields(self.scope, 0, len(self.scope)):
                if tag == 0x0A:  # ScopeSpans.scope
                    for inner, _, value_start, stop in fields(self.scope, start, end):
                        if inner == 0x0A:
                            name = self.scope[value_start:stop].decode()
                        elif inner == 0x12:
                            version = self.scope[value_start:stop].decode()
            self._scope = name, version
        return self._scope


NO_ENVELOPE = Envelope(b"", b"")
