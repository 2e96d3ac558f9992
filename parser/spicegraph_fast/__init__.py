"""Another runtime for the bundled networks, asked for by the ending ``+fast`` of a pipeline's name.

A wing of the parser, registered as the entry point ``fast`` of the group ``spicegraph.runtimes``; what it needs is
installed by the extra ``fast``.
"""
