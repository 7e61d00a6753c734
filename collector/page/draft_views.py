"""The views of drafts of criteria and of what they would have made of stored runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from collector.page.drafts import Draft, DraftState, ScoresProgress
from collector.page.page_access import VISITOR, Visitor
from collector.page.views import Views
from collector.store import Regrade, Regrades, read_filter

MAX_DRAFT_CHARACTERS = 256 * 1024
_LARGEST_ID = 1 << 62
_FIELDS = ("replaced", "since", "until", "agent")
_DEFAULTS = {"replaced": "*", "since": "7d"}

DraftFiles = Sequence[tuple[str, bytes, bool]]
"""Criteria files in force: their names, contents, and whether they are the built-in one."""


class DraftViews:
    """Renders drafts, each function in a thread; `state` returns how far the last one is.

    `exporters` are the names of exporters of scores.
    """

    def __init__(
        self,
        views: Views,
        files: Callable[[], DraftFiles],
        state: Callable[[], DraftState | None],
        exporters: Collection[str] = (),
    ) -> None:
        self._views = views
        self._files = files
        self._state = state
        self._exporters = exporters

    def draft(self, request: Request, given: Mapping[str, str] | None = None, problem: str = "") -> Response:
        """The form for a draft, and how far the last one is; `problem` is what is wrong with a form."""
        state = self._visible_state(request)
        files = self._texts(request)
        fields = dict(given or {})
        if given is None and (name := request.query_params.get("file")) in files:
            fields = {**_DEFAULTS, "replaced": name, "criteria": files[name]}
        elif given is None:
            fields = _DEFAULTS if state is None else {**state.draft.fields, "criteria": state.draft.text}
        regrades = Regrades(self._views.visible(request))
        return self._views.page(
            request,
            "draft.html",
            "Draft",
            400 if problem else 200,
            asked={"criteria": "", **dict.fromkeys(_FIELDS, ""), **fields},
            files=list(files),
            names=self._views.visible(request).names(),
            problem=problem,
            state=state,
            is_busy=state is None and self._is_busy(),
            exporters=() if state is None or state.problem_of_scores else self._exporters,
            lines=() if state is None else state.draft.text.splitlines(),
            results=self._results(regrades, None if state is None else regrades.get(state.regrade)),
            written=regrades.each(),
            most=MAX_DRAFT_CHARACTERS,
        )

    def regrade(self, request: Request) -> Response:
        """What a regrade changes."""
        regrades = Regrades(self._views.visible(request))
        one = self._existing(regrades, request)
        results = self._results(regrades, one)
        return self._views.page(request, "regrade.html", one.name, results=results)

    def api_draft(self, request: Request) -> Response:
        """How far the last draft is, and what it changes."""
        state = self._visible_state(request)
        if state is None:
            return JSONResponse({"running": self._is_busy()})
        regrades = Regrades(self._views.visible(request))
        result = None if state.is_running else regrades.get(state.regrade)
        return JSONResponse(
            {
                "running": state.is_busy,
                "graded": state.graded,
                "total": state.total,
                "problems": [text for _, text in state.problems],
                "failure": state.failure,
                "scores": None if state.scores is None else _scores_json(state.scores),
                "regrade": None if result is None else self._json(regrades, result),
            }
        )

    def api_regrades(self, request: Request) -> Response:
        """The regrades that are written, newest first, with what each changes."""
        regrades = Regrades(self._views.visible(request))
        return JSONResponse({"regrades": [self._json(regrades, one) for one in regrades.each()]})

    def requested(self, request: Request, fields: Mapping[str, Any], credential: str) -> Draft:
        """The draft that a form describes; raises `HTTPException` or `InvalidSearch` if it is none."""
        values = {name: str(fields.get(name) or "").strip() for name in _FIELDS}
        text = str(fields.get("criteria") or "").replace("\r\n", "\n")
        if not text.strip():
            raise HTTPException(400, "criteria: expected the text of a criteria file")
        if len(text) > MAX_DRAFT_CHARACTERS:
            raise HTTPException(400, f"criteria: expected at most {MAX_DRAFT_CHARACTERS} characters")
        if values["replaced"] not in ("", "*", *self._texts(request)):
            raise HTTPException(400, "replaced: expected the name of a criteria file in force, * or nothing")
        chosen = {name: value for name, value in values.items() if value and name != "replaced"}
        return Draft(
            visitor=_visitor(request),
            credential=credential,
            text=text,
            replaced=values["replaced"],
            run_filter=read_filter(chosen, self._views.now()),
            fields=values,
        )

    def scored(self, request: Request, fields: Mapping[str, Any]) -> tuple[Sequence[str], DraftState | None]:
        """The exporters of scores that a form chooses, and the draft whose verdicts they are to get.

        No draft without exporters. Raises `HTTPException` if its verdicts cannot be written there.
        """
        chosen = fields.get("exporters", [])
        if isinstance(chosen, str):
            chosen = [chosen]
        if not chosen:
            return (), None
        state = self._visible_state(request)
        known = () if _visitor(request).tenant is not None else tuple(self._exporters)
        if not isinstance(chosen, list) or any(name not in known for name in chosen):
            raise HTTPException(400, f"exporters: expected some of: {', '.join(known) or 'none'}")
        if state is None or state.regrade != request.path_params["regrade"]:
            raise HTTPException(409, "exporters: only the last draft that you graded can be written there")
        if state.problem_of_scores:
            raise HTTPException(409, f"exporters: {state.problem_of_scores}")
        return chosen, state

    def write(self, request: Request, fields: Mapping[str, Any]) -> Regrade:
        """Retain the results of a regrade; raises `RegradeRefused` if they were removed meanwhile."""
        regrades = Regrades(self._views.visible(request))
        one = self._existing(regrades, request)
        return regrades.write(one.id, str(fields.get("name") or ""), str(fields.get("author") or ""))

    def remove(self, request: Request, fields: Mapping[str, Any]) -> Regrade:
        """Remove a regrade with its results."""
        regrades = Regrades(self._views.visible(request))
        one = self._existing(regrades, request)
        regrades.remove(one.id)
        return one

    def _existing(self, regrades: Regrades, request: Request) -> Regrade:
        """The regrade of a path, once it is graded."""
        number = int(request.path_params["regrade"])
        state = self._state()
        is_under_way = state is not None and state.is_running and state.regrade == number
        existing = None if is_under_way or number > _LARGEST_ID else regrades.get(number)
        if existing is None:
            raise HTTPException(404, "There are no such results: they were removed, or are not graded yet.")
        return existing

    def _visible_state(self, request: Request) -> DraftState | None:
        """The last draft, if it is one of those that the visitor may see."""
        state = self._state()
        return None if state is None or state.draft.visitor != _visitor(request) else state

    def _is_busy(self) -> bool:
        state = self._state()
        return state is not None and state.is_busy

    def _texts(self, request: Request) -> dict[str, str]:
        """The files in force that a visitor may replace: with a tenant, those of that tenant alone."""
        tenant = _visitor(request).tenant
        of: dict[str, set[str]] = {}
        for agent in self._views.criteria_in_force().agents:
            of.setdefault(agent.source.rpartition(":")[0], set()).add(agent.tenant)
        return {
            name: content.decode(errors="replace")
            for name, content, is_builtin in self._files()
            if not is_builtin and (tenant is None or of.get(name) == {tenant})
        }

    def _results(self, regrades: Regrades, one: Regrade | None) -> Mapping[str, Any] | None:
        return None if one is None else {"of": one, "changes": regrades.changes(one.id)}

    def _json(self, regrades: Regrades, one: Regrade) -> dict[str, Any]:
        return {
            **asdict(one),
            "is_written": bool(one.is_written),
            "changes": [asdict(change) for change in regrades.changes(one.id)],
        }


def _scores_json(scores: ScoresProgress) -> dict[str, Any]:
    sender = scores.sender
    return {
        "graded": scores.graded,
        "total": scores.total,
        "failure": scores.failure,
        "exporters": {
            name: {"accepted": accepted, "rejected": sender.rejected[name]}
            for name, accepted in sender.accepted.items()
        },
    }


def _visitor(request: Request) -> Visitor:
    visitor: Visitor = request.scope[VISITOR]
    return visitor
