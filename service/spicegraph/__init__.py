"""SPICE without Java: scene graphs from captions, scores, error reports, and a client for the server.

    >>> import spicegraph
    >>> spicegraph.parse("A man rides a brown horse.").tuples
    (('man', 'horse', 'ride'), ('horse', 'brown'), ('man',), ('horse',))
    >>> spicegraph.score_captions(["a brown dog"], [["the brown dog", "a puppy"]]).corpus["SPICE"]
    0.8

Captions become scene graphs with ``parse``; ``score`` and ``score_captions`` score captions, ``read`` reads them from
files, ``compare`` tests two systems, ``report`` shows their errors, and ``Client`` asks a server. A name is loaded when
it is first used. The command line is ``spicegraph --help``.
"""

from spicegraph_parser.runtime import exports

__all__, __dir__, __getattr__ = exports(__name__, __file__)
