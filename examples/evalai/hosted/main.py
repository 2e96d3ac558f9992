"""An evaluation script for EvalAI's hosted workers: it asks a spicegraph server for the scores, over HTTPS.

Python 3.7 and the standard library are enough; references are stored on the server, so that the worker holds none.
Fill in the four values, put both files into ``evaluation_script/`` of the challenge, and give the token the scope
``score`` alone, and the tenant of the one that stored the references (docs/how-to/move-from-evalai.md).
"""

import json
import os
import urllib.error
import urllib.request

SERVER = os.environ.get("SPICEGRAPH_URL", "https://scores.example.org")
TOKEN = os.environ.get("SPICEGRAPH_TOKEN", "sgt_...")
REFERENCE_SETS = json.loads(os.environ.get("SPICEGRAPH_REFERENCE_SETS", '{"test": "ID of the set"}'))
METRICS = ["bleu", "meteor", "rouge", "cider", "spice"]
BATCH = 64  # captions in one message
LARGEST = 64 << 20  # bytes of a submission
SECONDS = 1800


def evaluate(test_annotation_file, user_submission_file, phase_codename, **kwargs):
    """Return the scores of a COCO results file as EvalAI's leaderboard takes them.

    What is wrong with a submission is raised as one ValueError, whose text EvalAI shows to the team.
    """
    if os.path.getsize(user_submission_file) > LARGEST:
        raise ValueError(f"the file is larger than {LARGEST:,} bytes")
    items = list(read_items(user_submission_file))
    settings = {"metrics": METRICS, "referenceSet": REFERENCE_SETS[phase_codename], "spiceText": "SPICE_TEXT_COCO"}
    lines = [{"settings": settings}]
    lines += [{"items": {"items": items[start : start + BATCH]}} for start in range(0, len(items), BATCH)]
    corpus = ask("\n".join(json.dumps(line) for line in lines).encode("utf-8"))
    scores = {entry["name"].lower(): entry["value"] for entry in corpus.get("scores", []) if "value" in entry}
    return {"result": [{phase_codename: scores}], "submission_result": scores}


def read_items(path):
    """Yield the captions of a results file as the server takes them; everything wrong is named at once."""
    with open(path, encoding="utf-8") as stream:
        try:
            results = json.load(stream)
        except ValueError as error:
            raise ValueError(f"the file is not JSON: {error}")
    if not isinstance(results, list):
        raise ValueError('expected [{"image_id": 1, "caption": "..."}, ...]')
    faults = []
    for position, result in enumerate(results, start=1):
        if not isinstance(result, dict):
            faults.append(f"item {position}: is not an object")
            continue
        image_id, caption = result.get("image_id"), result.get("caption")
        if isinstance(image_id, bool) or not isinstance(image_id, (int, str)):
            faults.append(f"item {position}: image_id: is missing, or is neither a number nor a string")
        elif not isinstance(caption, str) or not caption.strip():
            faults.append(f"item {position} (image_id {image_id}): caption: is missing or empty")
        else:
            yield {"id": str(image_id), "candidate": caption}
    if faults:
        more = [f"... and {len(faults) - 50:,} more"] if len(faults) > 50 else []
        raise ValueError(f"the file has {len(faults):,} faults:\n" + "\n".join(faults[:50] + more))


def ask(body):
    """Return the scores of the whole file. An error of the server becomes a ValueError with its message."""
    request = urllib.request.Request(
        SERVER + "/spicegraph.v1.EvaluationService/ScoreStream",
        data=body,
        headers={"Authorization": "Bearer " + TOKEN, "Content-Type": "application/x-ndjson"},
    )
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            last = {}
            for line in response:
                if line.strip():
                    last = json.loads(line.decode("utf-8"))
    except urllib.error.HTTPError as error:
        raise ValueError(said(error.read()))
    if "error" in last:
        raise ValueError(last["error"].get("message", "the server failed"))
    if "corpus" not in last:
        raise ValueError("the server's answer ended early")
    return last["corpus"]


def said(body):
    """Return the message of an error's body."""
    try:
        return json.loads(body.decode("utf-8")).get("message", "the server refused the file")
    except (ValueError, AttributeError):
        return "the server refused the file"
