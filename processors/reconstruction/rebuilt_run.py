"""An agent run whose input and output are read from its spans only when somebody looks at them."""

from collections.abc import Callable

from processors.frameworks.shapes.late_value import CapturedValue
from processors.model.agent_run import AgentRun
from processors.model.json_value import JsonValue

_INPUT, _OUTPUT = ("input", "input_state"), ("output", "output_state")


class RebuiltRun(AgentRun):
    """As any `AgentRun`. Conversations are long, and criteria that look at calls alone need none of them."""

    __slots__ = ("_read_input", "_read_output")

    def defer(
        self, read_input: Callable[[], CapturedValue], read_output: Callable[[], CapturedValue]
    ) -> None:
        """Take input and output from these, each at most once, in place of what was given."""
        object.__setattr__(self, "_read_input", read_input)
        object.__setattr__(self, "_read_output", read_output)
        for name in (*_INPUT, *_OUTPUT):
            object.__delattr__(self, name)

    def __getattr__(self, name: str) -> JsonValue:
        """Called for what is not set: read it, and set it."""
        for names, read in ((_INPUT, "_read_input"), (_OUTPUT, "_read_output")):
            if name in names:
                captured: CapturedValue = object.__getattribute__(self, read)()
                object.__setattr__(self, names[0], captured.value)
                object.__setattr__(self, names[1], captured.state)
                return object.__getattribute__(self, name)  # type: ignore[no-any-return]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
