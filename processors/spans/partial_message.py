"""Message classes for parts of OTLP: attributes as a map of encoded values, the rest left as bytes or out.

A map field and a list of key-value messages are the same bytes, and an AnyValue left as bytes is decoded by
nobody who does not ask for it. So the runtime finds the keys in one call, in compiled code.
"""

from collections.abc import Sequence

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

OPTIONAL, REPEATED = FieldDescriptorProto.LABEL_OPTIONAL, FieldDescriptorProto.LABEL_REPEATED
BYTES, STRING = FieldDescriptorProto.TYPE_BYTES, FieldDescriptorProto.TYPE_STRING
_MESSAGE = FieldDescriptorProto.TYPE_MESSAGE


def add_attributes(message: DescriptorProto, number: int, package: str) -> None:
    """Give `message` of `package` a field `attributes`: keys with the bytes of their AnyValue messages."""
    entry = message.nested_type.add(name="AttributesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=STRING, label=OPTIONAL)
    entry.field.add(name="value", number=2, type=BYTES, label=OPTIONAL)
    add_message(message, "attributes", number, f".{package}.{message.name}.AttributesEntry", REPEATED)


def add_message(
    message: DescriptorProto,
    name: str,
    number: int,
    type_name: str,
    label: FieldDescriptorProto.Label.ValueType = OPTIONAL,
) -> None:
    """Give `message` a field that holds a message of another type."""
    message.field.add(name=name, number=number, type=_MESSAGE, type_name=type_name, label=label)


def message_classes(package: str, messages: Sequence[DescriptorProto]) -> list[type[Message]]:
    """Classes for `messages`, which know each other and nothing else, in their order."""
    pool = DescriptorPool()
    file = FileDescriptorProto(
        name=package.replace(".", "/") + ".proto", package=package, syntax="proto3", message_type=messages
    )
    pool.AddSerializedFile(file.SerializeToString())
    return [GetMessageClass(pool.FindMessageTypeByName(f"{package}.{message.name}")) for message in messages]
