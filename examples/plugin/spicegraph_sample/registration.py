"""What the package adds to the program. It is read for every ``spicegraph --help``, so it imports next to nothing."""

from typing import Final

from spicegraph_service.kit import Command, ServiceEntry

COMMANDS: Final = (
    Command("frequent-words", "spicegraph_sample.commands:frequent_words", "List the most frequent words.", "Study"),
)

SERVICE: Final = ServiceEntry("spicegraph_sample.service:open_service")
