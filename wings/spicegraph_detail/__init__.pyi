"""The names of the wing by the module that has them: what type checkers read, and ``__init__.py`` at run time."""

from spicegraph_detail.claims import Claim as Claim, Claims as Claims
from spicegraph_detail.client import AsyncDetailClient as AsyncDetailClient, DetailClient as DetailClient
from spicegraph_detail.differences import ClaimDifference as ClaimDifference, Differences as Differences
from spicegraph_detail.metric import Detail as Detail, find_differences as find_differences
