"""The listener of the page: its routes, access to them, and the headers for browsers."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, parse_qsl, quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from collector.asgi_server import AsgiServer, peer_of
from collector.clock import SystemClock
from collector.config_fields import parse_endpoint
from collector.errors import StartupError
from collector.exporters import ScoreExporterConfig, ScoreSender
from collector.page.draft_views import DraftFiles, DraftViews
from collector.page.drafts import Draft, DraftOrder, Drafts
from collector.page.page_access import COOKIE, HAS_SESSION, SESSION_SECONDS, VISITOR, PageAccess
from collector.page.page_config import PageConfig
from collector.page.views import FAILURES, Views
from collector.receivers import ssl_context
from collector.server_thread import ServerThread
from collector.short_turns import short_turns
from collector.store import InvalidSearch, Regrade
from collector.telemetry import RateLimitedLogger

_Result = TypeVar("_Result")

_logger = logging.getLogger(__name__)

_MAX_CONNECTIONS = 128
_REQUEST_TIMEOUT_SECONDS = 10.0
_MAX_FORM_BYTES, _MAX_DRAFT_BYTES = 16_384, 1 << 20
_MAX_FIELDS = 20
_SECONDS_AFTER_FAILURE = 1.0
"""How long a host that sent an unknown token waits for the answer, and for its next attempt."""
_RENDERING_THREADS = 2
"""More would take turns of the interpreter from the data path."""
_MAX_CPU = 0.2
"""Of a core, in the long run: what readers take the data path lacks, since both share the interpreter."""
_BURST_SECONDS = 2.0
"""Of CPU that readers may take at once."""
_RENDERING_SECONDS = 30.0
"""How long a request may wait for its answer."""
_MAX_WAITING_BYTES = 32 * 1024 * 1024
"""Answers that wait for their clients, all together."""
_WAITING_BYTES = "tracegrade.waiting_bytes"
"""The key of the size of a request's answer in its scope."""

_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
]


@dataclass(eq=False)
class PageServer:
    """Serves `views` between `start` and `shutdown`, in a thread of its own; a few threads render them.

    Whatever its clients do, the data path is not held up: they get a fifth of a core, and what waits for them
    is bounded. A request for whose answer there is no room or no time is answered 503.
    """

    config: PageConfig
    views: Views
    draft_order: DraftOrder | None = None
    """Makes the first message to the process that grades a draft; None: there are no drafts."""
    draft_files: Callable[[], DraftFiles] = tuple
    """The criteria files in force."""
    score_exporters: Mapping[str, ScoreExporterConfig] = field(default_factory=dict)
    """The exporters of scores to which the verdicts of a draft can be written."""

    def __post_init__(self) -> None:
        self._drafts = None if self.draft_order is None else Drafts(self.draft_order, self._in_thread)
        self._draft_arrives = asyncio.Lock()
        drafts = DraftViews(
            self.views,
            self.draft_files,
            lambda: None if self._drafts is None else self._drafts.state,
            self.score_exporters,
        )
        self._draft_views = drafts
        self._access = PageAccess(self.config, self.views.clock)
        self._server: ServerThread | None = None
        self._rendering = ThreadPoolExecutor(_RENDERING_THREADS, thread_name_prefix="page")
        self._turn = asyncio.Semaphore(_RENDERING_THREADS)
        self._credit_seconds = _BURST_SECONDS
        self._credited_at = 0.0
        self._waiting_bytes = 0
        self._failing: set[str] = set()
        self._log = RateLimitedLogger(_logger, SystemClock())
        self._app = Starlette(
            routes=[
                Route("/", self._rendered(self.views.agents)),
                Route("/agent", self._rendered(self.views.agent)),
                Route("/run/{trace_id}", self._rendered(self.views.run)),
                Route("/failures", self._rendered(self.views.failures)),
                Route("/compare", self._rendered(self.views.compare)),
                Route("/tools", self._rendered(self.views.tools)),
                Route("/find", self._rendered(self.views.find)),
                Route("/criteria", self._rendered(self.views.criteria)),
                Route("/login", self._login, methods=["GET", "POST"]),
                Route("/logout", self._logout, methods=["POST"]),
                Route("/draft", self._rendered(drafts.draft), methods=["GET"]),
                Route("/regrade/{regrade:int}", self._rendered(drafts.regrade)),
                Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
                Route("/api/newest", self._rendered(self.views.api_newest)),
                Route("/api/agents", self._rendered(self.views.api_agents)),
                Route("/api/compare", self._rendered(self.views.api_compare)),
                Route("/api/tools", self._rendered(self.views.api_tools)),
                Route("/api/runs", self._rendered(self.views.api_runs)),
                Route("/api/run/{trace_id}", self._rendered(self.views.api_run)),
                Route("/api/reviews", self._rendered(self.views.api_reviews), methods=["GET"]),
                Route("/api/draft", self._rendered(drafts.api_draft), methods=["GET"]),
                Route("/api/regrades", self._rendered(drafts.api_regrades)),
                *(
                    Route(f"{prefix}/{path}", handler, methods=["POST"])
                    for prefix in ("", "/api")
                    for path, handler in (
                        ("reviews", self._review),
                        ("draft", self._start_draft),
                        ("draft/cancel", self._cancel_draft),
                        ("regrade/{regrade:int}/write", self._write_regrade),
                        ("regrade/{regrade:int}/remove", self._remove_regrade),
                    )
                ),
            ],
            exception_handlers=dict.fromkeys(FAILURES, self.views.error),
        )

    @property
    def endpoint(self) -> str:
        """`host:port` with the port really listened on, once started."""
        return self.config.endpoint if self._server is None else self._server.endpoint

    async def start(self) -> None:
        """Listen; raises `StartupError` if the address, a certificate or a token file is unusable."""
        host, port = parse_endpoint(self.config.endpoint)
        try:
            self._access.load()
            tls = None if self.config.tls is None else ssl_context(self.config.tls)
            server = AsgiServer(
                self._guarded,
                host,
                port,
                ssl=tls,
                limit_concurrency=_MAX_CONNECTIONS,
                request_timeout_seconds=_REQUEST_TIMEOUT_SECONDS,
            )
            self._server = ServerThread(server, "page", self.views.clock)
            await self._server.start()
        except StartupError as error:
            raise StartupError(f"page: {error}") from error

    async def shutdown(self, deadline: float) -> None:
        """Answer requests under way, then close, by `deadline`. Safe before `start` and twice."""
        if self._server is not None:
            if self._drafts is not None:
                await self._server.run(self._drafts.cancel())
            await self._server.shutdown(deadline)
        self._rendering.shutdown(wait=False, cancel_futures=True)

    def _rendered(self, view: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        return partial(self._render, view)

    async def _render(self, view: Callable[..., Response], request: Request, *arguments: object) -> Response:
        """What `view` answers, if there is time and room for it."""
        try:
            async with asyncio.timeout(_RENDERING_SECONDS):
                response = await self._in_thread(view, request, *arguments)
        except TimeoutError:
            raise HTTPException(503, "The page is busy.") from None
        size = len(response.body)
        if self._waiting_bytes and self._waiting_bytes + size > _MAX_WAITING_BYTES:
            raise HTTPException(503, "The page is busy: too much waits for clients that read slowly.")
        self._waiting_bytes += size
        request.scope[_WAITING_BYTES] = size
        return response

    async def _in_thread(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        """What `work` returns in a thread that renders, as soon as the page may take more of the CPU."""
        loop = asyncio.get_running_loop()
        seconds = 0.0

        def run() -> _Result:
            nonlocal seconds
            started = time.thread_time()
            try:
                with short_turns():
                    return work(*arguments)
            finally:
                seconds = time.thread_time() - started

        async with self._turn:
            passed, self._credited_at = loop.time() - self._credited_at, loop.time()
            self._credit_seconds = min(_BURST_SECONDS, self._credit_seconds + _MAX_CPU * passed)
            if self._credit_seconds < 0:
                await asyncio.sleep(-self._credit_seconds / _MAX_CPU)
            try:
                return await loop.run_in_executor(self._rendering, run)
            finally:
                self._credit_seconds -= seconds

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check access, and add the headers of every response."""
        scope.setdefault("app", self._app)
        request = Request(scope, receive)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        answer: ASGIApp = self._app
        path = request.url.path
        if not self._access.is_allowed_origin(request):
            answer = PlainTextResponse(
                "This host name or requests from other sites are not allowed: see page.allowed_hosts.\n", 403
            )
        elif (visitor := self._access.visitor(request)) is not None:
            scope[VISITOR] = visitor
            scope[HAS_SESSION] = self._access.has_session(request)
        elif not (path == "/login" or path.startswith("/static/")):
            if "authorization" in request.headers:
                self._log.warning("token", "A request to the page had an unknown token.", peer=peer_of(scope))
            if path.startswith("/api/"):
                answer = JSONResponse({"error": "a bearer token is required"}, 401)
            else:
                path_and_query = path + (f"?{request.url.query}" if request.url.query else "")
                answer = RedirectResponse(f"/login?to={quote(path_and_query, safe='')}", 303)
        try:
            await answer(scope, receive, send_with_headers)
        finally:
            self._waiting_bytes -= scope.get(_WAITING_BYTES, 0)

    async def _login(self, request: Request) -> Response:
        """The sign-in form, and the exchange of a token for a session."""
        to = request.query_params.get("to", "/")
        to = to if to.startswith("/") and not to.startswith(("//", "/\\")) else "/"
        if not self._access.needs_token:
            return RedirectResponse("/", 303)
        if request.method == "GET":
            return await self._render(self.views.login, request, to, False)
        form = parse_qs((await _body(request)).decode(errors="replace"))
        peer = peer_of(request.scope)
        host = peer.rpartition(":")[0]
        if host in self._failing:
            raise HTTPException(429, "The last attempt to sign in failed: try again in a second.")
        session = self._access.session_for(form.get("token", [""])[0].strip())
        if session is None:
            self._log.warning("login", "An attempt to sign in had an unknown token.", peer=peer)
            self._failing.add(host)
            try:
                await asyncio.sleep(_SECONDS_AFTER_FAILURE)
            finally:
                self._failing.discard(host)
            return await self._render(self.views.login, request, to, True)
        response = RedirectResponse(to, 303)
        response.set_cookie(
            COOKIE,
            session,
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=self._access.is_secure,
        )
        return response

    async def _review(self, request: Request) -> Response:
        """Store an answer to a verdict."""
        fields = await _fields(request)
        credential = self._access.credential(request)
        review = await self._in_thread(self.views.review, request, fields, credential)
        audited = {**asdict(review), "peer": peer_of(request.scope)}
        del audited["comment"]  # may quote content
        _logger.info("A verdict was reviewed.", extra=audited)
        if _is_api(request):
            return JSONResponse(asdict(review), 201)
        return RedirectResponse(f"/run/{review.trace_id}#verdict-{review.id}", 303)

    async def _start_draft(self, request: Request) -> Response:
        """Begin to grade a draft."""
        if self._draft_arrives.locked():  # large bodies are read one at a time
            raise HTTPException(503, "Another draft is being sent: try again in a few seconds.")
        async with self._draft_arrives:
            fields = await _fields(request, _MAX_DRAFT_BYTES)
        if self._drafts is None:
            raise HTTPException(404, "Drafts are not graded here.")
        credential = self._access.credential(request)
        try:
            draft: Draft = await self._in_thread(self._draft_views.requested, request, fields, credential)
            if self._drafts.is_running:
                raise HTTPException(409, "Another draft is being graded or written: wait for its end.")
        except (HTTPException, InvalidSearch) as error:
            if _is_api(request):
                raise
            given = {name: str(value) for name, value in fields.items()}
            problem = error.detail if isinstance(error, HTTPException) else str(error)
            return await self._render(self._draft_views.draft, request, given, problem)
        self._drafts.start(draft, self.views.visible(request), self.views.now())
        audited = {**draft.fields, "credential": credential, "peer": peer_of(request.scope)}
        _logger.info("A draft of criteria is graded over stored runs.", extra=audited)
        return JSONResponse({"running": True}, 202) if _is_api(request) else RedirectResponse("/draft", 303)

    async def _cancel_draft(self, request: Request) -> Response:
        """Stop grading a draft of this visitor's."""
        await _fields(request)
        state = None if self._drafts is None else self._drafts.state
        if self._drafts is not None and state is not None and state.draft.visitor == request.scope[VISITOR]:
            await self._drafts.cancel()
        return JSONResponse({"running": False}) if _is_api(request) else RedirectResponse("/draft", 303)

    async def _write_regrade(self, request: Request) -> Response:
        """Retain a regrade, and send its verdicts to the exporters that were chosen."""
        fields = await _fields(request)
        exporters, state = self._draft_views.scored(request, fields)
        answer = await self._decide(
            request, fields, self._draft_views.write, "The results of a draft were written.", exporters
        )
        if state is None or self._drafts is None:
            return answer
        if self._drafts.is_running or self._drafts.state is not state:
            raise HTTPException(409, "exporters: another draft is being graded or written")
        sender = ScoreSender({name: self.score_exporters[name] for name in exporters}, SystemClock())
        self._drafts.write_scores(state, sender, self.views.visible(request))
        return answer if _is_api(request) else RedirectResponse("/draft", 303)

    async def _remove_regrade(self, request: Request) -> Response:
        fields = await _fields(request)
        return await self._decide(
            request, fields, self._draft_views.remove, "The results of a draft were removed."
        )

    async def _decide(
        self,
        request: Request,
        fields: Mapping[str, Any],
        decide: Callable[[Request, Mapping[str, Any]], Regrade],
        message: str,
        exporters: Sequence[str] = (),
    ) -> Response:
        """Retain a regrade or remove it."""
        regrade = await self._in_thread(decide, request, fields)
        audited = {"regrade": regrade.id, "regrade_name": regrade.name, "author": regrade.author}
        audited |= {"credential": self._access.credential(request), "peer": peer_of(request.scope)}
        audited |= {"exporters": ", ".join(exporters)} if exporters else {}
        _logger.info(message, extra=audited)
        is_removed = decide == self._draft_views.remove
        to = "/draft" if is_removed else f"/regrade/{regrade.id}"
        return JSONResponse(asdict(regrade)) if _is_api(request) else RedirectResponse(to, 303)

    async def _logout(self, request: Request) -> Response:
        """End the session."""
        self._access.end_session(request)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE)
        return response


def _is_api(request: Request) -> bool:
    return request.url.path.startswith("/api/")


async def _fields(request: Request, most_bytes: int = _MAX_FORM_BYTES) -> dict[str, Any]:
    """The fields of a form of the page, or of JSON under `/api/`; raises `HTTPException`."""
    is_api = _is_api(request)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    expected = "application/json" if is_api else "application/x-www-form-urlencoded"
    if kind != expected:  # JSON is what another site's form cannot send
        raise HTTPException(415, f"expected the content type {expected}")
    if not is_api and "origin" not in request.headers:  # browsers send it with each form
        raise HTTPException(403, "expected the header Origin: programs use the addresses under /api/")
    body = await _body(request, most_bytes)
    try:
        fields = json.loads(body) if is_api else _form(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise HTTPException(400, f"expected fields as {expected}")
    return fields


def _form(body: bytes) -> dict[str, str | list[str]]:
    """The fields of a form; `exporters` is a list, of the others the last one counts."""
    pairs = parse_qsl(body.decode(), max_num_fields=_MAX_FIELDS)
    return {**dict(pairs), "exporters": [value for name, value in pairs if name == "exporters"]}


async def _body(request: Request, most_bytes: int = _MAX_FORM_BYTES) -> bytes:
    """The body of a form; raises `HTTPException` if it is too large."""
    pieces: list[bytes] = []
    size = 0
    async for piece in request.stream():
        pieces.append(piece)
        size += len(piece)
        if size > most_bytes:
            raise HTTPException(413)
    return b"".join(pieces)
