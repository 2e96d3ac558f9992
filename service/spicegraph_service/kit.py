"""What wings and other packages may use of the service, by subject, as ``kit.pyi`` lists it."""
# Other doors are ``spicegraph_service.client`` and ``spicegraph_service.report``. A name is loaded when it is first
# asked for.

from spicegraph_parser.runtime import exports

__all__, _, __getattr__ = exports(__name__, __file__)


def __dir__() -> list[str]:
    return __all__
