"""EvalAI imports the function from here."""

from .main import evaluate
