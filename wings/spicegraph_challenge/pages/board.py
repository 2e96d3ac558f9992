"""The evaluation server in a browser: every page is calls of the contract, as their user, and shows what they answer.

Nothing here knows more than a caller of gRPC does: roles, limits and what scores may tell are checked by the calls.
"""

from __future__ import annotations

import re
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, cast

from aiohttp import web

from spicegraph_api.challenge.v1 import challenge_pb2 as pb
from spicegraph_challenge.model.accounts import Account, begin_session, end_session
from spicegraph_challenge.model.settings import SETTINGS, SPLIT_SETTINGS, SettingsError, read_settings
from spicegraph_challenge.pages import views
from spicegraph_challenge.pages.tables import BOARD_FORMATS
from spicegraph_challenge.pages.visit import LASTS_S, NotOursError, Sessions, Visit, go, path_to, unauthenticated
from spicegraph_service.kit import REPORT_HEADERS, CallError, FailedCallError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from aiohttp import BodyPartReader
    from google.protobuf.message import Message

    from spicegraph_challenge.model.database import Transactions
    from spicegraph_service.kit import Gateway

    _Chunk = pb.GetSubmissionReportResponse | pb.GetImageInfoResponse
    _Upload = pb.CreateSubmissionRequest | pb.UploadReferencesRequest
    _Page = Callable[[Visit], Awaitable[web.StreamResponse]]

_Registered = TypeVar("_Registered", bound="Callable[..., Awaitable[web.StreamResponse]]")
_PIECE = 256 << 10
_FAULTS = 100
_SUBMISSIONS = 50
_LOCAL_PATH = re.compile(r"/(?![/\\])[\x21-\x7e]*")


class Board:
    """The pages: ``identify`` says who a token's or a session's user is, ``transactions`` keep the sessions."""

    def __init__(
        self,
        gateway: Gateway,
        identify: Callable[[str | None, str | None], Awaitable[Account]],
        transactions: Transactions,
        sessions: Sessions,
        *,
        https: bool = False,
    ) -> None:
        self._gateway = gateway
        self._identify = identify
        self._transactions = transactions
        self._sessions = sessions
        self._https = https  # browsers reach the server by a proxy that ends TLS

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """Yield the route of every page and form."""
        yield web.get("/sign-in", self._ask_token)
        yield web.post("/sign-in", self._sign_in)
        yield web.post("/sign-out", self._page(self._sign_out))
        for (method, path), page in _ROUTES.items():
            yield web.route(method, path, self._page(page))

    def _page(self, page: _Page) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return the handler of a page; it sends users without a session to sign in."""

        async def answer(request: web.Request) -> web.StreamResponse:
            visit = Visit(request, self._gateway, self._sessions.of(request), https=self._https)
            try:
                if visit.session is not None:
                    visit.me = await self._identify(visit.session.authorization, None)
                elif page not in _PUBLIC:  # of which the calls say whether they are
                    raise web.HTTPSeeOther(_sign_in_path(request))
                return await page(visit)
            except (CallError, FailedCallError) as error:
                if unauthenticated(error):
                    away = web.HTTPSeeOther(_sign_in_path(request))
                    self._sessions.end(away)
                    raise away from error
                return visit.failed(error if isinstance(error, FailedCallError) else FailedCallError.of(error))
            except SettingsError as error:
                message = "The form has fields that are wrong."
                return visit.page("error.html.j2", status=400, faults=error.violations, message=message)
            except NotOursError:
                return visit.page("error.html.j2", status=403, faults=(), message=_NOT_OURS)

        return answer

    async def _ask_token(self, request: web.Request) -> web.Response:
        return Visit(request, self._gateway, https=self._https).page(
            "sign_in.html.j2", next=request.query.get("next", ""), message=""
        )

    async def _sign_in(self, request: web.Request) -> web.Response:
        visit = Visit(request, self._gateway, https=self._https)
        try:
            form = await visit.read_form()
            token, after = form.get("token", "").strip(), form.get("next", "")
            secret = await self._transactions.write(
                lambda session, now: begin_session(session, f"Bearer {token}", now, timedelta(seconds=LASTS_S))
            )
        except NotOursError:
            return visit.page("error.html.j2", status=403, faults=(), message=_NOT_OURS)
        except CallError as error:
            if not unauthenticated(error):
                return visit.failed(FailedCallError.of(error))
            message = "This is not the token of a user of this server."
            return visit.page("sign_in.html.j2", status=401, next=after, message=message)
        inside = web.HTTPSeeOther(after if _LOCAL_PATH.fullmatch(after) else "/challenges")
        self._sessions.begin(inside, secret, secure=request.secure or self._https)
        raise inside

    async def _sign_out(self, visit: Visit) -> web.Response:
        await visit.read_form()
        if visit.session is not None:
            secret = visit.session.token
            await self._transactions.write(lambda session, _now: end_session(session, secret))
        outside = web.HTTPSeeOther("/sign-in")
        self._sessions.end(outside)
        raise outside


_NOT_OURS = "This form does not come from a page of this site, or you have signed in anew since. Open the page again."


def _sign_in_path(request: web.Request) -> str:
    return path_to("/sign-in", next=request.path_qs) if request.method == "GET" else "/sign-in"


_ROUTES: dict[tuple[str, str], _Page] = {}
_PUBLIC: set[_Page] = set()


def _route(method: str, path: str, *, public: bool = False) -> Callable[[_Registered], _Registered]:
    """Let a function answer for a page, or take a form."""

    def register(page: _Registered) -> _Registered:
        _ROUTES[method, path] = page
        if public:
            _PUBLIC.add(page)
        return page

    return register


def _form(path: str, method: str, fields: Mapping[str, str], *after: str) -> None:
    """Let a form make one call, whose fields stand in the path or in the form, and show another page."""

    async def page(visit: Visit) -> web.Response:
        texts = {**await visit.read_form(), **visit.request.match_info}
        values = {field: texts.get(name, "").strip() for field, name in fields.items()}
        await visit.ask(getattr(pb, f"{method}Response"), getattr(pb, f"{method}Request")(**values))
        raise go(*(values.get(part, part) for part in after))  # fields of the request stand for their values

    _ROUTES["POST", path] = page


@_route("GET", "/", public=True)
async def start(_visit: Visit) -> web.Response:
    """Send to the challenges."""
    raise go("/challenges")


@_route("GET", "/challenges")
async def challenges(visit: Visit) -> web.Response:
    """Show the challenges."""
    request = pb.ListChallengesRequest(page_token=visit.request.query.get("after", ""))
    answer = await visit.ask(pb.ListChallengesResponse, request)
    cards = [views.challenge_card(challenge, datetime.now(UTC)) for challenge in answer.challenges]
    return visit.page("challenges.html.j2", challenges=cards, next=answer.next_page_token)


@_route("GET", "/challenges/{name}")
async def challenge(visit: Visit) -> web.Response:
    """Show a challenge with the submissions that its visitor sees."""
    name = visit.request.match_info["name"]
    answer = await visit.ask(pb.GetChallengeResponse, pb.GetChallengeRequest(name=name))
    request = pb.ListSubmissionsRequest(
        challenge=name, page_size=_SUBMISSIONS, page_token=visit.request.query.get("after", "")
    )
    listed = await visit.ask(pb.ListSubmissionsResponse, request)
    may = views.rights(answer.role)
    return visit.page(
        "challenge.html.j2",
        may=may,
        challenge=views.challenge_page(answer.challenge, datetime.now(UTC)),
        quota=views.quota(answer),
        submissions=views.submission_rows(listed.submissions, answer.challenge),
        ranked_by=views.main_score(answer.challenge, listed.submissions),
        next=listed.next_page_token,
    )


@_route("POST", "/challenges/{name}/submissions")
async def submit(visit: Visit) -> web.Response:
    """Take a submission."""
    part = await visit.read_upload()
    if part is None:
        return visit.page("error.html.j2", status=400, faults=(), message="Choose a file.")
    settings = pb.SubmissionSettings(
        challenge=visit.request.match_info["name"],
        file_name=visit.file_name,
        method=visit.form.get("method", "").strip(),
        description=visit.form.get("description", ""),
        split=visit.form.get("split", ""),
        team=visit.form.get("team", ""),
        paper_url=visit.form.get("paper_url", "").strip(),
        code_url=visit.form.get("code_url", "").strip(),
    )
    messages = _messages(pb.CreateSubmissionRequest(settings=settings), part)
    made = await visit.ask(pb.CreateSubmissionResponse, messages)
    return _arrive(visit, path_to("/submissions", made.submission.id))


async def _messages(first: _Upload, part: BodyPartReader) -> AsyncIterator[_Upload]:
    """Yield the messages of an upload: the first, and a file in pieces."""
    yield first
    while chunk := await part.read_chunk(_PIECE):
        yield type(first)(chunk=chunk)


def _arrive(visit: Visit, path: str) -> web.Response:
    """Send a browser on after an upload, or tell its script where to."""
    if visit.request.headers.get("Accept") == "application/json":
        return web.json_response({"location": path})
    raise web.HTTPSeeOther(path)


async def _get_submission(visit: Visit) -> pb.Submission:
    request = pb.GetSubmissionRequest(id=visit.request.match_info["id"])
    return (await visit.ask(pb.GetSubmissionResponse, request)).submission


@_route("GET", "/submissions/{id}")
async def submission_page(visit: Visit) -> web.Response:
    """Show a submission beside the one of the same user before it."""
    submission = await _get_submission(visit)
    faults = pb.ListSubmissionFaultsResponse()
    if submission.failure.fault_count:
        request = pb.ListSubmissionFaultsRequest(
            id=submission.id, page_size=_FAULTS, page_token=visit.request.query.get("after", "")
        )
        faults = await visit.ask(pb.ListSubmissionFaultsResponse, request)
    before = None
    if submission.scores:
        earlier = pb.ListSubmissionsRequest(
            challenge=submission.challenge, user=submission.user, page_size=_SUBMISSIONS, page_token=submission.id
        )
        listed = await visit.ask(pb.ListSubmissionsResponse, earlier)
        before = next((other for other in listed.submissions if other.scores), None)
    answer = await visit.ask(pb.GetChallengeResponse, pb.GetChallengeRequest(name=submission.challenge))
    return visit.page(
        "submission.html.j2",
        may=views.rights(answer.role),
        submission=views.submission_page(submission, before, own=_me(visit) == submission.entrant),
        faults=faults.faults,
        fault_count=submission.failure.fault_count,
        next=faults.next_page_token,
    )


@_route("GET", "/submissions/{id}/state")
async def submission_state(visit: Visit) -> web.Response:
    """Tell a page's script how far a submission is."""
    submission = await _get_submission(visit)
    return web.json_response(
        {
            "ended": submission.HasField("end_time"),
            "line": views.state_line(submission),
            "progress": submission.progress if submission.HasField("progress") else None,
        }
    )


@_route("POST", "/submissions/{id}/choose")
async def choose(visit: Visit) -> web.Response:
    """Put a submission on the leaderboard."""
    await visit.read_form()
    submission = await _get_submission(visit)
    request = pb.ChooseSubmissionRequest(challenge=submission.challenge, submission=submission.id)
    await visit.ask(pb.ChooseSubmissionResponse, request)
    raise go("/challenges", submission.challenge, "leaderboard")


_form("/submissions/{id}/cancel", "CancelSubmission", {"id": "id"}, "/submissions", "id")
_form("/challenges/{name}/choose", "ChooseSubmission", {"challenge": "name"}, "/challenges", "challenge", "leaderboard")


@_route("GET", "/challenges/{name}/leaderboard", public=True)
async def leaderboard(visit: Visit) -> web.Response:
    """Show a leaderboard, or send it as a file."""
    name, query = visit.request.match_info["name"], visit.request.query
    board = await _board(visit)
    if (wanted := query.get("format")) in {"json", "csv"}:
        disposition = {"Content-Disposition": f'attachment; filename="leaderboard.{wanted}"'}
        kind = "application/json" if wanted == "json" else "text/csv"
        return web.Response(text=BOARD_FORMATS[wanted]([board]), content_type=kind, headers=disposition)
    answer = await visit.ask(pb.GetChallengeResponse, pb.GetChallengeRequest(name=name))
    return visit.page(
        "leaderboard.html.j2",
        script="leaderboard.js",
        name=name,
        **views.board_page(board, answer.challenge, _me(visit)),
    )


async def _board(visit: Visit) -> pb.GetLeaderboardResponse:
    query = visit.request.query
    split, _, reference_set = query.get("of", "").partition("/")
    request = pb.GetLeaderboardRequest(
        challenge=visit.request.match_info["name"],
        split=split,
        reference_set=reference_set,
        score=query.get("score", ""),
        domain=query.get("domain", ""),
    )
    return await visit.ask(pb.GetLeaderboardResponse, request)


@_route("GET", "/challenges/{name}/leaderboard/{user}", public=True)
async def method_page(visit: Visit) -> web.Response:
    """Show the entry of a user: who made it, its paper and code, and its scores on all boards of the reference set."""
    board, user = await _board(visit), visit.request.match_info["user"]
    boards = [board]
    for domain in board.domains:
        request = pb.GetLeaderboardRequest(
            challenge=board.challenge, split=board.split, reference_set=board.reference_set, domain=domain
        )
        boards.append(await visit.ask(pb.GetLeaderboardResponse, request))
    method = views.method_page(boards, user)
    if method is None:
        raise web.HTTPNotFound
    return visit.page("method.html.j2", name=board.challenge, title=board.title, method=method)


@_route("GET", "/account")
async def account(visit: Visit) -> web.Response:
    """Show the user's own account."""
    return visit.page("account.html.j2", secret="")


@_route("POST", "/tokens")
async def make_token(visit: Visit) -> web.Response:
    """Make a token, and show it this once."""
    form = await visit.read_form()
    user = form.get("user", "")
    request = pb.CreateUserTokenRequest(user=user, name=form.get("name", ""))
    made = await visit.ask(pb.CreateUserTokenResponse, request)
    if user and (visit.me is None or user != visit.me.name):
        return await users(visit, user=user, secret=made.secret)
    return visit.page("account.html.j2", secret=made.secret)


_form("/tokens/{id}/revoke", "RevokeUserToken", {"id": "id"}, "/users")


def _me(visit: Visit) -> str:
    return visit.me.entrant if visit.me is not None else ""


@_route("GET", "/new")
async def new(visit: Visit) -> web.Response:
    """Show the form of a new challenge."""
    parts = views.setting_fields(pb.ChallengeSettings(), new=True)
    return visit.page("edit.html.j2", heading="New challenge", action="/new", parts=parts, new=True)


@_route("POST", "/new")
async def create(visit: Visit) -> web.Response:
    """Create a challenge."""
    form = await visit.read_form()
    sets: dict[str, list[str]] = {}
    for text in filter(None, (part.strip() for part in form.get("sets", "").split(","))):
        split, _, reference_set = text.partition("/")
        sets.setdefault(split, []).append(reference_set)
    settings = pb.ChallengeSettings()
    read_settings(settings, {name: form[name] for name in SETTINGS if name in form})
    for split, names in sets.items():
        part = settings.splits.add(name=split)
        part.reference_sets.extend(pb.ChallengeReferenceSet(name=name) for name in names)
        read_settings(part, {name: form[f"{name} "] for name in SPLIT_SETTINGS if f"{name} " in form})
    challenge = pb.Challenge(name=form.get("name", "").strip(), settings=settings)
    answer = await visit.ask(pb.CreateChallengeResponse, pb.CreateChallengeRequest(challenge=challenge))
    raise go("/challenges", answer.challenge.name)


@_route("GET", "/challenges/{name}/edit")
async def edit(visit: Visit) -> web.Response:
    """Show the form of a challenge's settings."""
    name = visit.request.match_info["name"]
    answer = await visit.ask(pb.GetChallengeResponse, pb.GetChallengeRequest(name=name))
    parts, action = views.setting_fields(answer.challenge.settings, new=False), path_to("/challenges", name, "edit")
    return visit.page("edit.html.j2", heading=f"Edit {name}", action=action, parts=parts, new=False)


@_route("POST", "/challenges/{name}/edit")
async def update(visit: Visit) -> web.Response:
    """Change a challenge's settings."""
    form = await visit.read_form()
    name = visit.request.match_info["name"]
    settings = pb.ChallengeSettings()
    read_settings(settings, {key: text for key, text in form.items() if key in SETTINGS})
    by_split: dict[str, dict[str, str]] = {}
    for key, text in form.items():
        setting, _, split = key.partition(" ")
        if setting in SPLIT_SETTINGS:
            by_split.setdefault(split, {})[setting] = text
    for split, texts in sorted(by_split.items()):
        read_settings(settings.splits.add(name=split), texts)
    request = pb.UpdateChallengeRequest(name=name, settings=settings)
    await visit.ask(pb.UpdateChallengeResponse, request)
    raise go("/challenges", name)


@_route("POST", "/challenges/{name}/references")
async def upload_references(visit: Visit) -> web.Response:
    """Take references."""
    part = await visit.read_upload()
    if part is None:
        return visit.page("error.html.j2", status=400, faults=(), message="Choose a file.")
    name = visit.request.match_info["name"]
    split, _, reference_set = visit.form.get("set", "").partition("/")
    target = pb.ReferencesTarget(challenge=name, split=split, reference_set=reference_set)
    messages = _messages(pb.UploadReferencesRequest(target=target), part)
    await visit.ask(pb.UploadReferencesResponse, messages)
    return _arrive(visit, path_to("/challenges", name))


_form("/challenges/{name}/delete", "DeleteChallenge", {"name": "name"}, "/challenges")
_form("/challenges/{name}/rescore", "RescoreChallenge", {"challenge": "name"}, "/challenges", "challenge")


@_route("GET", "/submissions/{id}/report")
async def report(visit: Visit) -> web.StreamResponse:
    """Send the error report, which shows references, as a page that has nothing of this site's."""
    request = pb.GetSubmissionReportRequest(
        id=visit.request.match_info["id"],
        split=visit.request.query.get("split", ""),
        reference_set=visit.request.query.get("set", ""),
    )
    response = web.StreamResponse(headers=REPORT_HEADERS)
    response.content_type, response.charset = "text/html", "utf-8"
    return await _send(visit, response, "GetSubmissionReport", request)


@_route("GET", "/challenges/{name}/images")
async def images(visit: Visit) -> web.StreamResponse:
    """Send the images of a split as a file."""
    name, split = visit.request.match_info["name"], visit.request.query.get("split", "")
    file = re.sub(r"[^\w.-]", "_", f"image_info_{name}_{split}.json", flags=re.ASCII)
    response = web.StreamResponse(headers={"Content-Disposition": f'attachment; filename="{file}"'})
    response.content_type = "application/json"
    return await _send(visit, response, "GetImageInfo", pb.GetImageInfoRequest(challenge=name, split=split))


async def _send(visit: Visit, response: web.StreamResponse, method: str, request: Message) -> web.StreamResponse:
    """Stream a call's chunks; a failure before the first becomes an error page."""
    async with aclosing(visit.stream(method, request)) as chunks:
        async for message in chunks:
            if not response.prepared:
                await response.prepare(visit.request)
            await response.write(cast("_Chunk", message).chunk)
    await response.write_eof()
    return response


@_route("GET", "/users")
async def users(visit: Visit, *, user: str = "", secret: str = "") -> web.Response:
    """Show the users, and the token that was made for one of them."""
    request = pb.ListUsersRequest(page_token=visit.request.query.get("after", ""))
    answer = await visit.ask(pb.ListUsersResponse, request)
    return visit.page(
        "users.html.j2",
        users=[views.user_row(person) for person in answer.users],
        roles=views.ROLES,
        next=answer.next_page_token,
        user=user,
        secret=secret,
    )


@_route("POST", "/users")
async def add_user(visit: Visit) -> web.Response:
    """Add a user."""
    form = await visit.read_form()
    name, team = form.get("name", "").strip(), form.get("team", "").strip()
    role = pb.UserRole.Value(form["role"]) if form.get("role") in pb.UserRole.keys() else pb.USER_ROLE_UNSPECIFIED  # noqa: SIM118
    request = pb.CreateUserRequest(name=name, role=role, team=team)
    made = await visit.ask(pb.CreateUserResponse, request)
    return await users(visit, user=made.user.name, secret=made.secret)


_form("/users/{name}/team", "SetUserTeam", {"user": "name", "team": "team"}, "/users")
_form("/users/{name}/remove", "DeleteUser", {"name": "name"}, "/users")
