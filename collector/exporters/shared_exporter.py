"""One exporter behind several queues: its spans wait in one, results in forms of their own in others."""

from collector.exporters.exporter import ExportResponse, LogExporter, SpanExporter


class SharedExporter:
    """Opens an exporter with the first of its users, and closes it with the last.

    `for_spans` and `for_logs` make the users; each stands behind a queue of its own and is an exporter.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._users: set[_User] = set()
        self._is_open = False

    def for_spans(self) -> SpanExporter:
        """A user that sends spans."""
        return self._added(_User(self, self._exporter, self._exporter.endpoint))

    def for_logs(self) -> SpanExporter:
        """A user whose requests are log records.

        Raises:
            TypeError: the exporter takes none.
        """
        if not isinstance(self._exporter, LogExporter):
            raise TypeError(f"{self._exporter.name} takes no log records")
        return self._added(_LogUser(self, self._exporter))

    async def open(self) -> None:
        """Start the exporter unless it is started."""
        if not self._is_open:
            await self._exporter.start()
            self._is_open = True

    async def leave(self, user: "_User", deadline: float) -> None:
        """Strike a user; the last one closes the exporter."""
        self._users.discard(user)
        if not self._users:
            await self._exporter.shutdown(deadline)

    def _added(self, user: "_User") -> "_User":
        self._users.add(user)
        return user


class _User:
    """Sends spans; see `SpanExporter`."""

    def __init__(self, shared: SharedExporter, exporter: SpanExporter, endpoint: str) -> None:
        self.name = exporter.name
        self.endpoint = endpoint
        self._shared = shared
        self._exporter = exporter

    async def start(self) -> None:
        await self._shared.open()

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        return await self._exporter.export(request, span_count)

    async def shutdown(self, deadline: float) -> None:
        await self._shared.leave(self, deadline)


class _LogUser(_User):
    """Sends log records."""

    def __init__(self, shared: SharedExporter, exporter: LogExporter) -> None:
        super().__init__(shared, exporter, exporter.logs_endpoint)
        self._log_exporter = exporter

    async def export(self, request: bytes, span_count: int) -> ExportResponse:
        return await self._log_exporter.export_logs(request, span_count)
