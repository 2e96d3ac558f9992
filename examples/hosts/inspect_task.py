"""Inspect: captions scored in a task, here of a model that answers with what it is given."""

from inspect_ai import Task, task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from spicegraph_inspect import captions

REFERENCES = ["a man riding a horse", "a man on a brown horse"]


@task
def captioning() -> Task:
    """One image, named by its prompt, with its references as targets."""
    return Task(dataset=[Sample(input="Describe image 1.", target=REFERENCES)], scorer=captions("spice,rouge"))


if __name__ == "__main__":
    answer = ModelOutput.from_content("mockllm", "a man rides a brown horse")
    answer.usage = ModelUsage()  # else Inspect counts tokens, with a file from the network
    (log,) = evaluate(captioning(), model=get_model("mockllm/model", custom_outputs=[answer]), display="none")
    for score in log.results.scores:
        print(score.name, f"{score.metrics['mean'].value:.3f}")
