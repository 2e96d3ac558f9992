"""Put a trained network and a lemma table together as the pipeline folder that ships with the package."""

import argparse
from pathlib import Path

import spacy
from spacy.language import Language

from spicegraph_parser.caption_pipeline import components

VERSION = "1.6.0"
SOURCES = (
    ("COCO 2014 captions (train2014)", "CC BY 4.0"),
    ("AudioCaps", "MIT"),
    ("Visual Genome region descriptions", "CC BY 4.0"),
    ("Conceptual Captions", "free use with acknowledgement of Google"),
    ("Polaris and Nebula, machine captions", "BSD-3-Clause-Clear"),
    ("CompreCap, descriptions by GPT-4o and LLaVA-Next", "MIT"),
    ("ImageInWords, descriptions by people and by its model", "CC BY 4.0"),
    ("DOCCI", "Apache-2.0; CC BY 4.0"),
    ("Localized Narratives on COCO images", "Apache-2.0; CC BY 4.0"),
    ("WordNet 3.0, words put into captions", "WordNet 3.0 license"),
)


def build(network: Path, lemmas: Path) -> Language:
    """Return the pipeline with the network's folder and the table's folder loaded."""
    config = {"nlp": {"tokenizer": {"@tokenizers": components.TOKENIZER}, "batch_size": 2048}}
    nlp = spacy.blank("en", config=config)
    nlp.add_pipe(components.PARSER, name="parser").from_disk(network)  # type: ignore[attr-defined]
    nlp.add_pipe(components.LEMMATIZER, name="lemmatizer").from_disk(lemmas)  # type: ignore[attr-defined]
    nlp.meta.update(
        name="caption",
        version=VERSION,
        description="Captions parsed as SPICE 1.0 sees them: PTB tags, Universal Dependencies v1, lemmas",
        license="Apache-2.0",
        sources=[{"name": name, "license": licence} for name, licence in SOURCES],
    )
    return nlp


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", type=Path, help="folder of network.npz and vocabulary.json")
    parser.add_argument("lemmas", type=Path, help="folder of exceptions.json")
    parser.add_argument("out", type=Path, help="the pipeline's folder")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    build(options.network, options.lemmas).to_disk(options.out)


if __name__ == "__main__":
    main()
