"""The resource and the instrumentation scope that a span came in."""

from processors.spans.attributes import NO_ATTRIBUTES, Attributes, decode_key_values
from processors.spans.partial_messages import has_unknown_fields, parse_resource, parse_scope
from processors.spans.protobuf_wire import fields

_RESOURCE, _ATTRIBUTES = 0x0A, 0x0A
"""In a ResourceSpans message, and in its Resource."""


class Envelope:
    """One (resource, scope) pair as received, decoded on first use.

    `resource` holds the bytes of a ResourceSpans message without its scope_spans, `scope` those of a
    ScopeSpans message without its spans: schema URLs and unknown fields included. Envelopes are
    interned by the codec, so equal bytes are one object and identity is equality. `known_scope` is
    the scope's name once it was read, for loops over many spans.
    """

    __slots__ = ("__weakref__", "_attributes", "known_scope", "resource", "scope")

    def __init__(self, resource: bytes, scope: bytes) -> None:
        self.resource = resource
        self.scope = scope
        self._attributes: Attributes | None = None
        self.known_scope: str | None = None

    @property
    def resource_attributes(self) -> Attributes:
        """The attributes of the resource."""
        if self._attributes is None:
            resource = parse_resource(self.resource)
            if has_unknown_fields(resource):
                pieces = fields(self.resource, 0, len(self.resource))
                parts = [self.resource[start:stop] for tag, _, start, stop in pieces if tag == _RESOURCE]
                self._attributes = decode_key_values(b"".join(parts), _ATTRIBUTES)
            else:
                self._attributes = Attributes(resource.attributes) if resource.attributes else NO_ATTRIBUTES
        return self._attributes

    @property
    def service_name(self) -> str:
        """`service.name` of the resource, or the empty text."""
        return self.resource_attributes.text("service.name") or ""

    @property
    def scope_name(self) -> str:
        """Name of the instrumentation scope, or the empty text."""
        if self.known_scope is None:
            self.known_scope = parse_scope(self.scope).name
        return self.known_scope


NO_ENVELOPE = Envelope(b"", b"")
