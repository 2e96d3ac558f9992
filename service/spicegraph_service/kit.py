"""What wings and other packages may use of the service, by subject.

Registration (:class:`Command`, :class:`ServiceEntry`, :class:`StatePart`); tasks of engines, and
files through pyarrow; statuses of calls (``wrong``, ``refused``, ``CallError`` ...), the call under way
(:func:`current_call`), what a server offers to a service (:class:`Host`), the way to its workers (:class:`Scheduler`);
child processes and their frames; the store's errors; validation; the web (:class:`Gateway`, pages); options of
commands, the terminal, tables, grids and charts. Other doors are ``spicegraph_service.client`` and
``spicegraph_service.report``. A name is loaded when it is first asked for.
"""

from spicegraph_parser.runtime import exports

__all__, __getattr__ = exports(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
