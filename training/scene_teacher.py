"""Train a teacher for the scene parser: MiniLM or BGE with the parser's heads, on graphs drawn by people.

The folder of the model holds ``config.json``, ``vocab.txt`` and ``model.safetensors``, as the wheel of ``teacher.txt``
does and as ``scene_bge.py`` writes them. ``scene_train.py --teachers`` takes what is written here; ``--resume`` trains
it on, and it may learn from teachers, too.
"""

import argparse
import json
import logging
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import scene_texts
from scene_batches import Codes, Taught, batches
from scene_data import Labelled
from scene_pretrained import CONFIG, NETWORK, PIECES, PRETRAINED, PieceCodes, PretrainedScene
from scene_teach import read_phrases, teach
from scene_train import add_settings, agreement, losses, read_people, settings_of
from spicegraph_parser.caption_pipeline.encoder import Vocabulary

LOG = logging.getLogger("scene_teacher")
BODY = ("position", "norm.", "body.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the teacher is trained; rates are those of AdamW's steps."""

    passes: int = 5
    batch: int = 500  # words
    rate: float = 1e-3  # of the heads
    body_rate: float = 2e-4  # of the pretrained layers
    decay: float = 0.01
    warm: int = 300  # batches until the rates are reached; they fall to 0 from there
    clip: float = 5.0
    tag_weight: float = 0.2
    made: float = 0.1
    phrases: int = 40_000  # phrases with teachers' probabilities that a pass has, where there are any
    also_times: int = 4  # how often a pass has each sentence of --also
    top: float = 1.0  # share of the rates that are reached
    seed: int = 1


def fit(
    network: PretrainedScene,
    codes: Codes,
    data: Sequence[Labelled],
    taught: Sequence[Taught],
    settings: Settings,
    *,
    also: Sequence[Labelled] = (),
) -> Iterator[str]:
    """Train a teacher, and yield after each pass what is to be reported."""
    random = np.random.default_rng(settings.seed)
    trained = [(name, own) for name, own in network.named_parameters() if own.requires_grad]
    body = [own for name, own in trained if name.startswith(BODY)]
    heads = [own for name, own in trained if not name.startswith(BODY)]
    optimizer = torch.optim.AdamW(
        [{"params": heads, "top": settings.rate}, {"params": body, "top": settings.body_rate}],
        betas=(0.9, 0.99),
        weight_decay=settings.decay,
        fused=True,
    )
    step = 0
    for passed in range(settings.passes):
        network.train()
        lately = []
        people = (*data, *settings.also_times * list(also), *scene_texts.made(data, settings.made, random))
        shown = [scene_texts.recased(own, random) for own in people]
        chosen = [taught[place] for place in random.permutation(len(taught))[: settings.phrases]]
        parts = list(batches(codes, [*shown, *chosen], settings.batch, random))
        rows = codes.rows()
        for place, batch in enumerate(parts):
            done = (passed + place / len(parts)) / settings.passes
            scale = settings.top * min(1.0, (step + 1) / settings.warm) * max(0.02, 1 - done)
            for group in optimizer.param_groups:
                group["lr"] = group["top"] * scale
            optimizer.zero_grad()
            loss = losses(network, rows, batch, batch.words, settings.tag_weight)
            torch.autograd.backward(loss)
            torch.nn.utils.clip_grad_norm_([*heads, *body], settings.clip)
            optimizer.step()
            lately.append(loss.item())
            step += 1
        yield f"{time.process_time():.0f} s of CPU, loss {np.mean(lately):.4f}"


def train(arguments: argparse.Namespace, settings: Settings) -> None:
    """Train as the settings say, and write the teacher."""
    torch.set_num_threads(1)
    torch.manual_seed(settings.seed)
    torch.backends.mkldnn.fp32_precision = "bf16"
    kept, held, tags = read_people(arguments.labelled)
    also, also_held, also_tags = read_people(arguments.also)
    tags |= also_tags
    lists = json.loads(arguments.lists.read_bytes())
    known = Vocabulary.from_lists(lists), lists["relations"], tags
    taught = list(teach(arguments.teachers, Codes(*known), read_phrases(arguments.phrases_of, known[0])))
    network = PretrainedScene(arguments.model, (len(lists["tags"]), len(lists["relations"])))
    if arguments.resume:
        network.load_state_dict(torch.load(arguments.resume / NETWORK, weights_only=True))
    else:
        network.start(arguments.model / PRETRAINED)
    codes = PieceCodes(*known, network.pieces)
    for word in dict.fromkeys(word for own in taught for word in own.words):
        codes.number(word)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in (CONFIG, PIECES):
        shutil.copy(arguments.model / name, arguments.out)
    more = [own for own, _ in also]
    for passed, line in enumerate(fit(network, codes, [own for own, _ in kept], taught, settings, also=more), start=1):
        LOG.info("pass %s, %s, held back %s", passed, line, agreement(network, codes, held))
        if also_held:
            LOG.info("of --also %s", agreement(network, codes, also_held))
        torch.save(network.state_dict(), arguments.out / NETWORK)


def main() -> None:
    """Run the command line."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("labelled", type=Path, nargs="+", help="what scene_data.py wrote")
    parser.add_argument("--also", type=Path, nargs="*", default=[], help="more sentences with labels")
    parser.add_argument("--model", type=Path, required=True, help="folder of the pretrained model")
    parser.add_argument("--lists", type=Path, required=True, help="vocabulary.json of the network that is to be taught")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", type=Path, help="folder of a teacher that is trained on")
    parser.add_argument("--teachers", type=Path, nargs="*", default=[], help="folders of networks that teach")
    parser.add_argument("--phrases-of", type=Path, nargs="*", default=[], help="what scene_phrases.py wrote")
    add_settings(parser, Settings)
    arguments = parser.parse_args()
    train(arguments, Settings(**settings_of(arguments, Settings)))


if __name__ == "__main__":
    main()
