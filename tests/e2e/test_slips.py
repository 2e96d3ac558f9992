"""What users slip in for captions, ids and metrics gets the same verdict at every door.

The doors: ``score`` of the library, the command line, JSON over HTTP, both Python clients, and pycocoevalcap's classes (the shim).
A verdict is the ROUGE-L of the first item, or ``REFUSED``. Where a door differs, the table says why; what JSON can't write has no
command line and no HTTP, and what two dictionaries of captions can't hold has no shim.
"""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest

from spicegraph import InputError, score
from spicegraph_compat.pycocoevalcap import Rouge
from spicegraph_service.cli import main
from spicegraph_service.client import AsyncClient, Client, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers import RunningServer

pytestmark = pytest.mark.model

REFUSED: Final = "refused"
NAN: Final = float("nan")


@dataclass(frozen=True)
class Slip:
    """What is given in place of ``(1, "dog", ["dog"])`` and ``["rouge"]``, its verdict, and doors that differ, with the reason."""

    name: str
    verdict: float | str = REFUSED
    id: Any = 1
    candidate: Any = "dog"
    references: Any = ("dog",)
    items: Any = None
    metrics: Any = ("rouge",)
    differs: dict[str, tuple[float | str, str]] = field(default_factory=dict)


AS_ORIGINAL: Final = "pycocoevalcap scores it, and so do its classes here"
WIRE_ZERO: Final = "over the wire an empty candidate scores 0 unless the request says empty=REFUSE"
WIRE_DEFAULT: Final = "a request without metrics asks for SPICE, as Protocol Buffers can't tell none from nothing said"
FILE_SHAPES: Final = "files of that shape circulate, and mean this"
TEXT_IDS: Final = "over the wire, and in files, ids are texts"
ANY_KEY: Final = "a dictionary has any key"


def _wire(verdict: float | str, reason: str) -> dict[str, tuple[float | str, str]]:
    return dict.fromkeys(("http", "sync client", "async client"), (verdict, reason))


def _shim(verdict: float | str) -> dict[str, tuple[float | str, str]]:
    return {"shim": (verdict, AS_ORIGINAL)}


def _file(verdict: float | str = 1.0) -> dict[str, tuple[float | str, str]]:
    return {"command line": (verdict, FILE_SHAPES)}


GOOD: Final = {"id": 1, "candidate": "dog", "references": ["dog"]}

SLIPS = [
    Slip("nothing wrong", 1.0),
    Slip("references: a string", references="dog", differs=_file()),
    Slip("references: an object", references={"dog": 1}),
    Slip("references: null", references=None),
    Slip("references: a number", references=7),
    Slip("references: a truth value", references=True),
    Slip("references: none", references=[]),
    Slip("references: an empty one", references=["dog", ""], differs=_shim(1.0)),
    Slip("references: a blank", references=["dog", "  "], differs=_shim(1.0)),
    Slip("references: a number in them", references=["dog", 1]),
    Slip("references: null in them", references=[None]),
    Slip("references: NaN in them", references=[NAN]),
    Slip("references: a truth value in them", references=["dog", False]),
    Slip("references: a list in them", references=[["dog"]], differs=_file()),
    Slip("references: gts before tokenizing", references=[{"caption": "dog"}], differs=_file()),
    Slip("references: bytes", references=b"dog"),
    Slip("references: bytes in them", references=[b"dog"]),
    Slip("references: a set", references={"dog"}),
    Slip("references: a tuple", 1.0, references=("dog", "a dog")),
    Slip("references: of numpy", 1.0, references=np.array(["dog"]), differs=_shim(REFUSED)),
    Slip("references: a list as text", references='["dog"]', differs=_file()),
    Slip("references: NUL", references=["do\0g"], differs=_shim(0.0)),
    Slip("references: half a surrogate pair", references=["do\ud800g"], differs=_shim(0.0)),
    Slip("references: marks of a model", references=["dog <eos>"], differs=_shim(0.6288659793814433)),
    Slip("candidate: null", candidate=None),
    Slip("candidate: a number", candidate=3),
    Slip("candidate: NaN", candidate=NAN),
    Slip("candidate: true", candidate=True),
    Slip("candidate: a list", candidate=["dog"], differs=_file()),
    Slip("candidate: an object", candidate={"caption": "dog"}, differs=_file()),
    Slip("candidate: empty", candidate="", differs=_wire(0.0, WIRE_ZERO) | _shim(0.0)),
    Slip("candidate: blank", candidate=" \t", differs=_wire(0.0, WIRE_ZERO) | _shim(0.0)),
    Slip("candidate: bytes", candidate=b"dog"),
    Slip("candidate: numpy's string", 1.0, candidate=np.str_("dog")),
    Slip("candidate: nan as text", 0.0, candidate="nan"),
    Slip("candidate: NUL", candidate="do\0g", differs=_shim(0.0)),
    Slip("candidate: half a surrogate pair", candidate="do\ud800g", differs=_shim(0.0)),
    Slip("candidate: marks of a model", candidate="dog <eos>", differs=_shim(0.7093023255813954)),
    Slip(
        "candidate: capitals and spaces",
        1.0,
        candidate="  DOG ",
        differs={"shim": (0.0, "takes tokens, as its name says")},
    ),
    Slip("id: a string", 1.0, id="7"),
    Slip("id: numpy's integer", 1.0, id=np.int64(7)),
    Slip("id: null", id=None, differs={"shim": (1.0, ANY_KEY)}),
    Slip("id: a fraction", id=1.5, differs={"shim": (1.0, ANY_KEY)}),
    Slip("id: true", id=True, differs={"shim": (1.0, ANY_KEY)}),
    Slip("id: empty", id="", differs={"shim": (1.0, ANY_KEY)}),
    Slip("id: a list", id=["1"]),
    Slip("id: negative", 1.0, id=-1),
    Slip("id: zero", 1.0, id=0),
    Slip("id: too long for JSON's numbers", id=2**60, differs=_wire(1.0, TEXT_IDS) | {"shim": (1.0, ANY_KEY)}),
    Slip("items: a string", items="dog"),
    Slip("items: a number", items=0),
    Slip("items: an object", items=GOOD, differs=_file()),
    Slip("items: none", items=[]),
    Slip("items: strings", items=["dog"]),
    Slip("items: null in them", items=[None]),
    Slip("items: an empty object", items=[{}]),
    Slip("items: without references", items=[{"id": 1, "candidate": "dog"}]),
    Slip(
        "items: without candidate",
        items=[{"id": 1, "references": ["dog"]}],
        differs={"http": (0.0, "Protocol Buffers leave empty fields out of JSON, and an empty candidate scores 0")},
    ),
    Slip("items: the same twice", items=[GOOD, GOOD], differs=_file()),
    Slip("items: 1 and '1'", items=[GOOD, GOOD | {"id": "1"}], differs={"library": (1.0, "has ids of both kinds")}),
    Slip("items: a misspelt key", items=[{"id": 1, "candidat": "dog", "references": ["dog"]}]),
    Slip("items: a faulty one behind", items=[GOOD, GOOD | {"id": 2, "candidate": None}]),
    Slip("metrics: a string", 1.0, metrics="rouge", differs={"http": (REFUSED, "JSON has a list there")}),
    Slip("metrics: two in one string", 1.0, metrics="rouge,bleu", differs={"http": (REFUSED, "JSON has a list there")}),
    Slip("metrics: misspelt", metrics=["ruoge"]),
    Slip("metrics: none", metrics=[], differs=_wire(1.0, WIRE_DEFAULT)),
    Slip("metrics: null", metrics=None),
    Slip("metrics: a number", metrics=[3]),
    Slip("metrics: twice", 1.0, metrics=["rouge", "rouge"]),
    Slip("metrics: as printed", 1.0, metrics=["ROUGE_L"]),
    Slip("metrics: an empty name", metrics=[""]),
]


def _items(slip: Slip) -> Any:
    return [(slip.id, slip.candidate, slip.references)] if slip.items is None else slip.items


def _json(slip: Slip) -> Any:
    """Return the items as JSON values; a TypeError or ValueError where there are none."""
    given = {"id": slip.id, "candidate": slip.candidate, "references": slip.references}
    rows = [given] if slip.items is None else slip.items
    return json.loads(json.dumps(rows, allow_nan=False))


def library(slip: Slip) -> float | str | None:
    try:
        return score(_items(slip), slip.metrics).runs[0].scores[0].each[0]
    except InputError:
        return REFUSED


def sync_client(slip: Slip, client: Client) -> float | str | None:
    try:
        return next(iter(client.score(_items(slip), metrics=slip.metrics).items[0].scores.values()))
    except (TypeError, ServiceError):
        return REFUSED


def async_client(slip: Slip, address: str) -> float | str | None:
    async def ask() -> float | str | None:
        async with AsyncClient(address) as client:
            reply = await client.score(_items(slip), metrics=slip.metrics)
            return next(iter(reply.items[0].scores.values()))

    try:
        return asyncio.run(ask())
    except (TypeError, ServiceError):
        return REFUSED


def command_line(slip: Slip, folder: Path) -> float | str | None:
    source, out = folder / "items.json", folder / "out.json"
    source.write_text(json.dumps(_json(slip)))
    metrics = slip.metrics if isinstance(slip.metrics, str) else ",".join(slip.metrics)  # not of None, and of numbers
    if main(["score", str(source), "--metrics", metrics, "-o", str(out)]) == 0:
        first: float | None = next(iter(json.loads(out.read_text())["items"][0]["scores"].values()))
        return first
    return REFUSED


def over_http(slip: Slip, url: str) -> float | str | None:
    body = json.dumps({"items": _json(slip), "metrics": slip.metrics}).encode()
    request = urllib.request.Request(
        f"{url}/spicegraph.v1.EvaluationService/Score", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            first: float | None = json.loads(reply.read())["items"][0]["scores"][0].get("value")
            return first
    except urllib.error.HTTPError as error:
        return REFUSED if error.code == 400 else f"status {error.code}"


def shim(slip: Slip) -> float | str | None:
    if slip.items is not None or slip.metrics != ("rouge",):
        raise TypeError("takes two dictionaries")
    try:
        return float(Rouge().compute_score({slip.id: slip.references}, {slip.id: [slip.candidate]})[1][0])
    except InputError:
        return REFUSED


@pytest.fixture(scope="module")
def doors(
    start_server: Callable[..., RunningServer], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Callable[[Slip], float | str | None]]]:
    server = start_server("--http=127.0.0.1:0")
    address, url = server.address, server.http_url
    with Client(address) as client:
        yield {
            "library": library,
            "command line": lambda slip: command_line(slip, tmp_path_factory.mktemp("slip")),
            "http": lambda slip: over_http(slip, url),
            "sync client": lambda slip: sync_client(slip, client),
            "async client": lambda slip: async_client(slip, address),
            "shim": shim,
        }


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: slip.name)
@pytest.mark.filterwarnings("ignore")  # some are scored with a warning, which other tests hold
def test_a_slip_has_one_verdict(slip: Slip, doors: dict[str, Callable[[Slip], float | str | None]]) -> None:
    assert slip.differs.keys() <= doors.keys()
    for name, ask in doors.items():
        expected, _ = slip.differs.get(name, (slip.verdict, ""))
        try:
            verdict = ask(slip)
        except (TypeError, ValueError):  # there is no way to say it at this door
            assert name not in slip.differs
            assert name in {"command line", "http", "shim"}
            continue
        assert verdict == (expected if isinstance(expected, str) else pytest.approx(expected)), name


def test_the_table_is_of_sixty_slips() -> None:
    assert len({slip.name for slip in SLIPS}) == len(SLIPS) >= 60
