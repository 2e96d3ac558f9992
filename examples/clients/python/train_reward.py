"""Rewards for a training loop: references stored once, then candidates alone.

Run with: python train_reward.py [HOST:PORT]      SPICEGRAPH_TOKEN holds a token where the server demands one.
"""

from __future__ import annotations

import asyncio
import os
import sys

from spicegraph_service.client import AsyncClient, item

REFERENCES = {
    "image-1": ["a man riding a horse", "a man on a brown horse"],
    "image-2": ["a cat sleeping on a bed", "a black cat lies on a bed"],
}
SAMPLES = {
    "image-1": ["a man rides a brown horse", "a man riding a cow", "a horse"],
    "image-2": ["a dog on a bed", "a black cat sleeping", "a cat on a bed"],
}


async def rewards(client: AsyncClient, reference_set: str, image: str, captions: list[str]) -> list[float]:
    """Return the SPICE of sampled captions of one image."""
    items = [item(number, caption, reference_id=image) for number, caption in enumerate(captions)]
    reply = await client.score(items, metrics=["spice"], reference_set=reference_set)
    return [result["SPICE"] or 0.0 for result in reply]


async def main(address: str) -> None:
    """Store the references, then score the samples of both images at once: the server batches them."""
    async with AsyncClient(address, token=os.environ.get("SPICEGRAPH_TOKEN")) as client:
        created = await client.create_reference_set(REFERENCES, display_name="example")
        found = await asyncio.gather(
            *(rewards(client, created.id, image, captions) for image, captions in SAMPLES.items())
        )
    for (image, captions), values in zip(SAMPLES.items(), found, strict=True):
        for caption, value in zip(captions, values, strict=True):
            sys.stdout.write(f"{image}\t{value:.4f}\t{caption}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "localhost:50051"))
